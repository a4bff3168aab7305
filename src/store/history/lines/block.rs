//! A block of an event's lines: what its records were, change by change, in one stretch of time.
//!
//! The times of the changes come first, each once, then every record with its own changes, so that the line of one record
//! is read without decoding the others. A change is a byte with its kind and how many of the times it goes on, and the
//! outcomes: whole in the first change of a record, as the difference to the ones before after that. Names are numbers in
//! the event's list of texts.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::ends::EventTexts;
use crate::model::{LinePoint, Outcome, Timestamp};
use crate::store::codec::Flaw;
use crate::store::history::prices::{Difference, put_difference, put_outcomes, read_difference, read_outcomes};
use crate::store::history::row::{Effort, compress_if_shorter, decompress_if_compressed};
use crate::store::history::texts::Sides;
use crate::store::history::varint::{Cursor, put};

/// The numbers of a bookmaker's and of a market's key.
pub(super) type RecordNumbers = (u32, u32);

const PRICES: u8 = 0;
const POINTS: u8 = 1;
const WHOLE: u8 = 2;
const CLOSED: u8 = 3;
const KIND: u8 = 3;
const IN_HUNDREDTHS: u8 = 1 << 2;
const STEP_SHIFT: u8 = 3;
/// From here on, the rest of the step follows.
const STEP_MAX: usize = 31;

/// About what a time takes.
const TIME_BYTES: usize = 2;

/// The most that a block may decompress to: a bound on hostile lengths.
const DECOMPRESSED_MAX: usize = 1 << 26;

#[derive(Clone, Debug, Default)]
pub(super) struct Block {
    /// In their order.
    times: Vec<Timestamp>,
    records: BTreeMap<RecordNumbers, RecordBytes>,
    size: usize,
}

#[derive(Clone, Debug, Default)]
struct RecordBytes {
    /// The place after that of its last change in the times.
    next_time: usize,
    bytes: Vec<u8>,
}

impl Block {
    pub(super) fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// About how long it is before it is compressed.
    pub(super) fn size(&self) -> usize {
        self.size
    }

    pub(super) fn first_time(&self) -> Option<Timestamp> {
        self.times.first().copied()
    }

    pub(super) fn last_time(&self) -> Option<Timestamp> {
        self.times.last().copied()
    }

    pub(super) fn records(&self) -> impl Iterator<Item = RecordNumbers> {
        self.records.keys().copied()
    }

    /// Adds a change, which is not older than the last one. `before` is what the record was, if it was open.
    pub(super) fn push(
        &mut self,
        record: RecordNumbers,
        at: Timestamp,
        (before, after): (Option<&[Outcome]>, Option<&[Outcome]>),
        texts: &mut EventTexts,
    ) {
        if self.times.last().is_none_or(|last| *last < at) {
            self.times.push(at);
            self.size += TIME_BYTES;
        }
        let known = self.records.entry(record).or_default();
        // The first change of a block is read without the blocks before it.
        let before = before.filter(|_| !known.bytes.is_empty());
        let mut outcomes = Vec::new();
        let (kind, in_hundredths) = match after {
            None => (CLOSED, false),
            Some(after) => match before.and_then(|before| put_difference(before, after, &mut outcomes)) {
                Some((Difference::Prices, in_hundredths)) => (PRICES, in_hundredths),
                Some((Difference::Points, in_hundredths)) => (POINTS, in_hundredths),
                None => {
                    texts.put_outcomes(after, &mut outcomes);
                    (WHOLE, false)
                }
            },
        };
        let step = self.times.len() - known.next_time;
        known.next_time = self.times.len();
        let size_before = known.bytes.len();
        let short = u8::try_from(step.min(STEP_MAX)).unwrap_or(u8::MAX);
        known.bytes.push(kind | if in_hundredths { IN_HUNDREDTHS } else { 0 } | short << STEP_SHIFT);
        if step >= STEP_MAX {
            put(&mut known.bytes, (step - STEP_MAX) as u64);
        }
        known.bytes.extend_from_slice(&outcomes);
        self.size += known.bytes.len() - size_before;
    }

