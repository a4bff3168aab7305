//! What is on now and what comes next, across sports.

use std::ops::ControlFlow;
use std::sync::Arc;

use super::query::{Scoped, UpcomingQuery};
use crate::board::body::Bodies;
use crate::board::index::Filter;
use crate::board::node::EventNode;
use crate::board::select::{self, Scope};
use crate::board::snapshot::{Published, SportBoard, WorldBoard};
use crate::model::{Catalogue, EventStatus, Sport, Timestamp, V4Names};

/// How many events that have not begun are listed.
const NEXT_MAX: usize = 8;
/// How many of each sport that have: far more than are ever on at once.
const STARTED_MAX: usize = 500;

/// What a world may keep rendered of this.
const BYTES_MAX: u64 = 8 << 20;

/// The answers across sports. They hold as long as no sport publishes: a world that succeeds another with the same
/// publications takes them over.
#[derive(Clone, Debug)]
pub(crate) struct Upcoming(pub Arc<Bodies<UpcomingQuery>>);

impl Upcoming {
    pub(crate) fn new() -> Self {
        Upcoming(Arc::new(Bodies::new(BYTES_MAX)))
    }

    /// Those of the world before, if the same prices are published now.
    pub(crate) fn succeeding(before: &WorldBoard, sports: &[SportBoard]) -> Self {
        let same = |(one, other): (&SportBoard, &SportBoard)| Arc::ptr_eq(one.published(), other.published());
        let all_same = before.sports().len() == sports.len() && before.sports().iter().zip(sports).all(same);
        if all_same { before.upcoming().clone() } else { Upcoming::new() }
    }
}

/// An event of the list, and where it stands.
#[derive(Debug)]
pub(crate) struct UpcomingEvent<'a> {
    pub sport: &'a Sport,
    pub names: &'a V4Names,
    pub published: &'a Published,
    pub node: &'a EventNode,
    has_begun: bool,
}

/// Every open event that has begun and the next few that have not, in order. "Now" is each sport's publication, so
/// that the answer changes with the prices and not in between.
pub(crate) fn upcoming<'a>(
    world: &'a WorldBoard,
    catalogue: &'a Catalogue,
    query: &UpcomingQuery,
) -> Vec<UpcomingEvent<'a>> {
    let mut found = Vec::new();
    for (id, sport) in catalogue.sports().filter(|(id, _)| query.sports.contains(*id)) {
        let Some(names) = &sport.v4 else { continue };
        let published = &**world.sport(id).published();
        let event = |(node, has_begun)| UpcomingEvent { sport, names, published, node, has_begun };
        found.extend(of_sport(published, &query.scope).into_iter().map(event));
    }
    found.sort_unstable_by_key(|found| found.node.key());
    let mut next = 0..NEXT_MAX;
    found.retain(|found| found.has_begun || next.next().is_some());
    found
}

/// The candidates of one sport, and whether each has begun.
fn of_sport<'a>(published: &'a Published, scope: &Scoped) -> Vec<(&'a EventNode, bool)> {
    let now = Timestamp::from_unix_ms(published.at_ms());
    let (mut started, mut next) = (Vec::new(), Vec::new());
    for status in [EventStatus::Live, EventStatus::Scheduled] {
        let scope = Scope {
            commence_from: scope.commence_from,
            commence_to: scope.commence_to,
            ..Scope::new(Filter::Status(status), scope.events.as_ref(), None)
        };
        select::visit_events(published.index(), &scope, |node| {
            let has_begun = status == EventStatus::Live || node.event().commence <= now;
            let (list, max) = if has_begun { (&mut started, STARTED_MAX) } else { (&mut next, NEXT_MAX) };
            if list.len() < max {
                list.push((&**node, has_begun));
                return ControlFlow::Continue(());
            }
            // Those that have begun come first: a full list of the others has nothing behind it.
            if has_begun { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
    }
    started.append(&mut next);
    started
}
