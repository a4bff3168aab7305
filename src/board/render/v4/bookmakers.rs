//! The bookmakers of an event with their markets and outcomes, one inside the other.

use std::cell::Cell;
use std::sync::Arc;

use crate::board::coverage::BookSet;
use crate::board::node::EventNode;
use crate::board::render::json;
use crate::board::render::odds::name_and_price;
use crate::board::snapshot::Published;
use crate::board::v4::{Extras, PricedBooks, Prices};
use crate::model::{Bookmakers, Outcome, Record, SportKind};

use super::time;

/// The bookmakers that a query is about.
pub(super) fn book_set(published: &Published, books: &PricedBooks) -> Arc<BookSet> {
    match books {
        PricedBooks::OfferedIn(regions) => Arc::clone(published.register().offered_in(*regions)),
        PricedBooks::Named(books) => Arc::new(books.iter().copied().collect()),
    }
}

/// Writes the bookmakers of an event: which prices an answer shows, and how.
#[derive(Debug)]
pub(super) struct BookmakerWriter<'a> {
    kind: SportKind,
    books: Arc<BookSet>,
    register: &'a Bookmakers,
    prices: &'a Prices,
    /// Whether a bookmaker has a `last_update` of its own; in the answer for one event only its markets do.
    dates_books: bool,
    /// How many records were written.
    written: Cell<usize>,
}

impl<'a> BookmakerWriter<'a> {
    pub(super) fn new(published: &'a Published, kind: SportKind, prices: &'a Prices) -> Self {
        BookmakerWriter {
            kind,
            books: book_set(published, &prices.books),
            register: published.register().bookmakers(),
            prices,
            dates_books: true,
            written: Cell::new(0),
        }
    }

    /// For the answer about one event.
    pub(super) fn of_one_event(self) -> Self {
        BookmakerWriter { dates_books: false, ..self }
    }

    /// Without any price, for an event that is not yet published.
    pub(super) fn blank(self) -> Self {
        BookmakerWriter { books: Arc::default(), ..self }
    }

    pub(super) fn written(&self) -> usize {
        self.written.get()
    }

    /// `,"bookmakers":[…]}`: the end of an event.
    pub(super) fn close_event(&self, node: &EventNode, out: &mut Vec<u8>) {
        let markets = self.prices.markets.of_event(self.kind, node.event());
        let wanted = node.records_of(markets, |book| self.books.contains(book));
        let records: Vec<&Record> = wanted.map(|record| &**record).collect();
        self.written.set(self.written.get() + records.len());
        out.extend_from_slice(b",\"bookmakers\":");
        let by_book = records.chunk_by(|one, other| one.bookmaker == other.bookmaker);
        json::array(by_book, out, |records, out| self.bookmaker(records, out));
        out.push(b'}');
    }

    /// Records of one bookmaker, at least one.
    fn bookmaker(&self, records: &[&Record], out: &mut Vec<u8>) {
        let book = records.first().and_then(|record| self.register.get(record.bookmaker));
        out.extend_from_slice(b"{\"key\":");
        json::string(book.map_or("", |book| &book.key), out);
        out.extend_from_slice(b",\"title\":");
        json::string(book.map_or("", |book| &book.title), out);
        if self.dates_books {
            out.extend_from_slice(b",\"last_update\":");
            let newest = records.iter().map(|record| record.effective_bookmaker_update()).max().unwrap_or_default();
            time(newest, self.prices.dates, out);
        }
        self.extras(out);
        out.extend_from_slice(b",\"markets\":");
        json::array(records, out, |record, out| self.market(record, out));
        out.push(b'}');
    }

    fn market(&self, record: &Record, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"key\":\"");
        out.extend_from_slice(record.market.alias(self.kind).as_bytes());
        out.extend_from_slice(b"\",\"last_update\":");
        time(record.last_update, self.prices.dates, out);
        self.extras(out);
        out.extend_from_slice(b",\"outcomes\":");
        json::array(&record.outcomes, out, |outcome, out| self.outcome(outcome, out));
        out.push(b'}');
    }

    fn outcome(&self, outcome: &Outcome, out: &mut Vec<u8>) {
        name_and_price(outcome, self.prices.format, out);
        if let Some(point) = outcome.point {
            out.extend_from_slice(b",\"point\":");
            point.write(out);
        }
        self.extras(out);
        if self.prices.extras.bet_limits {
            out.extend_from_slice(b",\"bet_limit\":null");
        }
        if self.prices.extras.multipliers {
            out.extend_from_slice(b",\"multiplier\":null");
        }
        out.push(b'}');
    }

    fn extras(&self, out: &mut Vec<u8>) {
        let Extras { links, sids, .. } = self.prices.extras;
        if links {
            out.extend_from_slice(b",\"link\":null");
        }
        if sids {
            out.extend_from_slice(b",\"sid\":null");
        }
    }
}
