//! Lists whose rows are ordered by their results. All rows have to be found before the first is known, so a list is found once
//! for each publication and filter, and kept without what can be derived again.

use std::cmp::Ordering;
use std::ops::ControlFlow;
use std::sync::Arc;

use super::best::best;
use super::bet::Bet;
use super::edges::{arbitrage, values};
use super::page::Deriving;
use super::position::{BetPosition, RowPosition};
use super::query::{Derived, DerivedFilter, DerivedQuery, EdgeKind};
use crate::board::body::{HeapBytes, KeptBytes};
use crate::board::node::EventNode;
use crate::board::snapshot::Published;
use crate::model::derived::Millionths;
use crate::model::{BookId, Bookmakers, Market, MarketFamilies, OutcomeName};

/// The most rows that such a list has: the first ones.
pub(crate) const RANKED_MAX: usize = 20_000;

/// What a list depends on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct RankedQuery {
    filter: DerivedFilter,
    what: Derived,
}

impl RankedQuery {
    pub(crate) fn of(query: &DerivedQuery) -> Self {
        RankedQuery { filter: query.filter.clone(), what: query.what }
    }
}

impl HeapBytes for RankedQuery {
    fn heap_bytes(&self) -> usize {
        self.filter.heap_bytes()
    }
}

/// A row by what it is about.
#[derive(Debug)]
pub(super) struct RankedRow {
    /// The lowest comes first.
    pub(super) rank: i64,
    pub(super) node: Arc<EventNode>,
    pub(super) market: Market,
    pub(super) bet: BetPosition,
    /// The price that it is about, if it is one.
    pub(super) leg: Option<(BookId, OutcomeName)>,
}

impl RankedRow {
    pub(super) fn position(&self, books: &Bookmakers) -> RowPosition {
        let leg = self.leg.as_ref().map(|(book, name)| (Box::from(books.key(*book)), Box::from(name.as_str())));
        RowPosition {
            bet: self.bet.clone(),
            leg: leg.unwrap_or_default(),
            ..RowPosition::new(self.rank, &self.node, self.market, &self.bet.key())
        }
    }

    /// Compares ranks first: few rows have the same.
    fn compare(&self, other: &RankedRow, books: &Bookmakers) -> Ordering {
        self.rank.cmp(&other.rank).then_with(|| self.position(books).cmp(&other.position(books)))
    }
}

/// A list in order.
#[derive(Debug)]
pub(crate) struct RankedRows(Vec<RankedRow>);

impl KeptBytes for RankedRows {
    fn kept_bytes(&self) -> usize {
        let description = |row: &RankedRow| row.bet.description.as_ref().map_or(0, |text| text.len());
        self.0.iter().map(|row| size_of::<RankedRow>() + description(row) + row.bet.name.len()).sum::<usize>() + 64
    }
}

impl RankedRows {
    /// Finds all rows of a query.
    pub(crate) fn find(published: &Published, families: &MarketFamilies, query: &RankedQuery) -> Self {
        let books = published.register().bookmakers();
        let mut rows: Vec<RankedRow> = Vec::new();
        let mut bets = Vec::new();
        Deriving::new(published, families, &query.filter).visit(None, |deriving, node| {
            deriving.pairing.bets(node, &query.filter.markets, &mut bets);
            for bet in &bets {
                push_rows(deriving, node, bet, query.what, &mut rows);
            }
            if rows.len() >= 4 * RANKED_MAX {
                rows.select_nth_unstable_by(RANKED_MAX, |one, other| one.compare(other, books));
                rows.truncate(RANKED_MAX);
            }
            ControlFlow::Continue(())
        });
        rows.sort_unstable_by(|one, other| one.compare(other, books));
        rows.truncate(RANKED_MAX);
        rows.shrink_to_fit();
        RankedRows(rows)
    }

    /// The rows after a position.
    pub(super) fn after(&self, after: Option<&RowPosition>, books: &Bookmakers) -> &[RankedRow] {
        let Some(after) = after else { return &self.0 };
        let start = self
            .0
            .partition_point(|row| row.rank.cmp(&after.rank).then_with(|| row.position(books).cmp(after)).is_le());
        &self.0[start..]
    }
}

/// The rows of a bet.
fn push_rows<'a>(
    deriving: &mut Deriving<'a>,
    node: &Arc<EventNode>,
    bet: &Bet<'a>,
    what: Derived,
    rows: &mut Vec<RankedRow>,
) {
    let row = |rank: i64, leg| RankedRow {
        rank,
        node: Arc::clone(node),
        market: bet.market,
        bet: BetPosition::of(&bet.key),
        leg,
    };
    let wanted = deriving.wanted.clone();
    match what {
        Derived::Best(_) => {
            // Those without a hold come last.
            let hold = best(bet, wanted.as_deref()).map(|best| best.margin.map(|margin| Millionths::of(margin.hold())));
            rows.extend(hold.map(|hold| row(hold.map_or(i64::MAX, Millionths::count), None)));
        }
        Derived::Edges { kind: EdgeKind::Arbitrage, min } => {
            rows.extend(arbitrage(bet, wanted.as_deref(), min).map(|found| row(-found.edge.count(), None)));
        }
        Derived::Edges { kind: EdgeKind::Value(query), min } => {
            let Some(fair) = deriving.reference(bet, query) else { return };
            values(bet, fair, wanted.as_deref(), min, |value| {
                let leg = (bet.books[value.at].book, bet.sides[value.column].name.clone());
                rows.push(row(-value.edge.count(), Some(leg)));
            });
        }
        Derived::Fair(_) => {}
    }
}
