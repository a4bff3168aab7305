//! What becomes of an answer: its news goes to the writer, a list changes the schedule, and what the upstream does not
//! have is noted.
//!
//! An answer with odds is a complete poll of its competition, or of some markets of an event: records that it no longer
//! has are closed.

use std::sync::Arc;
use std::time::Duration;

use super::client::RequestError;
use super::requests::{Exchange, PollAnswer};
use super::schedule::{PollSubject, PolledEvent, TaskId};
use super::{LIST_EVERY_MS, PollError, Poller};
use crate::clock::Moment;
use crate::ingest::delivery::{Delivery, DeliveryBatch};
use crate::ingest::options::IngestOptions;
use crate::ingest::payload;
use crate::ingest::the_odds_api::Payload;
use crate::model::{EventId, News, SportId, Timestamp};
use crate::writer::{Poll, PollPart, PollScope, WriteError};

/// How long a market that the upstream rejects is not requested.
const REJECTED_MARKET_MS: u64 = 86_400_000;

/// As many events of a competition as are polled one by one.
const EVENTS_MAX: usize = 500;

/// What follows the competition's key in the scope of its event markets.
const EVENT_SCOPE: &str = "/events";

impl Poller {
    /// Takes over an answer.
    pub(super) async fn take(&mut self, exchange: &Exchange, answer: PollAnswer) -> Result<(), PollError> {
        let id = exchange.id.clone();
        match (answer, &id.competition) {
            (PollAnswer::Competitions(entries), _) => {
                self.competitions.list(&entries);
                self.plan();
                self.end_other_polls().await?;
            }
            (PollAnswer::Payload(payload), Some(competition)) => match id.subject {
                PollSubject::Scores => self.take_scores(*payload, competition.sport).await?,
                PollSubject::Events => self.take_events(&id, *payload).await?,
                _ => self.take_odds(exchange, *payload, competition.sport).await?,
            },
            (PollAnswer::Payload(_), None) => {}
        }
        Ok(())
    }

    async fn take_odds(&mut self, exchange: &Exchange, payload: Payload, sport: SportId) -> Result<(), PollError> {
        let (id, now) = (&exchange.id, exchange.received);
        let register = Arc::clone(self.context.boards.load_full(self.config.world).register());
        let listed = payload.listed(register.bookmakers(), self.config.regions);
        let mut delivery = self.delivery();
        let DeliveryBatch { news, origins, .. } = payload::accept(payload, listed, &mut delivery);
        if id.subject == PollSubject::EventOdds {
            let has_prices = news.iter().any(|news| matches!(news, News::Odds(_)));
            self.schedule.set_idle(id, !has_prices);
        }
        let part = id.event.as_ref().map(|event| PollPart {
            event: event.clone(),
            markets: exchange.markets.iter().map(|market| market.key.clone()).collect(),
        });
        let has_more = self.schedule.is_more_due(sport, Some(id), self.interval_ms(), self.now());
        let budget = self.spending.charge(self.reserve_ahead(), now).budget;
        let poll = Poll {
            scope: self.scope(id),
            part,
            sport,
            news,
            at: now.timestamp(),
            latency_ms: exchange.latency_ms,
            stale_after_s: self.stale_after_s(now),
            has_more,
            budget: Some(budget),
        };
        let closed = delivery.send_poll(poll, &origins).await?;
        self.spending.is_stored(budget);
        if has_more {
            self.rounds.insert(sport)
        } else {
            self.rounds.remove(&sport)
        };
        if closed > 0 {
            let feed = &*self.config.name;
            tracing::debug!(feed, key = id.key(), closed, "closed prices that are no longer offered");
        }
        Ok(())
    }

    async fn take_scores(&mut self, payload: Payload, sport: SportId) -> Result<(), PollError> {
        let charge = self.spending.charge(self.reserve_ahead(), self.now());
        let mut delivery = self.delivery();
        let mut news = payload::accept(payload, Vec::new(), &mut delivery).news;
        // Events that were not announced, or that were removed long after their end, are left out.
        let board = self.context.boards.load_full(self.config.world);
        let is_known = |id: &EventId| board.sport(sport).current().get(id.as_str()).is_some();
        news.retain(|news| match news {
            News::Event(event) => is_known(&event.id),
            News::Score(score) => is_known(&score.event),
            _ => false,
        });
        let (budget, is_end) = (charge.budget, self.rounds.is_empty());
        delivery.send_charged(news, is_end, charge).await?;
        self.spending.is_stored(budget);
        Ok(())
    }

