//! An operation as an entry of the shared log.
//!
//! The first line is a JSON object with the operation; news follow as feed lines, one for each message. A line that begins
//! with `+` is a bookmaker as a payload lists it, which a feed line cannot say. A long entry is compressed with zstd. What is
//! read back is what was written, so a node comes to the same state by its own operations and by those of others.

mod fields;
mod keys;
mod lines;
mod news;
mod service;
mod tokens;

#[cfg(test)]
mod tests;

use std::io::{self, Read};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::model::Catalogue;
use crate::writer::SharedOperation;
use crate::writer::operation::NewsReader;

use keys::KeyFields;
use lines::NewsLines;
use news::NewsFields;
use service::ServiceFields;
use tokens::TokenFields;

/// Longer entries are compressed.
const PLAIN_BYTES_MAX: usize = 512;
/// Favours speed: an entry is read once by each node, and is gone after some minutes.
const LEVEL: i32 = 1;
/// The longest entry. The engine keeps all of them in memory.
pub const ENTRY_BYTES_MAX: usize = 64 << 20;
/// The longest entry before it is compressed.
const TEXT_BYTES_MAX: u64 = 512 << 20;
/// The first byte of what zstd makes. JSON does not begin with it.
const ZSTD: u8 = 0x28;

/// Why an operation cannot be entered, or an entry cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum EntryError {
    #[error("the news could not be read: {0}")]
    News(io::Error),
    #[error("it would take more than {} MiB of the log that the nodes share: send it in parts", ENTRY_BYTES_MAX >> 20)]
    TooLong,
    #[error("an entry of the log that the nodes share cannot be read: {0}")]
    Unreadable(Box<str>),
}

impl EntryError {
    fn unreadable(reason: impl ToString) -> Self {
        EntryError::Unreadable(reason.to_string().into())
    }
}

/// An operation without its news.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Header {
    Key(KeyFields),
    Token(TokenFields),
    News(NewsFields),
    Service(ServiceFields),
}

/// The bytes of an operation.
pub fn encode(operation: SharedOperation, catalogue: &Catalogue) -> Result<Vec<u8>, EntryError> {
    let (header, news) = split(operation, catalogue);
    let mut text = serde_json::to_vec(&header).map_err(EntryError::unreadable)?;
    text.push(b'\n');
    for news in news.into_iter().flat_map(|news| news.0) {
        lines::write(&news.map_err(EntryError::News)?, catalogue, &mut text);
        if text.len() as u64 > TEXT_BYTES_MAX {
            return Err(EntryError::TooLong);
        }
    }
    let entry = if text.len() > PLAIN_BYTES_MAX { zstd::encode_all(&*text, LEVEL) } else { Ok(text) };
    let entry = entry.map_err(EntryError::News)?;
    if entry.len() > ENTRY_BYTES_MAX { Err(EntryError::TooLong) } else { Ok(entry) }
}

/// The operation of an entry.
pub fn decode(entry: &[u8], catalogue: &Arc<Catalogue>) -> Result<SharedOperation, EntryError> {
    if entry.len() > ENTRY_BYTES_MAX {
        return Err(EntryError::unreadable("it is longer than any that a node enters"));
    }
    let text = match entry.first() {
        Some(&ZSTD) => decompress(entry, TEXT_BYTES_MAX).map_err(EntryError::unreadable)?,
        _ => entry.to_vec(),
    };
    let header_end = text.iter().position(|byte| *byte == b'\n').unwrap_or(text.len());
    let header: Header = serde_json::from_slice(&text[..header_end]).map_err(EntryError::unreadable)?;
    let news = NewsLines::new(text, header_end + 1, catalogue);
    match header {
        Header::Key(fields) => fields.operation(),
        Header::Token(fields) => fields.operation(),
        Header::News(fields) => fields.operation(news, catalogue),
        Header::Service(fields) => fields.operation(catalogue),
    }
}

/// At most so much, whatever an entry says.
fn decompress(entry: &[u8], bytes_max: u64) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    let read = zstd::Decoder::new(entry)?.take(bytes_max + 1).read_to_end(&mut text)?;
    if read as u64 > bytes_max { Err(io::ErrorKind::FileTooLarge.into()) } else { Ok(text) }
}

/// An operation as the two parts of an entry.
fn split(operation: SharedOperation, catalogue: &Catalogue) -> (Header, Option<NewsReader>) {
    use SharedOperation as Op;
    let header = match operation {
        Op::IssueKey(operation) => Header::Key(operation.into()),
        Op::RotateKey(operation) => Header::Key(operation.into()),
        Op::RotateOwnKey(operation) => Header::Key(operation.into()),
        Op::UndoRotation(operation) => Header::Key(operation.into()),
        Op::RevokeKey(operation) => Header::Key(operation.into()),
        Op::SetKey(operation) => Header::Key(operation.into()),
        Op::RecordUse(operation) => Header::Key(operation.into()),
        Op::IssueToken(operation) => Header::Token(operation.into()),
        Op::RotateToken(operation) => Header::Token(operation.into()),
        Op::RevokeToken(operation) => Header::Token(operation.into()),
        Op::Ingest(operation) => {
            let (fields, news) = NewsFields::of_ingest(operation);
            return (Header::News(fields), Some(news));
        }
        Op::IngestWhole(operation) => {
            let (fields, news) = NewsFields::of_whole(operation);
            return (Header::News(fields), Some(news));
        }
        Op::Poll(poll) => {
            let (fields, news) = NewsFields::of_poll(poll, catalogue);
            return (Header::News(fields), Some(news));
        }
        Op::EndRound(operation) => Header::News(NewsFields::of_round(&operation, catalogue)),
        Op::RetainPolled(operation) => Header::News(operation.into()),
        Op::EndPoll(operation) => Header::News(operation.into()),
        Op::PutFeedBudget(operation) => Header::News(operation.into()),
        Op::SetMaintenance(operation) => Header::Service(operation.into()),
        Op::MarkSimulated(operation) => Header::Service(operation.into()),
        Op::WriteAudit(operation) => Header::Service(operation.into()),
        Op::Publication(publication) => Header::Service(ServiceFields::of_publication(&publication, catalogue)),
        Op::Sweep(sweep) => Header::Service(sweep.into()),
    };
    (header, None)
}
