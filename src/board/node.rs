//! One event with its score, its records and the marks of closed markets.
//!
//! A node is immutable. The writer makes a [`Draft`] of it, applies news to the draft, and finishes a new node.

use std::iter::Zip;
use std::slice;
use std::sync::Arc;

use super::coverage::Coverage;
use crate::model::{
    BookId, Bookmakers, Closed, Event, EventId, Market, MarketFilter, Outcome, OutcomeName, Record, Score, Timestamp,
};

/// The sort key of an event in every list: by commence time, then by id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct OrderKey<'a> {
    pub commence: Timestamp,
    pub id: &'a str,
}

/// An event and everything that belongs to it.
#[derive(Clone, Debug)]
pub struct EventNode {
    event: Arc<Event>,
    score: Option<Arc<Score>>,
    /// Sorted by bookmaker key, then market key, as answers list them.
    records: Box<[Arc<Record>]>,
    /// The bookmaker and market of each record, contiguous, so that a filter does not dereference the records it skips.
    pairs: Box<[(BookId, Market)]>,
    closed: Box<[Closed]>,
    coverage: Coverage,
    /// For an event with many records, so that a query for some markets does not visit the others.
    by_market: Option<ByMarket>,
}

/// From this many records on, an event has an index by market.
const SCANNED_MAX: usize = 64;

/// The positions of an event's records, grouped by market.
#[derive(Clone, Debug)]
struct ByMarket {
    /// In order; each group begins at its number in `positions`.
    starts: Box<[(Market, u32)]>,
    positions: Box<[u32]>,
}

impl ByMarket {
    fn of(pairs: &[(BookId, Market)]) -> Option<Self> {
        if pairs.len() <= SCANNED_MAX {
            return None;
        }
        let mut positions: Vec<u32> = (0..u32::try_from(pairs.len()).ok()?).collect();
        positions.sort_by_key(|at| pairs[*at as usize].1);
        let mut starts: Vec<(Market, u32)> = Vec::new();
        for (start, at) in (0..).zip(&positions) {
            let market = pairs[*at as usize].1;
            if starts.last().is_none_or(|(last, _)| *last != market) {
                starts.push((market, start));
            }
        }
        Some(ByMarket { starts: starts.into(), positions: positions.into() })
    }

    /// The positions of the records in the markets, in order.
    fn positions(&self, markets: &MarketFilter) -> std::vec::IntoIter<u32> {
        let mut found: Vec<u32> = Vec::new();
        for (at, (market, start)) in self.starts.iter().enumerate() {
            if markets.accepts(*market) {
                let end = self.starts.get(at + 1).map_or(self.positions.len(), |(_, end)| *end as usize);
                found.extend_from_slice(&self.positions[*start as usize..end]);
            }
        }
        found.sort_unstable();
        found.into_iter()
    }
}

/// The records of an event that a request may be about: all of them with their pairs, or some by position.
enum Candidates<'n> {
    All(Zip<slice::Iter<'n, (BookId, Market)>, slice::Iter<'n, Arc<Record>>>),
    At(&'n EventNode, std::vec::IntoIter<u32>),
}

impl<'n> Candidates<'n> {
    /// The next record whose pair is accepted.
    #[inline]
    fn next(&mut self, accept: impl Fn(BookId, Market) -> bool) -> Option<&'n Arc<Record>> {
        match self {
            Candidates::All(records) => {
                records.find(|((book, market), _)| accept(*book, *market)).map(|(_, record)| record)
            }
            Candidates::At(node, positions) => {
                let mut positions = positions.map(|at| at as usize);
                let at = positions.find(|at| accept(node.pairs[*at].0, node.pairs[*at].1))?;
                Some(&node.records[at])
            }
        }
    }
}

impl EventNode {
    pub fn event(&self) -> &Arc<Event> {
        &self.event
    }

    pub fn score(&self) -> Option<&Arc<Score>> {
        self.score.as_ref()
    }

    pub fn records(&self) -> &[Arc<Record>] {
        &self.records
    }

    /// The marks of closed markets.
    pub fn closed(&self) -> &[Closed] {
        &self.closed
    }

    /// The records of the markets by the bookmakers that `accept`, in order.
    pub(crate) fn records_of(
        &self,
        markets: &MarketFilter,
        accept: impl Fn(BookId) -> bool,
    ) -> impl Iterator<Item = &Arc<Record>> {
        let mut candidates = match &self.by_market {
            Some(by_market) if !matches!(markets, MarketFilter::All) => {
                Candidates::At(self, by_market.positions(markets))
            }
            _ => Candidates::All(self.pairs.iter().zip(&self.records)),
        };
        std::iter::from_fn(move || candidates.next(|book, market| markets.accepts(market) && accept(book)))
    }

