//! The history of events that are in two logs: in an imported one, and in the world's own after it.

use crate::model::{EventLines, Line};

/// The history of one event, of which a part is older than the other.
pub(super) fn merge_lines(older: Option<EventLines>, newer: Option<EventLines>) -> Option<EventLines> {
    match (older, newer) {
        (Some(older), Some(newer)) => Some(merge(older, newer)),
        (older, newer) => older.or(newer),
    }
}

/// The same for several events, in the order of their start.
pub(super) fn merge_ends(older: Vec<EventLines>, newer: Vec<EventLines>) -> Vec<EventLines> {
    if older.is_empty() || newer.is_empty() {
        return if older.is_empty() { newer } else { older };
    }
    let mut merged = newer;
    for old in older {
        match merged.iter().position(|event| event.event.id == old.event.id) {
            Some(at) => {
                let new = merged.swap_remove(at);
                merged.push(merge(old, new));
            }
            None => merged.push(old),
        }
    }
    merged.sort_by(|one, other| (one.event.commence, &one.event.id).cmp(&(other.event.commence, &other.event.id)));
    merged
}

fn merge(older: EventLines, newer: EventLines) -> EventLines {
    let EventLines { event, start, lines } = newer;
    let mut older = older.lines;
    let mut merged: Vec<Line> = lines
        .into_iter()
        .map(|new| {
            let is_same = |old: &Line| old.bookmaker == new.bookmaker && old.market == new.market;
            match older.iter().position(is_same) {
                Some(at) => merge_line(older.swap_remove(at), new),
                None => new,
            }
        })
        .collect();
    merged.append(&mut older);
    merged.sort_by(|one, other| {
        one.bookmaker.cmp(&other.bookmaker).then_with(|| one.market.cmp_in_records(other.market))
    });
    EventLines { event, start, lines: merged }
}

fn merge_line(older: Line, newer: Line) -> Line {
    let mut points = older.points;
    points.extend(newer.points);
    // The own log begins with what there was, changed or not.
    points.dedup_by(|next, last| next.outcomes == last.outcomes);
    let (closing, is_closed) = match newer.closing {
        None => (older.closing, older.is_closed),
        closing => (closing, newer.is_closed),
    };
    Line { opening: older.opening, closing, is_closed, points, ..newer }
}
