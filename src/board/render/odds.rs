//! The bare array of odds records.

use crate::board::body::Body;
use crate::board::node::EventNode;
use crate::board::query::OddsQuery;
use crate::board::select::{self, Pick, Scope};
use crate::board::snapshot::Published;
use crate::model::text::Room;
use crate::model::{OddsFormat, Outcome, Point, Price, Record, Timestamp};

use super::json;
use super::pen::{Pen, put_text};

pub(crate) fn odds(board: &Published, sport_key: &str, query: &OddsQuery) -> Body {
    let books = board.books_of(query);
    let pick = Pick { market: query.market, books: books.as_deref() };
    let scope = Scope::new(pick.filter(), query.events.as_ref(), query.after.as_ref());
    let register = board.books().register();
    let mut lines = Lines::new(sport_key, query.format);
    super::penned(|pen| {
        pen.write(1, 0, |room| room.put(b"["));
        let next = select::records(board.index(), register, &scope, pick, query.limit.get(), |node, record| {
            lines.write(node, record, register.key(record.bookmaker), pen);
        });
        pen.write(1, 0, |room| room.put(b"]"));
        next
    })
}

/// Writes the records of an answer, which follow each other by event.
struct Lines<'a> {
    sport_key: &'a str,
    format: OddsFormat,
    event: Option<&'a EventNode>,
    /// How every record of the event begins, a comma before it: `,{"id":"`, sixteen bytes for the id, and
    /// `","sport_key":"mma","event_id":"…","bookmaker":"`.
    head: Vec<u8>,
    /// The time of the record before, which is often that of the next one too.
    updated: (Timestamp, [u8; 20]),
}

const OPENING: &[u8; 24] = b",{\"id\":\"................";
const ID_AT: usize = OPENING.len() - 16;
/// The most that a record takes besides its head, its bookmaker and its outcomes.
const RECORD_MAX: usize = 160;
/// The most that an outcome takes besides its name.
const OUTCOME_MAX: usize = 40 + Price::JSON_MAX + Point::TEXT_MAX;

impl<'a> Lines<'a> {
    fn new(sport_key: &'a str, format: OddsFormat) -> Self {
        let updated = (Timestamp::default(), Timestamp::default().iso());
        Lines { sport_key, format, event: None, head: Vec::with_capacity(256), updated }
    }

    fn write(&mut self, node: &'a EventNode, record: &Record, bookmaker: &str, pen: &mut Pen<'_>) {
        let is_first = self.event.is_none();
        if !self.event.is_some_and(|event| std::ptr::eq(event, node)) {
            self.begin_event(node);
        }
        if self.updated.0 != record.last_update {
            self.updated = (record.last_update, record.last_update.iso());
        }
        let (head, format) = (&self.head[usize::from(is_first)..], self.format);
        let plain = head.len() + bookmaker.len() + RECORD_MAX + record.outcomes.len() * OUTCOME_MAX;
        let names = record.outcomes.iter().map(|outcome| outcome.name.len()).sum();
        pen.write(plain, names, |room| {
            let id_at = room.at() + ID_AT - usize::from(is_first);
            room.put_slice(head);
            room.put_over(id_at, &record.id.text());
            room.put_slice(bookmaker.as_bytes());
            room.put(b"\",\"market\":\"");
            room.put_slice(record.market.key().as_bytes());
            match format {
                OddsFormat::American => room.put(b"\",\"format\":\"american\",\"last_update\":\""),
                OddsFormat::Decimal => room.put(b"\",\"format\":\"decimal\",\"last_update\":\""),
                OddsFormat::Fractional => room.put(b"\",\"format\":\"fractional\",\"last_update\":\""),
            }
            room.put(&self.updated.1);
            room.put(b"\",\"outcomes\":[");
            for (at, outcome) in record.outcomes.iter().enumerate() {
                if at > 0 {
                    room.put(b",");
                }
                write_outcome(outcome, format, room);
            }
            room.put(b"]}");
        });
    }

    fn begin_event(&mut self, node: &'a EventNode) {
        self.event = Some(node);
        self.head.clear();
        self.head.extend_from_slice(OPENING);
        self.head.extend_from_slice(b"\",\"sport_key\":");
        json::string(self.sport_key, &mut self.head);
        self.head.extend_from_slice(b",\"event_id\":");
        json::string(node.event().id.as_str(), &mut self.head);
        self.head.extend_from_slice(b",\"bookmaker\":\"");
    }
}

#[inline]
fn write_outcome(outcome: &Outcome, format: OddsFormat, room: &mut Room<'_>) {
    room.put(b"{\"name\":\"");
    put_text(&outcome.name, room);
    room.put(b"\",\"price\":");
    outcome.price.put_json(format, room);
    match outcome.point {
        Some(point) => {
            room.put(b",\"point\":");
            point.put(room);
            room.put(b"}");
        }
        None => room.put(b",\"point\":null}"),
    }
}

/// `{"name":"…","price":…`, left open for what may follow.
pub(super) fn name_and_price(outcome: &Outcome, format: OddsFormat, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"name\":");
    json::string(&outcome.name, out);
    out.extend_from_slice(b",\"price\":");
    outcome.price.write_json(format, out);
}
