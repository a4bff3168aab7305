//! What can be asked of a board, and where a page of an answer ends.
//!
//! A query is complete and canonical: equal queries have equal answers on the same snapshot, so a query is also the
//! key under which a rendered answer is cached.

use super::body::HeapBytes;
use crate::model::market::KeyParts;
use crate::model::text::hex_pair;
use crate::model::{BookId, EventId, EventStatus, MarketFilter, OddsFormat, Regions, ScoreStatus, Timestamp};

/// How many results an answer holds at most: 1 to 500.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Limit(u16);

impl Limit {
    pub const MAX: u16 = 500;
    pub const DEFAULT: Limit = Limit(100);
    pub const LONGEST: Limit = Limit(Self::MAX);

    pub fn new(value: u64) -> Option<Self> {
        u16::try_from(value).ok().filter(|value| (1..=Self::MAX).contains(value)).map(Limit)
    }

    pub const fn get(self) -> usize {
        self.0 as usize
    }
}

/// The events that an answer is scoped to: sorted, each once.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct EventIds(Box<[EventId]>);

impl EventIds {
    pub const MAX: usize = 100;

    pub fn new(mut ids: Vec<EventId>) -> Self {
        ids.sort_unstable();
        ids.dedup();
        EventIds(ids.into())
    }

    pub fn iter(&self) -> impl Iterator<Item = &EventId> {
        self.0.iter()
    }

    pub(crate) fn contains(&self, id: &EventId) -> bool {
        self.0.binary_search(id).is_ok()
    }
}

/// The competitions that an answer is scoped to: sorted, each once.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CompetitionKeys(Box<[Box<str>]>);

impl CompetitionKeys {
    pub const MAX: usize = 100;

    pub fn new(mut keys: Vec<Box<str>>) -> Self {
        keys.sort_unstable();
        keys.dedup();
        CompetitionKeys(keys.into())
    }

    pub(crate) fn contains(&self, key: &str) -> bool {
        self.0.iter().any(|own| **own == *key)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|key| &**key)
    }

    /// A bit for each key. Summaries of events have the same bits, so that a lookup skips those without any of them.
    pub(crate) fn bits(&self) -> u64 {
        self.0.iter().fold(0, |bits, key| bits | competition_bit(key))
    }
}

pub(crate) fn competition_bit(key: &str) -> u64 {
    1 << (xxhash_rust::xxh3::xxh3_64(key.as_bytes()) % 64)
}

/// The last result of a page; the next page begins after it. It consists of the sort key, so it stays valid on every
/// machine and after every change.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Cursor {
    pub commence: Timestamp,
    pub event: EventId,
    /// The keys of the bookmaker and the market, where results are records.
    pub record: Option<(Box<str>, Box<str>)>,
}

impl Cursor {
    const SEPARATOR: char = ' ';

    /// An opaque text for a URL: the sort key in hexadecimal.
    pub fn to_text(&self) -> String {
        let mut key = format!("{}{}{}", self.commence.unix(), Self::SEPARATOR, self.event);
        if let Some((bookmaker, market)) = &self.record {
            key.extend([Self::SEPARATOR]);
            key.push_str(bookmaker);
            key.extend([Self::SEPARATOR]);
            key.push_str(market);
        }
        let mut text = Vec::with_capacity(key.len() * 2);
        key.bytes().for_each(|byte| text.extend_from_slice(&hex_pair(byte)));
        String::from_utf8(text).unwrap_or_default()
    }

    /// `None` if the text was not made by [`Cursor::to_text`].
    pub fn parse(text: &str) -> Option<Self> {
        let digits: Option<Vec<u8>> =
            text.chars().map(|digit| digit.to_digit(16).and_then(|value| u8::try_from(value).ok())).collect();
        let (pairs, odd) = digits.as_ref()?.as_chunks::<2>();
        if !odd.is_empty() {
            return None;
        }
        let key = String::from_utf8(pairs.iter().map(|[high, low]| high << 4 | low).collect()).ok()?;
        let mut parts = key.split(Self::SEPARATOR);
        let commence = Timestamp::from_unix(parts.next()?.parse().ok()?);
        let event = EventId::new(parts.next()?)?;
        let record = match (parts.next(), parts.next(), parts.next()) {
            (None, ..) => None,
            (Some(bookmaker), Some(market), None) => {
                KeyParts::split(market)?;
                Some((bookmaker.into(), market.into()))
            }
            _ => return None,
        };
        Some(Cursor { commence, event, record })
    }
}

