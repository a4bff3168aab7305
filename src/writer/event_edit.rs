//! One event that a batch touches: its state before and after, and the changes to the file and the index that follow.

use std::sync::Arc;

use super::log::is_alike;
use crate::board::{Draft, Edit, EventNode, Index};
use crate::model::{BookId, Bookmakers, Event, EventId, EventOwner, Market, SportId, World};
use crate::store::Change;

/// The records of an event that a batch put or closed.
pub(super) type Touched = Vec<(BookId, Market)>;

/// The edit of one event.
#[derive(Debug)]
pub(super) struct EventEdit {
    pub sport: SportId,
    /// `None` once the event is removed.
    pub draft: Option<Draft>,
    pub before: Option<Arc<EventNode>>,
    /// Whether the event was removed within the batch, and perhaps added again.
    pub removed: bool,
    /// The records put or closed, so that only these are written.
    pub touched: Touched,
}

/// Identifies a record of a world.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RecordRef {
    pub sport: SportId,
    pub event: EventId,
    pub bookmaker: BookId,
    pub market: Market,
}

impl EventEdit {
    /// Whether the batch only repeated what was known.
    pub(super) fn is_unchanged(&self) -> bool {
        match (&self.before, &self.draft) {
            (Some(before), Some(draft)) => {
                let same_score = match (before.score(), draft.score()) {
                    (Some(was), Some(is)) => Arc::ptr_eq(was, is),
                    (was, is) => was.is_none() && is.is_none(),
                };
                !self.removed && self.touched.is_empty() && same_score && Arc::ptr_eq(before.event(), draft.event())
            }
            _ => false,
        }
    }

    pub(super) fn touched_records(&self, event: &EventId) -> impl Iterator<Item = RecordRef> {
        let (sport, event) = (self.sport, event.clone());
        self.touched.iter().map(move |(bookmaker, market)| RecordRef {
            sport,
            event: event.clone(),
            bookmaker: *bookmaker,
            market: *market,
        })
    }

    /// Whether the event's time or names changed while it has prices: its records are then listed elsewhere.
    pub(super) fn moves_prices(&self) -> bool {
        match (&self.before, &self.draft) {
            (Some(before), Some(draft)) => {
                let (was, is) = (before.event(), draft.event());
                !before.records().is_empty() && (was.commence != is.commence || was.contest != is.contest)
            }
            _ => false,
        }
    }

    /// Whether the event changes for clients while readers see prices of it.
    pub(super) fn relists(&self, published: &Index) -> bool {
        let (Some(before), Some(draft)) = (&self.before, &self.draft) else { return false };
        let is_priced = |node: &Arc<EventNode>| !node.records().is_empty();
        !is_alike(before.event(), draft.event()) && published.get(draft.event().id.as_str()).is_some_and(is_priced)
    }

    /// The edit of the published index, if the event's competition changed.
    pub(super) fn move_in(&self, published: &Index, names: &Bookmakers) -> Option<Edit> {
        let (was, is) = (self.before.as_ref()?.event(), self.draft.as_ref()?.event());
        if was.competition_key == is.competition_key {
            return None;
        }
        let published = published.get(is.id.as_str())?;
        // Its time and names change with the next publication.
        let (competition, competition_key) = (Arc::clone(&is.competition), Arc::clone(&is.competition_key));
        let mut draft = Draft::from(&**published);
        draft.set_event(Arc::new(Event { competition, competition_key, ..Event::clone(published.event()) }));
        Some(Edit { id: is.id.clone(), node: Some(Arc::new(draft.finish(names))) })
    }

    /// The changes of the file, with the event's owner and whether it has become that only now.
    pub(super) fn changes(
        &self,
        world: World,
        id: &EventId,
        (owner, is_new_owner): (EventOwner, bool),
        changes: &mut Vec<Change>,
    ) {
        let sport = self.sport;
        let before = self.before.as_ref().filter(|_| !self.removed);
        if self.removed && self.before.is_some() {
            changes.push(Change::RemoveEvent { world, sport, event: id.clone() });
        }
        let Some(draft) = &self.draft else { return };
        if is_new_owner || before.is_none_or(|before| before.event() != draft.event()) {
            changes.push(Change::PutEvent { world, sport, event: Arc::clone(draft.event()), owner });
        }
        if let Some(score) = draft.score()
            && before.and_then(|before| before.score()) != Some(score)
        {
            changes.push(Change::PutScore { world, sport, event: id.clone(), score: Arc::clone(score) });
        }
        let mut touched = self.touched.clone();
        touched.sort_unstable();
        touched.dedup();
        for (book, market) in touched {
            let event = id.clone();
            if let Some(record) = draft.record(book, market) {
                changes.push(Change::PutOdds { world, sport, event, record: Arc::clone(record) });
            } else if let Some(closed) = draft.closed(book, market) {
                changes.push(Change::CloseOdds { world, sport, event, closed });
            }
        }
    }

    /// The edit of the index; none if the event was added and removed within the batch.
    pub(super) fn index_edit(self, id: EventId, names: &Bookmakers) -> Option<Edit> {
        match (self.draft, self.before) {
            (None, None) => None,
            (draft, _) => Some(Edit { id, node: draft.map(|draft| Arc::new(draft.finish(names))) }),
        }
    }
}
