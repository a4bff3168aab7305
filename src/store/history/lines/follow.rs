//! Following the log of a sport, event by event.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use foldhash::HashMap;
use redb::ReadTransaction;

use super::block::RecordNumbers;
use super::event::{EventHistory, is_in_lines};
use super::growing::OpenRecords;
use super::keys::LineKeys;
use super::rewrite::Part;
use super::tail::{EventStep, Tail, TailChange};
use crate::model::{Event, EventId, Market, Timestamp};
use crate::store::codec::Flaw;
use crate::store::error::StoreError;
use crate::store::history::entry::{LoggedChange, LoggedRecord};
use crate::store::history::fold::FoldedEvent;
use crate::store::history::read::{LogError, for_each_entry};
use crate::store::table_keys::LogNumber;
use crate::store::tables::{ENDS, LOG};

/// A part of a sport's log, with the numbers of the events in the state before it.
#[derive(Debug)]
pub(super) struct PartStart {
    part: Part,
    numbers: HashMap<EventId, u32>,
}

impl PartStart {
    pub(super) fn new(part: Part) -> Self {
        let numbers = part.start.events.iter().map(|(number, event)| (event.event.id.clone(), *number)).collect();
        PartStart { part, numbers }
    }

    fn event(&self, id: &EventId) -> Option<&FoldedEvent> {
        self.part.start.events.get(self.numbers.get(id)?)
    }
}

/// The events of a sport that a part of the log mentions, with their history before it.
pub(super) struct Follower<'t> {
    txn: &'t ReadTransaction,
    sport: (u8, u16),
    start: &'t PartStart,
    pub(super) keys: Cow<'t, LineKeys>,
    pub(super) events: HashMap<EventId, EventHistory>,
    /// The number of the next new event, once there was one.
    next_event: Option<u32>,
    purpose: Purpose<'t>,
    is_closing: &'t AtomicBool,
}

/// What the histories are for.
#[derive(Clone, Copy, Debug)]
enum Purpose<'t> {
    /// Their blocks are continued.
    Writing,
    /// Of these events; of all if there is no list.
    Reading(Option<&'t BTreeSet<EventId>>),
}

impl<'t> Follower<'t> {
    pub(super) fn new(
        txn: &'t ReadTransaction,
        sport: (u8, u16),
        (start, keys): (&'t PartStart, &'t LineKeys),
        is_closing: &'t AtomicBool,
    ) -> Self {
        let (keys, events, purpose) = (Cow::Borrowed(keys), HashMap::default(), Purpose::Writing);
        Follower { txn, sport, start, keys, events, next_event: None, purpose, is_closing }
    }

    /// Goes through what a tail has of some events, or of all.
    pub(super) fn read(
        mut self,
        tail: &'t Tail,
        only: Option<&'t BTreeSet<EventId>>,
        is_wanted: impl Fn(RecordNumbers) -> bool,
    ) -> Result<Self, LogError> {
        self.purpose = Purpose::Reading(only);
        self.go_on_after_gap()?;
        match only {
            Some(only) => only.iter().try_for_each(|id| self.replay(id, tail, &is_wanted))?,
            None => tail.events.keys().try_for_each(|id| self.replay(id, tail, &is_wanted))?,
        }
        Ok(self)
    }

    fn replay(
        &mut self,
        id: &EventId,
        tail: &Tail,
        is_wanted: &impl Fn(RecordNumbers) -> bool,
    ) -> Result<(), LogError> {
        let Some(of_event) = tail.events.get(id) else { return Ok(()) };
        let damaged = |flaw| LogError::Damaged { table: LOG.name, row: "in memory".to_owned(), flaw };
        for change in of_event.changes(is_wanted).map_err(damaged)? {
            match change {
                TailChange::Price(numbers, point) => {
                    if let Some(history) = self.event(id, None)? {
                        history.put_price(numbers, point.at, point.outcomes.as_ref());
                    }
                }
                TailChange::Prices(at) => {
                    if let Some(history) = self.event(id, None)? {
                        history.ends.pass(at);
                    }
                }
                TailChange::Event(at, EventStep::Put(event)) => self.put_event(&event, at)?,
                TailChange::Event(at, EventStep::Removed) => self.remove(id, at)?,
            }
        }
        Ok(())
    }

    /// What changed before the part is not known: every event goes on from what it is now.
    fn go_on_after_gap(&mut self) -> Result<(), LogError> {
        if self.start.part.is_after_gap {
            self.start.numbers.keys().try_for_each(|id| self.event(id, None).map(|_| ()))?;
        }
        Ok(())
    }

    /// Begins the events that no line has been written of, and that no entry mentioned.
    pub(super) fn begin_unwritten(&mut self) -> Result<(), LogError> {
        let unmentioned: Vec<EventId> =
            self.start.numbers.keys().filter(|id| !self.events.contains_key(*id)).cloned().collect();
        for id in unmentioned {
            if !is_in_lines(self.txn, self.sport, &id)? {
                self.event(&id, None)?;
            }
        }
        Ok(())
    }

