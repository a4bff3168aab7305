//! A stream of feed lines on its way in.
//!
//! Bytes come in chunks of any size; whole lines are read, collected into batches and handed to the writer. The next batch
//! is read while the writer has one, and then waits for it: no more than two batches and one line are ever in memory. A
//! strict input is spooled instead, and written at its end.

use std::sync::Arc;

use super::delivery::{Delivery, DeliveryBatch, SentBatch, describe};
use super::error::IngestError;
use super::feed::{Feed, IngestContext};
use super::lines::{LineSplitter, SplitLine};
use super::options::IngestOptions;
use super::report::IngestSummary;
use super::spool::Spool;
use super::wire::{self, LINE_BYTES_MAX, Rejection};
use crate::model::{Catalogue, Reason};

/// Each batch is one commit, whose fixed cost these lines share.
const BATCH_LINES_MAX: usize = 4000;
const BATCH_BYTES_MAX: usize = 4 << 20;
/// After so many lines other tasks have their turn.
const TURN_LINES: u64 = 256;

/// A stream of feed lines on its way in.
#[derive(Debug)]
pub struct LineStream {
    splitter: LineSplitter,
    reader: LineReader,
    /// The batch that the writer has, and the lines up to its end.
    sent: Option<(SentBatch, u64)>,
    /// See [`LineStream::taken_lines`].
    taken_lines: u64,
    /// Where a strict input waits.
    spool: Option<Spool>,
}

/// What lines are read with, and what has become of them.
#[derive(Debug)]
struct LineReader {
    catalogue: Arc<Catalogue>,
    delivery: Delivery,
    batch: DeliveryBatch,
    batch_bytes: usize,
    /// Every line, blank ones included, as an editor counts.
    line_count: u64,
}

impl LineStream {
    pub async fn open(options: IngestOptions, feed: Feed, context: &IngestContext) -> Result<Self, IngestError> {
        let spool = if options.strict { Some(Spool::open(context.data.clone()).await?) } else { None };
        let reader = LineReader {
            catalogue: Arc::clone(context.boards.catalogue()),
            delivery: Delivery::new(options, feed, context),
            batch: DeliveryBatch::default(),
            batch_bytes: 0,
            line_count: 0,
        };
        Ok(LineStream { splitter: LineSplitter::default(), reader, sent: None, taken_lines: 0, spool })
    }

    /// The lines from the start of the stream that are done with: written, or rejected and counted. They need not be
    /// sent again.
    pub fn taken_lines(&self) -> u64 {
        self.taken_lines
    }

    /// Reads the next chunk of the stream, and waits for the writer when a batch is full and another one is with it.
    pub async fn push(&mut self, mut bytes: &[u8]) -> Result<(), IngestError> {
        if let Some(spool) = &mut self.spool {
            spool.write(bytes).await?;
        }
        self.reader.delivery.add_bytes(bytes.len());
        while let Some(line) = self.splitter.next(&mut bytes) {
            self.reader.read(line);
            if self.reader.is_batch_full() {
                self.flush(false).await?;
            } else if self.reader.line_count.is_multiple_of(TURN_LINES) {
                tokio::task::yield_now().await;
            }
        }
        Ok(())
    }

    /// Hands on the lines that have come so far, for a stream that pauses.
    pub async fn pause(&mut self) -> Result<(), IngestError> {
        self.settle().await?;
        if self.taken_lines == self.reader.line_count {
            return Ok(());
        }
        self.flush(false).await?;
        self.settle().await
    }

    /// Ends the stream: what is left is written, and a strict input as a whole.
    pub async fn finish(&mut self) -> Result<IngestSummary, IngestError> {
        if let Some(line) = self.splitter.last() {
            self.reader.read(line);
        }
        self.flush(true).await?;
        self.settle().await?;
        if let Some(spool) = self.spool.take() {
            self.finish_spooled(spool).await?;
        }
        Ok(self.reader.delivery.summary())
    }

    async fn finish_spooled(&mut self, mut spool: Spool) -> Result<(), IngestError> {
        let LineReader { catalogue, delivery, .. } = &mut self.reader;
        let news = spool.news(Arc::clone(catalogue)).await?;
        let rejected = delivery.send_whole(news, &[]).await?;
        let lines = spool.lines_at(&rejected, Arc::clone(catalogue)).await?;
        for ((number, text), (_, reason)) in lines.into_iter().zip(rejected) {
            delivery.show(number, reason, describe(reason, None), Some(&text));
        }
        Ok(())
    }

    async fn flush(&mut self, is_end: bool) -> Result<(), IngestError> {
        let batch = self.reader.take_batch();
        if self.spool.is_some() {
            return Ok(());
        }
        self.settle().await?;
        self.sent = Some((self.reader.delivery.begin(batch, is_end).await?, self.reader.line_count));
        Ok(())
    }

    /// Waits for the batch that the writer has.
    async fn settle(&mut self) -> Result<(), IngestError> {
        if let Some((sent, line_count)) = self.sent.take() {
            self.reader.delivery.complete(sent).await?;
            self.taken_lines = line_count;
        }
        Ok(())
    }

    /// Notes in the feed's account that the stream failed. What the writer has by then still counts.
    pub(super) async fn fail(&mut self, error: &IngestError) {
        let _ = self.settle().await;
        self.reader.delivery.fail(error);
    }
}

impl LineReader {
    /// Adds the news of a line to the batch, or counts why it has none.
    fn read(&mut self, line: SplitLine<'_>) {
        self.line_count += 1;
        let text = match line {
            SplitLine::Text(text) if text.trim_ascii().is_empty() => return,
            SplitLine::Text(text) => text,
            SplitLine::TooLong => {
                let detail = format!("a line has at most {LINE_BYTES_MAX} bytes");
                return self.delivery.reject(self.line_count, &Rejection::new(Reason::LineTooLong, detail), None);
            }
        };
        match wire::read(text, &self.catalogue) {
            Err(rejection) => self.delivery.reject(self.line_count, &rejection, Some(text)),
            Ok(read) => {
                self.delivery.drop_outcomes(read.dropped.iter().map(|outcome| (outcome.reason, 1)));
                self.batch_bytes += text.len();
                self.batch.push(read.news, self.line_count, text);
            }
        }
    }

    fn is_batch_full(&self) -> bool {
        self.batch.news.len() >= BATCH_LINES_MAX || self.batch_bytes >= BATCH_BYTES_MAX
    }

    fn take_batch(&mut self) -> DeliveryBatch {
        self.batch_bytes = 0;
        std::mem::take(&mut self.batch)
    }
}
