//! Answers as bytes: one function for each shape of the interface, straight from the records.

use std::cell::RefCell;

use super::body::Body;
use super::query::Cursor;
use bytes::Bytes;
use pen::Pen;

mod bouts;
mod events;
pub(crate) mod json;
mod odds;
mod pen;
mod scores;
pub(crate) mod v4;

pub(crate) use bouts::bouts;
pub(crate) use events::{event, events};
pub(crate) use odds::odds;
pub(crate) use scores::scores;

thread_local! {
    /// Where bodies are written before they are kept: it has grown to size after a few answers, so that writing one
    /// allocates nothing, and what is kept is exactly as long as it must be.
    static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// What the scratch may keep between two answers.
const SCRATCH_BYTES_MAX: usize = 1 << 20;

/// A body that a pen writes; `write` returns where the next page begins.
fn penned(write: impl FnOnce(&mut Pen<'_>) -> Option<Cursor>) -> Body {
    SCRATCH.with_borrow_mut(|scratch| {
        scratch.truncate(SCRATCH_BYTES_MAX);
        scratch.shrink_to(SCRATCH_BYTES_MAX);
        let mut pen = Pen::new(scratch);
        let next = write(&mut pen);
        Body::new(Bytes::copy_from_slice(pen.written()), next)
    })
}

/// A body from what `write` writes; it returns where the next page begins.
fn body(write: impl FnOnce(&mut Vec<u8>) -> Option<Cursor>) -> Body {
    SCRATCH.with_borrow_mut(|scratch| {
        scratch.clear();
        scratch.shrink_to(SCRATCH_BYTES_MAX);
        let next = write(scratch);
        Body::new(Bytes::copy_from_slice(scratch), next)
    })
}
