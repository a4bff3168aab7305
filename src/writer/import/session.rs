//! One import: the changes of an input, in their order, merged with what was imported before.

use std::collections::{BTreeMap, VecDeque};

use super::super::future::AHEAD_MAX_S;
use super::super::{WriteError, WriterHandle};
use super::{ImportEnd, ImportStart, ImportStep};
use crate::model::{EventId, HistoryChange, Reason, SportId, Timestamp, World};
use crate::store::{HistoryError, ImportProblem, LogId, LogWalk, StoreError};

/// So many entries of what was imported before are read at a time.
const ENTRIES_READ: u64 = 256;

/// An import on its way to the writer. Nothing of it is seen before its end.
#[derive(Debug)]
pub struct HistoryImport {
    writer: WriterHandle,
    world: World,
    sports: BTreeMap<SportId, SportImport>,
    /// An event that is left out of what was imported before.
    without: Option<EventId>,
}

/// What an import has added.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ImportReport {
    /// The changes that its sports have now, and those that they had before.
    pub changes: u64,
    pub changes_before: u64,
}

#[derive(Debug)]
struct SportImport {
    writer: WriterHandle,
    start: ImportStart,
    old: Option<OldHistory>,
    changes_before: u64,
    /// Whether it need not be abandoned any more.
    is_ended: bool,
}

/// What was imported before.
#[derive(Debug)]
struct OldHistory {
    walk: Option<LogWalk>,
    next: VecDeque<(Timestamp, HistoryChange)>,
}

impl HistoryImport {
    pub fn new(writer: &WriterHandle, world: World) -> Self {
        HistoryImport { writer: writer.clone(), world, sports: BTreeMap::new(), without: None }
    }

    /// Deletes an event from what was imported of a sport; returns how many changes it had.
    pub async fn forget(
        writer: &WriterHandle,
        world: World,
        sport: SportId,
        event: EventId,
    ) -> Result<u64, WriteError> {
        let mut import = HistoryImport { without: Some(event), ..HistoryImport::new(writer, world) };
        import.sport(sport).await?;
        let ImportReport { changes, changes_before } = import.finish().await?;
        Ok(changes_before.saturating_sub(changes))
    }

    /// Adds a change. The changes of a sport come in the order of time.
    pub async fn push(
        &mut self,
        sport: SportId,
        at: Timestamp,
        change: HistoryChange,
    ) -> Result<Result<(), Reason>, WriteError> {
        let without = self.without.clone();
        let import = self.sport(sport).await?;
        if let Err(reason) = import.start.accepts(at) {
            return Ok(Err(reason));
        }
        import.take_old(at, without.as_ref()).await?;
        let pushed = import.start.builder.push(at, change)?;
        import.write_rows().await?;
        Ok(pushed.map_err(|problem| match problem {
            ImportProblem::OutOfOrder => Reason::OutOfOrder,
            ImportProblem::UnknownEvent => Reason::UnknownEvent,
        }))
    }

    async fn sport(&mut self, sport: SportId) -> Result<&mut SportImport, WriteError> {
        if !self.sports.contains_key(&sport) {
            let start = self.writer.begin_import(self.world, sport).await?;
            let import = SportImport::new(&self.writer, start, sport).await?;
            self.sports.insert(sport, import);
        }
        self.sports.get_mut(&sport).ok_or_else(|| StoreError::Cancelled.into())
    }

    /// Completes the import: readers see it, sport by sport.
    pub async fn finish(mut self) -> Result<ImportReport, WriteError> {
        let mut report = ImportReport::default();
        for import in self.sports.values_mut() {
            import.take_old(Timestamp::from_unix(u32::MAX), self.without.as_ref()).await?;
            report.changes_before += import.changes_before;
            report.changes += import.finish().await?;
        }
        Ok(report)
    }
}

impl ImportStart {
    /// Why a time cannot be imported.
    fn accepts(&self, at: Timestamp) -> Result<(), Reason> {
        // A publication may be dated a little ahead, and clocks differ.
        if at > self.now.plus_seconds(AHEAD_MAX_S) {
            return Err(Reason::InFuture);
        }
        if at < self.keep_from {
            return Err(Reason::BeforeRetention);
        }
        if self.own_since.is_some_and(|since| at >= since) {
            return Err(Reason::AfterOwnHistory);
        }
        Ok(())
    }
}

