//! Exports, as lines that `ingest` takes back: a world as it is now, or its history.

mod border;
mod history;
mod options;
mod world;

pub use history::HistoryRange;
#[cfg(test)]
pub(crate) use history::start as export_history;
pub use options::ExportOptions;
#[cfg(test)]
pub(crate) use world::start as export_world;

use super::pieces::PieceSource;
use crate::board::Boards;
use crate::store::HistoryReader;

const PIECE_BYTES: usize = 64 << 10;

/// Begins an export.
pub(super) fn start(options: ExportOptions, boards: &Boards, history: &HistoryReader) -> PieceSource {
    match options {
        ExportOptions::World(world) => world::start(world, boards),
        ExportOptions::History(range) => history::start(range, boards, history),
    }
}
