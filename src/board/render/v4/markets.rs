//! Which markets each bookmaker has of one event, without their prices.

use std::sync::Arc;

use crate::board::body::Body;
use crate::board::node::EventNode;
use crate::board::render::{self, json};
use crate::board::snapshot::Published;
use crate::board::v4::{CompetitionView, DateFormat, PricedBooks};
use crate::model::{Record, SportKind};

use super::bookmakers::book_set;
use super::{open_event, sides, time};

pub(crate) fn event_markets(
    published: &Published,
    competition: &CompetitionView,
    node: &EventNode,
    kind: SportKind,
    (books, dates): (&PricedBooks, DateFormat),
    is_published: bool,
) -> Body {
    let books = if is_published { book_set(published, books) } else { Arc::default() };
    let records: Vec<&Record> =
        node.records().iter().filter(|record| books.contains(record.bookmaker)).map(|record| &**record).collect();
    let register = published.register().bookmakers();
    render::body(|out| {
        open_event(node.event(), competition.into(), dates, out);
        sides(node.event(), out);
        out.extend_from_slice(b",\"bookmakers\":");
        let by_book = records.chunk_by(|one, other| one.bookmaker == other.bookmaker);
        json::array(by_book, out, |records, out| {
            let book = records.first().and_then(|record| register.get(record.bookmaker));
            out.extend_from_slice(b"{\"key\":");
            json::string(book.map_or("", |book| &book.key), out);
            out.extend_from_slice(b",\"title\":");
            json::string(book.map_or("", |book| &book.title), out);
            out.extend_from_slice(b",\"markets\":");
            json::array(records, out, |record, out| {
                out.extend_from_slice(b"{\"key\":\"");
                out.extend_from_slice(record.market.alias(kind).as_bytes());
                out.extend_from_slice(b"\",\"last_update\":");
                time(record.last_update, dates, out);
                out.push(b'}');
            });
            out.push(b'}');
        });
        out.push(b'}');
        None
    })
}
