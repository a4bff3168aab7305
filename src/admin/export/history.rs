//! The history of a world as lines that `ingest --history` takes back.
//!
//! Bookmakers, competitions and markets come first, then the changes of each sport in the order of time, each with its time.
//! Within a second events and scores change first, then prices, and then events are removed, as an import has them:
//! whoever exports what was imported gets the same lines again. The log is read in pieces, each in a transaction of its
//! own, so nothing is held back by an export that is read slowly.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::mpsc;

use super::super::pieces::{self, PieceSource};
use super::PIECE_BYTES;
use super::world::register_news;
use crate::board::Boards;
use crate::ingest::wire;
use crate::model::{
    Catalogue, Competitions, EventNews, HistoryChange, HistoryPrice, News, OddsNews, ScoreNews, SportId, Timestamp,
    World,
};
use crate::store::{HistoryError, HistoryReader, LogId, SportFold};

/// So many entries of the log are read at a time.
const ENTRIES_READ: u64 = 256;

/// Which part of the history is exported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HistoryRange {
    pub world: World,
    /// With what there was at that time.
    pub from: Option<Timestamp>,
    pub to: Option<Timestamp>,
}

/// Begins an export of the history of a world.
pub(crate) fn start(range: HistoryRange, boards: &Boards, history: &HistoryReader) -> PieceSource {
    let (pieces, source) = pieces::channel();
    let (catalogue, board) = (Arc::clone(boards.catalogue()), boards.load_full(range.world));
    let history = history.clone();
    tokio::task::spawn_blocking(move || {
        let competitions = Arc::clone(board.register().competitions());
        let mut piece = Vec::new();
        for news in register_news(board.register()) {
            wire::write(&news, &catalogue, &mut piece);
        }
        let mut export = Export { catalogue, competitions, pieces, piece, range };
        match export.sports(&history) {
            Ok(()) | Err(Stop::Gone) => {}
            Err(Stop::Failed(error)) => {
                let error = io::Error::other(format!("the log could not be read: {error}"));
                // The reader is gone, so the error cannot be reported to it.
                let _ = export.pieces.blocking_send(Err(error));
            }
        }
    });
    source
}

/// Why an export ends early.
enum Stop {
    /// The reader is gone.
    Gone,
    Failed(HistoryError),
}

impl From<HistoryError> for Stop {
    fn from(error: HistoryError) -> Self {
        Stop::Failed(error)
    }
}

struct Export {
    catalogue: Arc<Catalogue>,
    competitions: Arc<Competitions>,
    pieces: mpsc::Sender<io::Result<Bytes>>,
    /// What has been written and not yet handed on.
    piece: Vec<u8>,
    range: HistoryRange,
}

/// The changes of one second.
#[derive(Default)]
struct Second {
    at: Timestamp,
    events: Vec<HistoryChange>,
    prices: Vec<HistoryChange>,
    removed: Vec<HistoryChange>,
}

impl Export {
    fn sports(&mut self, history: &HistoryReader) -> Result<(), Stop> {
        let catalogue = Arc::clone(&self.catalogue);
        for sport in catalogue.sport_ids() {
            self.sport(sport, history)?;
        }
        self.hand_on()
    }

    fn sport(&mut self, sport: SportId, history: &HistoryReader) -> Result<(), Stop> {
        let HistoryRange { world, from, .. } = self.range;
        let own_since = history.own_since(world, sport)?;
        let mut second = Second::default();
        // What was imported ends where the own log begins.
        let is_own_only = from.zip(own_since).is_some_and(|(from, since)| since <= from);
        let imported = history.imported(world, sport)?.filter(|_| !is_own_only);
        let mut ends = Vec::new();
        if let Some(log) = imported {
            let state = self.log(sport, log, history, (&mut second, None))?;
            if let Some(since) = own_since {
                let (_, own) = history.as_of(world, sport, since)?;
                ends = state.ends(&own);
            }
        }
        if let Some(log) = history.own(world, sport)? {
            self.log(sport, log, history, (&mut second, own_since.map(|since| (since, ends))))?;
        }
        self.write(sport, &mut second)
    }

    /// Writes the changes of a log, with others at a time, and returns the state at its end.
    fn log(
        &mut self,
        sport: SportId,
        log: LogId,
        history: &HistoryReader,
        (second, mut others): (&mut Second, Option<(Timestamp, Vec<HistoryChange>)>),
    ) -> Result<SportFold, Stop> {
        let (mut walk, mut changes) = history.walk(log, sport, self.range.from)?;
        loop {
            for (at, change) in changes {
                // The first entries of the own log may be older than the last of what was imported.
                let at = at.max(second.at);
                if self.range.to.is_some_and(|to| at > to) {
                    return Ok(walk.into_state());
                }
                if at != second.at {
                    self.write(sport, second)?;
                    second.at = at;
                }
                second.push(change);
                if let Some((_, others)) = others.take_if(|(since, _)| at >= *since) {
                    others.into_iter().for_each(|change| second.push(change));
                }
            }
            changes = history.walk_on(&mut walk, ENTRIES_READ)?;
            if changes.is_empty() {
                return Ok(walk.into_state());
            }
        }
    }

    fn write(&mut self, sport: SportId, second: &mut Second) -> Result<(), Stop> {
        let at = second.at;
        let Second { events, prices, removed, .. } = std::mem::replace(second, Second { at, ..Second::default() });
        for change in events.into_iter().chain(prices).chain(removed) {
            self.line(sport, at, change);
        }
        if self.piece.len() >= PIECE_BYTES { self.hand_on() } else { Ok(()) }
    }

    fn line(&mut self, sport: SportId, at: Timestamp, change: HistoryChange) {
        let news = match change {
            HistoryChange::Event(event) => News::Event(EventNews {
                sport,
                id: event.id.clone(),
                competition: Arc::clone(&event.competition),
                competition_key: Some(Arc::clone(&event.competition_key)),
                competition_title: self.competitions.get(&event.competition_key).map(|seen| Arc::clone(&seen.title)),
                commence: event.commence,
                contest: event.contest.clone(),
                status: event.status,
            }),
            HistoryChange::Score(event, score) => News::Score(ScoreNews { sport, event, score: (*score).clone() }),
            HistoryChange::Removed(event) => News::Remove { sport, event },
            HistoryChange::Price(HistoryPrice { event, bookmaker, market, price }) => News::Odds(OddsNews {
                sport,
                event,
                bookmaker,
                market: market.into(),
                last_update: price.as_ref().map_or(at, |price| price.last_update),
                bookmaker_update: None,
                outcomes: price.iter().flat_map(|price| price.outcomes.iter().cloned()).collect(),
            }),
            HistoryChange::Source(bookmaker, is_stale) => {
                return wire::write_source((at, sport), (&bookmaker, is_stale), &self.catalogue, &mut self.piece);
            }
            // The log has none.
            HistoryChange::Observed(_) => return,
        };
        wire::write(&News::AsOf(at, Box::new(news)), &self.catalogue, &mut self.piece);
    }

    fn hand_on(&mut self) -> Result<(), Stop> {
        let piece = Bytes::from(std::mem::take(&mut self.piece));
        self.pieces.blocking_send(Ok(piece)).map_err(|_| Stop::Gone)
    }
}

impl Second {
    fn push(&mut self, change: HistoryChange) {
        match change {
            HistoryChange::Removed(_) => self.removed.push(change),
            HistoryChange::Price(_) | HistoryChange::Source(..) => self.prices.push(change),
            _ => self.events.push(change),
        }
    }
}
