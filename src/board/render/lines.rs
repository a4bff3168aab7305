//! The lines of an event.

use crate::board::body::Body;
use crate::board::lines::{LinesPage, LinesQuery};
use crate::board::query::Cursor;
use crate::model::{EventLines, OddsFormat, Outcome, PricedAt, Timestamp};

use super::json;
use super::odds::name_and_price;

pub(crate) fn lines(
    lines: &EventLines,
    page: &LinesPage<'_>,
    sport_key: &str,
    query: &LinesQuery,
    now: Timestamp,
) -> Body {
    let LinesQuery { format, outcomes: wanted, .. } = query;
    let start = lines.start_by(now);
    let mut out = Vec::with_capacity(256 + 160 * page.point_count());
    out.extend_from_slice(b"{\"event_id\":");
    json::string(lines.event.id.as_str(), &mut out);
    out.extend_from_slice(b",\"sport_key\":");
    json::string(sport_key, &mut out);
    out.extend_from_slice(b",\"commence_time\":\"");
    lines.event.commence.write(&mut out);
    out.extend_from_slice(b"\",\"lines\":");
    json::array(&page.lines, &mut out, |(line, points), out| {
        out.extend_from_slice(b"{\"bookmaker\":");
        json::string(&line.bookmaker, out);
        out.extend_from_slice(b",\"market\":");
        json::string(line.market.key(), out);
        out.extend_from_slice(b",\"format\":");
        json::string(format.key(), out);
        let PricedAt { at, outcomes } = &line.opening;
        out.extend_from_slice(b",\"opening\":");
        point(*at, None, &wanted.pick(outcomes), *format, out);
        out.extend_from_slice(b",\"closing\":");
        match line.close(start) {
            Some((reason, Some(PricedAt { at, outcomes }))) => {
                point(*at, Some(reason.key()), &wanted.pick(outcomes), *format, out);
            }
            _ => out.extend_from_slice(b"null"),
        }
        out.extend_from_slice(b",\"points\":");
        json::array(points, out, |shown, out| point(shown.at, None, &shown.outcomes, *format, out));
        out.push(b'}');
    });
    out.push(b'}');
    // The next page begins after a second, whatever the event.
    let next = page.next.map(|commence| Cursor { commence, event: lines.event.id.clone(), record: None });
    Body::new(out, next)
}

/// `{"at":"…","outcomes":[…]}`, with a reason if there is one.
pub(super) fn point(at: Timestamp, reason: Option<&str>, outcomes: &[&Outcome], format: OddsFormat, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"at\":\"");
    at.write(out);
    out.push(b'"');
    if let Some(reason) = reason {
        out.extend_from_slice(b",\"reason\":");
        json::string(reason, out);
    }
    out.extend_from_slice(b",\"outcomes\":");
    json::array(outcomes, out, |outcome, out| {
        name_and_price(outcome, format, out);
        out.extend_from_slice(b",\"point\":");
        match outcome.point {
            Some(point) => point.write(out),
            None => out.extend_from_slice(b"null"),
        }
        out.push(b'}');
    });
    out.push(b'}');
}