/// Which events a list is about.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct EventScope {
    pub events: Option<EventIds>,
    pub competitions: Option<CompetitionKeys>,
    pub commence_from: Option<Timestamp>,
    pub commence_to: Option<Timestamp>,
    /// Leaves out events that have a field.
    pub sides_only: bool,
}

/// Get Odds, as a bare array or grouped by bout.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct OddsQuery {
    pub markets: MarketFilter,
    /// `None`: all of them.
    pub bookmakers: Option<Box<[BookId]>>,
    /// `None`: wherever the bookmakers are offered.
    pub regions: Option<Regions>,
    pub format: OddsFormat,
    pub scope: EventScope,
    pub limit: Limit,
    pub after: Option<Cursor>,
    /// Grouped by bout instead of a bare array; the limit then counts bouts.
    pub by_bout: bool,
    /// Whether each record has the event's names, competition and start.
    pub with_event: bool,
}

impl Default for OddsQuery {
    /// Everything, in American prices.
    fn default() -> Self {
        OddsQuery {
            markets: MarketFilter::Featured,
            bookmakers: None,
            regions: None,
            format: OddsFormat::American,
            scope: EventScope::default(),
            limit: Limit::DEFAULT,
            after: None,
            by_bout: false,
            with_event: false,
        }
    }
}

/// List Events.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct EventsQuery {
    pub status: Option<EventStatus>,
    pub scope: EventScope,
    pub limit: Limit,
    pub after: Option<Cursor>,
}

/// Get Scores.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ScoresQuery {
    pub status: Option<ScoreStatus>,
    pub scope: EventScope,
    pub limit: Limit,
    pub after: Option<Cursor>,
}

impl HeapBytes for EventId {
    fn heap_bytes(&self) -> usize {
        // The text and the two reference counts of its `Arc`.
        self.as_str().len() + 2 * size_of::<usize>()
    }
}

impl HeapBytes for EventIds {
    fn heap_bytes(&self) -> usize {
        self.iter().map(|id| size_of::<EventId>() + id.heap_bytes()).sum()
    }
}

impl HeapBytes for CompetitionKeys {
    fn heap_bytes(&self) -> usize {
        self.0.iter().map(|key| size_of::<Box<str>>() + key.len()).sum()
    }
}

impl HeapBytes for MarketFilter {
    fn heap_bytes(&self) -> usize {
        match self {
            MarketFilter::Featured | MarketFilter::All => 0,
            MarketFilter::Only(markets) => size_of_val(&**markets),
        }
    }
}

impl HeapBytes for Cursor {
    fn heap_bytes(&self) -> usize {
        self.event.heap_bytes() + self.record.as_ref().map_or(0, |(bookmaker, market)| bookmaker.len() + market.len())
    }
}

impl HeapBytes for EventScope {
    fn heap_bytes(&self) -> usize {
        self.events.heap_bytes() + self.competitions.heap_bytes()
    }
}

impl HeapBytes for OddsQuery {
    fn heap_bytes(&self) -> usize {
        let books = self.bookmakers.as_ref().map_or(0, |books| size_of_val(&**books));
        books + self.markets.heap_bytes() + self.scope.heap_bytes() + self.after.heap_bytes()
    }
}

impl HeapBytes for EventsQuery {
    fn heap_bytes(&self) -> usize {
        self.scope.heap_bytes() + self.after.heap_bytes()
    }
}

impl HeapBytes for ScoresQuery {
    fn heap_bytes(&self) -> usize {
        self.scope.heap_bytes() + self.after.heap_bytes()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn cursors_come_back() {
        let event = EventId::new("réunion-1").unwrap();
        for record in [None, Some(("betmgm".into(), "top5".into()))] {
            let cursor = Cursor { commence: Timestamp::from_unix(17), event: event.clone(), record };
            assert_eq!(Cursor::parse(&cursor.to_text()), Some(cursor));
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "\\PC{0,80}", digits in "[0-9a-f]{0,80}") {
            let _ = Cursor::parse(&text);
            let _ = Cursor::parse(&digits);
        }
    }
}
