//! Reads entries of the log: the state of a sport after each of them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::encode::{
    CHANGED, CLOSED, Dictionary, FORGOTTEN, IN_HUNDREDTHS, KIND, KnownEvent, LastChange, MARKET_SHIFT, NEW, OTHER_AGE,
    OTHER_BOOK, OTHER_EVENT, POINTS, PRICES, REMOVED, RecordHead, SCORE, SKIPPED,
};
use super::entry::{LoggedChange, LoggedMove, LoggedRecord, LoggedTick};
use super::events::{SharedTexts, read_event, read_event_change, read_score};
use super::prices::{Difference, apply_difference, read_outcomes};
use super::row::SectionView;
use super::texts::{Sides, TextNumbers};
use super::varint::Cursor;
use crate::model::market::KeyParts;
use crate::model::{Event, LoggedPrice, Market, MarketKey, Score, Timestamp};
use crate::store::codec::Flaw;

/// The state of a sport as the log has it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SportFold {
    pub(super) books: Vec<Arc<str>>,
    pub(super) markets: Vec<Market>,
    /// Texts that events share.
    pub(super) texts: Vec<Arc<str>>,
    pub(super) events: BTreeMap<u32, FoldedEvent>,
    pub(super) next_event: u32,
    pub(super) stale: BTreeSet<u32>,
    pub(super) last_tick: Option<Timestamp>,
}

/// An event as the log has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoldedEvent {
    pub event: Arc<Event>,
    pub score: Option<Arc<Score>>,
    /// The texts of its outcomes.
    pub(super) texts: Vec<Arc<str>>,
    /// By the numbers of bookmaker and market.
    pub(super) records: BTreeMap<(u32, u32), LoggedPrice>,
}

impl SportFold {
    /// The events in the order of their first mention.
    pub fn events(&self) -> impl Iterator<Item = &FoldedEvent> {
        self.events.values()
    }

