//! The last hour of each event of a market, a point a minute: the mean chance of one outcome over its bookmakers, as it was
//! published; and the first price of that hour of each bookmaker, so that the page can tell where a price went. It is read from
//! the log.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde::Serialize;

use crate::admin::execute::history::outcome_answer;
use crate::admin::protocol::OutcomeAnswer;
use crate::board::{EventNode, Published};
use crate::model::{Bookmakers, EventId, Market, OddsFormat, Outcome, OutcomeName, Record, SportId, Timestamp, World};
use crate::store::{LoggedChange, SportPath};

const POINTS: usize = 60;
const POINT_S: u32 = 60;
/// As many events as are shown at once.
const EVENTS_MAX: usize = 500;

/// From when on the lines of now begin.
pub(super) fn begin(now: Timestamp) -> Timestamp {
    let points = u32::try_from(POINTS).unwrap_or(u32::MAX);
    Timestamp::from_unix(now.unix().saturating_sub(points * POINT_S))
}

/// What is asked.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    pub world: World,
    pub sport: SportId,
    pub market: Market,
    /// Of the first prices.
    pub format: OddsFormat,
}

/// The lines of a market.
#[derive(Debug, Serialize)]
pub(super) struct Sparklines {
    /// Since when the lines are known.
    since: String,
    events: BTreeMap<String, Sparkline>,
}

#[derive(Debug, Serialize)]
pub(super) struct Sparkline {
    /// The outcome whose chance it is.
    outcome: String,
    /// In hundredths of a per cent, the newest last; `null` where nothing is known.
    points: Vec<Option<u32>>,
    /// The first prices of the hour of each bookmaker that has one now.
    first: BTreeMap<String, Vec<OutcomeAnswer>>,
}

/// One event on its way through time.
#[derive(Debug)]
struct Walk {
    outcome: OutcomeName,
    /// The first prices of the hour, by the key of the bookmaker.
    first: HashMap<Arc<str>, Box<[Outcome]>>,
    /// By the key of the bookmaker.
    chances: HashMap<Arc<str>, f64>,
    points: [Option<u32>; POINTS],
    /// The points before this one are written.
    written: usize,
}

pub(super) fn sparklines(published: &Published, path: &SportPath, asked: Asked, now: Timestamp) -> Sparklines {
    let (index, books) = (published.index(), published.register().bookmakers());
    let first = slot_of(path.since, now).unwrap_or(0);
    let mut walks: HashMap<EventId, Walk> = HashMap::new();
    for node in index.iter() {
        if walks.len() == EVENTS_MAX {
            break;
        }
        if let Some(walk) = Walk::of(node, asked.market, first) {
            walks.insert(node.event().id.clone(), walk);
        }
    }
    for event in path.state.events() {
        let Some(walk) = walks.get_mut(&event.event.id) else { continue };
        for (bookmaker, _, price) in path.state.records(event).filter(|(_, market, _)| *market == asked.market) {
            walk.put(bookmaker, Some(&price.outcomes));
        }
    }
    for (at, change) in &path.changes {
        match change {
            LoggedChange::Tick(tick) => {
                let slot = slot_of(tick.at, now).unwrap_or(0);
                for record in tick.records.iter().filter(|record| record.market == asked.market) {
                    if let Some(walk) = walks.get_mut(&record.event.id) {
                        walk.write_up_to(slot);
                        walk.put(&record.bookmaker, record.price.as_ref().map(|price| &*price.outcomes));
                    }
                }
            }
            LoggedChange::Removed(event) => {
                if let Some(walk) = walks.get_mut(&event.id) {
                    walk.write_up_to(slot_of(*at, now).unwrap_or(0));
                    walk.chances.clear();
                }
            }
            LoggedChange::Event(..) | LoggedChange::Score(..) => {}
        }
    }
    let lines = walks.into_iter().map(|(id, mut walk)| {
        walk.write_up_to(POINTS);
        let first = index.get(id.as_str()).map(|node| walk.first_prices(node, asked, books)).unwrap_or_default();
        let line = Sparkline { outcome: walk.outcome.to_string(), points: walk.points.to_vec(), first };
        (id.to_string(), line)
    });
    Sparklines { since: path.since.to_string(), events: lines.collect() }
}

/// The point that a moment falls into; `None` before the first.
fn slot_of(at: Timestamp, now: Timestamp) -> Option<usize> {
    let ago = usize::try_from(now.seconds_since(at) / POINT_S).unwrap_or(usize::MAX);
    (POINTS - 1).checked_sub(ago)
}

impl Walk {
    /// The line of an event that has prices in the market. Its outcome is the home side; where there is none, the
    /// favourite of a field, or the first of two.
    fn of(node: &EventNode, market: Market, begin: usize) -> Option<Walk> {
        let records: Vec<&Arc<Record>> = node.records().iter().filter(|record| record.market == market).collect();
        let first = &records.first()?.outcomes;
        let home = node.event().home().and_then(|home| first.iter().find(|outcome| *outcome.name == **home));
        let favourite = first.iter().rev().max_by(|one, other| one.price.chance().total_cmp(&other.price.chance()));
        let field = if first.len() > 2 { favourite } else { first.first() };
        let outcome = home.or(field)?.name.clone();
        Some(Walk { outcome, first: HashMap::new(), chances: HashMap::new(), points: [None; POINTS], written: begin })
    }

    fn first_prices(&self, node: &EventNode, asked: Asked, books: &Bookmakers) -> BTreeMap<String, Vec<OutcomeAnswer>> {
        let is_open = |key: &str| books.find(key).is_some_and(|book| node.record(book, asked.market).is_some());
        let open = self.first.iter().filter(|(key, _)| is_open(key));
        let written =
            |outcomes: &[Outcome]| outcomes.iter().map(|outcome| outcome_answer(outcome, asked.format)).collect();
        open.map(|(key, outcomes)| (key.to_string(), written(outcomes))).collect()
    }

    /// The price of a bookmaker from now on; `None` if it closed.
    fn put(&mut self, bookmaker: &Arc<str>, outcomes: Option<&[Outcome]>) {
        if let Some(outcomes) = outcomes
            && !self.first.contains_key(bookmaker)
        {
            self.first.insert(Arc::clone(bookmaker), outcomes.into());
        }
        match outcomes.and_then(|outcomes| outcomes.iter().find(|outcome| outcome.name == self.outcome)) {
            Some(Outcome { price, .. }) => self.chances.insert(Arc::clone(bookmaker), price.chance()),
            None => self.chances.remove(bookmaker),
        };
    }

    /// Writes the chance as it stands into every point before `slot` that has none yet.
    fn write_up_to(&mut self, slot: usize) {
        if slot > self.written {
            let point = self.consensus();
            self.points[self.written..slot].fill(point);
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
