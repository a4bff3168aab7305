//! A stream of history on its way in.

use super::intake::Intake;
use super::responses::Documents;
use crate::ingest::error::IngestError;
use crate::ingest::feed::{Feed, IngestContext};
use crate::ingest::lines::LineSplitter;
use crate::ingest::options::HistoryInput;
use crate::ingest::report::IngestSummary;

/// A stream of history on its way in. Nothing of it is seen before its end.
#[derive(Debug)]
pub struct HistoryStream {
    parts: Parts,
    intake: Intake,
}

/// What a stream is made of.
#[derive(Debug)]
enum Parts {
    Lines(LineSplitter),
    Responses(Documents),
}

impl HistoryStream {
    pub fn open(options: HistoryInput, feed: Feed, context: &IngestContext) -> Result<Self, IngestError> {
        let parts = match options.payload {
            None => Parts::Lines(LineSplitter::default()),
            Some(_) => Parts::Responses(Documents::default()),
        };
        Ok(HistoryStream { parts, intake: Intake::new(options, feed, context)? })
    }

    /// Reads the next chunk of the stream.
    pub async fn push(&mut self, mut bytes: &[u8]) -> Result<(), IngestError> {
        self.intake.add_bytes(bytes.len());
        match &mut self.parts {
            Parts::Lines(splitter) => {
                while let Some(line) = splitter.next(&mut bytes) {
                    self.intake.line(line).await?;
                }
            }
            Parts::Responses(documents) => {
                documents.push(bytes)?;
                for document in documents.take(false) {
                    self.intake.response(&document).await?;
                }
            }
        }
        Ok(())
    }

    /// Ends the stream: readers see what it brought.
    pub async fn finish(mut self) -> Result<IngestSummary, IngestError> {
        match &mut self.parts {
            Parts::Lines(splitter) => {
                if let Some(line) = splitter.last() {
                    self.intake.line(line).await?;
                }
            }
            Parts::Responses(documents) => {
                for document in documents.take(true) {
                    self.intake.response(&document).await?;
                }
            }
        }
        self.intake.finish().await
    }
}
