//! Following the log of a sport, event by event.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use foldhash::HashMap;
use redb::ReadTransaction;

use super::block::RecordNumbers;
use super::event::EventHistory;
use super::keys::LineKeys;
use super::rewrite::Part;
use crate::model::{Event, EventId, Market, Outcome, Timestamp};
use crate::store::codec::Flaw;
use crate::store::error::StoreError;
use crate::store::history::entry::{LoggedChange, LoggedRecord};
use crate::store::history::read::{LogError, for_each_entry};
use crate::store::tables::ENDS;

/// The events of a sport that a part of the log mentions, with their history before it.
pub(super) struct Follower<'t> {
    txn: &'t ReadTransaction,
    sport: (u8, u16),
    part: Part,
    /// The numbers of the events in the state before the part.
    start_numbers: HashMap<EventId, u32>,
    pub(super) keys: LineKeys,
    pub(super) events: HashMap<EventId, EventHistory>,
    /// The number of the next new event.
    next_event: u32,
    /// The only events to follow.
    only: Option<&'t BTreeSet<EventId>>,
    is_closing: &'t AtomicBool,
}

impl<'t> Follower<'t> {
    pub(super) fn new(
        txn: &'t ReadTransaction,
        sport: (u8, u16),
        part: Part,
        is_closing: &'t AtomicBool,
    ) -> Result<Self, LogError> {
        let all = (sport.0, sport.1, 0)..=(sport.0, sport.1, u32::MAX);
        let last = txn.open_table(ENDS.definition)?.range(all)?.next_back();
        let next_event = last.transpose()?.map_or(0, |(key, _)| key.value().2.saturating_add(1));
        let start_numbers = part.start.events.iter().map(|(number, event)| (event.event.id.clone(), *number)).collect();
        let (keys, events) = (LineKeys::read(txn)?, HashMap::default());
        Ok(Follower { txn, sport, part, start_numbers, keys, events, next_event, only: None, is_closing })
    }

    /// Follows some events only.
    pub(super) fn only(mut self, events: Option<&'t BTreeSet<EventId>>) -> Self {
        self.only = events;
        self
    }

    /// Begins the events that no line has been written of, and that no entry mentioned.
    pub(super) fn begin_unwritten(&mut self) -> Result<(), LogError> {
        let unmentioned: Vec<EventId> =
            self.start_numbers.keys().filter(|id| !self.events.contains_key(*id)).cloned().collect();
        for id in unmentioned {
            if !EventHistory::is_stored(self.txn, self.sport, &id)? {
                self.event(&id, None)?;
            }
        }
        Ok(())
    }

    /// Follows the entries of the part.
    pub(super) fn follow(&mut self) -> Result<(), LogError> {
        if self.part.is_after_gap {
            // What changed in between is not known: every event goes on from what it is now.
            let all: Vec<EventId> = self.start_numbers.keys().cloned().collect();
            all.iter().try_for_each(|id| self.event(id, None).map(|_| ()))?;
        }
        let mut fold = self.part.start.clone();
        let mut failed = None;
        let read = for_each_entry(self.txn, self.sport.0, (self.part.after, self.part.to), |_, entry| {
            if self.is_closing.load(Ordering::Relaxed) {
                failed = Some(StoreError::Cancelled.into());
                return Err(Flaw::Malformed);
            }
            let mut changes = Vec::new();
            for section in entry.sections.iter().filter(|section| section.sport == self.sport.1) {
                fold.apply(section, entry.at, |change| changes.push(change))?;
            }
            // A tick may be a second ahead of the clock, and what comes after it is not before it.
            let at = fold.last_tick().map_or(entry.at, |tick| tick.max(entry.at));
            changes.iter().try_for_each(|change| self.change(change, at)).map_err(|error| {
                failed = Some(error);
                Flaw::Malformed
            })
        });
        failed.map_or(read, Err)
    }

    fn change(&mut self, change: &LoggedChange, at: Timestamp) -> Result<(), LogError> {
        match change {
            LoggedChange::Event(event, ..) => {
                let (txn, sport) = (self.txn, self.sport);
                if let Some(history) = self.event(&event.id, Some((event, at)))? {
                    history.put_event(txn, sport, event, at)?;
                }
            }
            LoggedChange::Score(..) => {}
            LoggedChange::Removed(event) => {
                if let Some(history) = self.event(&event.id, None)? {
                    history.remove(at);
                }
            }
            LoggedChange::Tick(tick) => {
                for record in &tick.records {
                    self.record(record, tick.at)?;
                }
            }
        }
        Ok(())
    }

    fn record(&mut self, record: &LoggedRecord, at: Timestamp) -> Result<(), LogError> {
        let numbers = self.numbers(&record.bookmaker, record.market);
        if let Some(history) = self.event(&record.event.id, None)? {
            history.put_price(numbers, at, record.price.as_ref().map(|price| &price.outcomes));
        }
        Ok(())
    }

    fn numbers(&mut self, bookmaker: &Arc<str>, market: Market) -> RecordNumbers {
        (self.keys.number(bookmaker), self.keys.number_of(market.key()))
    }

    /// The history of an event, if it is followed; one that has none yet begins as the state before the first entry has it, or as `new`.
    pub(super) fn event(
        &mut self,
        id: &EventId,
        new: Option<(&Arc<Event>, Timestamp)>,
    ) -> Result<Option<&mut EventHistory>, LogError> {
        if self.only.is_some_and(|only| !only.contains(id)) {
            return Ok(None);
        }
        if !self.events.contains_key(id) {
            let open = self.open_at_start(id);
            let history = match EventHistory::find(self.txn, self.sport, id, open.clone())? {
                Some(mut history) => {
                    if self.part.is_after_gap {
                        history.go_on_after_gap(self.known_since());
                    }
                    Some(history)
                }
                None => self.begin(id, new, open),
            };
            let Some(history) = history else { return Ok(None) };
            self.events.insert(id.clone(), history);
        }
        Ok(self.events.get_mut(id))
    }

    fn begin(
        &mut self,
        id: &EventId,
        new: Option<(&Arc<Event>, Timestamp)>,
        open: BTreeMap<RecordNumbers, Arc<[Outcome]>>,
    ) -> Option<EventHistory> {
        let folded = self.start_numbers.get(id).and_then(|number| self.part.start.events.get(number));
        let (event, at) = match (folded, new) {
            (Some(folded), _) => (&folded.event, self.known_since()),
            (None, Some((event, at))) => (event, at),
            (None, None) => return None,
        };
        let mut history = EventHistory::new(self.next_event, Arc::clone(event), at);
        self.next_event = self.next_event.saturating_add(1);
        for (record, outcomes) in &open {
            history.put_price(*record, at, Some(outcomes));
        }
        Some(history)
    }

    /// Since when the prices before the first entry are known.
    fn known_since(&self) -> Timestamp {
        self.part.start.last_tick().unwrap_or(self.part.at)
    }

    /// The records of an event that were open before the first entry.
    fn open_at_start(&mut self, id: &EventId) -> BTreeMap<RecordNumbers, Arc<[Outcome]>> {
        let Some(folded) = self.start_numbers.get(id).and_then(|number| self.part.start.events.get(number)) else {
            return BTreeMap::new();
        };
        let keys = &mut self.keys;
        let records = self.part.start.records(folded).map(|(bookmaker, market, price)| {
            ((keys.number(bookmaker), keys.number_of(market.key())), Arc::clone(&price.outcomes))
        });
        records.collect()
    }
}
