//! Finds the rows of an answer.

use std::ops::ControlFlow;
use std::sync::Arc;

use super::best::{BestRow, best};
use super::bet::Bet;
use super::edges::{EdgeRow, arbitrage, value_row, values};
use super::fair::{FairPrices, FairRow};
use super::pairing::Pairing;
use super::position::RowPosition;
use super::query::{BestOrder, Derived, DerivedFilter, DerivedQuery, EdgeKind, FairFrom, FairQuery};
use super::ranked::{RankedRow, RankedRows};
use crate::board::coverage::BookSet;
use crate::board::index::Filter;
use crate::board::node::EventNode;
use crate::board::query::Cursor;
use crate::board::select::{self, Scope};
use crate::board::snapshot::Published;
use crate::model::{Market, MarketFamilies, MarketFilter};

/// A row of an answer, of a bet.
#[derive(Debug)]
pub(crate) enum DerivedRow<'a> {
    Best(BestRow<'a>),
    Fair(FairRow),
    Edge(EdgeRow<'a>),
}

/// Derives rows from one publication.
#[derive(Debug)]
pub(super) struct Deriving<'a> {
    published: &'a Published,
    filter: &'a DerivedFilter,
    pub(super) pairing: Pairing<'a>,
    fair: FairPrices,
    /// Whose prices are offered.
    pub(super) wanted: Option<Arc<BookSet>>,
    /// Whose prices a consensus is of.
    reference: Option<Arc<BookSet>>,
}

impl<'a> Deriving<'a> {
    pub(super) fn new(published: &'a Published, families: &'a MarketFamilies, filter: &'a DerivedFilter) -> Self {
        Deriving {
            published,
            filter,
            pairing: Pairing::new(published, families),
            fair: FairPrices::default(),
            wanted: published.books_of(filter.bookmaker.as_ref().map(std::slice::from_ref), filter.regions),
            reference: published.books_of(None, filter.regions),
        }
    }

