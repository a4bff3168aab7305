//! The history of one event while it is read or written: its row, its blocks, and what follows in the log.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use redb::ReadTransaction;
use sha2::{Digest, Sha256};

use super::block::{Block, RecordNumbers};
use super::ends::{EventEnds, NewStart};
use super::growing::{GrowingBlocks, OpenRecords};
use super::pieces::{damaged_block, read_block};
use super::read::LineRange;
use super::rewrite::LineBytes;
use crate::model::{Event, EventId, LinePoint, Outcome, PricedAt, Timestamp};
use crate::store::codec::Flaw;
use crate::store::history::read::LogError;
use crate::store::table_keys::{EventKey, LineEventKey, LogNumber};
use crate::store::tables::{ENDS, LINE_EVENTS};

#[derive(Debug)]
pub(super) struct EventHistory {
    pub(super) number: u32,
    pub(super) is_new: bool,
    pub(super) ends: EventEnds,
    /// The prices of its open records.
    open: OpenRecords,
    /// The changes after the blocks, for a reader. A writer puts them into blocks.
    unwritten: Option<Vec<(RecordNumbers, LinePoint)>>,
    blocks: GrowingBlocks,
    /// The size of the rows that it was read from, if they are written again.
    pub(super) stored: LineBytes,
    /// The block among them, and how many pieces it has.
    pub(super) stored_block: Option<(u32, usize)>,
    /// The day that the index has it under.
    pub(super) stored_day: Option<u32>,
    has_changed: bool,
}

/// The key of an event in the index, without its number: ids are of any length.
pub(in crate::store) fn id_hash(id: &str) -> u64 {
    let digest = Sha256::digest(id.as_bytes());
    digest.first_chunk::<8>().map_or(0, |bytes| u64::from_be_bytes(*bytes))
}

/// Whether there is a stored history of an event; of one with another id and the same hash too.
pub(in crate::store::history) fn is_in_lines(
    txn: &ReadTransaction,
    (log, sport): (LogNumber, u16),
    id: &EventId,
) -> Result<bool, LogError> {
    let hash = id_hash(id.as_str());
    let alike: (LineEventKey, LineEventKey) = ((log, sport, hash, 0), (log, sport, hash, u32::MAX));
    let mut stored = txn.open_table(LINE_EVENTS.definition)?.range(alike.0..=alike.1)?;
    Ok(stored.next().transpose()?.is_some())
}

impl EventHistory {
    /// An event that has no history yet.
    pub(super) fn new(number: u32, event: Arc<Event>, at: Timestamp, is_read: bool) -> Self {
        EventHistory {
            number,
            is_new: true,
            ends: EventEnds::new(event, at),
            open: OpenRecords::new(),
            unwritten: is_read.then(Vec::new),
            blocks: GrowingBlocks::after(0),
            stored: LineBytes::default(),
            stored_block: None,
            stored_day: None,
            has_changed: true,
        }
    }

    /// The stored history of an event, whose open records are asked for if there is one. For a reader, all that follows was
    /// published after a time, and the last block matters only if something stored was too.
    pub(super) fn find(
        txn: &ReadTransaction,
        (world, sport): (u8, u16),
        id: &EventId,
        published_after: Option<Timestamp>,
        open: impl FnOnce() -> OpenRecords,
    ) -> Result<Option<Self>, LogError> {
        let hash = id_hash(id.as_str());
        let (events, ends) = (txn.open_table(LINE_EVENTS.definition)?, txn.open_table(ENDS.definition)?);
        for row in events.range::<LineEventKey>((world, sport, hash, 0)..=(world, sport, hash, u32::MAX))? {
            let number = row?.0.value().3;
            let key: EventKey = (world, sport, number);
            let damaged = |flaw| damaged_ends(key, flaw);
            let Some(stored) = ends.get(key)? else {
                return Err(damaged(Flaw::Invalid("it is missing")));
            };
            let row = ENDS.unseal(&key, stored.value()).map_err(damaged)?;
            let ends = row.read().map_err(damaged)?;
            if ends.event.id != *id {
                continue;
            }
            let open = open();
            let mut size = LineBytes { lines: 0, ends: stored.value().len() as u64 };
            let (mut blocks, mut stored_block) = (GrowingBlocks::after(ends.blocks), None);
            let is_continued = published_after.is_none_or(|time| ends.last_change > time);
            if let Some(last) = ends.blocks.checked_sub(1).filter(|_| is_continued) {
                let (stored, stored_size) = read_block(txn, key, last)?;
                if let Some(continued) = GrowingBlocks::within(last, stored, &open) {
                    (blocks, stored_block) = (continued, Some((last, stored_size.pieces)));
                    size.lines = stored_size.bytes;
                }
            }
            return Ok(Some(EventHistory {
                number,
                is_new: false,
                stored_day: Some(ends.day()),
                ends,
                open,
                unwritten: published_after.map(|_| Vec::new()),
                blocks,
                stored: size,
                stored_block,
                has_changed: false,
            }));
        }
        Ok(None)
    }