    /// Follows the entries of the part.
    pub(super) fn follow(&mut self) -> Result<(), LogError> {
        self.go_on_after_gap()?;
        let Part { after, to, start, .. } = &self.start.part;
        let (mut fold, mut failed) = (start.clone(), None);
        let read = for_each_entry(self.txn, self.sport.0, (*after, *to), |_, entry| {
            if self.is_closing.load(Ordering::Relaxed) {
                failed = Some(StoreError::Cancelled.into());
                return Err(Flaw::Malformed);
            }
            let mut changes = Vec::new();
            for section in entry.sections.iter().filter(|section| section.sport == self.sport.1) {
                fold.apply(section, entry.at, |change| changes.push(change))?;
            }
            let at = fold.second_of(entry.at);
            changes.iter().try_for_each(|change| self.change(change, at)).map_err(|error| {
                failed = Some(error);
                Flaw::Malformed
            })
        });
        failed.map_or(read, Err)
    }

    fn change(&mut self, change: &LoggedChange, at: Timestamp) -> Result<(), LogError> {
        match change {
            LoggedChange::Event(event, ..) => self.put_event(event, at),
            LoggedChange::Score(..) => Ok(()),
            LoggedChange::Removed(event) => self.remove(&event.id, at),
            LoggedChange::Tick(tick) => tick.records.iter().try_for_each(|record| self.record(record, tick.at)),
        }
    }

    fn put_event(&mut self, event: &Arc<Event>, at: Timestamp) -> Result<(), LogError> {
        let (txn, sport) = (self.txn, self.sport);
        match self.event(&event.id, Some((event, at)))? {
            Some(history) => history.put_event(txn, sport, event, at),
            None => Ok(()),
        }
    }

    fn remove(&mut self, id: &EventId, at: Timestamp) -> Result<(), LogError> {
        if let Some(history) = self.event(id, None)? {
            history.remove(at);
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
        (number_in(&mut self.keys, bookmaker), number_in(&mut self.keys, market.key()))
    }

    /// The history of an event, if it is followed; one that has none yet begins as the state before the first entry has it, or as `new`.
    pub(super) fn event(
        &mut self,
        id: &EventId,
        new: Option<(&Arc<Event>, Timestamp)>,
    ) -> Result<Option<&mut EventHistory>, LogError> {
        // A reader begins no block before it has to: only a publication from before may have to go into the last one.
        let published_after = match self.purpose {
            Purpose::Reading(Some(only)) if !only.contains(id) => return Ok(None),
            Purpose::Reading(_) => Some(self.known_since()),
            Purpose::Writing => None,
        };
        if !self.events.contains_key(id) {
            let (txn, sport) = (self.txn, self.sport);
            let history = match EventHistory::find(txn, sport, id, published_after, || self.open_at_start(id))? {
                Some(mut history) => {
                    if self.start.part.is_after_gap {
                        history.go_on_after_gap(self.known_since());
                    }
                    Some(history)
                }
                None => self.begin(id, new)?,
            };
            let Some(history) = history else { return Ok(None) };
            self.events.insert(id.clone(), history);
        }
        Ok(self.events.get_mut(id))
    }

    fn begin(&mut self, id: &EventId, new: Option<(&Arc<Event>, Timestamp)>) -> Result<Option<EventHistory>, LogError> {
        let (event, at) = match (self.start.event(id), new) {
            (Some(folded), _) => (&folded.event, self.known_since()),
            (None, Some((event, at))) => (event, at),
            (None, None) => return Ok(None),
        };
        let is_read = matches!(self.purpose, Purpose::Reading(_));
        let number = self.next_event.map_or_else(|| next_event(self.txn, self.sport), Ok)?;
        let mut history = EventHistory::new(number, Arc::clone(event), at, is_read);
        self.next_event = Some(number.saturating_add(1));
        for (record, outcomes) in self.open_at_start(id) {
            history.put_price(record, at, Some(&outcomes));
        }
        Ok(Some(history))
    }

    /// Since when the prices before the first entry are known.
    fn known_since(&self) -> Timestamp {
        self.start.part.start.last_tick().unwrap_or(self.start.part.at)
    }

    /// The records of an event that were open before the first entry.
    fn open_at_start(&mut self, id: &EventId) -> OpenRecords {
        let Some(folded) = self.start.event(id) else { return OpenRecords::new() };
        let keys = &mut self.keys;
        let records = self.start.part.start.records(folded).map(|(bookmaker, market, price)| {
            ((number_in(keys, bookmaker), number_in(keys, market.key())), Arc::clone(&price.outcomes))
        });
        records.collect()
    }
}

/// The number after that of the last stored event.
fn next_event(txn: &ReadTransaction, (log, sport): (LogNumber, u16)) -> Result<u32, LogError> {
    let last = txn.open_table(ENDS.definition)?.range((log, sport, 0)..=(log, sport, u32::MAX))?.next_back();
    Ok(last.transpose()?.map_or(0, |(key, _)| key.value().2.saturating_add(1)))
}

/// The number of a key. Copies the list only if the key is new.
fn number_in(keys: &mut Cow<'_, LineKeys>, key: &str) -> u32 {
    match keys.known(key) {
        Some(number) => number,
        None => keys.to_mut().number_of(key),
    }
}
