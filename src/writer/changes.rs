//! The last changes of prices, for whoever wants to know how a price came to be what it is.
//!
//! The writer puts every change in here after its commit; readers of the board never come near. It is bounded by the
//! number of changes and by the outcomes that they hold, so a long list of golfers counts as what it is. Nothing of it
//! is kept over a restart. A writer that nobody asks keeps none.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::model::{EventId, Record, SportId, Timestamp, World};

/// The outcomes that a ring may hold for each change that it may hold: twice what a market of two sides has.
const OUTCOMES_PER_CHANGE: usize = 4;

/// What happened to one record.
#[derive(Clone, Debug)]
pub struct PriceChange {
    /// Counted from 1 since the start, without gaps.
    pub sequence: u64,
    /// When it was taken in.
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

/// A change before it has its place in the sequence.
#[derive(Debug)]
pub(super) struct Moved {
    pub sport: SportId,
    pub event: EventId,
    pub before: Option<Arc<Record>>,
    pub after: Option<Arc<Record>>,
}

/// A bounded ring of changes, the newest last.
#[derive(Debug)]
pub struct Changes {
    changes_max: usize,
    ring: Mutex<Ring>,
}

#[derive(Debug)]
struct Ring {
    kept: VecDeque<PriceChange>,
    outcomes: usize,
    sequence: u64,
    since: Timestamp,
}

impl Changes {
    /// A ring that begins now; one of 0 changes keeps nothing.
    pub fn new(changes_max: usize, now: Timestamp) -> Self {
        let ring = Ring { kept: VecDeque::new(), outcomes: 0, sequence: 0, since: now };
        Changes { changes_max, ring: Mutex::new(ring) }
    }

    pub(super) fn is_kept(&self) -> bool {
        self.changes_max > 0
    }

    /// Takes in what one commit moved; the oldest give way.
    pub(super) fn push(&self, world: World, at: Timestamp, moved: Vec<Moved>) {
        if moved.is_empty() || !self.is_kept() {
            return;
        }
        let mut ring = self.lock();
        for Moved { sport, event, before, after } in moved {
            ring.sequence += 1;
            let change = PriceChange { sequence: ring.sequence, at, world, sport, event, before, after };
            ring.outcomes += change.outcomes();
            ring.kept.push_back(change);
        }
        while ring.kept.len() > self.changes_max || ring.outcomes > self.changes_max * OUTCOMES_PER_CHANGE {
            let Some(oldest) = ring.kept.pop_front() else { break };
            ring.outcomes -= oldest.outcomes();
            // Of a moment of which a part is gone, nothing is known for certain.
            ring.since = oldest.at.plus_seconds(1);
        }
    }

    /// Hands the changes to `visit`, the newest first, until it has seen enough. Returns since when the ring is
    /// complete. The writer waits meanwhile, so `visit` must be quick.
    pub fn visit_back(&self, mut visit: impl FnMut(&PriceChange) -> std::ops::ControlFlow<()>) -> Timestamp {
        let ring = self.lock();
        let _ = ring.kept.iter().rev().try_for_each(&mut visit);
        ring.since
    }

    fn lock(&self) -> MutexGuard<'_, Ring> {
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
            id: RecordId::new("mma", &event, "book", Market::Moneyline),
            bookmaker: BookId::from_number(0),
            market: Market::Moneyline,
            last_update: Timestamp::from_unix(1),
            bookmaker_update: None,
            outcomes: (0..outcomes).map(|_| Outcome { name: "a".into(), price, point: None }).collect(),
        })
    }

    fn moved(outcomes: usize) -> Moved {
        let sport = crate::config::catalogue::builtin().sport_ids().next().unwrap();
        Moved { sport, event: EventId::new("e").unwrap(), before: None, after: Some(record(outcomes)) }
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
    fn the_oldest_give_way_and_the_ring_says_how_far_it_reaches() {
        let at = Timestamp::from_unix;
        let changes = Changes::new(3, at(10));
        changes.push(World::Live, at(20), vec![moved(2), moved(2)]);
        assert_eq!(sequences(&changes), (vec![2, 1], at(10)));
        changes.push(World::Live, at(30), vec![moved(2), moved(2)]);
        assert_eq!(sequences(&changes), (vec![4, 3, 2], at(21)));
        changes.push(World::Live, at(40), vec![moved(9)]);
        assert_eq!(sequences(&changes), (vec![5, 4], at(31)), "twelve outcomes are the most, and nine are many");
    }

    #[test]
    fn a_ring_of_nothing_keeps_nothing() {
        let changes = Changes::new(0, Timestamp::from_unix(10));
        changes.push(World::Live, Timestamp::from_unix(20), vec![moved(2)]);
        assert_eq!(sequences(&changes).0, Vec::<u64>::new());
    }
}
