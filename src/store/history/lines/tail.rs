//! The end of a sport's log in memory: what it has of each event after the lines.
//!
//! Without it, whoever reads the lines of one event would go through all that was logged since they were last written. It
//! is brought up to the end of the log by the next reading, and dropped when lines are written or entries have become
//! others. It holds the state of the sport and the changes since the lines, in the form of blocks, which the upkeep of
//! keyframes and lines bounds: it does not grow with history.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use foldhash::HashMap;
use redb::ReadTransaction;

use super::block::{Block, RecordNumbers};
use super::ends::EventTexts;
use super::follow::PartStart;
use super::keys::LineKeys;
use super::rewrite::{LinesHead, Part, end_of_lines};
use crate::model::{Event, EventId, LinePoint, Outcome, Timestamp};
use crate::store::codec::Flaw;
use crate::store::error::StoreError;
use crate::store::history::entry::{LoggedChange, LoggedTick};
use crate::store::history::fold::SportFold;
use crate::store::history::read::{LogError, for_each_entry};
use crate::store::history::state::read_head;
use crate::store::table_keys::LogNumber;

/// The most sports whose ends are in memory.
const TAILS_MAX: usize = 8;

/// The ends of the logs of the sports that were last read.
#[derive(Debug, Default)]
pub(in crate::store) struct Tails(Mutex<Vec<(SportKey, Slot)>>);

type SportKey = (LogNumber, u16);
type Slot = Arc<RwLock<Option<Tail>>>;

/// What a tail is valid for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Validity {
    epoch: u64,
    after: u64,
    is_after_gap: bool,
    /// See `HistoryReader::rewrites`.
    rewrites: u64,
}

#[derive(Debug)]
pub(super) struct Tail {
    validity: Validity,
    pub(super) start: PartStart,
    pub(super) keys: LineKeys,
    /// The sport after the last entry that it has.
    fold: SportFold,
    to: u64,
    pub(super) events: HashMap<EventId, EventTail>,
}

/// What happened to an event, in order.
#[derive(Debug, Default)]
pub(super) struct EventTail {
    parts: Vec<TailPart>,
    /// The prices of its records, as the log last had them.
    last: HashMap<RecordNumbers, Arc<[Outcome]>>,
    texts: EventTexts,
}

/// Changes of prices, and a change of the event that came after them.
#[derive(Debug, Default)]
struct TailPart {
    prices: Block,
    then: Option<(Timestamp, EventStep)>,
}

#[derive(Clone, Debug)]
pub(super) enum EventStep {
    Put(Arc<Event>),
    Removed,
}

/// A change of an event or of one of its records.
#[derive(Debug)]
pub(super) enum TailChange {
    Price(RecordNumbers, LinePoint),
    /// Prices changed up to this time, of records that are not wanted too.
    Prices(Timestamp),
    Event(Timestamp, EventStep),
}

impl Tails {
    /// Calls `work` with the end of a sport's log. `None` if the log does not mention the sport.
    pub(super) fn with<T>(
        &self,
        txn: &ReadTransaction,
        sport: SportKey,
        (rewrites, is_closing): (u64, &AtomicBool),
        work: impl FnOnce(&Tail) -> Result<T, LogError>,
    ) -> Result<Option<T>, LogError> {
        let Some(head) = read_head(txn, sport.0)? else { return Ok(None) };
        let Some((after, is_after_gap)) = end_of_lines(txn, sport, &LinesHead::read(txn, sport.0)?)? else {
            return Ok(None);
        };
        let validity = Validity { epoch: head.epoch, after, is_after_gap, rewrites };
        let to = head.next - 1;
        let slot = self.slot(sport);
        // Reading a long line must not keep others from reading theirs.
        let kept = slot.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(tail) = kept.as_ref().filter(|tail| tail.reaches(validity, to)) {
            return work(tail).map(Some);
        }
        drop(kept);
        {
            let mut kept = slot.write().unwrap_or_else(PoisonError::into_inner);
            let known = kept.take().filter(|tail| tail.validity == validity);
            let mut tail = known.map_or_else(|| Tail::new(txn, sport, validity), Ok)?;
            tail.extend(txn, sport, to, is_closing)?;
            *kept = Some(tail);
        }
        let kept = slot.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(tail) = kept.as_ref().filter(|tail| tail.reaches(validity, to)) {
            return work(tail).map(Some);
        }
        drop(kept);
        // Lines were written just now, and another reading began after that.
        let mut tail = Tail::new(txn, sport, validity)?;
        tail.extend(txn, sport, to, is_closing)?;
        work(&tail).map(Some)
    }

    fn slot(&self, sport: SportKey) -> Slot {
        let mut slots = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = slots.iter().position(|(of, _)| *of == sport).map(|at| slots.remove(at).1);
        let slot = known.unwrap_or_default();
        slots.push((sport, Arc::clone(&slot)));
        if slots.len() > TAILS_MAX {
            slots.remove(0);
        }
        slot
    }
}

