//! The last hour of each event of a market, a point a minute: the mean chance of one outcome
//! over its bookmakers. It is computed backwards, from the stored prices through the changes that led to them.

use std::collections::{BTreeMap, HashMap};
use std::ops::ControlFlow;
use std::sync::Arc;

use serde::Serialize;

use crate::board::{EventNode, Index};
use crate::model::{BookId, EventId, Market, Outcome, OutcomeName, Price, Record, SportId, Timestamp, World};
use crate::writer::Changes;

const POINTS: usize = 60;
const POINT_S: u32 = 60;
/// As many events as are shown at once.
const EVENTS_MAX: usize = 500;

/// What is asked.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    pub world: World,
    pub sport: SportId,
    pub market: Market,
}

/// The lines of a market.
#[derive(Debug, Serialize)]
pub(super) struct Sparklines {
    /// Since when the changes are known.
    since: String,
    events: BTreeMap<String, Sparkline>,
}

#[derive(Debug, Serialize)]
pub(super) struct Sparkline {
    /// The outcome whose chance it is.
    outcome: String,
    /// In hundredths of a per cent, the newest last; `null` where nothing is known.
    points: Vec<Option<u32>>,
}

/// One event on its way back through time.
#[derive(Debug)]
struct Walk {
    outcome: OutcomeName,
    chances: HashMap<BookId, f64>,
    points: [Option<u32>; POINTS],
    /// The points from here on are written.
    written: usize,
}

pub(super) fn sparklines(index: &Index, changes: &Changes, asked: Asked, now: Timestamp) -> Sparklines {
    let mut walks: HashMap<EventId, Walk> = HashMap::new();
    for node in index.iter() {
        if walks.len() == EVENTS_MAX {
            break;
        }
        if let Some(walk) = Walk::of(node, asked.market) {
            walks.insert(node.event().id.clone(), walk);
        }
    }
    let since = changes.visit_back(|change| {
        let Some(slot) = slot_of(change.at, now) else { return ControlFlow::Break(()) };
        let is_asked = (change.world, change.sport) == (asked.world, asked.sport)
            && change.record().is_some_and(|record| record.market == asked.market);
        if is_asked && let Some(walk) = walks.get_mut(&change.event) {
            walk.write_down_to(slot);
            walk.undo(change.before.as_deref(), change.after.as_deref());
        }
        ControlFlow::Continue(())
    });
    let first = slot_of(since, now).unwrap_or(0);
    let lines = walks.into_iter().map(|(id, mut walk)| {
        walk.write_down_to(first);
        let line = Sparkline { outcome: walk.outcome.to_string(), points: walk.points.to_vec() };
        (id.to_string(), line)
    });
    Sparklines { since: since.to_string(), events: lines.collect() }
}

/// The point that a moment falls into; `None` before the first.
fn slot_of(at: Timestamp, now: Timestamp) -> Option<usize> {
    let ago = usize::try_from(now.seconds_since(at) / POINT_S).unwrap_or(usize::MAX);
    (POINTS - 1).checked_sub(ago)
}

impl Walk {
    /// The line of an event that has prices in the market. Its outcome is the home side; where there is none, the
    /// favourite of a field, or the first of two.
    fn of(node: &EventNode, market: Market) -> Option<Walk> {
        let records: Vec<&Arc<Record>> = node.records().iter().filter(|record| record.market == market).collect();
        let first = &records.first()?.outcomes;
        let home = node.event().home().and_then(|home| first.iter().find(|outcome| *outcome.name == **home));
        let favourite = first.iter().rev().max_by(|one, other| chance(one.price).total_cmp(&chance(other.price)));
        let field = if first.len() > 2 { favourite } else { first.first() };
        let outcome = home.or(field)?.name.clone();
        let mut walk = Walk { outcome, chances: HashMap::new(), points: [None; POINTS], written: POINTS };
        for record in records {
            walk.put(record);
        }
        Some(walk)
    }

    fn put(&mut self, record: &Record) {
        match record.outcomes.iter().find(|outcome| outcome.name == self.outcome) {
            Some(Outcome { price, .. }) => self.chances.insert(record.bookmaker, chance(*price)),
            None => self.chances.remove(&record.bookmaker),
        };
    }

    fn undo(&mut self, before: Option<&Record>, after: Option<&Record>) {
        match (before, after) {
            (Some(before), _) => self.put(before),
            (None, Some(after)) => drop(self.chances.remove(&after.bookmaker)),
            (None, None) => {}
        }
    }

    /// Writes the chance as it stands into every point from `slot` on that has none yet.
    fn write_down_to(&mut self, slot: usize) {
        if slot < self.written {
            let point = self.consensus();
            self.points[slot..self.written].fill(point);
            self.written = slot;
        }
    }

    fn consensus(&self) -> Option<u32> {
        if self.chances.is_empty() {
            return None;
        }
        #[expect(clippy::cast_precision_loss, reason = "there are few bookmakers")]
        let mean = self.chances.values().sum::<f64>() / self.chances.len() as f64;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a chance is from 0 to 1")]
        let hundredths = (mean * 10_000.0).round() as u32;
        Some(hundredths)
    }
}

/// What a price makes of the chance of its outcome, margin included.
fn chance(price: Price) -> f64 {
    let (profit, stake) = price.fraction();
    f64::from(stake) / (f64::from(profit) + f64::from(stake))
}
