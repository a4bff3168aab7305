//! The board: immutable snapshots of each world and sport, which every request is answered from.
//!
//! A lookup costs time in proportion to its answer, not to the size of the board. Rendered answers are cached inside the
//! snapshot that they were rendered from, within a bound of bytes, and are dropped with it, so nothing ever has to be
//! invalidated. Nothing here blocks or does I/O.
//!
//! - `snapshot` what is published: worlds, sports, prices; `condition` the state of the service itself
//! - `index`, `node`, `coverage` the events of a sport and how they are searched; `select` finds the results of a query
//! - `query`, `lines` and `v4` what can be asked; `answers` finds or renders the answer; `render` writes its bytes
//! - `derived` best prices, fair prices and edges
//! - `feed` what changed, for clients that follow it
//! - `as_of` a sport as it was; `body` a rendered answer; `target_cache` answers by the raw text of the request target

mod answers;
mod as_of;
mod body;
mod condition;
mod coverage;
mod derived;
mod feed;
mod index;
mod lines;
mod node;
mod query;
mod register;
pub(crate) mod render;
mod select;
mod snapshot;
mod target_cache;
pub mod v4;

pub use as_of::AsOf;
pub use body::{Body, COMPRESS_BYTES_MIN, Encoding};
pub use condition::Condition;
pub use derived::{BestOrder, Derived, DerivedFilter, DerivedQuery, EdgeKind, FairFrom, FairQuery};
pub use feed::{
    Beat, ChangeEntry, ChangeFilter, ChangedRecord, Feed, FilterSpec, LineCounts, ListChange, MergedChanges,
    MovedEvent, NextChange, SourceRead, SportEntry, TickEntry, control_frame,
};
pub use index::{Index, NodeDiff};
pub use lines::{LinesPage, LinesQuery, OutcomeFilter, PageMax, ShownPoint};
pub use node::{Applied, Draft, Edit, EventNode};
pub use query::{CompetitionKeys, Cursor, EventIds, EventScope, EventsQuery, Limit, OddsQuery, ScoresQuery};
pub use register::Register;
pub use snapshot::{Boards, Published, PublishedSource, SourceState, SportBoard, WorldBoard};
pub use target_cache::{CachedAnswer, TargetCache};
