//! The history of events that are in two logs: in an imported one, and in the world's own after it.
//!
//! What comes out is what one log of both would say. The own log begins with all that there is at its first publication, so
//! what was imported and is not in it ends there, and what is in both goes on.
//! The exception is an event that had begun or was cancelled by the older log and is scheduled again by the newer one: its closing
//! prices are those of the newer log alone, where that has any.

use std::collections::BTreeMap;

use crate::model::{EventId, EventLines, Line, LinePoint, PricedAt, Start, StartSource, Timestamp};

/// The history of one event, of which a part is older than the other. `since` is the first publication of the newer log.
pub(super) fn merge_lines(
    older: Option<EventLines>,
    newer: Option<EventLines>,
    since: Option<Timestamp>,
) -> Option<EventLines> {
    match (older, newer) {
        (Some(older), Some(newer)) => Some(merge(older, newer, since)),
        (Some(older), None) => Some(end_all(older, since)),
        (None, newer) => newer,
    }
}

/// The same for several events, in the order of their start.
pub(super) fn merge_ends(older: Vec<EventLines>, newer: Vec<EventLines>, since: Option<Timestamp>) -> Vec<EventLines> {
    let by_id = |events: Vec<EventLines>| events.into_iter().map(|event| (event.event.id.clone(), event)).collect();
    let (mut older, newer): (BTreeMap<EventId, EventLines>, BTreeMap<EventId, EventLines>) =
        (by_id(older), by_id(newer));
    let mut merged: Vec<EventLines> =
        newer.into_iter().filter_map(|(id, newer)| merge_lines(older.remove(&id), Some(newer), since)).collect();
    merged.extend(older.into_values().filter_map(|older| merge_lines(Some(older), None, since)));
    merged.sort_by(|one, other| (one.event.commence, &one.event.id).cmp(&(other.event.commence, &other.event.id)));
    merged
}

/// An event that the newer log has never had.
fn end_all(older: EventLines, since: Option<Timestamp>) -> EventLines {
    let start = since.map_or(older.start, |since| older.start_by(since));
    let lines = older.lines.into_iter().map(|line| end(line, start == Start::Ahead, since)).collect();
    EventLines { start, lines, ..older }
}

fn merge(older: EventLines, newer: EventLines, since: Option<Timestamp>) -> EventLines {
    let start_before = older.start_by(newer.since);
    let is_ahead = match since {
        // It was gone in between.
        Some(since) if since < newer.since => older.start_by(since) == Start::Ahead,
        _ => newer.source != StartSource::Begun,
    };
    let border = Border { since, was_ahead: start_before == Start::Ahead, is_ahead, source: newer.source };
    let had_begun = newer.source == StartSource::Begun && start_before.has_begun();
    let start = if had_begun { start_before } else { newer.start };
    let mut older_lines = older.lines;
    let mut lines: Vec<Line> = Vec::with_capacity(older_lines.len());
    for new in newer.lines {
        let is_same = |old: &Line| old.bookmaker == new.bookmaker && old.market == new.market;
        lines.push(match older_lines.iter().position(is_same) {
            Some(at) => merge_line(older_lines.swap_remove(at), new, border),
            None => new,
        });
    }
    lines.extend(older_lines.into_iter().map(|line| {
        let ended = end(line, is_ahead, since);
        let closing = ended.closing.filter(|_| border.source != StartSource::Cancelled);
        Line { closing, ..ended }
    }));
    lines.sort_by(|one, other| {
        one.bookmaker.cmp(&other.bookmaker).then_with(|| one.market.cmp_in_records(other.market))
    });
    EventLines { start, lines, since: older.since, ..newer }
}

/// What is known of an event where the newer log begins.
#[derive(Clone, Copy)]
struct Border {
    /// `None` if the newer log has no prices yet.
    since: Option<Timestamp>,
    /// Whether the event was expected to begin, by what the older log has of it, when the newer one first had it.
    was_ahead: bool,
    /// The same where the newer log begins.
    is_ahead: bool,
    /// How the newer log knows about its start.
    source: StartSource,
}

/// A line that the newer log does not begin with.
fn end(mut line: Line, is_ahead: bool, since: Option<Timestamp>) -> Line {
    let Some(since) = since else { return line };
    if line.points.last().is_some_and(|last| last.outcomes.is_some()) {
        line.points.push(LinePoint { at: since, outcomes: None });
    }
    line.is_closed |= is_ahead;
    line
}

fn merge_line(older: Line, newer: Line, border: Border) -> Line {
    let is_there_at_once = border.since.is_some_and(|since| newer.opening.at <= since);
    let mut older = if is_there_at_once { older } else { end(older, border.is_ahead, border.since) };
    // The newer log begins with what there was, changed or not.
    let is_repeated = |closing: &PricedAt| {
        let was_open = border.was_ahead && is_there_at_once && !older.is_closed;
        was_open && newer.closing.as_ref() == Some(&newer.opening) && closing.outcomes == newer.opening.outcomes
    };
    let (closing, is_closed) = if border.source == StartSource::Cancelled {
        (None, newer.is_closed)
    } else if older.closing.as_ref().is_some_and(is_repeated) {
        (older.closing, newer.is_closed)
    } else if newer.closing.is_some() || (border.is_ahead && is_there_at_once) {
        (newer.closing, newer.is_closed)
    } else {
        (older.closing, older.is_closed)
    };
    older.points.extend(newer.points);
    older.points.dedup_by(|next, last| next.outcomes == last.outcomes);
    Line { closing, is_closed, ..older }
}
