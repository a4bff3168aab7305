//! Writes entries of the log.
//!
//! An entry names nothing twice: bookmakers, markets, events and texts get a number when the log first mentions them, and
//! a price is written as its difference to the one before. So an entry can be read only after those before it, from a
//! keyframe on. A [`Dictionary`] has what the log has mentioned of a sport so far; `fold` is its counterpart.

use std::collections::BTreeSet;
use std::sync::Arc;

use foldhash::HashMap;

use super::entry::{EventChange, RecordChange, SportChanges, TickChanges};
use super::events::{SharedTexts, put_event, put_event_change, put_score};
use super::prices::{Difference, put_difference, put_outcomes};
use super::texts::{Sides, TextNumbers};
use super::varint::{put, put_signed, put_text};
use crate::model::{Event, EventId, Market, Timestamp};

/// The kinds of change to an event.
pub(super) const NEW: u8 = 0;
pub(super) const CHANGED: u8 = 1;
pub(super) const SCORE: u8 = 2;
pub(super) const REMOVED: u8 = 3;
/// A change of an event whose history was deleted: only what later changes of other events depend on.
pub(super) const FORGOTTEN: u8 = 4;

/// The byte that begins the change of a record: what is new since the change before it, and how it is written.
pub(super) const PRICES: u8 = 0;
pub(super) const POINTS: u8 = 1;
pub(super) const WHOLE: u8 = 2;
pub(super) const CLOSED: u8 = 3;
pub(super) const KIND: u8 = 3;
pub(super) const IN_HUNDREDTHS: u8 = 1 << 2;
/// A change that was deleted, and was the first to mention its bookmaker or its market. No other change has both flags.
pub(super) const SKIPPED: u8 = CLOSED | IN_HUNDREDTHS;
pub(super) const OTHER_EVENT: u8 = 1 << 3;
pub(super) const OTHER_BOOK: u8 = 1 << 4;
pub(super) const OTHER_AGE: u8 = 1 << 5;
/// The number of the market plus one, or 0 if it follows.
pub(super) const MARKET_SHIFT: u8 = 6;
pub(super) const SHORT_MARKETS: u32 = 3;

/// An entry mentions an event that the log does not know.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the log does not know event {0}")]
pub(in crate::store) struct UnknownEvent(pub EventId);

/// What the log has mentioned of one sport.
#[derive(Clone, Debug, Default)]
pub(in crate::store) struct Dictionary {
    pub(super) books: HashMap<Arc<str>, u32>,
    pub(super) markets: HashMap<Market, u32>,
    pub(super) texts: SharedTexts,
    pub(super) events: HashMap<EventId, KnownEvent>,
    pub(super) next_event: u32,
    /// The numbers of the bookmakers whose source is stale.
    pub(super) stale: BTreeSet<u32>,
    pub(super) last_tick: Option<Timestamp>,
}

impl Dictionary {
    /// When prices were last published with a change.
    pub(in crate::store) fn last_tick(&self) -> Option<Timestamp> {
        self.last_tick
    }

    /// Whether the log has not mentioned anything yet.
    fn is_unused(&self) -> bool {
        self.next_event == 0 && self.last_tick.is_none()
    }
}

/// An event as the log has it.
#[derive(Clone, Debug)]
pub(super) struct KnownEvent {
    pub(super) number: u32,
    pub(super) event: Arc<Event>,
    pub(super) texts: TextNumbers,
}

/// Encodes what an entry of second `at` changes of a sport.
pub(in crate::store) struct SectionEncoder<'d> {
    dictionary: &'d mut Dictionary,
    at: Timestamp,
    out: Vec<u8>,
}

/// The bytes of a section, and the time of its tick.
#[derive(Debug)]
pub(in crate::store) struct Section {
    pub(in crate::store) bytes: Vec<u8>,
    pub(in crate::store) tick: Option<Timestamp>,
    /// Whether it begins from an empty dictionary.
    pub(in crate::store) is_first: bool,
}