impl SportImport {
    async fn new(writer: &WriterHandle, start: ImportStart, sport: SportId) -> Result<Self, WriteError> {
        let writer = writer.clone();
        // From here on it is abandoned when it is dropped.
        let mut import = SportImport { writer, start, old: None, changes_before: 0, is_ended: false };
        if let Some(before) = import.start.before {
            let history = import.writer.history().clone();
            let read = move || {
                let log = before.id();
                Ok((history.walk(log, sport, None)?, history.changes(log)?))
            };
            let ((walk, start), changes): (_, u64) = blocking(read).await?;
            import.old = Some(OldHistory { walk: Some(walk), next: start.into() });
            import.changes_before = changes;
        }
        Ok(import)
    }

    /// Takes what was imported before, up to a time.
    async fn take_old(&mut self, to: Timestamp, without: Option<&EventId>) -> Result<(), WriteError> {
        while let Some(old) = &mut self.old {
            while let Some((at, change)) = old.next.pop_front_if(|(at, _)| *at <= to) {
                if without.is_none_or(|event| event_of(&change) != Some(event)) {
                    // It was taken once: nothing is wrong with it.
                    let _ = self.start.builder.push(at, change)?;
                }
            }
            if !old.next.is_empty() {
                break;
            }
            let Some(mut walk) = old.walk.take() else {
                self.old = None;
                break;
            };
            let history = self.writer.history().clone();
            let (walk, changes) = blocking(move || {
                let changes = history.walk_on(&mut walk, ENTRIES_READ)?;
                Ok((walk, changes))
            })
            .await?;
            let is_end = changes.is_empty();
            old.next = changes.into();
            old.walk = (!is_end).then_some(walk);
            self.write_rows().await?;
        }
        Ok(())
    }

    async fn write_rows(&mut self) -> Result<(), WriteError> {
        while let Some(rows) = self.start.builder.take_rows() {
            self.writer.write_import(ImportStep::Rows(rows)).await?;
        }
        Ok(())
    }

    /// Writes the rest and the lines, and lists the history. Returns how many changes it has.
    async fn finish(&mut self) -> Result<u64, WriteError> {
        let (log, before) = (self.start.builder.log(), self.start.before);
        let rows = self.start.builder.finish()?;
        let changes = self.start.builder.changes();
        let end = if changes > 0 {
            self.writer.write_import(ImportStep::Rows(rows)).await?;
            self.write_lines(log.id()).await?;
            ImportEnd::Complete { before }
        } else {
            ImportEnd::Empty { before }
        };
        self.is_ended = true;
        if self.writer.end_import(log, end).await? {
            Ok(changes)
        } else {
            let message = "another import of the same sport ended meanwhile, so this one was not kept: run it again";
            Err(StoreError::Refused(message.to_owned()).into())
        }
    }

    async fn write_lines(&self, log: LogId) -> Result<(), WriteError> {
        loop {
            let history = self.writer.history().clone();
            let Some(lines) = blocking(move || history.prepare_lines(log)).await? else { return Ok(()) };
            self.writer.write_import(ImportStep::Lines(lines)).await?;
        }
    }
}

impl Drop for SportImport {
    fn drop(&mut self) {
        if !self.is_ended
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            let (writer, log) = (self.writer.clone(), self.start.builder.log());
            // If the writer is gone, the next start deletes what was written.
            drop(runtime.spawn(async move { writer.end_import(log, ImportEnd::Abandoned).await }));
        }
    }
}

fn event_of(change: &HistoryChange) -> Option<&EventId> {
    match change {
        HistoryChange::Event(event) => Some(&event.id),
        HistoryChange::Score(event, _) | HistoryChange::Removed(event) => Some(event),
        HistoryChange::Price(price) => Some(&price.event),
        HistoryChange::Source(..) | HistoryChange::Tick | HistoryChange::Observed(_) => None,
    }
}

/// Reads the file on a thread that may wait.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, HistoryError> + Send + 'static,
) -> Result<T, WriteError> {
    let done = tokio::task::spawn_blocking(work).await.map_err(|_| StoreError::Cancelled)?;
    Ok(done.map_err(HistoryError::into_store)?)
}
