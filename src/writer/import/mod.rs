//! Imports of history: the writer hands out a log to write, commits its rows, and lists it when it is complete.

mod session;

use super::{WriteError, Writer};
use crate::model::{SportId, Timestamp, World};
use crate::store::{HistoryError, ImportBuilder, ImportedLog, PreparedImport, PreparedLines, StoreError};

pub use session::{HistoryImport, ImportReport};

/// The beginning of an import for a sport.
#[derive(Debug)]
pub struct ImportStart {
    pub(super) builder: Box<ImportBuilder>,
    /// What was imported of the sport before.
    pub(super) before: Option<ImportedLog>,
    /// What is imported lies before the sport's own log, and within what is kept.
    pub(super) own_since: Option<Timestamp>,
    pub(super) keep_from: Timestamp,
    pub(super) now: Timestamp,
}

/// A piece of an import that only has to be committed.
#[derive(Debug)]
pub enum ImportStep {
    Rows(PreparedImport),
    Lines(PreparedLines),
}

/// How an import ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImportEnd {
    /// It is complete, and takes the place of the one that was there when it began.
    Complete {
        before: Option<ImportedLog>,
    },
    /// Nothing is left of the one that was there.
    Empty {
        before: Option<ImportedLog>,
    },
    Abandoned,
}

impl Writer {
    /// Begins an import for a sport. It must be ended.
    pub fn begin_import(&mut self, world: World, sport: SportId) -> Result<ImportStart, WriteError> {
        self.refuse_in_cluster()?;
        if self.is_unwritable() {
            return Err(StoreError::NeedsReopen.into());
        }
        let now = self.clock.now().timestamp();
        let own_since = self.store.history().own_since(world, sport).map_err(HistoryError::into_store)?;
        let (builder, before) = self.store.begin_import(world, sport, &self.imports)?;
        self.imports.push(builder.log());
        let keep_from = self.kept_since(world, now);
        Ok(ImportStart { builder: Box::new(builder), before, own_since, keep_from, now })
    }

    pub fn write_import(&mut self, step: ImportStep) -> Result<(), WriteError> {
        self.write_beside_changes(|store| match &step {
            ImportStep::Rows(rows) => store.write_import(rows),
            ImportStep::Lines(lines) => store.write_lines(lines),
        })
    }

    /// Ends an import; returns whether it took effect. It does not if another one was imported meanwhile.
    pub fn end_import(&mut self, log: ImportedLog, end: ImportEnd) -> Result<bool, WriteError> {
        let ended = match end {
            ImportEnd::Complete { before } => self.store.finish_import(log, before),
            ImportEnd::Empty { before: Some(before) } => self.store.unlist_import(before),
            ImportEnd::Empty { before: None } | ImportEnd::Abandoned => Ok(true),
        };
        // Whatever is not listed is deleted.
        self.imports.retain(|active| *active != log);
        let is_ended = ended?;
        self.read_log_heads()?;
        for world in World::ALL {
            self.show_history_since(world);
        }
        Ok(is_ended)
    }
}
