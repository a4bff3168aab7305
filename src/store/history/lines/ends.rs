//! An event in history: what it was, the texts of its lines, and the opening and the closing price of each record.
//!
//! The closing price is the last one that was published before the event began. It began when it was first seen live, or
//! at its commence time as that was known then, whichever was earlier. So it is found out as the log goes by, and an
//! event that is scheduled again has another one.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::block::RecordNumbers;
use crate::model::{Event, EventStatus, Outcome, OutcomeName, PricedAt, Start, StartSource, Timestamp};
use crate::store::codec::Flaw;
use crate::store::history::events::{SharedTexts, put_event, put_time, read_event, read_time};
use crate::store::history::prices::{Difference, put_difference, read_difference, read_outcomes};
use crate::store::history::row::{Effort, compress_if_shorter, decompress_if_compressed};
use crate::store::history::texts::{Sides, TextNumbers};
use crate::store::history::varint::{Cursor, put, put_text};

/// An event of history as it is stored: the seconds of its first and of its last change, and the rest compressed.
#[derive(Debug)]
pub(in crate::store) struct EndsRow(pub(in crate::store) Vec<u8>);

/// The most that a row may decompress to: a bound on hostile lengths.
const DECOMPRESSED_MAX: usize = 1 << 26;

#[derive(Clone, Debug)]
pub(super) struct EventEnds {
    /// As the log last had it.
    pub(super) event: Arc<Event>,
    pub(super) first_change: Timestamp,
    pub(super) last_change: Timestamp,
    /// How many blocks its lines have.
    pub(super) blocks: u32,
    pub(super) start: Start,
    pub(super) source: StartSource,
    /// Whether it was seen live since it was last ahead: prices from then never count.
    was_live: bool,
    pub(super) texts: EventTexts,
    pub(super) records: BTreeMap<RecordNumbers, RecordEnds>,
}

/// From which prices the closing ones of another start are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NewStart {
    /// The commence time was another one, or it had been cancelled: the last prices count, whenever they were published.
    FromLastPrices,
    /// It has been live, and prices from then never count: those that are open now do.
    FromOpenPrices,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RecordEnds {
    /// The first price.
    pub(super) opening: PricedAt,
    /// The last price before the start, so far.
    pub(super) closing: Option<PricedAt>,
    /// Whether the record closed before the start, and is still closed.
    pub(super) is_closed: bool,
}

/// The texts of an event's lines.
#[derive(Clone, Debug, Default)]
pub(super) struct EventTexts {
    list: Vec<Arc<str>>,
    numbers: TextNumbers,
}

impl EventTexts {
    fn of(list: Vec<Arc<str>>) -> Self {
        let numbers = TextNumbers::of(&list);
        EventTexts { list, numbers }
    }

    pub(super) fn list(&self) -> &[Arc<str>] {
        &self.list
    }

    pub(super) fn numbers(&mut self) -> &mut TextNumbers {
        &mut self.numbers
    }

    pub(super) fn know(&mut self, name: &OutcomeName) {
        self.list.extend(self.numbers.know(name));
    }
}

impl EventEnds {
    pub(super) fn new(event: Arc<Event>, at: Timestamp) -> Self {
        let start = start_of_new(&event, at);
        let was_live = is_live(&event);
        EventEnds {
            event,
            source: StartSource::Begun.after(start),
            was_live,
            first_change: at,
            last_change: at,
            blocks: 0,
            start,
            texts: EventTexts::default(),
            records: BTreeMap::new(),
        }
    }

    /// The UTC day on which it started or is to start, counted from 1970.
    pub(super) fn day(&self) -> u32 {
        self.start.day(&self.event)
    }

    /// Follows a change of the event itself, and returns whether it begins once more: see [`EventEnds::begin_again`].
    pub(super) fn put_event(&mut self, event: &Arc<Event>, at: Timestamp) -> Option<NewStart> {
        self.note(at);
        // Its commence time, as it was known until now, may have passed.
        self.is_ahead(at);
        let was = self.start;
        self.event = Arc::clone(event);
        self.start = match event.status {
            EventStatus::Cancelled => Start::Cancelled,
            EventStatus::Scheduled if at < event.commence => Start::Ahead,
            _ if was.has_begun() => was,
            EventStatus::Live | EventStatus::Final if at < event.commence => Start::Live(at),
            _ => Start::Scheduled(event.commence),
        };
        self.source = self.source.after(self.start);
        match (was, self.start) {
            (_, Start::Cancelled) => {
                self.records.values_mut().for_each(|record| record.closing = None);
                None
            }
            (Start::Live(_) | Start::Scheduled(_) | Start::Cancelled, Start::Ahead) => {
                let was_live = std::mem::take(&mut self.was_live);
                Some(if was_live { NewStart::FromOpenPrices } else { NewStart::FromLastPrices })
            }
            _ => {
                self.was_live |= is_live(event);
                None
            }
        }
    }

