//! Selects the events that are live now and those that start next, across sports.

use std::ops::ControlFlow;

use crate::board::index::StatusFilter;
use crate::board::node::EventNode;
use crate::board::select::{self, Scope};
use crate::board::snapshot::{Published, WorldBoard};
use crate::board::v4::{Scoped, UpcomingQuery};
use crate::model::{Catalogue, EventStatus, Sport, Timestamp};

/// How many events that have not begun are listed.
const NEXT_MAX: usize = 8;
/// How many events that have begun are listed for each sport: far more than are ever live at once.
const STARTED_MAX: usize = 500;

/// An event of the list.
#[derive(Debug)]
pub(super) struct UpcomingEvent<'a> {
    pub sport: &'a Sport,
    pub published: &'a Published,
    pub node: &'a EventNode,
    has_begun: bool,
}

/// Every open event that has begun and the next few that have not, in order. "Now" is the time of each sport's
/// publication, so that the answer changes only when prices do.
pub(super) fn upcoming_events<'a>(
    world: &'a WorldBoard,
    catalogue: &'a Catalogue,
    query: &UpcomingQuery,
) -> Vec<UpcomingEvent<'a>> {
    let mut found = Vec::new();
    for (id, sport) in catalogue.sports().filter(|(id, _)| query.sports.contains(*id)) {
        if sport.v4.is_none() {
            continue;
        }
        let published = &**world.sport(id).published();
        let event = |(node, has_begun)| UpcomingEvent { sport, published, node, has_begun };
        found.extend(events_of_sport(published, &query.scope).into_iter().map(event));
    }
    found.sort_unstable_by_key(|found| found.node.key());
    let mut next = 0..NEXT_MAX;
    found.retain(|found| found.has_begun || next.next().is_some());
    found
}

/// The candidates of one sport, and whether each has begun.
fn events_of_sport<'a>(published: &'a Published, scope: &Scoped) -> Vec<(&'a EventNode, bool)> {
    let now = Timestamp::from_unix_ms(published.at_ms());
    let (mut started, mut next) = (Vec::new(), Vec::new());
    for status in [EventStatus::Live, EventStatus::Scheduled] {
        let scope = Scope::new(StatusFilter::Is(status).into(), &scope.events, None);
        select::visit_events(published.index(), &scope, |node| {
            let has_begun = status == EventStatus::Live || node.event().commence <= now;
            let (list, max) = if has_begun { (&mut started, STARTED_MAX) } else { (&mut next, NEXT_MAX) };
            if list.len() < max {
                list.push((&**node, has_begun));
                return ControlFlow::Continue(());
            }
            // Events that have begun sort first, so once the list of the others is full nothing more is needed.
            if has_begun { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
    }
    started.append(&mut next);
    started
}
