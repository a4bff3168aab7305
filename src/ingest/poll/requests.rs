//! What a feed asks its upstream for, and how each answer goes to the writer.
//!
//! A good answer with odds is a complete poll: records that it no longer has are closed. Scores are requested only while
//! an event is on. Every request is charged before it is sent.

use std::sync::Arc;

use super::client::{RequestError, UpstreamQuota, UpstreamResponse};
use super::schedule::{PollSubject, markets};
use super::{PollError, Poller};
use crate::ingest::delivery::{Delivery, DeliveryBatch};
use crate::ingest::options::IngestOptions;
use crate::ingest::payload;
use crate::ingest::the_odds_api::{Payload, read_sports};
use crate::model::{EventId, EventStatus, News, Region, SportId, Timestamp};
use crate::writer::{Poll, PollScope, WriteError};

impl Poller {
    /// Sends the request of a task, if there is anything to ask for; whether it did.
    pub(super) async fn perform(&mut self, at: usize) -> Result<bool, PollError> {
        let task = self.schedule.task(at);
        let (subject, sport, key) = (task.subject, task.sport, task.key.clone());
        match (subject, sport) {
            (PollSubject::Odds, Some(sport)) => self.poll_odds(at, &key, sport).await?,
            (PollSubject::Scores, Some(sport)) if self.is_anything_on(sport) => {
                self.poll_scores(at, &key, sport).await?;
            }
            (PollSubject::Scores, _) => return Ok(false),
            _ => self.poll_sport_keys(at).await?,
        }
        Ok(true)
    }

    async fn poll_odds(&mut self, at: usize, key: &str, sport: SportId) -> Result<(), PollError> {
        let markets = markets(&self.config, sport, self.context.boards.catalogue()).join(",");
        if markets.is_empty() {
            return Ok(());
        }
        let regions: Vec<&str> = self.config.regions.iter().map(Region::key).collect();
        let query = [
            ("regions", &*regions.join(",")),
            ("markets", &markets),
            ("oddsFormat", self.config.odds_format.key()),
            ("dateFormat", "iso"),
        ];
        let asked_ms = self.now().mono_ms;
        self.spending.polls(self.now().timestamp());
        let response = self.get(at, &format!("/sports/{key}/odds"), &query).await?;
        let now = self.now();
        let payload = self.read(response, sport, now.timestamp()).await?;
        let register = Arc::clone(self.context.boards.load_full(self.config.world).register());
        let listed = payload.listed(register.bookmakers(), self.config.regions);
        let mut delivery = self.delivery();
        let DeliveryBatch { news, origins, .. } = payload::accept(payload, listed, &mut delivery);
        let has_more = self.schedule.is_more_due(sport, Some(at), &self.config, self.now());
        let budget = self.spending.charge(self.schedule.next_cost(), now).budget;
        let poll = Poll {
            scope: PollScope { world: self.config.world, feed: self.config.name.clone(), key: key.into() },
            sport,
            news,
            at: now.timestamp(),
            latency_ms: u32::try_from(now.mono_ms.saturating_sub(asked_ms)).unwrap_or(u32::MAX),
            stale_after_s: self.stale_after_s(now.unix_ms),
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
            tracing::debug!(feed = &*self.config.name, key, closed, "closed prices that are no longer offered");
        }
        Ok(())
    }

    /// How long the prices of a poll count as fresh: three intervals, where that is longer than the setting.
    fn stale_after_s(&mut self, now_ms: i64) -> u32 {
        let interval_ms = self.spending.pace.steady_interval_ms(self.schedule.round_cost(), now_ms);
        let three_s = u32::try_from(interval_ms.saturating_mul(3) / 1000).unwrap_or(u32::MAX);
        self.settings.stale_after_s.max(three_s)
    }

    async fn poll_scores(&mut self, at: usize, key: &str, sport: SportId) -> Result<(), PollError> {
        let query = [("daysFrom", "1"), ("dateFormat", "iso")];
        let response = self.get(at, &format!("/sports/{key}/scores"), &query).await?;
        let charge = self.spending.charge(self.schedule.next_cost(), self.now());
        let payload = self.read(response, sport, self.now().timestamp()).await?;
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

    async fn poll_sport_keys(&mut self, at: usize) -> Result<(), PollError> {
        let response = self.get(at, "/sports", &[]).await?;
        let entries = read_sports(&response.body).map_err(|error| RequestError::Body(error.to_string().into()))?;
        if entries.is_empty() {
            return Err(RequestError::Body("it lists no sport at all".into()).into());
        }
        let active = entries.iter().filter(|entry| entry.active).map(|entry| &*entry.key);
        self.keys.expand(active, self.context.boards.catalogue());
        Ok(self.end_other_polls().await?)
    }

    /// Closes the prices of sport keys that are no longer polled.
    pub(super) async fn end_other_polls(&self) -> Result<(), WriteError> {
        let kept = self.keys.iter().map(|(key, _)| key.into()).collect();
        self.context.writer.end_polls(self.config.world, &self.config.name, kept).await.map(|_| ())
    }

    fn delivery(&self) -> Delivery {
        Delivery::new(IngestOptions::lenient(self.config.world), self.feed.clone(), &self.context)
    }

    /// One request; what it cost is charged whatever came of it, and is in the file before it is sent.
    async fn get(&mut self, at: usize, path: &str, query: &[(&str, &str)]) -> Result<UpstreamResponse, PollError> {
        let expected = self.schedule.task(at).cost;
        self.spending.reserve(&self.context.writer, expected, self.now()).await?;
        let answered = self.client.get(path, query).await;
        let quota = match &answered {
            Ok(response) => response.quota,
            Err(RequestError::Status { quota, .. }) => *quota,
            Err(_) => UpstreamQuota::default(),
        };
        let cost = quota.last.unwrap_or(match &answered {
            // An error status costs nothing, and neither does a request that was not sent.
            Err(RequestError::Status { .. } | RequestError::Connect(_)) => 0,
            _ => expected,
        });
        self.take_quota(cost, quota);
        if answered.is_ok() {
            self.schedule.set_cost(at, cost);
            self.spending.announce_silence(quota, self.now());
        }
        Ok(answered?)
    }

    async fn read(&self, response: UpstreamResponse, sport: SportId, now: Timestamp) -> Result<Payload, RequestError> {
        let terms = (Some(sport), Some(self.config.odds_format));
        let catalogue = Arc::clone(self.context.boards.catalogue());
        let unusable = |why: String| RequestError::Body(why.into());
        let read = payload::read(response.body, terms, now, catalogue).await;
        let payload = read.map_err(|error| unusable(error.to_string()))?;
        let payload = payload.map_err(|error| unusable(error.to_string()))?;
        match payload.examples.first() {
            Some((_, first)) if payload.is_unreadable() => {
                Err(unusable(format!("none of its events can be read: {first}")))
            }
            _ => Ok(payload),
        }
    }

    /// Whether an event of the sport has begun and is not over: only then is there a score to ask for.
    fn is_anything_on(&self, sport: SportId) -> bool {
        let board = self.context.boards.load_full(self.config.world);
        let now = self.now().timestamp();
        let index = board.sport(sport).current();
        let mut open =
            [EventStatus::Live, EventStatus::Scheduled].into_iter().flat_map(|status| index.with_status(status));
        open.any(|node| node.event().commence <= now)
    }
}
