//! The moneylines of a fight sport, grouped by bout.

use crate::board::body::Body;
use crate::board::node::EventNode;
use crate::board::query::OddsQuery;
use crate::board::select::{self, Pick, Scope};
use crate::board::snapshot::{Published, PublishedSource};
use crate::model::{Bookmakers, Market, OddsFormat, Timestamp};

use super::json;
use super::odds::name_and_price;

pub(crate) fn bouts(board: &Published, sport_key: &str, query: &OddsQuery) -> Body {
    let books = board.books_of(query.bookmakers.as_deref(), query.regions);
    let moneyline = Market::MONEYLINE.into();
    let pick = Pick { markets: &moneyline, books: books.as_deref() };
    let scope = Scope::new(pick.filter(), &query.scope, query.after.as_ref());
    let (page, next) = select::events(board.index(), &scope, query.limit.get(), |node| node.event().home().is_some());
    let register = board.register().bookmakers();
    let sources =
        board.sources().iter().filter(|source| books.as_ref().is_none_or(|set| set.contains(source.bookmaker)));

    super::body(|out| {
        out.extend_from_slice(b"{\"sport\":");
        json::string(sport_key, out);
        out.extend_from_slice(b",\"generated_at\":\"");
        Timestamp::write_millis(board.at_ms(), out);
        out.extend_from_slice(b"\",\"sources\":");
        json::array(sources, out, |source, out| write_source(source, register, out));
        out.extend_from_slice(b",\"bouts\":");
        json::array(page, out, |node, out| write_bout(node, pick, register, query.format, out));
        out.push(b'}');
        next
    })
}

fn write_source(source: &PublishedSource, register: &Bookmakers, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"book\":");
    json::string(register.key(source.bookmaker), out);
    out.extend_from_slice(b",\"last_update\":\"");
    source.last_read.write(out);
    out.extend_from_slice(if source.stale { b"\",\"stale\":true" } else { b"\",\"stale\":false" });
    out.extend_from_slice(b",\"latency_ms\":");
    json::integer(source.latency_ms, out);
    out.push(b'}');
}

fn write_bout(node: &EventNode, pick: Pick<'_>, register: &Bookmakers, format: OddsFormat, out: &mut Vec<u8>) {
    let event = node.event();
    out.extend_from_slice(b"{\"home\":");
    json::optional_string(event.home().map(|name| &**name), out);
    out.extend_from_slice(b",\"away\":");
    json::optional_string(event.away().map(|name| &**name), out);
    out.extend_from_slice(b",\"commence_time\":\"");
    event.commence.write(out);
    out.extend_from_slice(b"\",\"books\":");
    json::array(pick.records(node), out, |record, out| {
        out.extend_from_slice(b"{\"book\":");
        json::string(register.key(record.bookmaker), out);
        out.extend_from_slice(b",\"last_update\":\"");
        record.last_update.write(out);
        out.extend_from_slice(b"\",\"outcomes\":");
        json::array(&record.outcomes, out, |outcome, out| {
            name_and_price(outcome, format, out);
            out.push(b'}');
        });
        out.push(b'}');
    });
    out.push(b'}');
}
