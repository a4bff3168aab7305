//! Answers as bytes: one function for each shape of the interface, straight from the records.

mod bouts;
mod events;
pub(crate) mod json;
mod odds;
mod scores;

pub(crate) use bouts::bouts;
pub(crate) use events::{event, events};
pub(crate) use odds::odds;
pub(crate) use scores::scores;
