//! Lines: what the log says, once more in the order of events, so that the history of one is read without the others'.
//!
//! | table | key | row |
//! |---|---|---|
//! | `line_keys` | number | the key of a bookmaker or of a market |
//! | `ends` | world, sport, event | the event, and the opening and the closing price of each of its records |
//! | `lines` | world, sport, event, block and piece | the changes of its records, record by record |
//! | `line_events` | world, sport, hash of the event's id, event | an index |
//! | `line_days` | world, sport, day of the event's start, event | an index |
//!
//! They are written in upkeep, from keyframe to keyframe (see `rewrite`); a reader takes what came after that from the log
//! (see `follow`), of which the last part is in memory (see `tail`). Events have numbers of their own here, in the order in
//! which they were first seen.

mod block;
mod ends;
mod event;
mod follow;
mod growing;
mod index;
mod keys;
mod pieces;
mod read;
mod rewrite;
mod tail;
mod trim;

#[cfg(test)]
mod tests;

pub use read::{EndsOf, LineRange};
pub use rewrite::{LineBytes, PreparedLines};

pub(in crate::store) use ends::EndsRow;
pub(super) use event::is_in_lines;
pub(in crate::store) use index::{check_line_days, check_line_events, rebuild_line_days, rebuild_line_events};
pub(in crate::store) use pieces::LineRow;
pub(super) use read::{KeptTails, read_ends, read_event_lines};
pub(in crate::store) use rewrite::{LinesHead, delete_lines, delete_lines_of, prepare_lines};
pub(in crate::store) use tail::Tails;
pub(in crate::store) use trim::{delete_event_lines, trim_lines};
