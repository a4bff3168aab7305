//! The bare array of odds records.

use crate::board::body::Body;
use crate::board::node::EventNode;
use crate::board::query::OddsQuery;
use crate::board::select::{self, Pick, Scope};
use crate::board::snapshot::Published;
use crate::model::text::FixedBuffer;
use crate::model::{Bookmakers, Event, OddsFormat, Outcome, Point, Price, Record, Timestamp};

use super::events::included_event;
use super::json;
use super::record_writer::{RecordWriter, put_text};

pub(crate) fn odds(board: &Published, sport_key: &str, query: &OddsQuery) -> Body {
    let books = board.books_of(query.bookmakers.as_deref(), query.regions);
    let pick = Pick { markets: &query.markets, books: books.as_deref() };
    let scope = Scope::new(pick.filter(), &query.scope, query.after.as_ref());
    let register = board.register().bookmakers();
    let mut odds = OddsWriter::new(sport_key, query.format, register, query.with_event);
    super::record_body(|writer| {
        writer.write(1, 0, |buffer| buffer.put(b"["));
        let next = select::records(board.index(), register, &scope, pick, query.limit.get(), |node, records| {
            odds.write(node, records, writer);
        });
        writer.write(1, 0, |buffer| buffer.put(b"]"));
        next
    })
}

/// Records one after the other, and where each of them ends. Each comes with its event and the key of its bookmaker; `None`
/// takes no bytes. Without a format, each is in the one that it was quoted in.
pub(crate) fn records<'r>(
    sport_key: &str,
    (format, with_event): (Option<OddsFormat>, bool),
    records: impl Iterator<Item = (&'r Event, &'r str, Option<&'r Record>)>,
) -> (Vec<u8>, Vec<usize>) {
    let (mut bytes, mut ends) = (Vec::new(), Vec::new());
    let register = Bookmakers::default();
    let mut odds = OddsWriter::new(sport_key, format.unwrap_or(OddsFormat::American), &register, with_event);
    let mut writer = RecordWriter::new(&mut bytes);
    for (event, bookmaker, record) in records {
        if let Some(record) = record {
            odds.begin_event(event);
            odds.is_first = true;
            let quoted = || record.outcomes.first().map(|outcome| outcome.price.quoted());
            odds.format = format.or_else(quoted).unwrap_or(OddsFormat::American);
            let names = record.outcomes.iter().map(|outcome| outcome.name.as_stored().len()).sum();
            let around = odds.head.len() + odds.tail.len() + RECORD_MAX;
            let plain = around + bookmaker.len() + record.outcomes.len() * OUTCOME_MAX;
            writer.write(plain, names, |buffer| odds.write_record(bookmaker, record, buffer));
        }
        ends.push(writer.written().len());
    }
    let end = writer.written().len();
    bytes.truncate(end);
    (bytes, ends)
}

/// Writes the records of an answer, event by event.
struct OddsWriter<'a> {
    sport_key: &'a str,
    format: OddsFormat,
    register: &'a Bookmakers,
    /// The beginning of every record of an event: `{"id":"`, sixteen bytes for the id, and
    /// `","sport_key":"mma","event_id":"…","bookmaker":"`.
    head: Vec<u8>,
    with_event: bool,
    /// The end of every record of an event, after its outcomes: the event itself, if it is requested.
    tail: Vec<u8>,
    /// The time of the previous record as text; the next one often has the same.
    updated: (Timestamp, [u8; 20]),
    is_first: bool,
}

const OPENING: &[u8; 23] = b"{\"id\":\"................";
const ID_AT: usize = OPENING.len() - 16;
/// The maximum size of a record without its head, bookmaker and outcomes.
const RECORD_MAX: usize = 240;
/// The maximum size of an outcome without its name.
const OUTCOME_MAX: usize = 60 + Price::JSON_MAX + Point::TEXT_MAX;

impl<'a> OddsWriter<'a> {
    fn new(sport_key: &'a str, format: OddsFormat, register: &'a Bookmakers, with_event: bool) -> Self {
        let updated = (Timestamp::default(), Timestamp::default().iso());
        let (head, tail) = (Vec::with_capacity(256), Vec::new());
        OddsWriter { sport_key, format, register, head, with_event, tail, updated, is_first: true }
    }

