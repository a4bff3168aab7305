//! The history of a world as lines that `ingest --history` takes back.
//!
//! Bookmakers, competitions and markets come first, then the changes of each sport in the order of time, each with its time.
//! Whoever exports what was imported from an export gets the same lines again. The log is read in pieces, each in a transaction of its
//! own, so nothing is held back by an export that is read slowly.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::mpsc;

use super::super::pieces::{self, PieceSource};
use super::PIECE_BYTES;
use super::border::Border;
use super::world::{event_news, register_news};
use crate::board::Boards;
use crate::ingest::wire;
use crate::model::{
    Catalogue, Competitions, HistoryChange, HistoryPrice, News, OddsNews, ScoreNews, SportId, Timestamp, World,
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
        let mut export = Export { catalogue, competitions, pieces, piece, range, at: Timestamp::default() };
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
    /// The time of the last change of the sport.
    at: Timestamp,
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
        self.at = Timestamp::default();
        // What was imported ends where the own log begins.
        let is_own_only = from.zip(own_since).is_some_and(|(from, since)| since <= from);
        let imported = history.imported(world, sport)?.filter(|_| !is_own_only);
        let mut border = None;
        if let Some(log) = imported {
            let state = self.log(sport, log, history, None)?;
            let own = match own_since {
                Some(since) => Some((since, history.as_of(world, sport, since)?.1)),
                None => None,
            };
            border = Some(Border::new(&state, own.as_ref().map(|(since, own)| (*since, own))));
        }
        if let Some(log) = history.own(world, sport)? {
            self.log(sport, log, history, border)?;
        }
        Ok(())
    }

    /// Writes the changes of a log that follows another one if there is a border, and returns the state at its end.
    fn log(
        &mut self,
        sport: SportId,
        log: LogId,
        history: &HistoryReader,
        mut border: Option<Border>,
    ) -> Result<SportFold, Stop> {
        let (mut walk, mut changes) = history.walk(log, sport, self.range.from)?;
        loop {
            if let Some(border) = &mut border {
                changes = changes.into_iter().flat_map(|(at, change)| border.cross(at, change)).collect();
            }
            for (at, change) in changes {
                // The first entries of the own log may be older than the last of what was imported.
                self.at = at.max(self.at);
                if self.range.to.is_some_and(|to| self.at > to) {
                    return Ok(walk.into_state());
                }
                self.line(sport, change);
            }
            if self.piece.len() >= PIECE_BYTES {
                self.hand_on()?;
            }
            changes = history.walk_on(&mut walk, ENTRIES_READ)?;
            if changes.is_empty() {
                if let Some((at, change)) = border.and_then(|mut border| border.finish()) {
                    self.at = at.max(self.at);
                    self.line(sport, change);
                }
                return Ok(walk.into_state());
            }
        }
    }

    fn line(&mut self, sport: SportId, change: HistoryChange) {
        let at = self.at;
        let news = match change {
            HistoryChange::Event(event) => News::Event(event_news(sport, &event, &self.competitions)),
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
            HistoryChange::Tick => return wire::write_tick((at, sport), &self.catalogue, &mut self.piece),
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
