//! History as the page shows it: the prices of an event over time, and which moments of a sport there are.

use std::sync::Arc;

use serde::Serialize;
use serde_json::json;

use super::given::Given;
use super::past::failure;
use super::views::{ViewContext, ViewResult, document};
use crate::admin::Failure;
use crate::admin::execute::history;
use crate::admin::protocol::{HistoryAnswer, HistoryOrder, WorldName};
use crate::board::Body;
use crate::model::Timestamp;
use crate::store::Entries;

/// More points than a plot can show apart.
const POINTS_MAX: usize = 20_000;

#[derive(Debug, Serialize)]
struct EventHistory {
    #[serde(flatten)]
    history: HistoryAnswer,
    /// 1 if every change is there; else each line has its first and last changes, and every so many of those between.
    every_nth: usize,
}

/// The prices of an event in one of its markets.
pub(super) fn lines(given: Given<'_>, view: &ViewContext) -> ViewResult {
    let event = given.text("event").ok_or_else(|| Failure::bad_request("event takes the id of an event"))?;
    let order = HistoryOrder {
        world: WorldName::from(given.world()?),
        event: event.into_owned(),
        market: given.get("market").map(str::to_owned),
        bookmaker: None,
        odds_format: given.format()?.key().to_owned(),
    };
    let mut history = history::read(&order, &view.context)?;
    let every_nth = thin(&mut history, POINTS_MAX);
    Ok(document(&EventHistory { history, every_nth }))
}

/// Leaves out points of lines that have too many of them together.
fn thin(history: &mut HistoryAnswer, points_max: usize) -> usize {
    let points: usize = history.lines.iter().map(|line| line.points.len()).sum();
    let every_nth = points.div_ceil(points_max).max(1);
    for line in history.lines.iter_mut().filter(|_| every_nth > 1) {
        let last = line.points.len().saturating_sub(1);
        let mut at = 0..;
        line.points.retain(|_| at.next().is_some_and(|at| at % every_nth == 0 || at == last));
    }
    every_nth
}

/// Since when there is history of a sport, which publication is shown as of a time or now, and its neighbours.
pub(super) fn moments(given: Given<'_>, view: &ViewContext) -> Result<Arc<Body>, Failure> {
    let (world, sport, log) = (given.world()?, given.sport(&view.context)?, &view.context.history);
    let now = view.context.clock.now().timestamp();
    let unix = |time: Option<Timestamp>| time.map(Timestamp::unix);
    let since = log.sport_since(world, sport).map_err(|error| failure(&error))?;
    let Some(since) = since else { return Ok(document(&json!({ "since": null, "now": now.unix() }))) };
    let time = given.as_of()?.unwrap_or(now);
    let entry = log.entry_at(world, sport, Entries::Ticks, time).map_err(|error| failure(&error))?;
    Ok(document(&json!({
        "since": since.unix(),
        "now": now.unix(),
        "at": entry.at.unix(),
        "previous": unix(entry.previous),
        "next": unix(entry.next),
    })))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::protocol::{LineAnswer, PointAnswer};

    #[test]
    fn long_lines_keep_their_ends() {
        let point = |at: usize| PointAnswer { at: at.to_string(), outcomes: Vec::new() };
        let line = |points: usize| LineAnswer {
            bookmaker: "one".to_owned(),
            opening: point(0),
            closing: None,
            closing_reason: None,
            points: (0..points).map(point).collect(),
        };
        let text = String::new;
        let mut history = HistoryAnswer {
            event_id: text(),
            sport_key: text(),
            name: text(),
            competition: text(),
            commence_time: text(),
            status: text(),
            markets: Vec::new(),
            market: None,
            lines: vec![line(8), line(1), line(0)],
        };
        assert_eq!(thin(&mut history, 9), 1);
        assert_eq!(thin(&mut history, 3), 3);
        let kept: Vec<&str> = history.lines[0].points.iter().map(|point| &*point.at).collect();
        assert_eq!(kept, ["0", "3", "6", "7"]);
        assert_eq!((history.lines[1].points.len(), history.lines[2].points.len()), (1, 0));
    }
}