    /// Writes the records of an event. Computing their size first also loads them into the CPU cache, many at a time.
    fn write(&mut self, node: &EventNode, records: &[&Record], writer: &mut RecordWriter<'_>) {
        self.begin_event(node.event());
        let books: usize = records.iter().map(|record| self.register.key(record.bookmaker).len()).sum();
        let outcomes: usize = records.iter().map(|record| record.outcomes.len()).sum();
        let names =
            records.iter().flat_map(|record| &record.outcomes).map(|outcome| outcome.name.as_stored().len()).sum();
        let plain = records.len() * (self.head.len() + self.tail.len() + RECORD_MAX) + books + outcomes * OUTCOME_MAX;
        let register = self.register;
        writer.write(plain, names, |buffer| {
            for record in records {
                self.write_record(register.key(record.bookmaker), record, buffer);
            }
        });
    }

    fn begin_event(&mut self, event: &Event) {
        self.head.clear();
        self.head.extend_from_slice(OPENING);
        self.head.extend_from_slice(b"\",\"sport_key\":");
        json::string(self.sport_key, &mut self.head);
        self.head.extend_from_slice(b",\"event_id\":");
        json::string(event.id.as_str(), &mut self.head);
        self.head.extend_from_slice(b",\"bookmaker\":\"");
        if self.with_event {
            self.tail.clear();
            included_event(event, &mut self.tail);
        }
    }

    #[inline]
    fn write_record(&mut self, bookmaker: &str, record: &Record, buffer: &mut FixedBuffer<'_>) {
        if self.updated.0 != record.last_update {
            self.updated = (record.last_update, record.last_update.iso());
        }
        if !std::mem::take(&mut self.is_first) {
            buffer.put(b",");
        }
        let id_at = buffer.at() + ID_AT;
        buffer.put_slice(&self.head);
        buffer.put_over(id_at, &record.id.text());
        buffer.put_slice(bookmaker.as_bytes());
        buffer.put(b"\",\"market\":\"");
        buffer.put_slice(record.market.key().as_bytes());
        match self.format {
            OddsFormat::American => buffer.put(b"\",\"format\":\"american\",\"last_update\":\""),
            OddsFormat::Decimal => buffer.put(b"\",\"format\":\"decimal\",\"last_update\":\""),
            OddsFormat::Fractional => buffer.put(b"\",\"format\":\"fractional\",\"last_update\":\""),
        }
        buffer.put(&self.updated.1);
        buffer.put(b"\",\"outcomes\":[");
        for (at, outcome) in record.outcomes.iter().enumerate() {
            if at > 0 {
                buffer.put(b",");
            }
            write_outcome(outcome, self.format, buffer);
        }
        buffer.put(b"]");
        if self.with_event {
            buffer.put_slice(&self.tail);
        }
        buffer.put(b"}");
    }
}

#[inline]
fn write_outcome(outcome: &Outcome, format: OddsFormat, buffer: &mut FixedBuffer<'_>) {
    buffer.put(b"{\"name\":\"");
    put_text(&outcome.name, buffer);
    if let Some(description) = outcome.name.description() {
        buffer.put(b"\",\"description\":\"");
        put_text(description, buffer);
    }
    buffer.put(b"\",\"price\":");
    outcome.price.put_json(format, buffer);
    match outcome.point {
        Some(point) => {
            buffer.put(b",\"point\":");
            point.put(buffer);
            buffer.put(b"}");
        }
        None => buffer.put(b",\"point\":null}"),
    }
}

/// `{"name":"…","price":…`, left open for what may follow.
pub(super) fn name_and_price(outcome: &Outcome, format: OddsFormat, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"name\":");
    json::string(&outcome.name, out);
    if let Some(description) = outcome.name.description() {
        out.extend_from_slice(b",\"description\":");
        json::string(description, out);
    }
    out.extend_from_slice(b",\"price\":");
    outcome.price.write_json(format, out);
}