    /// The record of a bookmaker in a market.
    pub fn record(&self, book: BookId, market: Market) -> Option<&Arc<Record>> {
        let at = self.pairs.iter().position(|pair| *pair == (book, market))?;
        Some(&self.records[at])
    }

    pub(crate) fn coverage(&self) -> &Coverage {
        &self.coverage
    }

    /// The markets that have a price now, in the order of an event's list.
    pub fn markets(&self) -> Vec<Market> {
        let mut markets = self.coverage.markets().to_vec();
        markets.sort_unstable_by(|one, other| one.cmp_in_lists(*other));
        markets
    }

    pub(crate) fn key(&self) -> OrderKey<'_> {
        OrderKey { commence: self.event.commence, id: self.event.id.as_str() }
    }
}

/// The effect of a piece of news.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Applied {
    Changed,
    /// It repeats what is stored.
    Unchanged,
    /// It is older than what is stored.
    Late,
}

/// A node being changed.
#[derive(Clone, Debug)]
pub struct Draft {
    event: Arc<Event>,
    score: Option<Arc<Score>>,
    records: Vec<Arc<Record>>,
    closed: Vec<Closed>,
}

impl Draft {
    pub fn new(event: Arc<Event>) -> Self {
        Draft { event, score: None, records: Vec::new(), closed: Vec::new() }
    }

    /// Builds a draft from what the file has of an event; `records` in any order.
    pub fn assemble(
        event: Arc<Event>,
        score: Option<Arc<Score>>,
        records: Vec<Arc<Record>>,
        closed: Vec<Closed>,
    ) -> Self {
        Draft { event, score, records, closed }
    }

    pub fn event(&self) -> &Arc<Event> {
        &self.event
    }

    pub fn score(&self) -> Option<&Arc<Score>> {
        self.score.as_ref()
    }

    pub fn set_event(&mut self, event: Arc<Event>) {
        self.event = event;
    }

    pub fn set_score(&mut self, score: Arc<Score>) {
        self.score = Some(score);
    }

    pub fn record(&self, book: BookId, market: Market) -> Option<&Arc<Record>> {
        self.records.iter().find(|record| record.bookmaker == book && record.market == market)
    }

    /// Stores a record, unless a newer one of the same bookmaker and market is stored.
    pub fn put(&mut self, mut record: Arc<Record>) -> Applied {
        let (book, market) = (record.bookmaker, record.market);
        if self.closed(book, market).is_some_and(|mark| record.last_update < mark.at) {
            return Applied::Late;
        }
        let stored = self.records.iter_mut().find(|stored| stored.bookmaker == book && stored.market == market);
        match stored {
            Some(stored) if record.last_update < stored.last_update => return Applied::Late,
            Some(stored) if *stored == record => return Applied::Unchanged,
            Some(stored) => {
                share_names(&mut record, &self.event, Some(stored));
                *stored = record;
            }
            None => {
                let alike = self.records.iter().find(|stored| stored.market == market);
                share_names(&mut record, &self.event, alike.map(|stored| &**stored));
                self.records.push(record);
            }
        }
        self.closed.retain(|mark| (mark.bookmaker, mark.market) != (book, market));
        Applied::Changed
    }

    /// Closes a market of a bookmaker as of a time, unless a newer price or a newer close is stored. Closing a market
    /// that was never open leaves a mark too, since an older price may still arrive.
    pub fn close(&mut self, mark: Closed) -> Applied {
        let pair = (mark.bookmaker, mark.market);
        if let Some(at) = self.records.iter().position(|stored| (stored.bookmaker, stored.market) == pair) {
            if mark.at < self.records[at].last_update {
                return Applied::Late;
            }
            self.records.remove(at);
            self.closed.push(mark);
            return Applied::Changed;
        }
        match self.closed.iter_mut().find(|stored| (stored.bookmaker, stored.market) == pair) {
            Some(stored) if mark.at < stored.at => return Applied::Late,
            Some(stored) if mark.at == stored.at => return Applied::Unchanged,
            Some(stored) => *stored = mark,
            None => self.closed.push(mark),
        }
        Applied::Changed
    }

    /// Closes every open market, as the end of an event does, and returns their marks.
    pub fn close_all(&mut self, at: Timestamp) -> Vec<Closed> {
        let marks: Vec<Closed> = self
            .records
            .drain(..)
            .map(|record| Closed { bookmaker: record.bookmaker, market: record.market, at: at.max(record.last_update) })
            .collect();
        self.closed.extend(&marks);
        marks
    }

