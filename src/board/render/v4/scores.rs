//! Scores: one number for each side, as text, and null before the start.

use crate::board::body::Body;
use crate::board::index::StatusFilter;
use crate::board::node::EventNode;
use crate::board::render::{self, json};
use crate::board::v4::{CompetitionView, DateFormat, Scoped};
use crate::model::{EventStatus, Score, Timestamp};

use super::{Heading, open_event, page, sides, time, write_page};

/// The open events of a key, and those that ended at `ended_since` or later.
pub(crate) fn scores(
    competition: Option<&CompetitionView>,
    dates: DateFormat,
    scope: &Scoped,
    ended_since: Option<Timestamp>,
) -> Body {
    let Some(competition) = competition else { return Body::new(&b"[]"[..], None) };
    let status = if ended_since.is_some() { StatusFilter::Any } else { StatusFilter::Open };
    let accept = |node: &EventNode| match node.event().status {
        EventStatus::Scheduled | EventStatus::Live => true,
        EventStatus::Final => ended_since.is_some_and(|since| ended(node) >= since),
        EventStatus::Cancelled => false,
    };
    let page = page(&competition.index, status.into(), scope, accept);
    render::body(|out| write_page(page, out, |node, out| write_score(node, competition.into(), dates, out)))
}

/// When an event that is over ended, as well as it is known.
fn ended(node: &EventNode) -> Timestamp {
    node.score().map_or(node.event().changed, |score| score.updated)
}

fn write_score(node: &EventNode, heading: Heading<'_>, dates: DateFormat, out: &mut Vec<u8>) {
    let event = node.event();
    open_event(event, heading, dates, out);
    let is_over = event.status == EventStatus::Final;
    out.extend_from_slice(if is_over { b",\"completed\":true" } else { b",\"completed\":false" });
    sides(event, out);
    let begun: Option<&Score> = node.score().map(|score| &**score).filter(|_| event.status != EventStatus::Scheduled);
    out.extend_from_slice(b",\"scores\":");
    match (begun.and_then(|score| score.points), event.home(), event.away()) {
        (Some((ours, theirs)), Some(home), Some(away)) => {
            json::array([(home, ours), (away, theirs)], out, |(name, points), out| {
                out.extend_from_slice(b"{\"name\":");
                json::string(name, out);
                out.extend_from_slice(b",\"score\":\"");
                json::integer(points, out);
                out.extend_from_slice(b"\"}");
            });
        }
        _ => out.extend_from_slice(b"null"),
    }
    out.extend_from_slice(b",\"last_update\":");
    match begun {
        Some(score) => time(score.updated, dates, out),
        None => out.extend_from_slice(b"null"),
    }
    out.push(b'}');
}
