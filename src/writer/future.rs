//! Times ahead of our clock.
//!
//! A wrong clock upstream must never pin a price, an event or a score: anything dated in the future would make all correct
//! news after it late. Every message passes [`admit`], whichever feed it came from: a time up to [`AHEAD_MAX_S`] ahead is
//! set to now, anything further is rejected. Future times that an older version stored are set to the time of opening
//! when the file is opened, in memory and in the file.
//!
//! If the file's audit log has an entry from after now, our own clock is wrong (a machine without a battery boots in
//! 1970). Then nothing is corrected, and no stored read goes back in time, until the clock has caught up. A simulated
//! world is left to its simulator, which removes what has not happened yet.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::batch::{SportUpdate, WorldUpdate};
use super::owners::Owners;
use super::state::{SourceEntry, WorldState};
use super::{WriteError, Writer};
use crate::board::{Draft, Edit, EventNode, Index};
use crate::model::{
    BookId, Bookmakers, Closed, Event, Membership, News, Reason, Record, Score, SportId, Timestamp, World,
};
use crate::store::{Change, Store};

/// How far a clock upstream may be ahead of ours.
pub(super) const AHEAD_MAX_S: u32 = 60;

/// How many entries of the audit log are compared with the clock. More than the last one: each start with a wrong clock
/// adds an entry as well.
const AUDIT_COMPARED: usize = 1_000;

fn is_ahead(at: Timestamp, now: Timestamp) -> bool {
    at.seconds_since(now) > AHEAD_MAX_S
}

fn clamp(at: &mut Timestamp, now: Timestamp) -> Result<(), Reason> {
    if is_ahead(*at, now) {
        return Err(Reason::InFuture);
    }
    *at = now.min(*at);
    Ok(())
}

/// Rejects a message with any time in the future, and sets times just ahead to now. The commence time of an event is not
/// a time at which something was reported.
pub(super) fn admit(news: &mut News, now: Timestamp) -> Result<(), Reason> {
    match news {
        News::Bookmaker(_)
        | News::Listed(_)
        | News::Event(_)
        | News::Remove { .. }
        | News::Competition(_)
        | News::Market(_) => Ok(()),
        News::Odds(odds) => {
            odds.bookmaker_update.as_mut().map_or(Ok(()), |at| clamp(at, now))?;
            clamp(&mut odds.last_update, now)
        }
        News::Score(news) => clamp(&mut news.score.updated, now),
        News::Read(read) => clamp(&mut read.at, now),
        News::AsOf(at, news) => {
            clamp(at, now)?;
            admit(news, now)
        }
        News::Closed(closed) => clamp(&mut closed.at, now),
        News::Source(news) => {
            news.source.empty_since.as_mut().map_or(Ok(()), |at| clamp(at, now))?;
            clamp(&mut news.source.last_read, now)
        }
    }
}

/// Whether the times in the file have been compared with the clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Comparison {
    /// The latest time in the audit log when the file was opened.
    latest_entry: Option<Timestamp>,
    is_done: bool,
}

impl Comparison {
    /// For a file whose times are not compared with our clock.
    const NONE: Comparison = Comparison { latest_entry: None, is_done: true };

    /// An inspected file is not changed, and neither is one whose audit log cannot be read: it would then be unknown whose
    /// clock is wrong. The times of a node are those of the shared log.
    pub(super) fn read(store: &Store, membership: Option<Membership>) -> Self {
        if store.is_inspected() || membership.is_some() {
            return Comparison::NONE;
        }
        match store.audit_tail(AUDIT_COMPARED) {
            Ok(entries) => Comparison { latest_entry: entries.iter().map(|entry| entry.note.at).max(), is_done: false },
            Err(error) => {
                tracing::warn!(%error, "failed to read the audit log; stored times are not compared with the clock");
                Comparison::NONE
            }
        }
    }

    /// Whether our own clock is wrong: the file has an entry from later than now.
    pub(super) fn is_clock_behind(self, now: Timestamp) -> bool {
        self.latest_entry.is_some_and(|at| is_ahead(at, now))
    }
}

/// How many times of each kind were corrected.
#[derive(Clone, Copy, Debug, Default)]
struct Corrected {
    odds: u64,
    closed: u64,
    scores: u64,
    events: u64,
    sources: u64,
}

impl Writer {
    /// Corrects stored times in the future when the file is opened; if the clock was wrong or the file could not be written
    /// then, as soon as that is over.
    pub(super) fn correct_future(&mut self, now: Timestamp) {
        if self.comparison.is_done || self.comparison.is_clock_behind(now) {
            return;
        }
        match self.set_future_to(now) {
            Ok(Corrected { odds: 0, closed: 0, scores: 0, events: 0, sources: 0 }) => self.comparison.is_done = true,
            Ok(Corrected { odds, closed, scores, events, sources }) => {
                self.comparison.is_done = true;
                tracing::warn!(odds, closed, scores, events, sources, "set stored times in the future to now");
            }
            Err(error) => tracing::warn!(%error, "failed to correct stored times in the future; trying again later"),
        }
    }

