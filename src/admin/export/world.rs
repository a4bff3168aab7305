//! A world as feed lines that `ingest` takes back: into an empty world they give the same one again, in every answer and
//! in what is stored beyond the answers (times of the last changes, which markets are closed since when, since when a
//! source holds no price), so that what is late or due for removal here is so there.
//!
//! Lines come in an order in which each can be taken: bookmakers, competitions and markets, then sport by sport each
//! event with its score, its prices and its closed markets, then the sport's sources. They are written from one
//! snapshot, piece by piece as they are taken, and block nothing.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::mpsc;

use super::super::pieces::{self, PieceSource};
use super::PIECE_BYTES;
use crate::board::{Boards, EventNode, Register, SportBoard, WorldBoard};
use crate::ingest::wire;
use crate::model::{
    BookId, Catalogue, ClosedNews, CompetitionNews, Competitions, Event, EventNews, EventStatus, Market, News,
    OddsNews, ScoreNews, SourceNews, SportId, World,
};

/// Begins an export of a world as it is now.
pub(crate) fn start(world: World, boards: &Boards) -> PieceSource {
    let (pieces, source) = pieces::channel();
    let (catalogue, board) = (Arc::clone(boards.catalogue()), boards.load_full(world));
    tokio::spawn(async move {
        let mut export = Export { catalogue, pieces, piece: Vec::with_capacity(PIECE_BYTES + PIECE_BYTES / 4) };
        // The reader is gone, so the error cannot be reported to it.
        let _ = export.world(&board).await;
    });
    source
}

/// The bookmakers, competitions and markets of a world, also those that no event has any more: lists and parameters know
/// them.
pub(super) fn register_news(register: &Register) -> Vec<News> {
    let bookmakers = register.bookmakers().iter().map(|(_, book)| News::Bookmaker((**book).clone()));
    let competitions = register.competitions().iter().map(|(key, competition)| {
        let (key, competition) = (Arc::clone(key), competition.clone());
        News::Competition(CompetitionNews { key, competition })
    });
    let mut markets: Vec<Market> = register.markets().iter().copied().collect();
    markets.sort_unstable_by_key(|market| market.key());
    let markets = markets.into_iter().map(|market| News::Market(market.into()));
    bookmakers.chain(competitions).chain(markets).collect()
}

/// An event as it is, with the title of its competition.
pub(super) fn event_news(sport: SportId, event: &Event, competitions: &Competitions) -> EventNews {
    EventNews {
        sport,
        id: event.id.clone(),
        competition: Arc::clone(&event.competition),
        competition_key: Some(Arc::clone(&event.competition_key)),
        competition_title: competitions.get(&event.competition_key).map(|seen| Arc::clone(&seen.title)),
        commence: event.commence,
        contest: event.contest.clone(),
        status: event.status,
    }
}

/// The reader is gone.
struct Gone;

struct Export {
    catalogue: Arc<Catalogue>,
    pieces: mpsc::Sender<io::Result<Bytes>>,
    /// What has been written and not yet handed on.
    piece: Vec<u8>,
}

impl Export {
    async fn world(&mut self, board: &WorldBoard) -> Result<(), Gone> {
        let register = board.register();
        for news in register_news(register) {
            self.tell(&news).await?;
        }
        let catalogue = Arc::clone(&self.catalogue);
        for sport in catalogue.sport_ids() {
            let of_sport = board.sport(sport);
            for node in of_sport.current().iter() {
                self.event(sport, node, of_sport, register).await?;
            }
            for state in of_sport.sources().iter() {
                let bookmaker = register.bookmakers().key(state.bookmaker).into();
                self.tell(&News::Source(SourceNews { sport, bookmaker, source: state.source })).await?;
            }
        }
        self.hand_on().await
    }

    async fn event(
        &mut self,
        sport: SportId,
        node: &EventNode,
        board: &SportBoard,
        register: &Register,
    ) -> Result<(), Gone> {
        let event = node.event();
        let as_it_is = |status: EventStatus| {
            let news = EventNews { status, ..event_news(sport, event, register.competitions()) };
            News::AsOf(event.changed, Box::new(News::Event(news)))
        };
        // A score brings its status with it, so that only a cancellation after the score is left to tell.
        let scored = node.score().map(|score| score.status.event_status());
        self.tell(&as_it_is(scored.unwrap_or(event.status))).await?;
        if let Some(score) = node.score() {
            let news = News::Score(ScoreNews { sport, event: event.id.clone(), score: (**score).clone() });
            self.tell(&News::AsOf(event.changed, Box::new(news))).await?;
        }
        if scored.is_some_and(|status| status != event.status) {
            self.tell(&as_it_is(event.status)).await?;
        }
        self.markets(sport, node, board, register).await
    }

    async fn markets(
        &mut self,
        sport: SportId,
        node: &EventNode,
        board: &SportBoard,
        register: &Register,
    ) -> Result<(), Gone> {
        let key = |book: BookId| Arc::<str>::from(register.bookmakers().key(book));
        let event = &node.event().id;
        for record in node.records() {
            let news = News::Odds(OddsNews {
                sport,
                event: event.clone(),
                bookmaker: key(record.bookmaker),
                market: record.market.into(),
                last_update: record.last_update,
                bookmaker_update: record.bookmaker_update,
                outcomes: record.outcomes.clone(),
            });
            // Of a feed whose clock is ahead only the time of its coming is known as a good read.
            let source = board.sources().iter().find(|state| state.bookmaker == record.bookmaker);
            match source.map(|state| state.source.last_read) {
                Some(read) if read < record.last_update => self.tell(&News::AsOf(read, Box::new(news))).await?,
                _ => self.tell(&news).await?,
            }
        }
        let mut closed: Vec<_> = node.closed().iter().map(|mark| (key(mark.bookmaker), mark.market, mark.at)).collect();
        closed.sort_unstable_by(|one, other| (&one.0, one.1.key()).cmp(&(&other.0, other.1.key())));
        for (bookmaker, market, at) in closed {
            // A bookmaker that the catalogue no longer lists is gone, and its marks mean nothing.
            if !bookmaker.is_empty() {
                self.tell(&News::Closed(ClosedNews {
                    sport,
                    event: event.clone(),
                    bookmaker,
                    market: market.into(),
                    at,
                }))
                .await?;
            }
        }
        Ok(())
    }

    async fn tell(&mut self, news: &News) -> Result<(), Gone> {
        wire::write(news, &self.catalogue, &mut self.piece);
        if self.piece.len() >= PIECE_BYTES { self.hand_on().await } else { Ok(()) }
    }

    async fn hand_on(&mut self) -> Result<(), Gone> {
        let piece = Bytes::copy_from_slice(&self.piece);
        self.piece.clear();
        self.pieces.send(Ok(piece)).await.map_err(|_| Gone)
    }
}