impl<'d> SectionEncoder<'d> {
    pub(in crate::store) fn new(dictionary: &'d mut Dictionary, at: Timestamp) -> Self {
        SectionEncoder { dictionary, at, out: Vec::new() }
    }

    pub(in crate::store) fn encode(mut self, changes: &SportChanges) -> Result<Section, UnknownEvent> {
        let is_first = self.dictionary.is_unused();
        put(&mut self.out, changes.events.len() as u64);
        for change in &changes.events {
            self.event_change(change)?;
        }
        let tick = changes.tick.as_ref().map(|tick| self.tick(tick)).transpose()?;
        Ok(Section { bytes: self.out, tick, is_first })
    }

    fn event_change(&mut self, change: &EventChange) -> Result<(), UnknownEvent> {
        let Dictionary { events, texts, next_event, .. } = &mut *self.dictionary;
        let unknown = |id: &EventId| UnknownEvent(id.clone());
        match change {
            EventChange::Put(event) => {
                if let Some(known) = events.get_mut(&event.id) {
                    self.out.push(CHANGED);
                    put(&mut self.out, known.number.into());
                    put_event_change(&known.event, event, self.at, texts, &mut self.out);
                    known.event = Arc::clone(event);
                } else {
                    self.out.push(NEW);
                    put_event(event, self.at, texts, &mut self.out);
                    let texts = TextNumbers::default();
                    let known = KnownEvent { number: *next_event, event: Arc::clone(event), texts };
                    events.insert(event.id.clone(), known);
                    *next_event += 1;
                }
            }
            EventChange::Score(id, score) => {
                let known = events.get(id).ok_or_else(|| unknown(id))?;
                self.out.push(SCORE);
                put(&mut self.out, known.number.into());
                put_score(&known.event, score, self.at, &mut self.out);
            }
            EventChange::Removed(id) => {
                let known = events.remove(id).ok_or_else(|| unknown(id))?;
                self.out.push(REMOVED);
                put(&mut self.out, known.number.into());
            }
        }
        Ok(())
    }

    fn tick(&mut self, tick: &TickChanges) -> Result<Timestamp, UnknownEvent> {
        // Unique for the sport, and never before the one before, whatever the clock does.
        let at = self.dictionary.last_tick.map_or(tick.at, |last| tick.at.max(last.plus_seconds(1)));
        self.dictionary.last_tick = Some(at);
        self.sources(&tick.stale);
        let mut changes = Vec::with_capacity(tick.records.len());
        for change in &tick.records {
            let known = self.dictionary.events.get(&change.event).ok_or_else(|| UnknownEvent(change.event.clone()))?;
            changes.push((known.number, change));
        }
        // Numbers of one event follow each other, so that each takes a byte.
        changes.sort_unstable_by(|(event, change), (other_event, other)| {
            let by_book = event.cmp(other_event).then_with(|| change.bookmaker.cmp(&other.bookmaker));
            by_book.then_with(|| change.market.cmp_in_records(other.market))
        });
        let mut last = LastChange::default();
        for (event, change) in changes {
            self.record(event, change, at, &mut last);
        }
        Ok(at)
    }

    /// The sources that went stale or are no longer stale.
    fn sources(&mut self, stale: &[Arc<str>]) {
        let mut is: BTreeSet<u32> = BTreeSet::new();
        let mut new: Vec<&Arc<str>> = Vec::new();
        for key in stale {
            let (number, is_new) = number_in(&mut self.dictionary.books, key);
            is.insert(number);
            new.extend(is_new.then_some(key));
        }
        put(&mut self.out, new.len() as u64);
        for key in new {
            put_text(&mut self.out, key);
        }
        let changed: Vec<u32> = is.symmetric_difference(&self.dictionary.stale).copied().collect();
        put(&mut self.out, changed.len() as u64);
        for number in changed {
            put(&mut self.out, number.into());
        }
        self.dictionary.stale = is;
    }