    /// The mark of a closed market.
    pub fn closed(&self, book: BookId, market: Market) -> Option<Closed> {
        self.closed.iter().find(|mark| (mark.bookmaker, mark.market) == (book, market)).copied()
    }

    /// Makes the node, with its records in the order of answers, and its marks in an order that is the same after a start.
    pub fn finish(mut self, books: &Bookmakers) -> EventNode {
        self.records.sort_unstable_by(|one, other| {
            let by_book = books.key(one.bookmaker).cmp(books.key(other.bookmaker));
            by_book.then_with(|| one.market.cmp_in_records(other.market))
        });
        self.closed.sort_unstable_by(|one, other| {
            one.bookmaker.cmp(&other.bookmaker).then_with(|| one.market.cmp_in_records(other.market))
        });
        let pairs: Box<[_]> = self.records.iter().map(|record| (record.bookmaker, record.market)).collect();
        let coverage = Coverage::of(pairs.iter().copied());
        let by_market = ByMarket::of(&pairs);
        EventNode {
            event: self.event,
            score: self.score,
            records: self.records.into(),
            pairs,
            closed: self.closed.into(),
            coverage,
            by_market,
        }
    }
}

/// Makes the outcomes of a new record share the names of the event or of a record of the same market, so that a name
/// is in memory once and not once for each price.
fn share_names(record: &mut Arc<Record>, event: &Event, alike: Option<&Record>) {
    let Some(record) = Arc::get_mut(record) else { return };
    let alike: &[Outcome] = alike.map_or(&[], |alike| &alike.outcomes);
    for (at, outcome) in record.outcomes.iter_mut().enumerate() {
        // The outcomes are nearly always in the same order.
        let names = alike.get(at).into_iter().chain(alike).map(|outcome| outcome.name.as_stored());
        let mut names = event.home().into_iter().chain(event.away()).chain(names);
        if let Some(name) = names.find(|name| **name == *outcome.name.as_stored()) {
            outcome.name = OutcomeName::from_stored(Arc::clone(name));
        }
    }
}

impl From<&EventNode> for Draft {
    fn from(node: &EventNode) -> Self {
        Draft {
            event: Arc::clone(&node.event),
            score: node.score.clone(),
            records: node.records.to_vec(),
            closed: node.closed.to_vec(),
        }
    }
}

/// A change to one event of an index.
#[derive(Clone, Debug)]
pub struct Edit {
    pub id: EventId,
    /// `None` removes the event.
    pub node: Option<Arc<EventNode>>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Contest, EventStatus, Price, RecordId};

    fn record(book: u16, names: &[&str], at: u32) -> Arc<Record> {
        let outcome =
            |name: &&str| Outcome { name: (*name).into(), price: Price::from_american(-110).unwrap(), point: None };
        let (bookmaker, market) = (BookId::from_number(book), Market::MONEYLINE);
        let id = RecordId::new("soccer", &EventId::new("e1").unwrap(), &book.to_string(), market);
        let outcomes = names.iter().map(outcome).collect();
        Arc::new(Record {
            id,
            bookmaker,
            market,
            last_update: Timestamp::from_unix(at),
            bookmaker_update: None,
            outcomes,
        })
    }

    #[test]
    fn name_is_in_memory_once_for_each_event() {
        let event = Arc::new(Event {
            id: EventId::new("e1").unwrap(),
            competition: "League".into(),
            competition_key: "some_key".into(),
            commence: Timestamp::from_unix(0),
            contest: Contest::Sides { home: "Gulls".into(), away: "Bisons".into() },
            status: EventStatus::Scheduled,
            changed: Timestamp::from_unix(0),
        });
        let mut draft = Draft::new(Arc::clone(&event));
        for (book, names, at) in [
            (0, ["Gulls", "Bisons", "Draw"], 1),
            (1, ["Draw", "Bisons", "Gulls"], 1),
            (1, ["Draw", "Bisons", "Else"], 2),
        ] {
            assert_eq!(draft.put(record(book, &names, at)), Applied::Changed);
            let stored = draft.record(BookId::from_number(book), Market::MONEYLINE).unwrap();
            assert_eq!(stored.outcomes.iter().map(|outcome| &*outcome.name).collect::<Vec<_>>(), names);
        }
        let [first, second] = &draft.records[..] else { panic!("two records") };
        let name = |record: &Record, at: usize| Arc::clone(record.outcomes[at].name.as_stored());
        assert!(Arc::ptr_eq(&name(first, 0), event.home().unwrap()));
        assert!(Arc::ptr_eq(&name(second, 1), event.away().unwrap()));
        assert!(Arc::ptr_eq(&name(first, 2), &name(second, 0)));
    }
}