impl Tail {
    fn new(txn: &ReadTransaction, sport: SportKey, validity: Validity) -> Result<Self, LogError> {
        let Validity { after, is_after_gap, .. } = validity;
        let part = Part::read(txn, sport, (after, after), is_after_gap)?;
        let mut keys = LineKeys::read(txn)?;
        part.start.bookmakers().for_each(|key| {
            keys.number(key);
        });
        part.start.markets().for_each(|market| {
            keys.number_of(market.key());
        });
        let fold = part.start.clone();
        Ok(Tail { validity, start: PartStart::new(part), keys, fold, to: after, events: HashMap::default() })
    }

    /// Whether it is valid and has the entries up to one. That it may have later ones does no harm.
    fn reaches(&self, validity: Validity, to: u64) -> bool {
        self.validity == validity && self.to >= to
    }

    /// Goes on to an entry, if it is not there yet.
    fn extend(
        &mut self,
        txn: &ReadTransaction,
        sport: SportKey,
        to: u64,
        is_closing: &AtomicBool,
    ) -> Result<(), LogError> {
        let mut is_cancelled = false;
        let read = for_each_entry(txn, sport.0, (self.to, to), |sequence, entry| {
            is_cancelled = is_closing.load(Ordering::Relaxed);
            if is_cancelled {
                return Err(Flaw::Malformed);
            }
            let mut changes = Vec::new();
            for section in entry.sections.iter().filter(|section| section.sport == sport.1) {
                self.fold.apply(section, entry.at, |change| changes.push(change))?;
            }
            let at = self.fold.second_of(entry.at);
            for change in changes {
                self.put(change, at);
            }
            self.to = sequence;
            Ok(())
        });
        if is_cancelled { Err(StoreError::Cancelled.into()) } else { read }
    }

    fn put(&mut self, change: LoggedChange, at: Timestamp) {
        match change {
            LoggedChange::Event(event, ..) => {
                self.events.entry(event.id.clone()).or_default().step(at, EventStep::Put(event));
            }
            LoggedChange::Score(..) => {}
            LoggedChange::Removed(event) => {
                self.events.entry(event.id.clone()).or_default().step(at, EventStep::Removed);
            }
            LoggedChange::Tick(LoggedTick { at, records, .. }) => {
                for record in records {
                    let numbers = (self.keys.number(&record.bookmaker), self.keys.number_of(record.market.key()));
                    let outcomes = record.price.map(|price| price.outcomes);
                    self.events.entry(record.event.id.clone()).or_default().price(numbers, at, outcomes);
                }
            }
        }
    }
}

impl EventTail {
    fn step(&mut self, at: Timestamp, step: EventStep) {
        if matches!(step, EventStep::Removed) {
            self.last.clear();
        }
        self.open_part().then = Some((at, step));
    }

    fn price(&mut self, record: RecordNumbers, at: Timestamp, after: Option<Arc<[Outcome]>>) {
        let before = match &after {
            Some(after) => self.last.insert(record, Arc::clone(after)),
            None => self.last.remove(&record),
        };
        let mut texts = std::mem::take(&mut self.texts);
        self.open_part().prices.push(record, at, (before.as_deref(), after.as_deref()), &mut texts);
        self.texts = texts;
    }

    /// The part that has not ended yet.
    fn open_part(&mut self) -> &mut TailPart {
        if self.parts.last().is_none_or(|part| part.then.is_some()) {
            self.parts.push(TailPart::default());
        }
        let last = self.parts.len() - 1;
        &mut self.parts[last]
    }

    /// What happened, in order. Of the prices at least those that are wanted.
    pub(super) fn changes(&self, is_wanted: impl Fn(RecordNumbers) -> bool) -> Result<Vec<TailChange>, Flaw> {
        // A removal closes all records, and when that was depends on what they were.
        let is_removed = |part: &TailPart| matches!(part.then, Some((_, EventStep::Removed)));
        let are_all_wanted = self.parts.iter().any(is_removed);
        let mut texts = self.texts.list().to_vec();
        let (mut changes, mut points) = (Vec::new(), Vec::new());
        for part in &self.parts {
            let mut prices = Vec::new();
            for record in part.prices.records().filter(|record| are_all_wanted || is_wanted(*record)) {
                part.prices.read_points(record, &mut texts, &mut points)?;
                prices.extend(points.drain(..).map(|point| (record, point)));
            }
            prices.sort_by_key(|(_, point)| point.at);
            changes.extend(prices.into_iter().map(|(record, point)| TailChange::Price(record, point)));
            changes.extend(part.prices.last_time().map(TailChange::Prices));
            changes.extend(part.then.clone().map(|(at, step)| TailChange::Event(at, step)));
        }
        Ok(changes)
    }
}
