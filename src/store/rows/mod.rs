//! Conversion between rows and the model. Reading a row goes through the model's own constructors, so that nothing the
//! model would refuse comes out of a file.

mod admin;
mod odds;
mod stored;
mod world;

use std::sync::Arc;

pub(super) use stored::{Definition, StoredRow};

use crate::model::Timestamp;

/// Assigns a name its number while a row is being encoded.
pub(super) trait NumberNames {
    fn number(&mut self, name: &Arc<str>) -> u32;
}

pub(super) fn seconds(at: Option<Timestamp>) -> Option<u32> {
    at.map(Timestamp::unix)
}

pub(super) fn timestamp(seconds: Option<u32>) -> Option<Timestamp> {
    seconds.map(Timestamp::from_unix)
}
