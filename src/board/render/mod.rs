//! Writes answers as JSON: one function for each shape of the API.

use std::cell::RefCell;

use super::body::Body;
use super::query::Cursor;
use bytes::Bytes;
use record_writer::RecordWriter;

mod bouts;
mod closing;
mod derived;
mod events;
pub(crate) mod json;
mod lines;
mod odds;
mod record_writer;
mod scores;
pub(crate) mod v4;

pub(crate) use bouts::bouts;
pub(crate) use closing::{ClosingStyle, closing};
pub(crate) use derived::derived;
pub(crate) use events::{event, events, write_event};
pub(crate) use lines::lines;
pub(crate) use odds::{odds, records};
pub(crate) use scores::{scores, write_score};

thread_local! {
    /// Bodies are written here first and then copied at their exact length. Its capacity is reused, so that writing
    /// an answer rarely allocates.
    static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// The capacity that the buffer keeps between two answers.
const SCRATCH_BYTES_MAX: usize = 1 << 20;

/// A body written record by record; `write` returns where the next page begins.
fn record_body(write: impl FnOnce(&mut RecordWriter<'_>) -> Option<Cursor>) -> Body {
    SCRATCH.with_borrow_mut(|scratch| {
        scratch.truncate(SCRATCH_BYTES_MAX);
        scratch.shrink_to(SCRATCH_BYTES_MAX);
        let mut writer = RecordWriter::new(scratch);
        let next = write(&mut writer);
        Body::new(Bytes::copy_from_slice(writer.written()), next)
    })
}

/// A body written by `write`, which returns where the next page begins.
fn body(write: impl FnOnce(&mut Vec<u8>) -> Option<Cursor>) -> Body {
    SCRATCH.with_borrow_mut(|scratch| {
        scratch.clear();
        scratch.shrink_to(SCRATCH_BYTES_MAX);
        let next = write(scratch);
        Body::new(Bytes::copy_from_slice(scratch), next)
    })
}
