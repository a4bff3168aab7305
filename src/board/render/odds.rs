//! The bare array of odds records.

use crate::board::body::Body;
use crate::board::node::EventNode;
use crate::board::query::OddsQuery;
use crate::board::select::{self, Pick, Scope};
use crate::board::snapshot::Published;
use crate::model::{OddsFormat, Outcome, Record};

use super::json;

pub(crate) fn odds(board: &Published, sport_key: &str, query: &OddsQuery) -> Body {
    let books = board.books_of(query);
    let pick = Pick { market: query.market, books: books.as_deref() };
    let scope = Scope::new(pick.filter(), query.events.as_ref(), query.after.as_ref());
    let frame = Frame::new(sport_key, query.format);
    let register = board.books().register();
    super::body(|out| {
        out.push(b'[');
        let next = select::records(board.index(), register, &scope, pick, query.limit.get(), |node, record| {
            if out.len() > 1 {
                out.push(b',');
            }
            frame.record(node, record, register.key(record.bookmaker), out);
        });
        out.push(b']');
        next
    })
}

/// The parts of a record that are the same for a whole answer, as they stand between the others.
struct Frame {
    format: OddsFormat,
    /// `","sport_key":"mma","event_id":`
    after_id: Vec<u8>,
    /// `,"format":"american","last_update":"`
    after_market: Vec<u8>,
}

impl Frame {
    fn new(sport_key: &str, format: OddsFormat) -> Self {
        Frame {
            format,
            after_id: format!("\",\"sport_key\":\"{sport_key}\",\"event_id\":").into_bytes(),
            after_market: format!("\",\"format\":\"{format}\",\"last_update\":\"").into_bytes(),
        }
    }

    fn record(&self, node: &EventNode, record: &Record, bookmaker: &str, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"id\":\"");
        out.extend_from_slice(&record.id.text());
        out.extend_from_slice(&self.after_id);
        json::string(node.event().id.as_str(), out);
        out.extend_from_slice(b",\"bookmaker\":\"");
        out.extend_from_slice(bookmaker.as_bytes());
        out.extend_from_slice(b"\",\"market\":\"");
        out.extend_from_slice(record.market.key().as_bytes());
        out.extend_from_slice(&self.after_market);
        record.last_update.write(out);
        out.extend_from_slice(b"\",\"outcomes\":");
        json::array(&record.outcomes, out, |outcome, out| {
            name_and_price(outcome, self.format, out);
            match outcome.point {
                Some(point) => {
                    out.extend_from_slice(b",\"point\":");
                    point.write(out);
                    out.push(b'}');
                }
                None => out.extend_from_slice(b",\"point\":null}"),
            }
        });
        out.push(b'}');
    }
}

/// `{"name":"…","price":…`, left open for what may follow.
pub(super) fn name_and_price(outcome: &Outcome, format: OddsFormat, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"name\":");
    json::string(&outcome.name, out);
    out.extend_from_slice(b",\"price\":");
    outcome.price.write_json(format, out);
}