    /// The event begins once more: these are the prices that may be the last before that, and those that are open.
    pub(super) fn begin_again(
        &mut self,
        mut prices: BTreeMap<RecordNumbers, PricedAt>,
        is_open: impl Fn(&RecordNumbers) -> bool,
    ) {
        for (numbers, record) in &mut self.records {
            record.closing = prices.remove(numbers);
            record.is_closed = !is_open(numbers);
        }
    }

    /// Follows a change of a record in a publication.
    pub(super) fn put_price(&mut self, record: RecordNumbers, at: Timestamp, outcomes: Option<&Arc<[Outcome]>>) {
        self.note(at);
        let is_ahead = self.is_ahead(at);
        match (self.records.get_mut(&record), outcomes) {
            (Some(known), outcomes) => {
                if is_ahead {
                    known.is_closed = outcomes.is_none();
                    let priced = outcomes.map(|outcomes| PricedAt { at, outcomes: Arc::clone(outcomes) });
                    known.closing = priced.or(known.closing.take());
                }
            }
            (None, Some(outcomes)) => {
                let opening = PricedAt { at, outcomes: Arc::clone(outcomes) };
                let closing = is_ahead.then(|| opening.clone());
                self.records.insert(record, RecordEnds { opening, closing, is_closed: false });
            }
            (None, None) => {}
        }
    }

    /// Follows changes of records that are of no interest.
    pub(super) fn pass(&mut self, at: Timestamp) {
        self.note(at);
        self.is_ahead(at);
    }

    /// Whether a price of that time may be the last before the start.
    fn is_ahead(&mut self, at: Timestamp) -> bool {
        if self.start == Start::Ahead && at >= self.event.commence {
            self.start = Start::Scheduled(self.event.commence);
        }
        self.start == Start::Ahead
    }

    fn note(&mut self, at: Timestamp) {
        self.last_change = self.last_change.max(at);
    }
}

fn is_live(event: &Event) -> bool {
    matches!(event.status, EventStatus::Live | EventStatus::Final)
}

/// Whether an event has begun when it is first seen.
fn start_of_new(event: &Event, at: Timestamp) -> Start {
    match event.status {
        EventStatus::Cancelled => Start::Cancelled,
        EventStatus::Scheduled if at < event.commence => Start::Ahead,
        EventStatus::Live | EventStatus::Final if at < event.commence => Start::Live(at),
        _ => Start::Scheduled(event.commence),
    }
}

const AHEAD: u8 = 0;
const LIVE: u8 = 1;
const SCHEDULED: u8 = 2;
const CANCELLED: u8 = 3;
/// Added to one of these.
const WAS_LIVE: u8 = 1 << 4;
const FROM_BEGUN: u8 = 1 << 5;
const FROM_CANCELLED: u8 = 1 << 6;

/// What follows the opening of a record.
const HAS_CLOSING: u8 = 1;
const CLOSING_IS_OPENING: u8 = 1 << 1;
const CLOSING_PRICES: u8 = 1 << 2;
const CLOSING_POINTS: u8 = 1 << 3;
const IN_HUNDREDTHS: u8 = 1 << 4;
const IS_CLOSED: u8 = 1 << 5;

impl EventEnds {
    pub(super) fn encode(&mut self) -> Result<EndsRow, Flaw> {
        let at = self.last_change;
        let mut out = Vec::new();
        put_event(&self.event, at, &mut SharedTexts::default(), &mut out);
        put_time(self.event.changed, at, &mut out);
        let (kind, time) = match self.start {
            Start::Ahead => (AHEAD, None),
            Start::Live(time) => (LIVE, Some(time)),
            Start::Scheduled(time) => (SCHEDULED, Some(time)),
            Start::Cancelled => (CANCELLED, None),
        };
        let source = match self.source {
            StartSource::Ahead => 0,
            StartSource::Begun => FROM_BEGUN,
            StartSource::Cancelled => FROM_CANCELLED,
        };
        out.push(kind | source | if self.was_live { WAS_LIVE } else { 0 });
        if let Some(time) = time {
            put_time(time, at, &mut out);
        }
        put(&mut out, self.blocks.into());
        // The names of closing prices too must be known before the list of texts is written.
        let mut records = Vec::new();
        for (numbers, record) in &self.records {
            record.put(*numbers, at, &mut self.texts, &mut records);
        }
        put(&mut out, self.texts.list.len() as u64);
        self.texts.list.iter().for_each(|text| put_text(&mut out, text));
        put(&mut out, self.records.len() as u64);
        out.extend_from_slice(&records);
        let mut row = self.first_change.unix().to_le_bytes().to_vec();
        row.extend_from_slice(&self.last_change.unix().to_le_bytes());
        row.extend(compress_if_shorter(&out, Effort::Little)?);
        Ok(EndsRow(row))
    }
}