    /// The open records of an event: the key of the bookmaker, the market and the price.
    pub fn records<'f>(
        &'f self,
        event: &'f FoldedEvent,
    ) -> impl Iterator<Item = (&'f Arc<str>, Market, &'f LoggedPrice)> {
        event.records.iter().filter_map(|((book, market), price)| {
            Some((self.books.get(*book as usize)?, *self.markets.get(*market as usize)?, price))
        })
    }

    fn open_records(&self, event: u32) -> Vec<(Arc<str>, Market, LoggedPrice)> {
        let Some(folded) = self.events.get(&event) else { return Vec::new() };
        self.records(folded).map(|(book, market, price)| (Arc::clone(book), market, price.clone())).collect()
    }

    /// The keys of the bookmakers that have had a price or a stale source.
    pub fn bookmakers(&self) -> impl Iterator<Item = &Arc<str>> {
        self.books.iter()
    }

    /// The markets that have had a price.
    pub(super) fn markets(&self) -> impl Iterator<Item = Market> {
        self.markets.iter().copied()
    }

    /// When a change of an event happened that an entry of second `at` has: a tick may be a second ahead of the clock, and
    /// what comes after it is not before it.
    pub(super) fn second_of(&self, at: Timestamp) -> Timestamp {
        self.last_tick.map_or(at, |tick| tick.max(at))
    }

    /// The keys of the bookmakers whose source is stale.
    pub fn stale(&self) -> impl Iterator<Item = &Arc<str>> {
        self.stale.iter().filter_map(|book| self.books.get(*book as usize))
    }

    /// When the sport's prices were last published with a change.
    pub fn last_tick(&self) -> Option<Timestamp> {
        self.last_tick
    }

    /// What an encoder needs to go on from here.
    pub(in crate::store) fn dictionary(&self) -> Dictionary {
        let event = |(number, folded): (&u32, &FoldedEvent)| {
            let texts = TextNumbers::of(&folded.texts);
            (folded.event.id.clone(), KnownEvent { number: *number, event: Arc::clone(&folded.event), texts })
        };
        Dictionary {
            books: self.books.iter().cloned().zip(0..).collect(),
            markets: self.markets.iter().copied().zip(0..).collect(),
            texts: SharedTexts::of(&self.texts),
            events: self.events.iter().map(event).collect(),
            next_event: self.next_event,
            stale: self.stale.clone(),
            last_tick: self.last_tick,
        }
    }

    /// Applies the section of an entry of second `at`, and hands every change to `each`.
    pub(super) fn apply(
        &mut self,
        section: &SectionView<'_>,
        at: Timestamp,
        mut each: impl FnMut(LoggedChange),
    ) -> Result<(), Flaw> {
        if section.is_first {
            *self = SportFold::default();
        }
        let mut cursor = Cursor::new(section.bytes);
        for _ in 0..cursor.count()? {
            self.event_change(at, &mut cursor)?.into_iter().for_each(&mut each);
        }
        if let Some(tick) = section.tick {
            each(LoggedChange::Tick(self.tick(tick, &mut cursor)?));
        }
        if cursor.is_empty() { Ok(()) } else { Err(Flaw::Malformed) }
    }

    /// The same for who wants nothing but the state after it.
    pub(super) fn pass(&mut self, section: &SectionView<'_>, at: Timestamp) -> Result<(), Flaw> {
        if section.is_first {
            *self = SportFold::default();
        }
        let mut cursor = Cursor::new(section.bytes);
        for _ in 0..cursor.count()? {
            self.event_change(at, &mut cursor)?;
        }
        if let Some(tick) = section.tick {
            self.last_tick = Some(tick);
            self.sources(&mut cursor)?;
            self.pass_records(tick, &mut cursor)?;
        }
        if cursor.is_empty() { Ok(()) } else { Err(Flaw::Malformed) }
    }

    /// The changes of records that follow up to the end.
    fn pass_records(&mut self, at: Timestamp, cursor: &mut Cursor<'_>) -> Result<(), Flaw> {
        let SportFold { books, markets, events, .. } = self;
        let mut last = LastChange::default();
        // Those of an event follow each other, so it is found once.
        let mut found: Option<(u32, &mut FoldedEvent)> = None;
        while !cursor.is_empty() {
            let Some(head) = read_head((books, markets), &mut last, cursor)? else { continue };
            let event = match found.take() {
                Some((number, event)) if number == head.event => event,
                _ => events.get_mut(&head.event).ok_or(UNKNOWN_EVENT)?,
            };
            event.update(at, head, cursor)?;
            found = Some((head.event, event));
        }
        Ok(())
    }

    /// Applies a change of an event. `None` if the history of the event was deleted.
    pub(super) fn event_change(
        &mut self,
        at: Timestamp,
        cursor: &mut Cursor<'_>,
    ) -> Result<Option<LoggedChange>, Flaw> {
        let kind = cursor.byte()?;
        if kind == FORGOTTEN {
            self.forgotten(cursor)?;
            return Ok(None);
        }
        if kind == NEW {
            let event = Arc::new(read_event(at, &mut self.texts, cursor)?);
            let folded =
                FoldedEvent { event: Arc::clone(&event), score: None, texts: Vec::new(), records: BTreeMap::new() };
            self.events.insert(self.next_event, folded);
            self.next_event = self.next_event.checked_add(1).ok_or(Flaw::Malformed)?;
            return Ok(Some(LoggedChange::Event(event, Box::default(), None)));
        }
        let number = cursor.small::<u32>()?;
        let folded = self.events.get_mut(&number).ok_or(UNKNOWN_EVENT)?;
        let change = match kind {
            CHANGED => {
                let event = Arc::new(read_event_change(&folded.event, at, &mut self.texts, cursor)?);
                let from = std::mem::replace(&mut folded.event, Arc::clone(&event));
                let is_moved = from.competition_key != event.competition_key;
                let markets = priced_markets(&folded.records, &self.markets);
                let moved = is_moved.then(|| Box::new(LoggedMove { from, records: self.open_records(number) }));
                LoggedChange::Event(event, markets, moved)
            }
            SCORE => {
                let score = Arc::new(read_score(&folded.event, at, cursor)?);
                folded.score = Some(Arc::clone(&score));
                LoggedChange::Score(Arc::clone(&folded.event), score)
            }
            REMOVED => {
                let event = Arc::clone(&folded.event);
                self.events.remove(&number);
                LoggedChange::Removed(event)
            }
            _ => return Err(Flaw::Malformed),
        };
        Ok(Some(change))
    }

    /// What is left of a change: the number that it took, and the texts that it was the first to mention.
    fn forgotten(&mut self, cursor: &mut Cursor<'_>) -> Result<(), Flaw> {
        let numbers: u32 = cursor.byte()?.into();
        self.next_event = self.next_event.checked_add(numbers).ok_or(Flaw::Malformed)?;
        for _ in 0..cursor.count()? {
            self.texts.push(cursor.text()?.into());
        }
        Ok(())
    }

    fn tick(&mut self, at: Timestamp, cursor: &mut Cursor<'_>) -> Result<LoggedTick, Flaw> {
        self.last_tick = Some(at);
        let sources = self.sources(cursor)?;
        let mut records = Vec::new();
        let mut last = LastChange::default();
        while !cursor.is_empty() {
            if let Some(head) = self.record_head(&mut last, cursor)? {
                records.push(self.record(at, head, cursor)?);
            }
        }
        Ok(LoggedTick { at, sources, records })
    }

    pub(super) fn sources(&mut self, cursor: &mut Cursor<'_>) -> Result<Vec<(Arc<str>, bool)>, Flaw> {
        for _ in 0..cursor.count()? {
            self.books.push(cursor.text()?.into());
        }
        let mut sources = Vec::new();
        for _ in 0..cursor.count()? {
            let number = cursor.small::<u32>()?;
            let key = self.books.get(number as usize).ok_or(UNKNOWN_BOOK)?;
            let is_stale = !self.stale.remove(&number);
            if is_stale {
                self.stale.insert(number);
            }
            sources.push((Arc::clone(key), is_stale));
        }
        Ok(sources)
    }

    /// Reads the change of a record up to its outcomes. `None` if it was deleted.
    pub(super) fn record_head(
        &mut self,
        last: &mut LastChange,
        cursor: &mut Cursor<'_>,
    ) -> Result<Option<RecordHead>, Flaw> {
        read_head((&mut self.books, &mut self.markets), last, cursor)
    }

    /// Applies the change of a record, whose outcomes follow.
    pub(super) fn record(
        &mut self,
        at: Timestamp,
        head: RecordHead,
        cursor: &mut Cursor<'_>,
    ) -> Result<LoggedRecord, Flaw> {
        let folded = self.events.get_mut(&head.event).ok_or(UNKNOWN_EVENT)?;
        folded.update(at, head, cursor)?;
        let (event, price) = (Arc::clone(&folded.event), folded.records.get(&(head.book, head.market)).cloned());
        let bookmaker = Arc::clone(self.books.get(head.book as usize).ok_or(UNKNOWN_BOOK)?);
        let market = *self.markets.get(head.market as usize).ok_or(Flaw::Malformed)?;
        Ok(LoggedRecord { event, bookmaker, market, price })
    }
}

