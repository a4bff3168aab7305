//! What the writer does by itself as time passes: removing what is over, and recovering from a full disk.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::batch::{SportUpdate, WorldUpdate};
use super::operation::SharedOperation;
use super::poll;
use super::state::{SourceEntry, WorldState, clamp_reads, source_states};
use super::{WriteError, Writer};
use crate::board::EventNode;
use crate::clock::{Moment, StepWatch};
use crate::model::{BookId, EventStatus, News, Source, SportId, Timestamp, World};
use crate::store::Change;

const SWEEP_EVERY_MS: u64 = 60_000;
const RECOVER_EVERY_MS: u64 = 1_000;
/// The log is looked after about this often, and again soon while there is more to do.
const HISTORY_EVERY_MS: u64 = 10_000;
const HISTORY_AGAIN_MS: u64 = 250;
/// The state is compared with the clock, which may have been set back, about this often.
const COMPARE_EVERY_MS: u64 = 1_000;
/// Unused names are deleted about this often.
const NAMES_EVERY_MS: u64 = 3_600_000;
/// What keys have used lately is stored about this often.
const RECENT_USE_EVERY_MS: u64 = 300_000;
/// The most events that one sweep removes, so that a sweep never delays other operations for long.
const REMOVED_PER_SWEEP: usize = 1_000;
/// A source that has had no price for this long is removed.
const RETIRE_AFTER_S: u32 = 24 * 3600;
/// An event that began at least this long ago, without news since, may count as over.
const NO_NEWS_AFTER_S: u32 = 24 * 3600;

/// When each task was last done, on the monotonic clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Schedule {
    swept_ms: u64,
    recovered_ms: u64,
    names_ms: u64,
    recent_use_ms: u64,
    compared_ms: u64,
    history_ms: u64,
    /// Whether there was more to do.
    has_more_history: bool,
    /// Whether the last step was one of the lines.
    pub(super) had_lines: bool,
    steps: StepWatch,
}

impl Schedule {
    pub(super) fn starting(now_mono_ms: u64) -> Self {
        let now_ms = now_mono_ms;
        let steps = StepWatch::default();
        Schedule {
            swept_ms: now_ms,
            recovered_ms: now_ms,
            names_ms: now_ms,
            recent_use_ms: now_ms,
            compared_ms: now_ms,
            history_ms: now_ms,
            has_more_history: false,
            had_lines: false,
            steps,
        }
    }
}

/// What is removed when it is past its retention.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sweep {
    Events(World),
    /// Those that have had no price for long.
    Sources(World),
}

impl Sweep {
    const fn of(world: World) -> [Sweep; 2] {
        [Sweep::Events(world), Sweep::Sources(world)]
    }
}

fn is_retired(entry: &SourceEntry, now: Timestamp) -> bool {
    entry.source.empty_since.is_some_and(|since| now.seconds_since(since) >= RETIRE_AFTER_S)
}

/// Whether `every_ms` have passed since `last_ms`; if so, sets it to now.
fn is_due(last_ms: &mut u64, every_ms: u64, now_ms: u64) -> bool {
    let due = now_ms.saturating_sub(*last_ms) >= every_ms;
    if due {
        *last_ms = now_ms;
    }
    due
}

impl Writer {
    /// Does whatever is due: publications, sweeps, recovery. In a cluster, only what concerns this file.
    pub fn tick(&mut self) {
        let now = self.local_clock.now();
        if is_due(&mut self.upkeep.compared_ms, COMPARE_EVERY_MS, now.mono_ms) {
            self.report_clock_step(now);
            if !self.is_member() {
                self.compare_times(now.timestamp());
            }
        }
        if !self.is_member() {
            self.publish_due(now);
        }
        if self.needs_recovery() && is_due(&mut self.upkeep.recovered_ms, RECOVER_EVERY_MS, now.mono_ms) {
            self.try_recovery();
        }
        let history_every_ms = if self.upkeep.has_more_history { HISTORY_AGAIN_MS } else { HISTORY_EVERY_MS };
        if !self.is_unwritable() && is_due(&mut self.upkeep.history_ms, history_every_ms, now.mono_ms) {
            self.upkeep.has_more_history = self.keep_history(self.now()).unwrap_or_else(|error| {
                tracing::warn!(%error, "failed to write a keyframe or to trim the log; trying again later");
                false
            });
        }
        if !self.is_unwritable()
            && is_due(&mut self.upkeep.recent_use_ms, RECENT_USE_EVERY_MS, now.mono_ms)
            && let Err(error) = self.store_recent_use()
        {
            tracing::warn!(%error, "failed to store what keys have used lately; trying again later");
        }
        if is_due(&mut self.upkeep.names_ms, NAMES_EVERY_MS, now.mono_ms)
            && let Err(error) = self.store.sweep_names()
        {
            tracing::warn!(%error, "failed to delete unused names; trying again later");
        }
    }

    /// Sets what is dated in the future right.
    fn compare_times(&mut self, now: Timestamp) {
        self.clamp_reads(now);
        if !self.boards.condition().is_unwritable() {
            self.correct_future(now);
        }
    }

