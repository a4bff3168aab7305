//! Where the log of a world itself takes the place of what was imported.
//!
//! The log begins with all that there is. Lines that repeat what was imported are left out, as an import of them would
//! leave them out, so that who exports again gets the same lines.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use crate::model::{Event, EventId, HistoryChange, HistoryPrice, LoggedPrice, Score, Timestamp};
use crate::store::SportFold;

pub(super) struct Border {
    /// What was imported, as far as the log has not mentioned it.
    events: HashMap<EventId, KnownEvent>,
    stale: BTreeSet<Arc<str>>,
    stage: Stage,
}

struct KnownEvent {
    event: Option<Arc<Event>>,
    score: Option<Arc<Score>>,
    /// By the keys of bookmaker and market.
    prices: HashMap<(Arc<str>, &'static str), LoggedPrice>,
}

/// How far the first publication has been written.
enum Stage {
    /// There is none if the log has no prices yet.
    Before(Option<FirstPublication>),
    Within {
        since: Timestamp,
        /// Whether a line says that there was a publication.
        is_told: bool,
    },
    After,
}

struct FirstPublication {
    since: Timestamp,
    /// What it ends of what was imported.
    ends: Vec<HistoryChange>,
    /// Whether what was imported has a publication of the same second.
    is_told: bool,
}

impl Border {
    /// From what was imported to what the log has at its first publication, if it has one.
    pub(super) fn new(imported: &SportFold, own: Option<(Timestamp, &SportFold)>) -> Self {
        let known = |folded| {
            let prices = imported.records(folded);
            let prices = prices.map(|(book, market, price)| ((Arc::clone(book), market.key()), price.clone()));
            let event = Some(Arc::clone(&folded.event));
            (folded.event.id.clone(), KnownEvent { event, score: folded.score.clone(), prices: prices.collect() })
        };
        let first = own.map(|(since, own)| FirstPublication {
            since,
            ends: imported.ends(own),
            is_told: imported.last_tick().is_some_and(|last| last >= since),
        });
        Border {
            events: imported.events().map(known).collect(),
            stale: imported.stale().cloned().collect(),
            stage: Stage::Before(first),
        }
    }

    /// What has to be written for a change of the log: it may bring others, and be left out itself.
    pub(super) fn cross(&mut self, at: Timestamp, change: HistoryChange) -> Vec<(Timestamp, HistoryChange)> {
        let is_of_prices = is_price(&change);
        let mut lines = Vec::new();
        match &mut self.stage {
            Stage::Before(Some(first)) if is_of_prices && at >= first.since => {
                let (since, is_told) = (first.since, first.is_told || first.ends.iter().any(is_price));
                lines.extend(first.ends.drain(..).map(|change| (at, change)));
                self.stage = Stage::Within { since, is_told };
            }
            Stage::Before(Some(first)) => {
                if let HistoryChange::Removed(event) = &change {
                    first.ends.retain(|end| event_of(end) != Some(event));
                }
            }
            Stage::Within { since, .. } if !is_of_prices || at > *since => lines.extend(self.finish()),
            Stage::Before(None) | Stage::Within { .. } | Stage::After => {}
        }
        if matches!(self.stage, Stage::After) || !self.repeats(&change) {
            if let Stage::Within { is_told, .. } = &mut self.stage {
                *is_told |= is_of_prices;
            }
            lines.push((at, change));
        }
        lines
    }

    /// The line that says that there was a publication, if nothing else does.
    pub(super) fn finish(&mut self) -> Option<(Timestamp, HistoryChange)> {
        match std::mem::replace(&mut self.stage, Stage::After) {
            Stage::Within { since, is_told: false } => Some((since, HistoryChange::Tick)),
            _ => None,
        }
    }

    /// Whether a change says no more than what was imported last.
    fn repeats(&mut self, change: &HistoryChange) -> bool {
        match change {
            HistoryChange::Event(event) => {
                let known = self.events.get_mut(&event.id).and_then(|known| known.event.take());
                known.is_some_and(|known| Event { changed: event.changed, ..(*known).clone() } == **event)
            }
            HistoryChange::Score(event, score) => {
                let known = self.events.get_mut(event).and_then(|known| known.score.take());
                known.is_some_and(|known| known == *score)
            }
            HistoryChange::Removed(event) => {
                self.events.remove(event);
                false
            }
            HistoryChange::Price(HistoryPrice { event, bookmaker, market, price }) => {
                let key = (Arc::clone(bookmaker), market.key());
                let known = self.events.get_mut(event).and_then(|known| known.prices.remove(&key));
                known.is_some() && known == *price
            }
            HistoryChange::Source(bookmaker, is_stale) => self.stale.remove(bookmaker) && *is_stale,
            HistoryChange::Tick | HistoryChange::Observed(_) => false,
        }
    }
}

fn event_of(change: &HistoryChange) -> Option<&EventId> {
    match change {
        HistoryChange::Event(event) => Some(&event.id),
        HistoryChange::Removed(event) | HistoryChange::Score(event, _) => Some(event),
        HistoryChange::Price(price) => Some(&price.event),
        HistoryChange::Source(..) | HistoryChange::Tick | HistoryChange::Observed(_) => None,
    }
}

/// Whether a change is part of a publication of prices.
fn is_price(change: &HistoryChange) -> bool {
    matches!(change, HistoryChange::Price(_) | HistoryChange::Source(..) | HistoryChange::Tick)
}
