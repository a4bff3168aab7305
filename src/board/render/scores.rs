//! Scores with their periods.

use crate::board::body::Body;
use crate::board::index::StatusFilter;
use crate::board::node::EventNode;
use crate::board::query::ScoresQuery;
use crate::board::select::{self, Scope};
use crate::board::snapshot::SportBoard;
use crate::model::{Contest, Event, EventStatus, Period, Score};

use super::json;

pub(crate) fn scores(board: &SportBoard, sport_key: &str, query: &ScoresQuery) -> Body {
    let status = query.status.map_or(StatusFilter::Any, |status| StatusFilter::Is(status.event_status()));
    let scope = Scope::new(status.into(), &query.scope, query.after.as_ref());
    let accept = |node: &EventNode| node.event().status != EventStatus::Cancelled;
    let (page, next) = select::events(board.current(), &scope, query.limit.get(), accept);
    super::body(|out| {
        json::array(page, out, |node, out| {
            write_score(node.event(), node.score().map(|score| &**score), sport_key, out);
        });
        next
    })
}

/// An event with its score.
pub(crate) fn write_score(event: &Event, score: Option<&Score>, sport_key: &str, out: &mut Vec<u8>) {
    // Without a score, two sides have 0 points each until the start; after it their points are unknown.
    let is_unplayed = event.status == EventStatus::Scheduled && matches!(event.contest, Contest::Sides { .. });
    let unplayed = is_unplayed.then_some((0, 0));
    let points = score.map_or(unplayed, |score| score.points);
    let periods: &[Period] = score.map_or(&[], |score| &score.periods);
    let updated = score.map_or(event.changed, |score| score.updated);

    out.extend_from_slice(b"{\"event_id\":");
    json::string(event.id.as_str(), out);
    out.extend_from_slice(b",\"sport_key\":");
    json::string(sport_key, out);
    out.extend_from_slice(b",\"status\":");
    json::string(event.status.key(), out);
    out.extend_from_slice(b",\"home_team\":");
    json::optional_string(event.home().map(|name| &**name), out);
    out.extend_from_slice(b",\"away_team\":");
    json::optional_string(event.away().map(|name| &**name), out);
    out.extend_from_slice(b",\"home_score\":");
    json::optional_integer(points.map(|(home, _)| home), out);
    out.extend_from_slice(b",\"away_score\":");
    json::optional_integer(points.map(|(_, away)| away), out);
    out.extend_from_slice(b",\"periods\":");
    json::array(periods, out, |period, out| write_period(*period, out));
    out.extend_from_slice(b",\"updated_at\":\"");
    updated.write(out);
    out.push(b'"');
    if let Some(winner) = score.and_then(|score| score.winner.as_ref()) {
        out.extend_from_slice(b",\"winner\":");
        json::string(winner, out);
    }
    out.push(b'}');
}

fn write_period(period: Period, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"number\":");
    json::integer(period.number, out);
    out.extend_from_slice(b",\"home_score\":");
    json::integer(period.home, out);
    out.extend_from_slice(b",\"away_score\":");
    json::integer(period.away, out);
    out.push(b'}');
}
