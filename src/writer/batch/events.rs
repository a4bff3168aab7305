//! News about events: what they are, their scores, their prices, and their end.

use std::sync::Arc;

use super::super::event_edit::{EventEdit, Touched};
use super::super::fight::{fight_score, renamed_winner};
use super::NewsBatch;
use crate::board::{Applied, Draft};
use crate::model::{
    BookId, Closed, ClosedNews, Contest, Event, EventId, EventNews, EventStatus, Market, OddsNews, Reason, Record,
    RecordId, ScoreNews, SportId, SportKind, Timestamp,
};

impl NewsBatch<'_> {
    pub(super) fn event(&mut self, news: EventNews) -> Result<Applied, Reason> {
        let now = self.time.now;
        let competition_key = self.competition(&news)?;
        let event = |status, changed| news.event(Arc::clone(&competition_key), status, changed);
        if self.draft(news.sport, &news.id).is_err() {
            self.additions.event(news.sport, &news.id)?;
        } else {
            self.additions.again(&self.state.owners, news.sport, &news.id);
        }
        let Ok((draft, touched)) = self.draft(news.sport, &news.id) else {
            let new = EventEdit { sport: news.sport, draft: None, before: None, removed: false, touched: Vec::new() };
            let edit = self.edits.entry((news.sport, news.id.clone())).or_insert(new);
            edit.draft = Some(Draft::new(Arc::new(event(news.status, now))));
            return Ok(Applied::Changed);
        };
        // Once there is a score, its status is the event's; only a cancellation overrides it.
        let status = match draft.score() {
            Some(score) if news.status != EventStatus::Cancelled => score.status.event_status(),
            _ => news.status,
        };
        if **draft.event() == event(status, draft.event().changed) {
            return Ok(Applied::Unchanged);
        }
        if let Some(score) = draft.score().and_then(|score| renamed_winner(score, draft.event(), &news.contest)) {
            draft.set_score(Arc::new(score));
        }
        draft.set_event(Arc::new(event(status, now)));
        close_if_over(draft, touched, now);
        Ok(Applied::Changed)
    }

    pub(super) fn score(&mut self, news: ScoreNews) -> Result<Applied, Reason> {
        let (now, kind) = (self.time.now, self.catalogue[news.sport].kind);
        let (draft, touched) = self.draft(news.sport, &news.event)?;
        let (points, winner) = (news.score.points, &news.score.winner);
        let score = match &draft.event().contest {
            Contest::Tournament { .. } if points.is_some() || winner.is_some() => return Err(Reason::BadField),
            Contest::Sides { .. } if points.is_none() => return Err(Reason::MissingField),
            Contest::Sides { .. } if kind == SportKind::Fight => fight_score(news.score, draft.event())?,
            _ => news.score,
        };
        if let Some(current) = draft.score() {
            if score.updated < current.updated {
                return Ok(Applied::Late);
            }
            let is_cancelled = draft.event().status == EventStatus::Cancelled;
            if **current == score && !is_cancelled {
                return Ok(Applied::Unchanged);
            }
        }
        let status = score.status.event_status();
        draft.set_event(Arc::new(Event { status, changed: now, ..(**draft.event()).clone() }));
        draft.set_score(Arc::new(score));
        close_if_over(draft, touched, now);
        Ok(Applied::Changed)
    }

    pub(super) fn odds(&mut self, news: OddsNews) -> Result<Applied, Reason> {
        let sport = &self.catalogue[news.sport];
        let bookmaker = self.bookmakers().find(&news.bookmaker).ok_or(Reason::UnknownBookmaker)?;
        // Before the market: a price that is rejected for its event must not make a market known.
        let is_over = self.draft(news.sport, &news.event)?.0.event().status.is_over();
        if is_over && !news.outcomes.is_empty() {
            return Err(Reason::EventOver);
        }
        let market = self.market(&news.market)?;
        // A market that the sport does not have can still be closed: an older version may have stored prices of it.
        if !news.outcomes.is_empty() && !market.is_of(sport.kind) {
            return Err(Reason::MarketNotOfSport);
        }
        let id = RecordId::new(&sport.key, &news.event, &news.bookmaker, market);
        let (draft, touched) = self.draft(news.sport, &news.event)?;
        let last_update = news.last_update;
        let applied = if news.outcomes.is_empty() {
            draft.close(Closed { bookmaker, market, at: last_update })
        } else {
            let bookmaker_update = news.bookmaker_update.filter(|at| *at != last_update);
            let outcomes = news.outcomes;
            draft.put(Arc::new(Record { id, bookmaker, market, last_update, bookmaker_update, outcomes }))
        };
        if applied == Applied::Changed {
            touched.push((bookmaker, market));
        }
        if applied != Applied::Late {
            self.advance_read(news.sport, bookmaker, last_update, None);
        }
        Ok(applied)
    }

    /// Leaves the mark of a closed market. It does not count as a read: such news comes with that of the sources.
    pub(super) fn closed(&mut self, news: &ClosedNews) -> Result<Applied, Reason> {
        let bookmaker = self.bookmakers().find(&news.bookmaker).ok_or(Reason::UnknownBookmaker)?;
        self.draft(news.sport, &news.event)?;
        let market = self.market(&news.market)?;
        let (draft, touched) = self.draft(news.sport, &news.event)?;
        let applied = draft.close(Closed { bookmaker, market, at: news.at });
        if applied == Applied::Changed {
            touched.push((bookmaker, market));
        }
        Ok(applied)
    }

    /// Closes a record that its feed no longer has, if it is open. As of its own last update, so that it opens again as
    /// soon as the feed has it again, however long ago its bookmaker last changed it.
    pub(in crate::writer) fn close(
        &mut self,
        sport: SportId,
        event: &EventId,
        (bookmaker, market): (BookId, Market),
    ) -> bool {
        let Ok((draft, touched)) = self.draft(sport, event) else { return false };
        let Some(at) = draft.record(bookmaker, market).map(|record| record.last_update) else { return false };
        draft.close(Closed { bookmaker, market, at });
        touched.push((bookmaker, market));
        true
    }

    pub(super) fn remove(&mut self, sport: SportId, id: &EventId) -> Result<Applied, Reason> {
        self.draft(sport, id)?;
        self.additions.remove(&self.state.owners, sport, id)?;
        let edit = self.edit(sport, id).ok_or(Reason::UnknownEvent)?;
        edit.draft.take().ok_or(Reason::UnknownEvent)?;
        edit.removed = true;
        edit.touched.clear();
        Ok(Applied::Changed)
    }
}

/// An event that is over has no open market.
fn close_if_over(draft: &mut Draft, touched: &mut Touched, now: Timestamp) {
    if draft.event().status.is_over() {
        touched.extend(draft.close_all(now).iter().map(|mark| (mark.bookmaker, mark.market)));
    }
}
