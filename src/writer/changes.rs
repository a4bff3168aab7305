//! The last changes of prices, to show how a price came about.
//!
//! The writer adds every change after its commit; requests to the board never use it. The ring is bounded by the number
//! of changes and by the outcomes in them, so that a long list of golfers counts for its size. It does not survive a
//! restart. A writer without readers of it keeps none.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::model::{EventId, Record, SportId, Timestamp, World};

/// Outcomes per change that the ring has room for: twice those of a market with two sides.
const OUTCOMES_PER_CHANGE: usize = 4;

/// What happened to one record.
#[derive(Clone, Debug)]
pub struct PriceChange {
    /// Counted from 1 since the start, without gaps.
    pub sequence: u64,
    /// When it was committed.
    pub at: Timestamp,
    pub world: World,
    pub sport: SportId,
    pub event: EventId,
    /// `None` if the market was not open.
    pub before: Option<Arc<Record>>,
    /// `None` if the market closed.
    pub after: Option<Arc<Record>>,
}

impl PriceChange {
    /// The record as it is or, if it is gone, as it was.
    pub fn record(&self) -> Option<&Arc<Record>> {
        self.after.as_ref().or(self.before.as_ref())
    }

    fn outcomes(&self) -> usize {
        [&self.before, &self.after].into_iter().flatten().map(|record| record.outcomes.len()).sum()
    }
}

/// A change that has no sequence number yet.
#[derive(Debug)]
pub(super) struct RecordChange {
    pub sport: SportId,
    pub event: EventId,
    pub before: Option<Arc<Record>>,
    pub after: Option<Arc<Record>>,
}

/// A bounded ring of changes, the newest last.
#[derive(Debug)]
pub struct Changes {
    changes_max: usize,
    ring: Mutex<ChangeRing>,
}

#[derive(Debug)]
struct ChangeRing {
    changes: VecDeque<PriceChange>,
    outcomes: usize,
    sequence: u64,
    since: Timestamp,
}

impl Changes {
    /// A ring that begins now; one with room for 0 changes stays empty.
    pub fn new(changes_max: usize, now: Timestamp) -> Self {
        let ring = ChangeRing { changes: VecDeque::new(), outcomes: 0, sequence: 0, since: now };
        Changes { changes_max, ring: Mutex::new(ring) }
    }

    pub(super) fn is_kept(&self) -> bool {
        self.changes_max > 0
    }

    /// Adds the changes of one commit, and drops the oldest beyond the bounds.
    pub(super) fn push(&self, world: World, at: Timestamp, new: Vec<RecordChange>) {
        if new.is_empty() || !self.is_kept() {
            return;
        }
        let mut ring = self.lock();
        for RecordChange { sport, event, before, after } in new {
            ring.sequence += 1;
            let change = PriceChange { sequence: ring.sequence, at, world, sport, event, before, after };
            ring.outcomes += change.outcomes();
            ring.changes.push_back(change);
        }
        while ring.changes.len() > self.changes_max || ring.outcomes > self.changes_max * OUTCOMES_PER_CHANGE {
            let Some(oldest) = ring.changes.pop_front() else { break };
            ring.outcomes -= oldest.outcomes();
            // The second of a dropped change is no longer complete.
            ring.since = oldest.at.plus_seconds(1);
        }
    }

    /// Calls `visit` with the changes, the newest first, until it breaks. Returns since when the ring is complete. The
    /// writer waits meanwhile, so `visit` must be quick.
    pub fn visit_back(&self, mut visit: impl FnMut(&PriceChange) -> std::ops::ControlFlow<()>) -> Timestamp {
        let ring = self.lock();
        let _ = ring.changes.iter().rev().try_for_each(&mut visit);
        ring.since
    }

    fn lock(&self) -> MutexGuard<'_, ChangeRing> {
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use super::*;
    use crate::model::{BookId, Market, OddsFormat, Outcome, Price, RecordId};

    fn record(outcomes: usize) -> Arc<Record> {
        let event = EventId::new("e").unwrap();
        let price = Price::parse("1.91", OddsFormat::Decimal).unwrap();
        Arc::new(Record {
            id: RecordId::new("mma", &event, "book", Market::MONEYLINE),
            bookmaker: BookId::from_number(0),
            market: Market::MONEYLINE,
            last_update: Timestamp::from_unix(1),
            bookmaker_update: None,
            outcomes: (0..outcomes).map(|_| Outcome { name: "a".into(), price, point: None }).collect(),
        })
    }

    fn change(outcomes: usize) -> RecordChange {
        let sport = crate::config::catalogue::builtin().sport_ids().next().unwrap();
        RecordChange { sport, event: EventId::new("e").unwrap(), before: None, after: Some(record(outcomes)) }
    }

    fn sequences(changes: &Changes) -> (Vec<u64>, Timestamp) {
        let mut seen = Vec::new();
        let since = changes.visit_back(|change| {
            seen.push(change.sequence);
            ControlFlow::Continue(())
        });
        (seen, since)
    }

    #[test]
    fn oldest_changes_are_dropped_and_the_start_of_the_ring_moves() {
        let at = Timestamp::from_unix;
        let changes = Changes::new(3, at(10));
        changes.push(World::Live, at(20), vec![change(2), change(2)]);
        assert_eq!(sequences(&changes), (vec![2, 1], at(10)));
        changes.push(World::Live, at(30), vec![change(2), change(2)]);
        assert_eq!(sequences(&changes), (vec![4, 3, 2], at(21)));
        changes.push(World::Live, at(40), vec![change(9)]);
        assert_eq!(sequences(&changes), (vec![5, 4], at(31)), "twelve outcomes are the most, and nine are many");
    }

    #[test]
    fn ring_without_room_stays_empty() {
        let changes = Changes::new(0, Timestamp::from_unix(10));
        changes.push(World::Live, Timestamp::from_unix(20), vec![change(2)]);
        assert_eq!(sequences(&changes).0, Vec::<u64>::new());
    }
}