    fn record(&mut self, event: u32, change: &RecordChange, at: Timestamp, last: &mut LastChange) {
        let (book, is_new_book) = number_in(&mut self.dictionary.books, &change.bookmaker);
        let (market, is_new_market) = number_in(&mut self.dictionary.markets, &change.market);
        let age = change.after.as_ref().map(|record| i64::from(at.unix()) - i64::from(record.last_update.unix()));
        let Some(known) = self.dictionary.events.get_mut(&change.event) else { return };
        let mut outcomes = Vec::new();
        let (kind, in_hundredths) = match (&change.before, &change.after) {
            (_, None) => (CLOSED, false),
            (before, Some(after)) => {
                let before = before.as_ref().map_or(&[][..], |record| &record.outcomes);
                match put_difference(before, &after.outcomes, &mut outcomes) {
                    Some((Difference::Prices, in_hundredths)) => (PRICES, in_hundredths),
                    Some((Difference::Points, in_hundredths)) => (POINTS, in_hundredths),
                    None => {
                        put_outcomes(Sides::of(&known.event), &after.outcomes, &mut known.texts, &mut outcomes);
                        (WHOLE, false)
                    }
                }
            }
        };
        let flags = kind | if in_hundredths { IN_HUNDREDTHS } else { 0 };
        let head = RecordHead { flags, event, book, market, age };
        let new_book = is_new_book.then_some(&*change.bookmaker);
        head.put(last, (new_book, is_new_market.then_some(change.market.key())), &mut self.out);
        self.out.extend_from_slice(&outcomes);
    }
}

/// What a change need not repeat of the one before it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LastChange {
    pub(super) event: Option<u32>,
    pub(super) book: Option<u32>,
    pub(super) age: Option<i64>,
}

/// The change of a record up to its outcomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RecordHead {
    /// Its kind, and whether differences are in hundredths.
    pub(super) flags: u8,
    pub(super) event: u32,
    pub(super) book: u32,
    pub(super) market: u32,
    /// `None` if it closed.
    pub(super) age: Option<i64>,
}

impl RecordHead {
    /// Writes it; `new` are the keys of a bookmaker and of a market that the log mentions for the first time.
    pub(super) fn put(self, last: &mut LastChange, new: (Option<&str>, Option<&str>), out: &mut Vec<u8>) {
        let RecordHead { flags, event, book, market, age } = self;
        let (other_event, other_book) = (last.event != Some(event), last.book != Some(book));
        let other_age = age.is_some() && last.age != age;
        let short = if market < SHORT_MARKETS && new.1.is_none() { market + 1 } else { 0 };
        let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
        out.push(
            flags
                | flag(other_event, OTHER_EVENT)
                | flag(other_book, OTHER_BOOK)
                | flag(other_age, OTHER_AGE)
                | short.to_le_bytes()[0] << MARKET_SHIFT,
        );
        if other_event {
            put(out, u64::from(event - last.event.unwrap_or(0)));
        }
        if other_book {
            put(out, book.into());
            new.0.into_iter().for_each(|key| put_text(out, key));
        }
        if let Some(age) = age.filter(|_| other_age) {
            put_signed(out, age);
        }
        if short == 0 {
            put(out, market.into());
            new.1.into_iter().for_each(|key| put_text(out, key));
        }
        *last = LastChange { event: Some(event), book: Some(book), age: age.or(last.age) };
    }
}

/// The number of a thing, and whether it has got it only now.
fn number_in<K: Clone + Eq + std::hash::Hash>(numbers: &mut HashMap<K, u32>, key: &K) -> (u32, bool) {
    let next = u32::try_from(numbers.len()).unwrap_or(u32::MAX);
    let number = *numbers.entry(key.clone()).or_insert(next);
    (number, number == next)
}