impl FoldedEvent {
    /// Applies the change of a record, whose outcomes follow.
    #[inline]
    fn update(&mut self, at: Timestamp, head: RecordHead, cursor: &mut Cursor<'_>) -> Result<(), Flaw> {
        let RecordHead { flags, book, market, age, .. } = head;
        let Some(age) = age else {
            self.records.remove(&(book, market)).ok_or(Flaw::Malformed)?;
            return Ok(());
        };
        let last_update = i64::from(at.unix()).checked_sub(age).and_then(Timestamp::checked_from_unix);
        let last_update = last_update.ok_or(Flaw::Invalid("one of its times is invalid"))?;
        let difference = match flags & KIND {
            PRICES => Difference::Prices,
            POINTS => Difference::Points,
            _ => {
                let outcomes = read_outcomes(Sides::of(&self.event), &mut self.texts, cursor)?;
                self.records.insert((book, market), LoggedPrice { last_update, outcomes });
                return Ok(());
            }
        };
        let price = self.records.get_mut(&(book, market)).ok_or(Flaw::Malformed)?;
        price.last_update = last_update;
        apply_difference(&mut price.outcomes, (difference, flags & IN_HUNDREDTHS != 0), cursor)
    }
}

/// Reads the change of a record up to its outcomes. `None` if it was deleted.
#[inline]
fn read_head(
    (books, markets): (&mut Vec<Arc<str>>, &mut Vec<Market>),
    last: &mut LastChange,
    cursor: &mut Cursor<'_>,
) -> Result<Option<RecordHead>, Flaw> {
    let head = cursor.byte()?;
    let flags = head & (KIND | IN_HUNDREDTHS);
    if head & OTHER_EVENT != 0 {
        let event = last.event.unwrap_or(0).checked_add(cursor.small()?).ok_or(Flaw::Malformed)?;
        last.event = Some(event);
    }
    if head & OTHER_BOOK != 0 {
        last.book = Some(read_number(books, cursor, |key| Ok(key.into()))?);
    }
    if head & OTHER_AGE != 0 {
        last.age = Some(cursor.signed()?);
    }
    let market = match head >> MARKET_SHIFT {
        0 => read_number(markets, cursor, market_of)?,
        short => u32::from(short) - 1,
    };
    if flags == SKIPPED {
        return Ok(None);
    }
    let (event, book) = (last.event.ok_or(Flaw::Malformed)?, last.book.ok_or(Flaw::Malformed)?);
    if book as usize >= books.len() {
        return Err(UNKNOWN_BOOK);
    }
    if market as usize >= markets.len() {
        return Err(Flaw::Malformed);
    }
    let age = if flags & KIND == CLOSED { None } else { Some(last.age.ok_or(Flaw::Malformed)?) };
    Ok(Some(RecordHead { flags, event, book, market, age }))
}