    /// Visits the events that may have a row, beginning with that of the cursor.
    pub(super) fn visit(
        mut self,
        after: Option<&Cursor>,
        mut visit: impl FnMut(&mut Self, &'a Arc<EventNode>) -> ControlFlow<()>,
    ) {
        let (filter, wanted) = (self.filter, self.wanted.clone());
        let priced = Some((&filter.markets, wanted.as_deref()));
        let scope = Scope::new(Filter { priced, ..Filter::default() }, &filter.scope, after);
        select::visit_events(self.published.index(), &scope, |node| visit(&mut self, node));
    }

    /// The fair probabilities of a bet as a reference: a named bookmaker counts wherever it is offered.
    pub(super) fn reference(&mut self, bet: &Bet<'_>, query: FairQuery) -> Option<&FairRow> {
        let books = match query.from {
            FairFrom::Consensus => self.reference.as_deref(),
            FairFrom::Bookmaker(_) => None,
        };
        self.fair.of(bet, query, books)
    }

    /// The row of a bet in a list in the order of events.
    fn row(&mut self, bet: &Bet<'a>, what: Derived) -> Option<DerivedRow<'a>> {
        match what {
            Derived::Best(_) => best(bet, self.wanted.as_deref()).map(DerivedRow::Best),
            Derived::Fair(query) => {
                self.fair.of(bet, query, self.wanted.as_deref())?;
                Some(DerivedRow::Fair(self.fair.take()))
            }
            Derived::Edges { .. } => None,
        }
    }

    /// The row of a ranked list again, with all that is shown of it.
    fn ranked_row(&mut self, bet: &Bet<'a>, what: Derived, row: &RankedRow) -> Option<DerivedRow<'a>> {
        let Derived::Edges { kind, min } = what else { return self.row(bet, what) };
        let EdgeKind::Value(query) = kind else {
            return arbitrage(bet, self.wanted.as_deref(), min).map(DerivedRow::Edge);
        };
        let wanted = self.wanted.clone();
        let fair = self.reference(bet, query)?;
        let mut found = None;
        values(bet, fair, wanted.as_deref(), min, |value| {
            let is_it =
                |(book, name): &(_, _)| bet.books[value.at].book == *book && bet.sides[value.column].name == name;
            if row.leg.as_ref().is_some_and(is_it) {
                found = Some(value);
            }
        });
        value_row(bet, fair, found?).map(DerivedRow::Edge)
    }
}

/// Hands the rows of a page to `emit`, and returns the cursor if more follow. `ranked` gives the list of a query whose rows are
/// ordered by their results.
pub(crate) fn rows<'a>(
    published: &'a Published,
    families: &'a MarketFamilies,
    query: &'a DerivedQuery,
    ranked: Option<&'a RankedRows>,
    emit: impl FnMut(&'a EventNode, &Bet<'a>, DerivedRow<'a>),
) -> Option<Cursor> {
    let deriving = Deriving::new(published, families, &query.filter);
    let after = query.after.as_ref().and_then(RowPosition::of_cursor);
    match ranked {
        Some(ranked) => ranked_page(deriving, query, ranked, after.as_ref(), emit),
        None => page(deriving, query, after.as_ref(), emit),
    }
}

/// A page in the order of events.
fn page<'a>(
    deriving: Deriving<'a>,
    query: &'a DerivedQuery,
    after: Option<&RowPosition>,
    mut emit: impl FnMut(&'a EventNode, &Bet<'a>, DerivedRow<'a>),
) -> Option<Cursor> {
    let (mut last, mut count, mut more) = (None, 0, false);
    let mut bets = Vec::new();
    deriving.visit(query.after.as_ref(), |deriving, node| {
        deriving.pairing.bets(node, &query.filter.markets, &mut bets);
        for bet in &bets {
            let position = || RowPosition::new(0, node, bet.market, &bet.key);
            let is_event = |after: &&RowPosition| after.event == node.event().id;
            if after.filter(is_event).is_some_and(|after| position() <= *after) {
                continue;
            }
            let Some(row) = deriving.row(bet, query.what) else { continue };
            if count == query.limit.get() {
                more = true;
                return ControlFlow::Break(());
            }
            emit(node, bet, row);
            count += 1;
            if count == query.limit.get() {
                last = Some(position());
            }
        }
        ControlFlow::Continue(())
    });
    last.filter(|_| more).map(|last| last.cursor())
}

/// A page of a list that is ordered by its results.
fn ranked_page<'a>(
    mut deriving: Deriving<'a>,
    query: &'a DerivedQuery,
    ranked: &'a RankedRows,
    after: Option<&RowPosition>,
    mut emit: impl FnMut(&'a EventNode, &Bet<'a>, DerivedRow<'a>),
) -> Option<Cursor> {
    let books = deriving.published.register().bookmakers();
    let rows = ranked.after(after, books);
    let (page, rest) = rows.split_at(query.limit.get().min(rows.len()));
    let mut bets = Vec::new();
    let mut paired: Option<(&EventNode, Market)> = None;
    for row in page {
        let node = &*row.node;
        if !paired.is_some_and(|(last, market)| std::ptr::eq(last, node) && market == row.market) {
            deriving.pairing.bets(node, &MarketFilter::from(row.market), &mut bets);
            paired = Some((node, row.market));
        }
        let Some(bet) = bets.iter().find(|bet| row.bet.is(&bet.key)) else { continue };
        if let Some(shown) = deriving.ranked_row(bet, query.what, row) {
            emit(node, bet, shown);
        }
    }
    page.last().filter(|_| !rest.is_empty()).map(|row| row.position(books).cursor())
}

impl Derived {
    /// Whether rows are ordered by their results, so that all of them have to be found first.
    pub(crate) fn is_ranked(self) -> bool {
        matches!(self, Derived::Best(BestOrder::Hold) | Derived::Edges { .. })
    }
}
