//! What the writer does by itself as time passes: ends of life, and healing after a full disk.

use std::sync::Arc;

use super::batch::{SportStep, Step};
use super::owners::Additions;
use super::poll;
use super::state::{WorldState, forget_the_future, source_states};
use super::{WriteError, Writer};
use crate::board::EventNode;
use crate::clock::{Moment, StepWatch};
use crate::model::{EventStatus, News, Source, SportId, Timestamp, World};
use crate::store::Change;

const SWEEP_EVERY_MS: u64 = 60_000;
const HEAL_EVERY_MS: u64 = 1_000;
/// What is held is compared with the clock, which may have been set back, about this often.
const COMPARE_EVERY_MS: u64 = 1_000;
/// Unused names are dropped about this often.
const NAMES_EVERY_MS: u64 = 3_600_000;
/// As many events as one sweep takes out, so that a sweep never holds up other operations for long.
const REMOVED_PER_SWEEP: usize = 1_000;
/// A source that holds no price for this long is retired.
const RETIRE_AFTER_S: u32 = 24 * 3600;
/// An event that began at least this long ago, of which nobody has told anything since, may be taken for over.
const FORGOTTEN_AFTER_S: u32 = 24 * 3600;

/// When each chore was last done, on the clock that only grows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Schedule {
    swept_ms: u64,
    healed_ms: u64,
    names_ms: u64,
    compared_ms: u64,
    steps: StepWatch,
}

impl Schedule {
    pub(super) fn starting(now_mono_ms: u64) -> Self {
        let now_ms = now_mono_ms;
        let steps = StepWatch::default();
        Schedule { swept_ms: now_ms, healed_ms: now_ms, names_ms: now_ms, compared_ms: now_ms, steps }
    }
}

/// Whether `every_ms` have passed since `last_ms`; if so, the chore is noted as done now.
fn is_due(last_ms: &mut u64, every_ms: u64, now_ms: u64) -> bool {
    let due = now_ms.saturating_sub(*last_ms) >= every_ms;
    if due {
        *last_ms = now_ms;
    }
    due
}

impl Writer {
    /// Does whatever has come due: publications, ends of life, healing.
    pub fn tick(&mut self) {
        let now = self.clock.now();
        if is_due(&mut self.upkeep.compared_ms, COMPARE_EVERY_MS, now.mono_ms) {
            self.forget_the_future(now.timestamp());
            self.report_clock_step(now);
            if !self.boards.condition().is_unwritable() {
                self.mend_future(now.timestamp());
            }
        }
        self.publish_due(now.unix_ms);
        if self.is_unwritable() && is_due(&mut self.upkeep.healed_ms, HEAL_EVERY_MS, now.mono_ms) {
            self.heal();
        }
        if is_due(&mut self.upkeep.swept_ms, SWEEP_EVERY_MS, now.mono_ms)
            && let Err(error) = self.sweep(now.timestamp())
        {
            tracing::warn!(%error, "events past their retention stay a little longer");
        }
        if is_due(&mut self.upkeep.names_ms, NAMES_EVERY_MS, now.mono_ms)
            && let Err(error) = self.store.sweep_names()
        {
            tracing::warn!(%error, "unused names stay a little longer");
        }
    }

    /// Quotas do not follow a wall clock that was set: the operator has to know why they return at another hour.
    fn report_clock_step(&mut self, now: Moment) {
        let Some(ahead_ms) = self.upkeep.steps.look(now) else { return };
        let ahead_s = ahead_ms / 1_000;
        if ahead_s == 0 {
            tracing::info!("wall clock was set and agrees with the time since the start again");
        } else {
            tracing::warn!(
                ahead_s,
                "wall clock was set; quotas keep the time of the start until a restart: restart if the clock is right now"
            );
        }
    }

