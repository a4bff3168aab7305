//! The stream: every change of a world as server-sent events, in order and each once.
//!
//! - `request` reads what a client wants to follow; `open` lets it, within its limits
//! - `session` is the body of the response: a snapshot, then every change, until a reason to end; `control` has
//!   its events about the stream itself, `outbox` gives every stream its turn, and `timer` is when it has something to do
//!   although nothing changed
//! - `context` is what all streams share: boards, keys, the log, filters in use
//!
//! A client that reconnects with the id of the last event that it saw continues after it: from memory if it was away for a
//! short time, else from the log. A client that reads too slowly gets the last state of what it missed, or a new snapshot.

mod context;
mod control;
mod open;
mod outbox;
mod request;
mod session;
mod timer;

pub(crate) use context::{StreamContext, StreamSettings};
pub(crate) use open::StreamNeed;
#[cfg(test)]
pub(crate) use request::PARAMETERS;
pub(crate) use request::{CHANGES_PARAMETERS, StreamPlan, get, position_gone, read_filter, since};
pub(crate) use session::EventStream;
