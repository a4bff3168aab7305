//! The blocks of an event that are in memory: the one that takes changes, and those that have become full before it.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::block::{Block, RecordNumbers};
use super::ends::EventTexts;
use crate::model::{Outcome, Timestamp};
use crate::store::codec::Flaw;
use crate::store::history::row::Effort;

/// The prices of an event's open records.
pub(super) type OpenRecords = BTreeMap<RecordNumbers, Arc<[Outcome]>>;

/// How long a block becomes before it is compressed. Whoever wants a part of a line reads whole blocks, so short ones are read
/// sooner. But each begins with whole outcomes, which is most of a short block of an event with many.
const BYTES_MIN: usize = 16 << 10;
const BYTES_MAX: usize = 64 << 10;
/// With so many bytes for each outcome that is open, the whole ones are a small part of a block.
const BYTES_OF_OUTCOME: usize = 24;

#[derive(Debug)]
pub(super) struct GrowingBlocks {
    number: u32,
    last: Block,
    /// The last block may be full from here on.
    check_at: usize,
    full: Vec<(u32, Block)>,
}

impl GrowingBlocks {
    /// Goes on after so many blocks.
    pub(super) fn after(blocks: u32) -> Self {
        GrowingBlocks { number: blocks, last: Block::default(), check_at: BYTES_MIN, full: Vec::new() }
    }

    /// Goes on in the last stored block, if it is not full.
    pub(super) fn within(number: u32, last: Block, open: &OpenRecords) -> Option<Self> {
        let check_at = full_at(open);
        (last.size() < check_at).then_some(GrowingBlocks { number, last, check_at, full: Vec::new() })
    }

    pub(super) fn last_time(&self) -> Option<Timestamp> {
        self.last.last_time()
    }

    /// Adds a change after which these records are open.
    pub(super) fn push(
        &mut self,
        (record, at): (RecordNumbers, Timestamp),
        (before, after): (Option<&[Outcome]>, Option<&[Outcome]>),
        texts: &mut EventTexts,
        open: &OpenRecords,
    ) {
        self.last.push(record, at, (before, after), texts);
        if self.last.size() >= self.check_at {
            self.check_at = full_at(open);
            if self.last.size() >= self.check_at {
                self.begin_next();
            }
        }
    }

    pub(super) fn begin_next(&mut self) {
        if !self.last.is_empty() {
            let next = GrowingBlocks::after(self.number + 1);
            let GrowingBlocks { number, last, full, .. } = std::mem::replace(self, next);
            self.full = full;
            self.full.push((number, last));
        }
    }

    /// All of them, as they are stored.
    pub(super) fn to_bytes(&self) -> Result<Vec<(u32, Vec<u8>)>, Flaw> {
        let full = self.full.iter().map(|(number, block)| Ok((*number, block.to_bytes(Effort::Much)?)));
        let last = (!self.last.is_empty()).then(|| Ok((self.number, self.last.to_bytes(Effort::Little)?)));
        full.chain(last).collect()
    }

    /// How many blocks come before them.
    pub(super) fn first(&self) -> u32 {
        self.full.first().map_or(self.number, |(number, _)| *number)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &Block)> {
        let full = self.full.iter().map(|(number, block)| (*number, block));
        full.chain([(self.number, &self.last)])
    }
}

fn full_at(open: &OpenRecords) -> usize {
    let outcomes: usize = open.values().map(|outcomes| outcomes.len()).sum();
    (outcomes * BYTES_OF_OUTCOME).clamp(BYTES_MIN, BYTES_MAX)
}
