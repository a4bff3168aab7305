//! The board: what readers are answered from.
//!
//! Snapshots of each world and sport that never change, behind an atomic pointer. A lookup costs what its answer
//! costs, not what the board holds; a rendered answer is kept inside the snapshot that it was rendered from, within
//! a bound of bytes, and dies with it. Nothing here waits, and nothing here reads a disk.

mod body;
mod books;
mod condition;
mod coverage;
mod index;
mod node;
mod query;
pub(crate) mod render;
mod select;
mod snapshot;
pub mod v4;
mod words;

pub use body::{Body, COMPRESS_BYTES_MIN, Encoding};
pub use books::Books;
pub use condition::Condition;
pub use index::Index;
pub use node::{Applied, Draft, Edit, EventNode};
pub use query::{Cursor, EventIds, EventsQuery, Limit, OddsQuery, ScoresQuery};
pub use snapshot::{Boards, Published, PublishedSource, SourceState, SportBoard, WorldBoard};
pub use words::{Said, Words};