    /// Publishes and removes what is due.
    fn publish_due(&mut self, now: Moment) {
        if !self.is_log_complete
            && !self.is_unwritable()
            && let Err(error) = self.catch_up()
        {
            tracing::warn!(%error, "failed to log what changed before the start; trying again later");
        }
        if let Some(publication) = self.plan_publication(now.unix_ms) {
            // A failure is logged, and the next tick tries again.
            let _ = self.publish(&publication);
        }
        if is_due(&mut self.upkeep.swept_ms, SWEEP_EVERY_MS, now.mono_ms) {
            for sweep in World::ALL.into_iter().flat_map(Sweep::of) {
                if let Err(error) = self.sweep(sweep) {
                    tracing::warn!(%error, "failed to remove events past their retention; trying again later");
                }
            }
        }
    }

    /// The same for a cluster: the operations that are due, which one node at a time enters in the shared log.
    pub fn plan_due(&mut self, now: Moment) -> Vec<SharedOperation> {
        let mut due: Vec<SharedOperation> = self.plan_publication(now.unix_ms).map(Into::into).into_iter().collect();
        if is_due(&mut self.upkeep.swept_ms, SWEEP_EVERY_MS, now.mono_ms) {
            let sweeps = World::ALL.into_iter().flat_map(Sweep::of);
            due.extend(sweeps.filter(|sweep| self.has_to_sweep(*sweep, now.timestamp())).map(SharedOperation::from));
        }
        due
    }

    /// Quotas do not follow a wall clock that was set: the log tells the operator why they reset at another hour.
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

    /// Reads in the future are from before the clock was set back: no source stays fresh because of them.
    fn clamp_reads(&mut self, now: Timestamp) {
        for world in World::ALL {
            let WorldState { register, sports, polls, .. } = Arc::make_mut(&mut self.worlds[world.index()]);
            let mut any = false;
            for (id, sport) in self.catalogue.sport_ids().zip(sports) {
                if clamp_reads(&mut sport.sources, now) {
                    let stale_after_s = |book| poll::stale_after_s(polls, id, book, self.options.stale_after_s);
                    let states = source_states(&sport.sources, register.bookmakers(), stale_after_s);
                    sport.board = sport.board.with_sources(states);
                    any = true;
                }
            }
            if any {
                self.show(world);
            }
        }
    }

    /// Removes what is past its retention.
    pub(super) fn sweep(&mut self, sweep: Sweep) -> Result<(), WriteError> {
        let now = self.now();
        match sweep {
            Sweep::Events(world) => {
                let over = self.past_retention(world, now);
                if over.is_empty() { Ok(()) } else { self.ingest(world, over, false).map(|_| ()) }
            }
            Sweep::Sources(world) => self.retire_sources(world, now),
        }
    }

    fn has_to_sweep(&self, sweep: Sweep, now: Timestamp) -> bool {
        match sweep {
            Sweep::Events(world) => !self.past_retention(world, now).is_empty(),
            Sweep::Sources(world) => self
                .catalogue
                .sport_ids()
                .any(|sport| self.sources_of(world, sport).values().any(|entry| is_retired(entry, now))),
        }
    }

    fn sources_of(&self, world: World, sport: SportId) -> &BTreeMap<BookId, SourceEntry> {
        &self.worlds[world.index()].sports[sport.index()].sources
    }

    fn past_retention(&self, world: World, now: Timestamp) -> Vec<News> {
        let retention_s = self.options.retention_s;
        // Feeds do not always report an end: an event all of whose prices are closed, without news for that long, counts
        // as over. Its time alone says nothing: an event that never had a price stays.
        let no_news_after_s = retention_s.max(NO_NEWS_AFTER_S);
        let is_abandoned = move |node: &&Arc<EventNode>| {
            let last = node.event().changed.max(node.event().commence);
            node.records().is_empty() && !node.closed().is_empty() && now.seconds_since(last) >= no_news_after_s
        };
        let over_in = |sport: SportId| {
            let index = &self.worlds[world.index()].sports[sport.index()].current;
            let is_past = move |changed: Timestamp| now.seconds_since(changed) >= retention_s;
            [EventStatus::Final, EventStatus::Cancelled]
                .into_iter()
                .flat_map(|status| index.with_status(status))
                .filter(move |node| is_past(node.event().changed))
                .chain(index.with_status(EventStatus::Scheduled).filter(is_abandoned))
                .chain(index.with_status(EventStatus::Live).filter(is_abandoned))
                .map(move |node| News::Remove { sport, event: node.event().id.clone() })
        };
        self.catalogue.sport_ids().flat_map(over_in).take(REMOVED_PER_SWEEP).collect()
    }

    fn retire_sources(&mut self, world: World, now: Timestamp) -> Result<(), WriteError> {
        let mut changes = Vec::new();
        let mut updates = Vec::new();
        for sport in self.catalogue.sport_ids() {
            let current = self.sources_of(world, sport);
            let mut sources = current.clone();
            sources.retain(|_, entry| !is_retired(entry, now));
            if sources.len() == current.len() {
                continue;
            }
            let gone = current.keys().filter(|book| !sources.contains_key(book));
            changes.extend(gone.map(|book| Change::RemoveSource { world, sport, bookmaker: *book }));
            updates.push(SportUpdate::new(sport, sources));
        }
        if changes.is_empty() {
            return Ok(());
        }
        self.commit(&changes)?;
        self.apply_update(world, WorldUpdate::of_sports(updates), now.unix_ms());
        Ok(())
    }

    /// The last writes of an orderly stop: exact counters and the newest reads. A node of a cluster has them from the log.
    pub fn flush(&mut self) -> Result<(), WriteError> {
        if self.is_member() {
            return Ok(());
        }
        self.flush_usage()?;
        self.store_recent_use()?;
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