impl RecordEnds {
    fn put(&self, (book, market): RecordNumbers, at: Timestamp, texts: &mut EventTexts, out: &mut Vec<u8>) {
        put(out, book.into());
        put(out, market.into());
        put_time(self.opening.at, at, out);
        texts.put_outcomes(&self.opening.outcomes, out);
        let mut difference = Vec::new();
        let closed = if self.is_closed { IS_CLOSED } else { 0 };
        let Some(closing) = &self.closing else { return out.push(closed) };
        if *closing == self.opening {
            return out.push(closed | HAS_CLOSING | CLOSING_IS_OPENING);
        }
        let scale = |in_hundredths: bool| if in_hundredths { IN_HUNDREDTHS } else { 0 };
        let kind = match put_difference(&self.opening.outcomes, &closing.outcomes, &mut difference) {
            Some((Difference::Prices, in_hundredths)) => CLOSING_PRICES | scale(in_hundredths),
            Some((Difference::Points, in_hundredths)) => CLOSING_POINTS | scale(in_hundredths),
            None => {
                texts.put_outcomes(&closing.outcomes, &mut difference);
                0
            }
        };
        out.push(closed | HAS_CLOSING | kind);
        put_time(closing.at, at, out);
        out.extend_from_slice(&difference);
    }

    fn read(at: Timestamp, texts: &mut Vec<Arc<str>>, cursor: &mut Cursor<'_>) -> Result<Self, Flaw> {
        let opening = PricedAt { at: read_time(at, cursor)?, outcomes: read_outcomes(Sides::NONE, texts, cursor)? };
        let flags = cursor.byte()?;
        let is_closed = flags & IS_CLOSED != 0;
        let in_hundredths = flags & IN_HUNDREDTHS != 0;
        let closing = if flags & HAS_CLOSING == 0 {
            None
        } else if flags & CLOSING_IS_OPENING != 0 {
            Some(opening.clone())
        } else {
            let at = read_time(at, cursor)?;
            let difference = match flags & (CLOSING_PRICES | CLOSING_POINTS) {
                CLOSING_PRICES => Some(Difference::Prices),
                CLOSING_POINTS => Some(Difference::Points),
                _ => None,
            };
            let outcomes = match difference {
                Some(difference) => read_difference(&opening.outcomes, (difference, in_hundredths), cursor)?,
                None => read_outcomes(Sides::NONE, texts, cursor)?,
            };
            Some(PricedAt { at, outcomes })
        };
        Ok(RecordEnds { opening, closing, is_closed })
    }
}

impl EndsRow {
    /// The seconds of the first and of the last change.
    pub(in crate::store) fn span(&self) -> Result<(Timestamp, Timestamp), Flaw> {
        self.split().map(|(first, last, _)| (first, last))
    }

    pub(in crate::store) fn check(&self) -> Result<(), Flaw> {
        self.read().map(|_| ())
    }

    fn split(&self) -> Result<(Timestamp, Timestamp, &[u8]), Flaw> {
        let (first, rest) = self.0.split_first_chunk::<4>().ok_or(Flaw::Short)?;
        let (last, rest) = rest.split_first_chunk::<4>().ok_or(Flaw::Short)?;
        let time = |bytes: &[u8; 4]| Timestamp::from_unix(u32::from_le_bytes(*bytes));
        Ok((time(first), time(last), rest))
    }

    pub(super) fn read(&self) -> Result<EventEnds, Flaw> {
        let (first_change, last_change, rest) = self.split()?;
        let (at, bytes) = (last_change, decompress_if_compressed(rest, DECOMPRESSED_MAX)?);
        let cursor = &mut Cursor::new(&bytes);
        let mut event = read_event(at, &mut Vec::new(), cursor)?;
        event.changed = read_time(at, cursor)?;
        let kind = cursor.byte()?;
        let was_live = kind & WAS_LIVE != 0;
        let source = match kind & (FROM_BEGUN | FROM_CANCELLED) {
            0 => StartSource::Ahead,
            FROM_BEGUN => StartSource::Begun,
            FROM_CANCELLED => StartSource::Cancelled,
            _ => return Err(Flaw::Malformed),
        };
        let start = match kind & !(WAS_LIVE | FROM_BEGUN | FROM_CANCELLED) {
            AHEAD => Start::Ahead,
            LIVE => Start::Live(read_time(at, cursor)?),
            SCHEDULED => Start::Scheduled(read_time(at, cursor)?),
            CANCELLED => Start::Cancelled,
            _ => return Err(Flaw::Malformed),
        };
        let blocks = cursor.small()?;
        let mut texts = (0..cursor.count()?).map(|_| Ok(cursor.text()?.into())).collect::<Result<Vec<_>, Flaw>>()?;
        let mut records = BTreeMap::new();
        for _ in 0..cursor.count()? {
            let numbers = (cursor.small()?, cursor.small()?);
            records.insert(numbers, RecordEnds::read(at, &mut texts, cursor)?);
        }
        if !cursor.is_empty() {
            return Err(Flaw::Malformed);
        }
        let (event, texts) = (Arc::new(event), EventTexts::of(texts));
        Ok(EventEnds { event, first_change, last_change, blocks, start, source, was_live, texts, records })
    }

    /// The id of the event.
    pub(in crate::store) fn event_id(&self) -> Result<String, Flaw> {
        let (_, _, rest) = self.split()?;
        let bytes = decompress_if_compressed(rest, DECOMPRESSED_MAX)?;
        Ok(Cursor::new(&bytes).text()?.to_owned())
    }
}