    /// Warns of a clock that is behind the file.
    pub(super) fn warn_if_clock_is_behind(&self, now: Timestamp) {
        if let Some(latest) = self.comparison.latest_entry.filter(|_| self.comparison.is_clock_behind(now)) {
            tracing::warn!(
                %now, audit = %latest,
                "this machine's clock is wrong: the audit log has an entry from after now; no stored time is changed, \
                 and news dated later than now is rejected: set the clock"
            );
        }
    }

    fn set_future_to(&mut self, now: Timestamp) -> Result<Corrected, WriteError> {
        let world = World::Live;
        let (mut corrected, mut changes) = (Corrected::default(), Vec::new());
        if self.simulated_live {
            return Ok(corrected);
        }
        let mut updates = Vec::new();
        for sport in self.catalogue.sport_ids() {
            let WorldState { sports, register, owners, .. } = &*self.worlds[world.index()];
            let state = &sports[sport.index()];
            let mut correction = Correction { sport, now, owners, changes: &mut changes, corrected: &mut corrected };
            let index = correction.index(&state.current, register.bookmakers());
            let sources = correction.sources(&state.sources);
            if index.is_some() || sources.is_some() {
                let repriced = index.is_some();
                let sources = sources.unwrap_or_else(|| state.sources.clone());
                updates.push(SportUpdate { index, repriced, ..SportUpdate::new(sport, sources) });
            }
        }
        let update = WorldUpdate::of_sports(updates);
        self.commit_update(world, changes, &update, now)?;
        if !update.sports.is_empty() {
            self.apply_update(world, update, now.unix_ms());
        }
        Ok(corrected)
    }
}

/// Corrects the times of one sport of the live world.
struct Correction<'a> {
    sport: SportId,
    now: Timestamp,
    owners: &'a Owners,
    changes: &'a mut Vec<Change>,
    corrected: &'a mut Corrected,
}

impl Correction<'_> {
    /// `None` if no event has a time in the future.
    fn index(&mut self, index: &Index, names: &Bookmakers) -> Option<Index> {
        let edits: Vec<Edit> = index.iter().filter_map(|node| self.node(node, names)).collect();
        (!edits.is_empty()).then(|| index.apply(&edits))
    }

    fn node(&mut self, node: &EventNode, names: &Bookmakers) -> Option<Edit> {
        let (world, sport, now) = (World::Live, self.sport, self.now);
        let id = &node.event().id;
        let before = self.changes.len();
        let mut event = Arc::clone(node.event());
        if is_ahead(event.changed, now) {
            event = Arc::new(Event { changed: now, ..(*event).clone() });
            let owner = self.owners.owner(sport, id);
            self.changes.push(Change::PutEvent { world, sport, event: Arc::clone(&event), owner });
            self.corrected.events += 1;
        }
        let mut score = node.score().cloned();
        if let Some(ahead) = score.as_mut().filter(|score| is_ahead(score.updated, now)) {
            *ahead = Arc::new(Score { updated: now, ..(**ahead).clone() });
            self.changes.push(Change::PutScore { world, sport, event: id.clone(), score: Arc::clone(ahead) });
            self.corrected.scores += 1;
        }
        let mut records = node.records().to_vec();
        for record in &mut records {
            if [record.last_update, record.effective_bookmaker_update()].into_iter().any(|at| is_ahead(at, now)) {
                let (last_update, own) = (record.last_update.min(now), record.effective_bookmaker_update().min(now));
                let bookmaker_update = (own != last_update).then_some(own);
                *record = Arc::new(Record { last_update, bookmaker_update, ..(**record).clone() });
                self.changes.push(Change::PutOdds { world, sport, event: id.clone(), record: Arc::clone(record) });
                self.corrected.odds += 1;
            }
        }
        let mut closed = node.closed().to_vec();
        for mark in closed.iter_mut().filter(|mark| is_ahead(mark.at, now)) {
            *mark = Closed { at: now, ..*mark };
            self.changes.push(Change::CloseOdds { world, sport, event: id.clone(), closed: *mark });
            self.corrected.closed += 1;
        }
        let is_corrected = self.changes.len() > before;
        is_corrected.then(|| {
            let node = Draft::assemble(event, score, records, closed).finish(names);
            Edit { id: id.clone(), node: Some(Arc::new(node)) }
        })
    }

    /// `None` if no source had to be corrected.
    fn sources(&mut self, sources: &BTreeMap<BookId, SourceEntry>) -> Option<BTreeMap<BookId, SourceEntry>> {
        let now = self.now;
        let mut corrected = sources.clone();
        let mut any = false;
        for (bookmaker, entry) in &mut corrected {
            // With a clock that was wrong until now, good reads seemed to be in the future: the file still has them.
            let last_read = entry.source.last_read.max(entry.stored_read).min(now);
            any |= last_read != entry.source.last_read;
            entry.source.last_read = last_read;
            let is_empty_ahead = entry.source.empty_since.is_some_and(|since| is_ahead(since, now));
            if !is_ahead(entry.stored_read, now) && !is_empty_ahead {
                continue;
            }
            entry.source.empty_since = entry.source.empty_since.map(|since| since.min(now));
            entry.stored_read = last_read;
            let (world, sport, bookmaker, source) = (World::Live, self.sport, *bookmaker, entry.source);
            self.changes.push(Change::PutSource { world, sport, bookmaker, source });
            self.corrected.sources += 1;
            any = true;
        }
        any.then_some(corrected)
    }
}
