//! The opening and closing prices of events, a row for each bookmaker and market.

use crate::board::derived::{RecordFair, record_fair};
use crate::board::lines::OutcomeFilter;
use crate::model::derived::{FairMethod, Millionths};
use crate::model::{ClosingReason, EventLines, Line, MarketFamilies, OddsFormat, PricedAt, Start, Timestamp};

use super::derived::{fair_outcome, write_optional};
use super::json;
use super::lines::point;

/// About what a row takes.
const ROW_BYTES: usize = 400;

/// What is shown of the rows besides their prices.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClosingStyle<'a> {
    pub sport_key: &'a str,
    pub format: OddsFormat,
    /// The method of the closing line's fair prices, if they are requested, and what is known of markets.
    pub fair: Option<(FairMethod, &'a MarketFamilies)>,
}

pub(crate) fn closing(events: &[EventLines], style: ClosingStyle<'_>, now: Timestamp) -> Vec<u8> {
    let rows = events.iter().flat_map(|event| {
        let start = event.start_by(now);
        event.lines.iter().map(move |line| (event, start, line))
    });
    let count: usize = events.iter().map(|event| event.lines.len()).sum();
    let mut out = Vec::with_capacity(ROW_BYTES * count + 2);
    json::array(rows, &mut out, |row, out| write_row(row, style, out));
    out
}

fn write_row((lines, start, line): (&EventLines, Start, &Line), style: ClosingStyle<'_>, out: &mut Vec<u8>) {
    let ClosingStyle { sport_key, format, fair } = style;
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
    if let Some((method, families)) = fair {
        let closing = close.and_then(|(_, closing)| closing);
        let found = closing.and_then(|priced| record_fair(families, line.market, &priced.outcomes, method));
        write_fair(found.as_deref(), method, line, format, out);
    }
    out.push(b'}');
}

/// `,"fair":[…]`, an item for each bet of the line; null without a closing price, or if nothing follows from it.
fn write_fair(
    found: Option<&[RecordFair<'_>]>,
    method: FairMethod,
    line: &Line,
    format: OddsFormat,
    out: &mut Vec<u8>,
) {
    out.extend_from_slice(b",\"fair\":");
    let Some(found) = found.filter(|found| !found.is_empty()) else {
        out.extend_from_slice(b"null");
        return;
    };
    json::array(found, out, |fair, out| {
        out.extend_from_slice(b"{\"method\":");
        json::string(method.key(), out);
        if fair.method != method {
            out.extend_from_slice(b",\"fallback\":{\"method\":");
            json::string(fair.method.key(), out);
            out.extend_from_slice(b",\"bookmakers\":[");
            json::string(&line.bookmaker, out);
            out.extend_from_slice(b"]}");
        }
        write_optional("overround", Some(Millionths::of(fair.margin.overround())), out);
        out.extend_from_slice(b",\"outcomes\":");
        json::array(fair.outcomes.iter().zip(&fair.probabilities), out, |(outcome, probability), out| {
            let name = (outcome.name.as_str(), outcome.name.description(), outcome.point);
            fair_outcome(name, *probability, format, out);
        });
        out.push(b'}');
    });
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