/// The number of a key. The key of a new one follows it.
fn read_number<T>(
    known: &mut Vec<T>,
    cursor: &mut Cursor<'_>,
    new: impl FnOnce(&str) -> Result<T, Flaw>,
) -> Result<u32, Flaw> {
    let number = cursor.small::<u32>()?;
    if number as usize == known.len() {
        known.push(new(cursor.text()?)?);
    }
    Ok(number)
}

const UNKNOWN_EVENT: Flaw = Flaw::Invalid("it mentions an event that the log does not know");
const UNKNOWN_BOOK: Flaw = Flaw::Invalid("it mentions a bookmaker that the log does not know");

/// The markets of an event's records, in the order of an event's list.
fn priced_markets(records: &BTreeMap<(u32, u32), LoggedPrice>, markets: &[Market]) -> Box<[Market]> {
    let mut priced: Vec<Market> =
        records.keys().filter_map(|(_, market)| markets.get(*market as usize).copied()).collect();
    priced.sort_unstable_by(|one, other| one.cmp_in_lists(*other));
    priced.dedup();
    priced.into()
}

/// The market of a key in the log.
pub(super) fn market_of(key: &str) -> Result<Market, Flaw> {
    KeyParts::split(key).ok_or(Flaw::Invalid("its market is unknown"))?;
    let market = Market::find(key).or_else(|| Market::intern(&MarketKey::New(key.into())));
    market.ok_or(Flaw::Invalid("there is no room for its market"))
}
