//! The opening and closing prices of events, a row for each bookmaker and market.

use crate::board::lines::OutcomeFilter;
use crate::model::{ClosingReason, EventLines, Line, OddsFormat, PricedAt, Start, Timestamp};

use super::json;
use super::lines::point;

/// About what a row takes.
const ROW_BYTES: usize = 400;

pub(crate) fn closing(events: &[EventLines], sport_key: &str, format: OddsFormat, now: Timestamp) -> Vec<u8> {
    let rows = events.iter().flat_map(|event| {
        let start = event.start_by(now);
        event.lines.iter().map(move |line| (event, start, line))
    });
    let count: usize = events.iter().map(|event| event.lines.len()).sum();
    let mut out = Vec::with_capacity(ROW_BYTES * count + 2);
    json::array(rows, &mut out, |row, out| write_row(row, sport_key, format, out));
    out
}

fn write_row(
    (lines, start, line): (&EventLines, Start, &Line),
    sport_key: &str,
    format: OddsFormat,
    out: &mut Vec<u8>,
) {
    let starts = start.time(&lines.event);
    out.extend_from_slice(b"{\"event_id\":");
    json::string(lines.event.id.as_str(), out);
    out.extend_from_slice(b",\"sport_key\":");
    json::string(sport_key, out);
    out.extend_from_slice(b",\"commence_time\":\"");
    lines.event.commence.write(out);
    out.extend_from_slice(b"\",\"bookmaker\":");
    json::string(&line.bookmaker, out);
    out.extend_from_slice(b",\"market\":");
    json::string(line.market.key(), out);
    out.extend_from_slice(b",\"format\":");
    json::string(format.key(), out);
    write_priced("opening", Some(&line.opening), starts, format, out);
    let close = line.close(start);
    write_priced("closing", close.and_then(|(_, closing)| closing), starts, format, out);
    out.extend_from_slice(b",\"closing_reason\":");
    json::optional_string(close.map(|(reason, _)| ClosingReason::key(reason)), out);
    out.push(b'}');
}

/// `,"opening":{…},"opening_age_s":…`: a price, and how long before the start it was published.
fn write_priced(
    name: &str,
    priced: Option<&PricedAt>,
    starts: Option<Timestamp>,
    format: OddsFormat,
    out: &mut Vec<u8>,
) {
    out.push(b',');
    json::string(name, out);
    out.push(b':');
    match priced {
        Some(PricedAt { at, outcomes }) => {
            point(*at, None, &OutcomeFilter::default().pick(outcomes), format, out);
        }
        None => out.extend_from_slice(b"null"),
    }
    out.extend_from_slice(b",\"");
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"_age_s\":");
    match priced.zip(starts) {
        Some((priced, starts)) => json::integer(i64::from(starts.unix()) - i64::from(priced.at.unix()), out),
        None => out.extend_from_slice(b"null"),
    }
}
