//! The log of each world: what every commit changed that clients can see, in the order of the commits.
//!
//! | table | key | row |
//! |---|---|---|
//! | `log` | world, sequence number | one entry, or a pack of entries: changes of events and scores, and publications of prices, sport by sport |
//! | `ticks` | world, sport, time | the entry of a publication |
//! | `keyframes` | world, sport, sequence number | the whole state of a sport after that entry, compressed |
//! | `lines`, `ends` | world, sport, event | the same changes by event: see `lines` |
//!
//! An entry is written in the same transaction as what it reports. It names nothing twice and holds prices as
//! differences (see `encode`), so it is read from a keyframe on (see `read`). Every sport that the log mentions has a
//! keyframe before its first entry, and upkeep writes another when the entries since have outgrown it, and every few hours.
//! Upkeep also compresses entries that are no longer new into packs, in the same table (see `pack`).
//! Histories that were imported are logs of their own in the same tables (see `import`).
//! The log refers to no other table: an event, a bookmaker or a name that is deleted stays in it.
//!
//! Sequence numbers count the entries of a world, without gaps, and never depend on the clock. If rows that the next
//! entry depends on are damaged, the log begins again from an empty keyframe, under a new epoch.

mod encode;
mod entry;
mod events;
mod fold;
mod forget;
mod frames;
mod import;
mod keyframe;
mod lines;
mod merge;
mod pack;
mod prices;
mod read;
mod reader;
mod reading;
mod row;
mod state;
mod texts;
mod ticks;
mod trim;
mod varint;
mod walk;
mod write;

#[cfg(test)]
mod tests;

pub use entry::{
    EventChange, LogEntry, LoggedChange, LoggedMove, LoggedRecord, LoggedTick, RecordChange, SportChanges, TickChanges,
};
pub use fold::{FoldedEvent, SportFold};
pub use forget::{ForgetOutcome, ForgetProgress, ForgottenEvent, PreparedForget};
pub use import::{ImportBuilder, ImportProblem, ImportedLog, PreparedImport};
pub use lines::{EndsOf, LineBytes, LineRange, PreparedLines};
pub use reader::{Entries, EntryAt, HistoryError, HistoryReader, LogId, LoggedEntry, SportPath};
pub use state::{LogHead, new_epoch};
pub use walk::LogWalk;

pub(super) use import::ImportTrim;
pub(super) use lines::{
    EndsRow, LineRow, check_line_days, check_line_events, delete_lines, rebuild_line_days, rebuild_line_events,
};
pub(super) use read::first_logged;
pub(super) use row::{Frame, KeyframeRow, LogRow};
pub(super) use state::{Logs, WorldLog, fresh_logs, read_logs, write_heads};
pub(super) use ticks::{check_ticks, rebuild_ticks};
pub(super) use write::{Revert, clear_logs, write_reverts, write_ticks};
