//! The history of events that are in two logs: in an imported one, and in the world's own after it.
//!
//! What comes out is what one log of both would say. The own log begins with all that there is at its first publication, so
//! what was imported and is not in it ends there, and what is in both goes on.

use std::collections::BTreeMap;

use crate::model::{EventId, EventLines, Line, LinePoint, PricedAt, Start, Timestamp};

/// The history of one event, of which a part is older than the other. `since` is the first publication of the newer log.
pub(super) fn merge_lines(
    older: Option<EventLines>,
    newer: Option<EventLines>,
    since: Option<Timestamp>,
) -> Option<EventLines> {
    match (older, since) {
        (Some(older), Some(since)) => Some(merge(older, newer, since)),
        (older, _) => older.or(newer),
    }
}

/// The same for several events, in the order of their start.
pub(super) fn merge_ends(older: Vec<EventLines>, newer: Vec<EventLines>, since: Option<Timestamp>) -> Vec<EventLines> {
    let by_id = |events: Vec<EventLines>| events.into_iter().map(|event| (event.event.id.clone(), event)).collect();
    let (mut older, newer): (BTreeMap<EventId, EventLines>, BTreeMap<EventId, EventLines>) =
        (by_id(older), by_id(newer));
    let mut merged: Vec<EventLines> = newer
        .into_iter()
        .filter_map(|(id, newer)| merge_lines(older.remove(&id), Some(newer), since))
        .collect();
    merged.extend(older.into_values().filter_map(|older| merge_lines(Some(older), None, since)));
    merged.sort_by(|one, other| (one.event.commence, &one.event.id).cmp(&(other.event.commence, &other.event.id)));
    merged
}

/// What is known of an event where the newer log begins.
#[derive(Clone, Copy)]
struct Border {
    since: Timestamp,
    /// Whether the older log still expected it to begin.
    was_ahead: bool,
    /// What it is in the newer log.
    then: Then,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Then {
    /// It had begun, or is not there.
    Over,
    /// It was expected to begin, and may have begun since.
    Ahead,
    /// It is cancelled by now.
    Cancelled,
}

fn merge(older: EventLines, newer: Option<EventLines>, since: Timestamp) -> EventLines {
    let mut border = Border { since, was_ahead: older.start_by(since) == Start::Ahead, then: Then::Over };
    let Some(newer) = newer else {
        let start = older.start_by(since);
        let lines = older.lines.into_iter().map(|line| end(line, border.was_ahead, since)).collect();
        return EventLines { start, lines, ..older };
    };
    let start = match (older.start_by(newer.since), newer.start) {
        // It had begun when the newer log first had it.
        (Start::Live(_) | Start::Scheduled(_), Start::Live(at) | Start::Scheduled(at)) if at <= newer.since => {
            older.start_by(newer.since)
        }
        (_, start) => start,
    };
    border.then = match newer.start {
        Start::Cancelled => Then::Cancelled,
        Start::Live(at) | Start::Scheduled(at) if at <= newer.since => Then::Over,
        _ => Then::Ahead,
    };
    let mut older = older.lines;
    let mut lines: Vec<Line> = Vec::with_capacity(older.len());
    for new in newer.lines {
        let is_same = |old: &Line| old.bookmaker == new.bookmaker && old.market == new.market;
        lines.push(match older.iter().position(is_same) {
            Some(at) => merge_line(older.swap_remove(at), new, border),
            None => new,
        });
    }
    lines.extend(older.into_iter().map(|line| {
        let ended = end(line, border.then == Then::Ahead, since);
        let closing = ended.closing.filter(|_| border.then != Then::Cancelled);
        Line { closing, ..ended }
    }));
    lines.sort_by(|one, other| {
        one.bookmaker.cmp(&other.bookmaker).then_with(|| one.market.cmp_in_records(other.market))
    });
    EventLines { event: newer.event, since: newer.since, start, lines }
}

/// A line that the newer log does not have.
fn end(mut line: Line, is_ahead: bool, since: Timestamp) -> Line {
    if line.points.last().is_some_and(|last| last.outcomes.is_some()) {
        line.points.push(LinePoint { at: since, outcomes: None });
    }
    line.is_closed |= is_ahead;
    line
}

fn merge_line(older: Line, newer: Line, border: Border) -> Line {
    let is_there_at_once = newer.opening.at <= border.since;
    let mut older = if is_there_at_once { older } else { end(older, border.then == Then::Ahead, border.since) };
    // The newer log begins with what there was, changed or not.
    let has_closed_at_opening = newer.closing.as_ref() == Some(&newer.opening);
    let is_repeated = |closing: &PricedAt| closing.outcomes == newer.opening.outcomes;
    let is_repeated = is_there_at_once && has_closed_at_opening && older.closing.as_ref().is_some_and(is_repeated);
    let (closing, is_closed) = match border.then {
        Then::Cancelled => (None, newer.is_closed),
        Then::Over => (older.closing, older.is_closed),
        Then::Ahead if border.was_ahead && is_repeated => (older.closing, newer.is_closed),
        Then::Ahead => (newer.closing.or(older.closing), newer.is_closed),
    };
    older.points.extend(newer.points);
    older.points.dedup_by(|next, last| next.outcomes == last.outcomes);
    Line { closing, is_closed, ..older }
}