    pub(super) fn has_changed(&self) -> bool {
        self.has_changed
    }

    pub(super) fn put_event(
        &mut self,
        txn: &ReadTransaction,
        sport: (u8, u16),
        event: &Arc<Event>,
        at: Timestamp,
    ) -> Result<(), LogError> {
        self.has_changed = true;
        let prices = match self.ends.put_event(event, at) {
            None => return Ok(()),
            Some(NewStart::FromLastPrices) => self.last_prices(txn, sport)?,
            Some(NewStart::FromOpenPrices) => {
                let price = |(numbers, outcomes): (&RecordNumbers, &Arc<[Outcome]>)| {
                    (*numbers, PricedAt { at, outcomes: Arc::clone(outcomes) })
                };
                self.open.iter().map(price).collect()
            }
        };
        self.ends.begin_again(prices, |numbers| self.open.contains_key(numbers));
        Ok(())
    }

    /// Follows the change of a record.
    pub(super) fn put_price(&mut self, record: RecordNumbers, at: Timestamp, after: Option<&Arc<[Outcome]>>) {
        self.has_changed = true;
        let before = match after {
            Some(after) => self.open.insert(record, Arc::clone(after)),
            None => self.open.remove(&record),
        };
        let last_unwritten = self.unwritten.iter().flatten().next_back().map(|(_, point)| point.at);
        // A publication that was due just before another change comes after it.
        let at = last_unwritten.or(self.blocks.last_time()).map_or(at, |last| at.max(last));
        self.ends.put_price(record, at, after);
        if let Some(unwritten) = &mut self.unwritten {
            unwritten.push((record, LinePoint { at, outcomes: after.cloned() }));
            return;
        }
        let change = (before.as_deref(), after.map(|after| &**after));
        self.blocks.push((record, at), change, &mut self.ends.texts, &self.open);
    }

    /// Goes on in a new block with what the records are now: what they were in between is not known.
    pub(super) fn go_on_after_gap(&mut self, at: Timestamp) {
        self.blocks.begin_next();
        let closed: Vec<RecordNumbers> =
            self.ends.records.keys().filter(|record| !self.open.contains_key(record)).copied().collect();
        for (record, outcomes) in self.open.clone() {
            self.put_price(record, at, Some(&outcomes));
        }
        for record in closed {
            self.put_price(record, at, None);
        }
    }

    /// Closes every record.
    pub(super) fn remove(&mut self, at: Timestamp) {
        let open: Vec<RecordNumbers> = self.open.keys().copied().collect();
        for record in open {
            self.put_price(record, at, None);
        }
    }

    /// The blocks that have changed, as they are stored; `ends` counts them.
    pub(super) fn changed_blocks(&mut self) -> Result<Vec<(u32, Vec<u8>)>, Flaw> {
        let blocks = self.blocks.to_bytes()?;
        if let Some((number, _)) = blocks.last() {
            self.ends.blocks = number + 1;
        }
        Ok(blocks)
    }

    /// The changes of every record that is wanted, if they have not more outcomes than `outcomes_max` in all. At least those
    /// in the range, and the price of each record before it.
    pub(super) fn points(
        &self,
        txn: &ReadTransaction,
        (world, sport): (u8, u16),
        (is_wanted, range): (impl Fn(RecordNumbers) -> bool, LineRange),
        outcomes_max: usize,
    ) -> Result<BTreeMap<RecordNumbers, Vec<LinePoint>>, LogError> {
        let mut stored = StoredBlocks { txn, event: (world, sport, self.number), read: BTreeMap::new() };
        let first = match range.from {
            Some(from) => self.first_block(&mut stored, &is_wanted, from)?,
            None => 0,
        };
        let mut outcomes = 0;
        let mut texts = self.ends.texts.list().to_vec();
        let mut points: BTreeMap<RecordNumbers, Vec<LinePoint>> = BTreeMap::new();
        let mut count = |points: &[LinePoint]| {
            outcomes += points.iter().flat_map(|point| &point.outcomes).map(|all| all.len()).sum::<usize>();
            if outcomes > outcomes_max { Err(LogError::TooMuch) } else { Ok(()) }
        };
        let mut read = |number: u32, block: &Block| -> Result<(), LogError> {
            for record in block.records().filter(|record| is_wanted(*record)) {
                let points = points.entry(record).or_default();
                let before = points.len();
                let read = block.read_points(record, &mut texts, points);
                read.map_err(|flaw| damaged_block((world, sport, self.number), number, flaw))?;
                count(&points[before..])?;
            }
            Ok(())
        };
        let is_after = |block: &Block| range.to.is_some_and(|to| block.first_time().is_some_and(|first| first > to));
        for number in first..self.blocks.first() {
            let block = stored.take(number)?;
            if is_after(&block) {
                return Ok(points);
            }
            read(number, &block)?;
        }
        for (number, block) in self.blocks.iter().filter(|(_, block)| !is_after(block)) {
            read(number, block)?;
        }
        for (record, point) in self.unwritten.iter().flatten().filter(|(record, _)| is_wanted(*record)) {
            count(std::slice::from_ref(point))?;
            points.entry(*record).or_default().push(point.clone());
        }
        Ok(points)
    }

