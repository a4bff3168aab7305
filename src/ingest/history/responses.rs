//! Splits a stream of bytes into JSON documents, whatever chunks it comes in, within a bound of memory.

use serde_json::value::RawValue;

use crate::ingest::error::IngestError;
use crate::ingest::the_odds_api::PAYLOAD_BYTES_MAX;

/// The part of the stream that no whole document was found in.
#[derive(Debug, Default)]
pub(super) struct Documents {
    bytes: Vec<u8>,
    /// There is no point in looking again before there are so many bytes: a long document would be read over and over.
    look_at: usize,
}

const LOOK_AT_MIN: usize = 64 << 10;

impl Documents {
    pub(super) fn push(&mut self, bytes: &[u8]) -> Result<(), IngestError> {
        if self.bytes.len() + bytes.len() > PAYLOAD_BYTES_MAX {
            return Err(IngestError::PayloadTooLarge);
        }
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    /// The documents that are whole; at the end of the stream, also what is not.
    pub(super) fn take(&mut self, is_end: bool) -> Vec<Vec<u8>> {
        if self.bytes.len() < self.look_at.max(LOOK_AT_MIN) && !is_end {
            return Vec::new();
        }
        let mut found = Vec::new();
        let mut documents = serde_json::Deserializer::from_slice(&self.bytes).into_iter::<Box<RawValue>>();
        let mut done = 0;
        while let Some(Ok(document)) = documents.next() {
            // A number at the end may go on, and is no response anyway.
            done = documents.byte_offset();
            found.push(document.get().as_bytes().to_vec());
        }
        self.bytes.drain(..done);
        self.look_at = self.bytes.len() * 2;
        if is_end && !self.bytes.trim_ascii().is_empty() {
            found.push(std::mem::take(&mut self.bytes));
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_found_in_any_chunks() {
        let text = b"{\"a\":[1,2]}\n\n[{\"b\":\"}\"}] {\"c\":null}";
        for size in 1..text.len() {
            let (mut documents, mut found) = (Documents::default(), Vec::new());
            for chunk in text.chunks(size) {
                documents.push(chunk).unwrap();
                found.extend(documents.take(false));
            }
            found.extend(documents.take(true));
            let found: Vec<_> = found.iter().map(|text| String::from_utf8_lossy(text).into_owned()).collect();
            assert_eq!(found, ["{\"a\":[1,2]}", "[{\"b\":\"}\"}]", "{\"c\":null}"], "chunks of {size}");
        }
    }

    #[test]
    fn what_is_no_document_is_found_at_the_end() {
        let mut documents = Documents::default();
        documents.push(b"{\"a\":1} {\"b\":").unwrap();
        assert_eq!(documents.take(true), [b"{\"a\":1}".to_vec(), b" {\"b\":".to_vec()]);
        assert!(documents.take(true).is_empty());
    }

    #[test]
    fn long_documents_are_not_read_over_and_over() {
        let text = format!("{{\"a\":\"{}\"}}", "x".repeat(4 << 20));
        let (mut documents, mut looks) = (Documents::default(), 0);
        for chunk in text.as_bytes().chunks(16 << 10) {
            documents.push(chunk).unwrap();
            let before = documents.look_at;
            documents.take(false);
            looks += usize::from(documents.look_at != before);
        }
        assert!(looks < 12, "{looks}");
    }
}
