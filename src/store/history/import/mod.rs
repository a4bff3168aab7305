//! Imported history: what the prices of a sport were before its own log begins.
//!
//! A sport of a world has at most one. It is a log like the world's own, with keyframes, ticks and lines, under a number
//! of its own (see `list`). It is written once, from its beginning to its end (see `builder`), and listed when it is
//! complete: readers never see a part of it, and an import that breaks off has changed nothing. To add to it, another one
//! is written from what is there and what is new, and takes its place. Whatever is not listed is deleted (see `store`).

mod builder;
mod list;
mod store;

pub use builder::{ImportBuilder, ImportProblem, PreparedImport};
pub use list::ImportedLog;

pub(in crate::store) use list::Imports;
pub(in crate::store) use store::ImportTrim;