    /// Reads of the future are from before the clock was set back: no source stays fresh on their account.
    fn forget_the_future(&mut self, now: Timestamp) {
        for world in World::ALL {
            let WorldState { books, sports, polls, .. } = Arc::make_mut(&mut self.worlds[world.index()]);
            let mut any = false;
            for (id, sport) in self.catalogue.sport_ids().zip(sports) {
                if forget_the_future(&mut sport.sources, now) {
                    let stale_after_s = |book| poll::stale_after_s(polls, id, book, self.options.stale_after_s);
                    let states = source_states(&sport.sources, books.register(), stale_after_s);
                    sport.board = sport.board.with_sources(states);
                    any = true;
                }
            }
            if any {
                self.show(world);
            }
        }
    }

    /// Takes out events past their retention and sources past theirs.
    fn sweep(&mut self, now: Timestamp) -> Result<(), WriteError> {
        for world in World::ALL {
            let over = self.past_retention(world, now);
            if !over.is_empty() {
                self.ingest(world, over, false)?;
            }
            self.retire_sources(world, now)?;
        }
        Ok(())
    }

    fn past_retention(&self, world: World, now: Timestamp) -> Vec<News> {
        let retention_s = self.options.retention_s;
        // Feeds do not always tell of an end: an event whose every price has gone, without news for that long, has had
        // one. Its time alone says nothing: an event that nobody ever priced stays.
        let forgotten_after_s = retention_s.max(FORGOTTEN_AFTER_S);
        let is_forgotten = move |node: &&Arc<EventNode>| {
            let last = node.event().changed.max(node.event().commence);
            node.records().is_empty() && !node.closed().is_empty() && now.seconds_since(last) >= forgotten_after_s
        };
        let over_in = |sport: SportId| {
            let index = &self.worlds[world.index()].sports[sport.index()].current;
            let is_past = move |changed: Timestamp| now.seconds_since(changed) >= retention_s;
            [EventStatus::Final, EventStatus::Cancelled]
                .into_iter()
                .flat_map(|status| index.with_status(status))
                .filter(move |node| is_past(node.event().changed))
                .chain(index.with_status(EventStatus::Scheduled).filter(is_forgotten))
                .chain(index.with_status(EventStatus::Live).filter(is_forgotten))
                .map(move |node| News::Remove { sport, event: node.event().id.clone() })
        };
        self.catalogue.sport_ids().flat_map(over_in).take(REMOVED_PER_SWEEP).collect()
    }

    fn retire_sources(&mut self, world: World, now: Timestamp) -> Result<(), WriteError> {
        let mut changes = Vec::new();
        let mut steps = Vec::new();
        for sport in self.catalogue.sport_ids() {
            let held = &self.worlds[world.index()].sports[sport.index()].sources;
            let is_past = |since: Timestamp| now.seconds_since(since) >= RETIRE_AFTER_S;
            let mut sources = held.clone();
            sources.retain(|_, entry| !entry.source.empty_since.is_some_and(is_past));
            if sources.len() == held.len() {
                continue;
            }
            let gone = held.keys().filter(|book| !sources.contains_key(book));
            changes.extend(gone.map(|book| Change::RemoveSource { world, sport, bookmaker: *book }));
            steps.push(SportStep { sport, index: None, sources, repriced: false, removed: Vec::new() });
        }
        if changes.is_empty() {
            return Ok(());
        }
        self.commit(&changes)?;
        let step =
            Step { books: None, sports: steps, places: Vec::new(), moved: Vec::new(), additions: Additions::default() };
        self.take_step(world, step, now.unix_ms());
        Ok(())
    }

    /// The last writes of an orderly stop: exact counters and the newest reads.
    pub fn flush(&mut self) -> Result<(), WriteError> {
        self.flush_usage()?;
        let is_clock_behind = self.comparison.is_clock_behind(self.now());
        let mut changes = Vec::new();
        for world in World::ALL {
            for sport in self.catalogue.sport_ids() {
                let state = Arc::make_mut(&mut self.worlds[world.index()]);
                let sources = &mut state.sports[sport.index()].sources;
                for (bookmaker, entry) in sources.iter_mut() {
                    let last_read = entry.read_to_store(is_clock_behind);
                    if last_read != entry.stored_read {
                        entry.stored_read = last_read;
                        let source = Source { last_read, ..entry.source };
                        changes.push(Change::PutSource { world, sport, bookmaker: *bookmaker, source });
                    }
                }
            }
        }
        self.commit(&changes)
    }
}
