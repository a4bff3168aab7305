//! A log to test against: everything has been for an hour as it is now.

use std::sync::Arc;

use super::worlds::at;
use crate::board::{AsOf, Boards, ChangeEntry};
use crate::http::exchange::history::{
    AsOfRead, ClosingOf, ClosingRead, EntriesRead, History, HistoryFailure, HourEntries, HourRead, LinesRead,
};
use crate::model::{EventId, EventLines, Line, LinePoint, Permanence, PricedAt, Start, StartSource, Timestamp};

#[derive(Debug)]
pub(super) struct UnchangedHistory(pub(super) Arc<Boards>);

const BEGAN: i32 = -3600;

impl History for UnchangedHistory {
    fn kept(&self, _: AsOfRead) -> Option<AsOf> {
        None
    }

    fn as_of(&self, read: AsOfRead) -> Result<AsOf, HistoryFailure> {
        if read.time < at(BEGAN) {
            return Err(HistoryFailure::Gone { since: Some(at(BEGAN)) });
        }
        let world = self.0.load(read.access.world());
        let (board, register) = (world.sport(read.access.sport()).clone(), Arc::clone(world.register()));
        Ok(AsOf { board, register, at: at(BEGAN), previous: None, next: None, permanence: Permanence::Current })
    }

    fn lines(&self, read: &LinesRead) -> Result<Option<EventLines>, HistoryFailure> {
        let world = self.0.load(read.access.world());
        let Some(node) = world.sport(read.access.sport()).current().get(read.event.as_str()) else { return Ok(None) };
        let books = world.register().bookmakers();
        let wanted = node.records().iter().filter(|record| {
            read.bookmakers.contains(books.key(record.bookmaker)) && read.markets.accepts(record.market)
        });
        let lines = wanted.map(|record| {
            let opening = PricedAt { at: at(BEGAN), outcomes: record.outcomes.to_vec().into() };
            let points = vec![LinePoint { at: opening.at, outcomes: Some(Arc::clone(&opening.outcomes)) }];
            let bookmaker = books.key(record.bookmaker).into();
            let (closing, is_closed) = (Some(opening.clone()), false);
            Line { bookmaker, market: record.market, opening, closing, is_closed, points }
        });
        let (event, lines) = (Arc::clone(node.event()), lines.collect());
        let since = Timestamp::default();
        Ok(Some(EventLines { event, since, source: StartSource::Ahead, start: Start::Ahead, lines }))
    }

    fn closing(&self, read: &ClosingRead) -> Result<Vec<EventLines>, HistoryFailure> {
        let ClosingOf::Events(events) = &read.of else { return Ok(Vec::new()) };
        let ClosingRead { access, bookmakers, markets, .. } = read;
        let lines = |event: &EventId| {
            let (bookmakers, markets) = (bookmakers.clone(), markets.clone());
            let range = (None, None);
            self.lines(&LinesRead { access: *access, event: event.clone(), bookmakers, markets, range }).transpose()
        };
        events.iter().filter_map(lines).collect()
    }

    fn hour(&self, read: HourRead) -> Result<HourEntries, HistoryFailure> {
        if read.start < at(2 * BEGAN) {
            return Err(HistoryFailure::Gone { since: Some(at(BEGAN)) });
        }
        Ok(HourEntries { runs: Vec::new(), permanence: Permanence::Final })
    }

    fn entries(&self, _: EntriesRead) -> Result<Arc<[Arc<ChangeEntry>]>, HistoryFailure> {
        Err(HistoryFailure::Gone { since: None })
    }
}