    /// Plans the polls of a competition's events: of those that begin within the horizon, and of those that come within
    /// it before the next list.
    async fn take_events(&mut self, id: &TaskId, payload: Payload) -> Result<(), PollError> {
        let Some(competition) = &id.competition else { return Ok(()) };
        let now = self.now();
        let listed = payload.messages.into_iter().filter_map(|message| match message.news {
            News::Event(event) => Some((event.id, event.commence)),
            _ => None,
        });
        let events = near_events(listed, self.config.event_horizon, now);
        let event_id = TaskId { subject: PollSubject::EventOdds, ..id.clone() };
        let markets = self.available_markets(&event_id);
        self.schedule.plan_events(competition, &events, self.cost_of(markets.len()), now);
        let is_near = |event: &&PolledEvent| event.from_ms <= now.mono_ms;
        let near: Vec<EventId> = events.iter().filter(is_near).map(|event| event.id.clone()).collect();
        let keys = markets.into_iter().map(|market| market.key).collect();
        self.context.writer.retain_polled(self.scope(&event_id), near, keys).await?;
        Ok(())
    }

    /// Notes what the upstream does not have, if that is what a failure says; then the rest is polled without it.
    pub(super) async fn take_missing(&mut self, exchange: &Exchange, error: &RequestError) -> Result<bool, WriteError> {
        let RequestError::Status { status, code, markets, .. } = error else { return Ok(false) };
        let code = code.as_deref().unwrap_or_default();
        let is_market = matches!(code, "INVALID_MARKET" | "INVALID_MARKET_COMBO");
        let is_sport = matches!(code, "UNKNOWN_SPORT" | "INVALID_SPORT");
        match (status, exchange.id.subject) {
            (422, PollSubject::Odds | PollSubject::EventOdds) if is_market => {
                self.reject_markets(exchange, markets, &error.to_string());
                Ok(true)
            }
            (404, PollSubject::EventOdds) if !is_sport => {
                self.drop_event(exchange).await?;
                Ok(true)
            }
            (404, PollSubject::Odds) => {
                self.suspend(&exchange.id, &error.to_string());
                Ok(true)
            }
            (404 | 422, _) if is_sport => {
                self.suspend(&exchange.id, &error.to_string());
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    /// Requests a competition again only when the list of competitions is next requested.
    fn suspend(&mut self, id: &TaskId, why: &str) {
        let now = self.now();
        let until_ms = now.mono_ms.saturating_add(LIST_EVERY_MS);
        let until_ms = self.schedule.list_due_ms().unwrap_or(until_ms).clamp(now.mono_ms.saturating_add(1), until_ms);
        self.schedule.suspend(id.key(), until_ms);
        let (feed, key) = (&*self.config.name, id.key());
        if self.unavailable.add(key, None, why, until_ms, now.mono_ms) {
            tracing::warn!(
                feed,
                competition = key,
                error = why,
                "upstream does not have this competition; not polling it"
            );
        }
        self.context.ledger.failed(self.account(), now.timestamp(), &format!("{key}: {why}"));
    }

    /// Leaves the markets out that the upstream rejects. If it does not say which, those at the end of the list are left
    /// out one after the other until it accepts the rest; errors cost nothing.
    fn reject_markets(&mut self, exchange: &Exchange, named: &[Box<str>], why: &str) {
        let (id, now) = (&exchange.id, self.now());
        let requested = exchange.markets.len();
        let is_clear = !named.is_empty() && (named.len() < requested || requested == 1);
        if is_clear {
            for market in named {
                self.reject_market(id, market, why);
            }
        } else if requested > 1 {
            self.schedule.leave_out(id, self.schedule.left_out(id) + 1);
        } else if let Some(market) = exchange.markets.first() {
            self.schedule.leave_out(id, 0);
            self.reject_market(id, &market.v4_key, why);
        }
        self.schedule.set_due(id, now.mono_ms);
    }

    fn reject_market(&mut self, id: &TaskId, market: &str, why: &str) {
        let (now, key) = (self.now(), id.key());
        let until_ms = now.mono_ms.saturating_add(REJECTED_MARKET_MS);
        if self.unavailable.add(key, Some(market), why, until_ms, now.mono_ms) {
            let feed = &*self.config.name;
            tracing::warn!(
                feed,
                competition = key,
                market,
                error = why,
                "upstream rejects this market; polling the others"
            );
        }
        let cost = self.cost_of(self.available_markets(id).len());
        self.schedule.set_cost_max(id, cost);
    }

    /// After an answer without some markets: the first of those that were left out is the one that was rejected.
    pub(super) fn accept_markets(&mut self, exchange: &Exchange) {
        let id = &exchange.id;
        if self.schedule.left_out(id) == 0 {
            return;
        }
        self.schedule.leave_out(id, 0);
        if let Some(market) = self.available_markets(id).get(exchange.markets.len()) {
            self.reject_market(id, &market.v4_key.clone(), "answered 422 without naming the market");
        }
    }

    /// Closes what is left of an event that the upstream does not have any more. The next list says whether it is back.
    async fn drop_event(&mut self, exchange: &Exchange) -> Result<(), WriteError> {
        let (id, now) = (&exchange.id, exchange.received);
        let (Some(competition), Some(event)) = (&id.competition, &id.event) else { return Ok(()) };
        let markets = exchange.markets.iter().map(|market| market.key.clone()).collect();
        let poll = Poll {
            scope: self.scope(id),
            part: Some(PollPart { event: event.clone(), markets }),
            sport: competition.sport,
            news: Vec::new(),
            at: now.timestamp(),
            latency_ms: exchange.latency_ms,
            stale_after_s: self.stale_after_s(now),
            has_more: self.schedule.is_more_due(competition.sport, Some(id), self.interval_ms(), now),
            budget: None,
        };
        self.delivery().send_poll(poll, &[]).await?;
        tracing::debug!(feed = &*self.config.name, key = id.key(), %event, "event is not known upstream any more");
        self.schedule.drop_event(id);
        Ok(())
    }

    fn scope(&self, id: &TaskId) -> PollScope {
        let part = if id.subject == PollSubject::EventOdds { EVENT_SCOPE } else { "" };
        let key = format!("{}{part}", id.key()).into();
        PollScope { world: self.config.world, feed: self.config.name.clone(), key }
    }

    /// Closes the prices of competitions and event markets that are no longer polled.
    pub(super) async fn end_other_polls(&self) -> Result<(), WriteError> {
        let mut kept: Vec<Box<str>> = Vec::new();
        for resources in self.resources() {
            let key = &resources.competition.key;
            if resources.odds_cost > 0 {
                kept.push(key.clone());
            }
            if resources.has_event_markets {
                kept.push(format!("{key}{EVENT_SCOPE}").into());
            }
        }
        self.context.writer.end_polls(self.config.world, &self.config.name, kept).await.map(|_| ())
    }

    fn delivery(&self) -> Delivery {
        Delivery::new(IngestOptions::lenient(self.config.world), self.feed.clone(), &self.context)
    }
}

/// The events that come within the horizon before the next list, soonest first.
fn near_events(listed: impl Iterator<Item = (EventId, Timestamp)>, horizon: Duration, now: Moment) -> Vec<PolledEvent> {
    let horizon_ms = i64::try_from(horizon.as_millis()).unwrap_or(i64::MAX);
    let mut events: Vec<(Timestamp, PolledEvent)> = Vec::new();
    for (id, commence) in listed {
        let wait_ms = commence.unix_ms().saturating_sub(horizon_ms).saturating_sub(now.unix_ms);
        let wait_ms = u64::try_from(wait_ms).unwrap_or(0);
        if wait_ms <= LIST_EVERY_MS {
            events.push((commence, PolledEvent { id, from_ms: now.mono_ms.saturating_add(wait_ms) }));
        }
    }
    events.sort_by_key(|(commence, _)| *commence);
    events.truncate(EVENTS_MAX);
    events.into_iter().map(|(_, event)| event).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_within_the_horizon_are_polled_soonest_first_and_not_without_bound() {
        let now = Moment::unset(1_794_699_540_000, 1_000);
        let at = |seconds: u32| now.timestamp().plus_seconds(seconds);
        let id = |text: &str| EventId::new(text).unwrap();
        let listed = [
            (id("tomorrow"), at(86_400 + 1_800)),
            (id("later"), at(86_400 + 3_601)),
            (id("soon"), at(60)),
            (id("on"), Timestamp::from_unix_ms(now.unix_ms - 3_600_000)),
        ];
        let horizon = Duration::from_secs(86_400);
        let near = near_events(listed.into_iter(), horizon, now);
        let shown: Vec<(&str, u64)> = near.iter().map(|event| (event.id.as_str(), event.from_ms)).collect();
        assert_eq!(shown, [("on", 1_000), ("soon", 1_000), ("tomorrow", 1_801_000)]);

        let many = (0..2_000).map(|number| (id(&format!("e{number}")), at(2_000 - number)));
        let near = near_events(many, horizon, now);
        assert_eq!((near.len(), near[0].id.as_str()), (EVENTS_MAX, "e1999"));
    }
}