    pub(super) fn to_bytes(&self, effort: Effort) -> Result<Vec<u8>, Flaw> {
        let mut out = Vec::with_capacity(self.size + self.records.len() * 5 + 8);
        put(&mut out, self.times.len() as u64);
        let mut last = 0;
        for time in &self.times {
            put(&mut out, (time.unix() - last).into());
            last = time.unix();
        }
        put(&mut out, self.records.len() as u64);
        for ((book, market), record) in &self.records {
            put(&mut out, (*book).into());
            put(&mut out, (*market).into());
            put(&mut out, (self.times.len() - record.next_time) as u64);
            put(&mut out, record.bytes.len() as u64);
            out.extend_from_slice(&record.bytes);
        }
        compress_if_shorter(&out, effort)
    }

    pub(super) fn read(bytes: &[u8]) -> Result<Self, Flaw> {
        let bytes = decompress_if_compressed(bytes, DECOMPRESSED_MAX)?;
        let mut cursor = Cursor::new(&bytes);
        let mut times: Vec<Timestamp> = Vec::new();
        for _ in 0..cursor.count()? {
            let last = times.last().map_or(0, |time| time.unix());
            times.push(Timestamp::from_unix(last.checked_add(cursor.small()?).ok_or(Flaw::Malformed)?));
        }
        let (mut records, mut size) = (BTreeMap::new(), times.len() * TIME_BYTES);
        for _ in 0..cursor.count()? {
            let numbers = (cursor.small()?, cursor.small()?);
            let next_time = times.len().checked_sub(cursor.small()?).ok_or(Flaw::Malformed)?;
            let len = cursor.count()?;
            size += len;
            records.insert(numbers, RecordBytes { next_time, bytes: cursor.take(len)?.to_vec() });
        }
        if cursor.is_empty() { Ok(Block { times, records, size }) } else { Err(Flaw::Malformed) }
    }

    /// Appends the changes of one record.
    pub(super) fn read_points(
        &self,
        record: RecordNumbers,
        texts: &mut Vec<Arc<str>>,
        points: &mut Vec<LinePoint>,
    ) -> Result<(), Flaw> {
        let Some(record) = self.records.get(&record) else { return Ok(()) };
        let (mut cursor, mut next_time) = (Cursor::new(&record.bytes), 0_usize);
        let mut last: Option<Arc<[Outcome]>> = None;
        while !cursor.is_empty() {
            let head = cursor.byte()?;
            let short = usize::from(head >> STEP_SHIFT);
            let step = if short == STEP_MAX { STEP_MAX.saturating_add(cursor.small()?) } else { short };
            next_time = next_time.saturating_add(step);
            let at = next_time.checked_sub(1).and_then(|at| self.times.get(at)).ok_or(Flaw::Malformed)?;
            let before = last.take().ok_or(Flaw::Malformed);
            let in_hundredths = head & IN_HUNDREDTHS != 0;
            last = match head & KIND {
                PRICES => Some(read_difference(&before?, (Difference::Prices, in_hundredths), &mut cursor)?),
                POINTS => Some(read_difference(&before?, (Difference::Points, in_hundredths), &mut cursor)?),
                WHOLE => Some(read_outcomes(Sides::NONE, texts, &mut cursor)?),
                _ => None,
            };
            points.push(LinePoint { at: *at, outcomes: last.clone() });
        }
        if next_time == record.next_time { Ok(()) } else { Err(Flaw::Malformed) }
    }
}

impl EventTexts {
    pub(super) fn put_outcomes(&mut self, outcomes: &[Outcome], out: &mut Vec<u8>) {
        for outcome in outcomes {
            self.know(&outcome.name);
        }
        put_outcomes(Sides::NONE, outcomes, self.numbers(), out);
    }
}
