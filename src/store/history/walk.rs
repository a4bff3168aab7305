//! Reading the whole log of a sport in its order, a piece at a time, for an export or for a log that takes its place.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::entry::LoggedChange;
use super::fold::{FoldedEvent, SportFold};
use super::read::{apply_sport, first_frame, first_tick, for_each_entry};
use super::reader::{Entries, HistoryError, HistoryReader, LogId};
use super::state::read_head;
use crate::model::{EventId, HistoryChange, HistoryPrice, SportId, Timestamp, World};
use crate::store::table_keys::world_number;

/// How far the log of a sport has been read.
#[derive(Clone, Debug)]
pub struct LogWalk {
    log: LogId,
    sport: u16,
    epoch: u64,
    fold: SportFold,
    /// The last entry that was read.
    after: u64,
    /// The last one that there is.
    to: u64,
    /// The time of the last change: times never go back.
    at: Timestamp,
}

impl HistoryReader {
    /// What was imported of a sport.
    pub fn imported(&self, world: World, sport: SportId) -> Result<Option<LogId>, HistoryError> {
        self.read(|reading| Ok(reading.imported(world, reading.number(sport)?)?.map(|(log, _)| LogId(log))))
    }

    /// The world's own log, if it has anything of a sport.
    pub fn own(&self, world: World, sport: SportId) -> Result<Option<LogId>, HistoryError> {
        self.read(|reading| {
            let key = (world_number(world), reading.number(sport)?);
            Ok(first_frame(&reading.txn, key)?.map(|_| LogId(key.0)))
        })
    }

    /// Begins to read a log, and returns what there was before its first change, or at a later time.
    pub fn walk(
        &self,
        log: LogId,
        sport: SportId,
        from: Option<Timestamp>,
    ) -> Result<(LogWalk, Vec<(Timestamp, HistoryChange)>), HistoryError> {
        self.read(|reading| {
            let key = (log.0, reading.number(sport)?);
            let head = read_head(&reading.txn, log.0)?.unwrap_or_default();
            let found = from.map(|from| reading.entry_in(key, Entries::All, from));
            let (after, at) = match found {
                Some(Ok(entry)) => (entry.sequence, from.unwrap_or_default()),
                None | Some(Err(HistoryError::Gone)) => {
                    let first = first_frame(&reading.txn, key)?.ok_or(HistoryError::Gone)?;
                    (first, first_tick(&reading.txn, key)?.unwrap_or_default())
                }
                Some(Err(error)) => return Err(error),
            };
            let fold = reading.state_after(key, after)?;
            let start = fold.changes().map(|change| (at, change)).collect();
            let at = if fold.events.is_empty() { Timestamp::default() } else { at };
            let (epoch, to) = (head.epoch, head.next.saturating_sub(1));
            Ok((LogWalk { log, sport: key.1, epoch, fold, after, to, at }, start))
        })
    }

    /// Reads on, at most so many entries. Nothing is returned at the end.
    pub fn walk_on(
        &self,
        walk: &mut LogWalk,
        entries_max: u64,
    ) -> Result<Vec<(Timestamp, HistoryChange)>, HistoryError> {
        self.read(|reading| {
            let mut changes = Vec::new();
            // An entry may have nothing of the sport.
            while changes.is_empty() && walk.after < walk.to {
                let epoch = read_head(&reading.txn, walk.log.0)?.map(|head| head.epoch);
                if epoch != Some(walk.epoch) {
                    return Err(HistoryError::Gone);
                }
                let to = walk.after.saturating_add(entries_max).min(walk.to);
                let LogWalk { log, fold, after, at, sport, .. } = &mut *walk;
                for_each_entry(&reading.txn, log.0, (*after, to), |_, entry| {
                    apply_sport(fold, *sport, entry, |change| push(entry.at, change, at, &mut changes))?;
                    Ok(())
                })?;
                walk.after = to;
            }
            Ok(changes)
        })
    }
}

impl LogWalk {
    /// The sport after the last change.
    pub fn into_state(self) -> SportFold {
        self.fold
    }
}

impl SportFold {
    /// What ends in this state and is not in another one that takes its place: events, prices of others, and that sources
    /// are stale.
    pub fn ends(&self, next: &SportFold) -> Vec<HistoryChange> {
        let next_events: BTreeMap<&EventId, &FoldedEvent> =
            next.events().map(|event| (&event.event.id, event)).collect();
        let (mut removed, mut ends) = (Vec::new(), Vec::new());
        for event in self.events() {
            let id = &event.event.id;
            let Some(next_event) = next_events.get(id) else {
                removed.push(HistoryChange::Removed(id.clone()));
                continue;
            };
            let open: BTreeSet<(&str, &str)> =
                next.records(next_event).map(|(book, market, _)| (&**book, market.key())).collect();
            let gone = self.records(event).filter(|(book, market, _)| !open.contains(&(&***book, market.key())));
            ends.extend(gone.map(|(book, market, _)| {
                let (event, bookmaker) = (id.clone(), Arc::clone(book));
                HistoryChange::Price(HistoryPrice { event, bookmaker, market, price: None })
            }));
        }
        removed.append(&mut ends);
        let stale: BTreeSet<&Arc<str>> = next.stale().collect();
        let fresh = self.stale().filter(|book| !stale.contains(book));
        removed.extend(fresh.map(|book| HistoryChange::Source(Arc::clone(book), false)));
        removed
    }

    /// What brings an empty sport into this state.
    pub fn changes(&self) -> impl Iterator<Item = HistoryChange> + '_ {
        let events = self.events().flat_map(|folded| {
            let id = &folded.event.id;
            let score = folded.score.iter().map(|score| HistoryChange::Score(id.clone(), Arc::clone(score)));
            [HistoryChange::Event(Arc::clone(&folded.event))].into_iter().chain(score)
        });
        let prices = self.events().flat_map(|folded| {
            self.records(folded).map(|(book, market, price)| {
                let (event, bookmaker, price) = (folded.event.id.clone(), Arc::clone(book), Some(price.clone()));
                HistoryChange::Price(HistoryPrice { event, bookmaker, market, price })
            })
        });
        let sources = self.stale().map(|book| HistoryChange::Source(Arc::clone(book), true));
        events.chain(prices).chain(sources)
    }
}

fn push(second: Timestamp, change: LoggedChange, at: &mut Timestamp, out: &mut Vec<(Timestamp, HistoryChange)>) {
    let mut add = |time: Timestamp, change: HistoryChange| {
        *at = time.max(*at);
        out.push((*at, change));
    };
    match change {
        LoggedChange::Event(event, ..) => add(second, HistoryChange::Event(event)),
        LoggedChange::Score(event, score) => add(second, HistoryChange::Score(event.id.clone(), score)),
        LoggedChange::Removed(event) => add(second, HistoryChange::Removed(event.id.clone())),
        LoggedChange::Tick(tick) => {
            if tick.sources.is_empty() && tick.records.is_empty() {
                add(tick.at, HistoryChange::Tick);
            }
            for (bookmaker, is_stale) in tick.sources {
                add(tick.at, HistoryChange::Source(bookmaker, is_stale));
            }
            for record in tick.records {
                let (event, bookmaker) = (record.event.id.clone(), record.bookmaker);
                let price = HistoryPrice { event, bookmaker, market: record.market, price: record.price };
                add(tick.at, HistoryChange::Price(price));
            }
        }
    }
}