    /// The block from which on the points since a time are read: every record that is wanted and was priced by then has a
    /// price of before in it or after it.
    fn first_block(
        &self,
        stored: &mut StoredBlocks<'_>,
        is_wanted: impl Fn(RecordNumbers) -> bool,
        from: Timestamp,
    ) -> Result<u32, LogError> {
        let event = stored.event;
        // The number of blocks that begin by then: they are in the order of time.
        let (mut low, mut high) = (0, self.blocks.first());
        while low < high {
            let middle = low + (high - low) / 2;
            if stored.get(middle)?.first_time().is_none_or(|first| first <= from) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        let of_records =
            self.ends.records.iter().filter(|(record, ends)| is_wanted(**record) && ends.opening.at <= from);
        let mut missing: BTreeSet<RecordNumbers> = of_records.map(|(record, _)| *record).collect();
        let mut texts = self.ends.texts.list().to_vec();
        while low > 0 && !missing.is_empty() {
            low -= 1;
            let block = stored.get(low)?;
            let mut priced = Vec::new();
            for record in block.records().filter(|record| missing.contains(record)) {
                let mut points = Vec::new();
                let read = block.read_points(record, &mut texts, &mut points);
                read.map_err(|flaw| damaged_block(event, low, flaw))?;
                if points.iter().any(|point| point.at <= from && point.outcomes.is_some()) {
                    priced.push(record);
                }
            }
            for record in priced {
                missing.remove(&record);
            }
        }
        Ok(low)
    }

    /// The last price of each record, also of those that have closed.
    fn last_prices(
        &self,
        txn: &ReadTransaction,
        sport: (u8, u16),
    ) -> Result<BTreeMap<RecordNumbers, PricedAt>, LogError> {
        let last = |(numbers, points): (RecordNumbers, Vec<LinePoint>)| {
            let priced =
                points.into_iter().rev().find_map(|point| Some(PricedAt { at: point.at, outcomes: point.outcomes? }));
            Some((numbers, priced?))
        };
        Ok(self
            .points(txn, sport, (|_| true, LineRange::default()), usize::MAX)?
            .into_iter()
            .filter_map(last)
            .collect())
    }
}

/// The stored blocks of an event, each of which is read once by whoever needs it more than once.
struct StoredBlocks<'t> {
    txn: &'t ReadTransaction,
    event: EventKey,
    read: BTreeMap<u32, Block>,
}

impl StoredBlocks<'_> {
    fn get(&mut self, number: u32) -> Result<&Block, LogError> {
        Ok(match self.read.entry(number) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => new.insert(read_block(self.txn, self.event, number)?.0),
        })
    }

    /// The same for the last time.
    fn take(&mut self, number: u32) -> Result<Block, LogError> {
        match self.read.remove(&number) {
            Some(block) => Ok(block),
            None => Ok(read_block(self.txn, self.event, number)?.0),
        }
    }
}

/// The stored row of an event.
pub(super) fn stored_ends(txn: &ReadTransaction, key: EventKey) -> Result<EventEnds, LogError> {
    let stored = txn.open_table(ENDS.definition)?.get(key)?;
    let stored = stored.ok_or_else(|| damaged_ends(key, Flaw::Invalid("it is missing")))?;
    ENDS.unseal(&key, stored.value()).and_then(|row| row.read()).map_err(|flaw| damaged_ends(key, flaw))
}

fn damaged_ends((world, sport, event): EventKey, flaw: Flaw) -> LogError {
    LogError::Damaged { table: ENDS.name, row: format!("{world} {sport} {event}"), flaw }
}
