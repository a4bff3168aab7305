//! Finding the results of a query in an index: which events, which of their records, and where the page ends.

use std::ops::ControlFlow;
use std::sync::Arc;

use super::coverage::BookSet;
use super::index::{Filter, Index};
use super::node::{EventNode, OrderKey};
use super::query::{Cursor, EventIds, EventScope};
use crate::model::{Bookmakers, Market, MarketFilter, Record, Timestamp};

impl Cursor {
    pub(crate) fn at_event(node: &EventNode) -> Self {
        let event = node.event();
        Cursor { commence: event.commence, event: event.id.clone(), record: None }
    }

    fn at_record(node: &EventNode, record: &Record, books: &Bookmakers) -> Self {
        let record = (books.key(record.bookmaker).into(), record.market.key().into());
        Cursor { record: Some(record), ..Cursor::at_event(node) }
    }

    fn key(&self) -> OrderKey<'_> {
        OrderKey { commence: self.commence, id: self.event.as_str() }
    }
}

/// Which events a query is about.
#[derive(Debug)]
pub(crate) struct Scope<'q> {
    pub filter: Filter<'q>,
    pub events: Option<&'q EventIds>,
    pub commence_from: Option<Timestamp>,
    pub commence_to: Option<Timestamp>,
    pub after: Option<&'q Cursor>,
}

impl<'q> Scope<'q> {
    /// The events of `scope` that pass the filter, which takes over what `scope` says of competitions and fields.
    pub(crate) fn new(filter: Filter<'q>, scope: &'q EventScope, after: Option<&'q Cursor>) -> Self {
        let filter = Filter { competitions: scope.competitions.as_ref(), sides_only: scope.sides_only, ..filter };
        let EventScope { events, commence_from, commence_to, .. } = scope;
        Scope { filter, events: events.as_ref(), commence_from: *commence_from, commence_to: *commence_to, after }
    }

    /// Lists are sorted by commence time, so its lower bound is a position to start from, like a cursor.
    fn start(&self) -> Option<OrderKey<'q>> {
        let from = self.commence_from.map(|commence| OrderKey { commence, id: "" });
        from.max(self.after.map(Cursor::key))
    }
}

/// Visits the events of a scope in order, beginning with the event of the cursor: the caller decides whether that one
/// has further results.
pub(crate) fn visit_events<'a>(
    index: &'a Index,
    scope: &Scope<'_>,
    mut visit: impl FnMut(&'a Arc<EventNode>) -> ControlFlow<()>,
) {
    let from = scope.start();
    let mut visit = |node: &'a Arc<EventNode>| {
        if scope.commence_to.is_some_and(|to| node.event().commence > to) {
            return ControlFlow::Break(());
        }
        visit(node)
    };
    let _ = match scope.events {
        None => index.visit(from, &scope.filter, visit),
        Some(ids) => {
            let mut nodes: Vec<_> = ids.iter().filter_map(|id| index.get(id.as_str())).collect();
            nodes.sort_unstable_by_key(|node| node.key());
            let in_page = |node: &&Arc<EventNode>| from.is_none_or(|from| node.key() >= from);
            nodes.into_iter().filter(in_page).filter(|node| scope.filter.accepts(node)).try_for_each(&mut visit)
        }
    };
}

/// One page of events, at most `limit` that `accept`; and the cursor if more follow.
pub(crate) fn events<'a>(
    index: &'a Index,
    scope: &Scope<'_>,
    limit: usize,
    accept: impl Fn(&EventNode) -> bool,
) -> (Vec<&'a Arc<EventNode>>, Option<Cursor>) {
    let mut page: Vec<&Arc<EventNode>> = Vec::with_capacity(limit.min(64));
    let mut more = false;
    visit_events(index, scope, |node| {
        let passed = scope.after.is_some_and(|after| node.key() <= after.key());
        if passed || !accept(node) {
            return ControlFlow::Continue(());
        }
        if page.len() == limit {
            more = true;
            return ControlFlow::Break(());
        }
        page.push(node);
        ControlFlow::Continue(())
    });
    let next = page.last().filter(|_| more).map(|node| Cursor::at_event(node));
    (page, next)
}

/// Which records of an event a query is about.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pick<'q> {
    pub markets: &'q MarketFilter,
    pub books: Option<&'q BookSet>,
}

impl<'q> Pick<'q> {
    /// The events that have any such record.
    pub(crate) fn filter(self) -> Filter<'q> {
        Filter { priced: Some((self.markets, self.books)), ..Filter::default() }
    }

    pub(crate) fn records(self, node: &EventNode) -> impl Iterator<Item = &Arc<Record>> {
        node.records_of(self.markets, move |book| self.books.is_none_or(|books| books.contains(book)))
    }
}

/// Hands one page of records to `emit`, in order and those of an event together, and returns the cursor if more follow.
pub(crate) fn records<'a>(
    index: &'a Index,
    books: &Bookmakers,
    scope: &Scope<'_>,
    pick: Pick<'_>,
    limit: usize,
    mut emit: impl FnMut(&'a EventNode, &[&'a Record]),
) -> Option<Cursor> {
    let mut left = limit;
    let mut here: Vec<&Record> = Vec::with_capacity(limit.min(64));
    let mut last: Option<(&EventNode, &Record)> = None;
    let mut more = false;
    visit_events(index, scope, |node| {
        let mut rest = pick.records(node).filter(|record| is_after(node, record, books, scope.after));
        here.clear();
        here.extend(rest.by_ref().take(left).map(|record| &**record));
        if let Some(record) = here.last() {
            left -= here.len();
            last = Some((node, record));
            emit(node, &here);
        }
        more = rest.next().is_some();
        if more { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    last.filter(|_| more).map(|(node, record)| Cursor::at_record(node, record, books))
}

/// Whether a record comes after the cursor. Events before the cursor's are not visited, so only its own matters.
fn is_after(node: &EventNode, record: &Record, books: &Bookmakers, after: Option<&Cursor>) -> bool {
    let Some(after) = after.filter(|after| after.key() == node.key()) else { return true };
    match &after.record {
        Some((bookmaker, market)) => {
            let by_book = books.key(record.bookmaker).cmp(bookmaker);
            by_book.then_with(|| Market::cmp_keys(record.market.key(), market)).is_gt()
        }
        None => false,
    }
}
