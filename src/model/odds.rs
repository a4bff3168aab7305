//! Odds records: one bookmaker's prices in one market of one event.

use std::fmt;
use std::sync::Arc;

use xxhash_rust::xxh3::Xxh3;

use super::bookmaker::BookId;
use super::event::EventId;
use super::market::Market;
use super::number::{Scaled, parse_scaled};
use super::price::Price;
use super::text::{FixedBuffer, append, hex_pair};
use super::time::Timestamp;

/// A handicap or line, exact to a thousandth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Point(i32);

impl Point {
    /// Far beyond any real line, and small enough for 32-bit arithmetic.
    const MILLI_MAX: i32 = 100_000_000;

    pub fn from_milli(milli: i32) -> Option<Self> {
        (-Self::MILLI_MAX..=Self::MILLI_MAX).contains(&milli).then_some(Point(milli))
    }

    pub const fn milli(self) -> i32 {
        self.0
    }

    /// Reads a JSON number with at most three decimals.
    pub fn parse(text: &str) -> Option<Self> {
        match parse_scaled(text, 3)? {
            Scaled { value, exact: true } => Self::from_milli(i32::try_from(value).ok()?),
            _ => None,
        }
    }

    /// `-100000.125`.
    pub(crate) const TEXT_MAX: usize = 11;

    /// Writes `-3.5`, `44.0`.
    #[inline]
    pub(crate) fn put(self, buffer: &mut FixedBuffer<'_>) {
        if self.0 < 0 {
            buffer.put(b"-");
        }
        super::number::write_milli(self.0.unsigned_abs(), buffer);
    }

    /// Appends `-3.5`, `44.0`.
    pub fn write(self, out: &mut Vec<u8>) {
        append::<{ Self::TEXT_MAX }>(out, |buffer| self.put(buffer));
    }
}

/// The name of an outcome, with the description that some markets add to it: `Over` of a player. Both are one text, so
/// that an outcome holds one pointer, and most outcomes have no description.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OutcomeName(Arc<str>);

impl OutcomeName {
    /// Begins a name that has a description, and separates the two. Names have no control characters.
    const MARK: char = '\0';

    pub fn new(name: &str, description: Option<&str>) -> Self {
        match description {
            None => OutcomeName(name.into()),
            Some(description) => OutcomeName(format!("{0}{name}{0}{description}", Self::MARK).into()),
        }
    }

    /// From the text that [`OutcomeName::as_stored`] gave.
    pub fn from_stored(text: Arc<str>) -> Self {
        OutcomeName(text)
    }

    /// Name and description in one text.
    pub fn as_stored(&self) -> &Arc<str> {
        &self.0
    }

    #[inline]
    pub fn as_str(&self) -> &str {
        self.parts().map_or(&*self.0, |(name, _)| name)
    }

    /// The player or the team that the outcome is about, in markets that say so.
    #[inline]
    pub fn description(&self) -> Option<&str> {
        self.parts().map(|(_, description)| description)
    }

    /// Whether two names are the same; names of one feed often share their text.
    #[inline]
    pub fn is(&self, other: &OutcomeName) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0 == other.0
    }

    #[inline]
    fn parts(&self) -> Option<(&str, &str)> {
        self.0.strip_prefix(Self::MARK)?.split_once(Self::MARK)
    }
}

impl From<&str> for OutcomeName {
    fn from(name: &str) -> Self {
        OutcomeName::new(name, None)
    }
}

impl From<Arc<str>> for OutcomeName {
    fn from(name: Arc<str>) -> Self {
        OutcomeName(name)
    }
}

/// The name without its description.
impl std::ops::Deref for OutcomeName {
    type Target = str;

    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl fmt::Display for OutcomeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self)
    }
}

/// One side of a market.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    pub name: OutcomeName,
    pub price: Price,
    pub point: Option<Point>,
}

/// A record's identifier: a hash of its sport, event, bookmaker and market, so it is stable across machines and
/// versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RecordId(u64);

impl RecordId {
    pub fn new(sport_key: &str, event: &EventId, bookmaker_key: &str, market: Market) -> Self {
        let mut hash = Xxh3::new();
        for part in [sport_key, event.as_str(), bookmaker_key, market.key()] {
            hash.update(part.as_bytes());
            hash.update(&[0]);
        }
        RecordId(hash.digest())
    }

    /// Sixteen hexadecimal digits.
    #[inline]
    pub fn text(self) -> [u8; 16] {
        let mut text = [0; 16];
        for (pair, byte) in text.as_chunks_mut().0.iter_mut().zip(self.0.to_be_bytes()) {
            *pair = hex_pair(byte);
        }
        text
    }
}

impl fmt::Display for RecordId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// The prices of one bookmaker in one market of an event. There is no record without outcomes: the market is closed
/// instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    pub id: RecordId,
    pub bookmaker: BookId,
    pub market: Market,
    pub last_update: Timestamp,
    /// The bookmaker's own update time, if it differs from the market's.
    pub bookmaker_update: Option<Timestamp>,
    pub outcomes: Box<[Outcome]>,
}

/// The remainder of a record whose market was closed: older messages do not reopen it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Closed {
    pub bookmaker: BookId,
    pub market: Market,
    pub at: Timestamp,
}

impl Record {
    /// More than any golf field; a longer list is an error in the feed.
    pub const OUTCOMES_MAX: usize = 500;

    /// A record of a log, which names bookmakers by their keys: one of then may have no number any more.
    pub fn logged(id: RecordId, market: Market, last_update: Timestamp, outcomes: &[Outcome]) -> Self {
        let (bookmaker, outcomes) = (BookId::from_number(u16::MAX), outcomes.iter().cloned().collect());
        Record { id, bookmaker, market, last_update, bookmaker_update: None, outcomes }
    }

    /// The bookmaker's own update time, or the market's if it has none.
    pub fn effective_bookmaker_update(&self) -> Timestamp {
        self.bookmaker_update.unwrap_or(self.last_update)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn record_id_is_stable() {
        let id = RecordId::new("mma", &EventId::new("e1").unwrap(), "betmgm", Market::MONEYLINE);
        assert_eq!(std::str::from_utf8(&id.text()).unwrap(), id.to_string());
        assert_eq!(id.to_string(), "5c6b1e44366ffb2e");
    }

    #[test]
    fn record_takes_forty_bytes() {
        assert_eq!(size_of::<Record>(), 40, "a board holds a million of them");
    }

    #[test]
    fn points_are_written_with_at_least_one_decimal() {
        for (text, written) in
            [("-3.5", "-3.5"), ("44", "44.0"), ("2.25", "2.25"), ("0", "0.0"), ("-0.5", "-0.5"), ("+7", "7.0")]
        {
            let mut out = Vec::new();
            Point::parse(text).unwrap().write(&mut out);
            assert_eq!(std::str::from_utf8(&out).unwrap(), written);
        }
        assert_eq!(Point::parse("1.0001"), None);
        assert_eq!(Point::parse("1e9"), None);
    }
}
