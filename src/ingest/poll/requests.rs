//! The requests of a feed: what each asks for, and the exchange with the upstream.
//!
//! An exchange runs in a task of its own, up to its parsed answer, and touches nothing of the feed. Parsing runs on the
//! blocking pool.

use std::sync::Arc;

use super::Poller;
use super::client::{RequestError, UpstreamClient, UpstreamQuota, percent_encoded};
use super::markets::RequestedMarket;
use super::schedule::{PollSubject, TaskId};
use crate::clock::{Clock, Moment};
use crate::ingest::payload;
use crate::ingest::the_odds_api::{Payload, SportEntry, read_sports};
use crate::model::{Catalogue, EventStatus, OddsFormat, Region, SportId};

/// A request that is about to be sent.
#[derive(Debug)]
pub(super) struct PollRequest {
    pub(super) id: TaskId,
    path: String,
    query: Vec<(&'static str, String)>,
    pub(super) markets: Vec<RequestedMarket>,
    odds_format: OddsFormat,
    /// What it may cost.
    pub(super) cost_max: u64,
}

/// What an upstream has answered, parsed.
#[derive(Debug)]
pub(super) enum PollAnswer {
    Competitions(Vec<SportEntry>),
    Payload(Box<Payload>),
}

/// A request that was answered, or failed.
#[derive(Debug)]
pub(super) struct Exchange {
    pub(super) id: TaskId,
    pub(super) markets: Vec<RequestedMarket>,
    pub(super) outcome: Result<PollAnswer, RequestError>,
    /// Whether there was a good status, whatever the body.
    pub(super) is_answered: bool,
    pub(super) quota: UpstreamQuota,
    /// What it cost.
    pub(super) cost: u64,
    pub(super) received: Moment,
    pub(super) latency_ms: u32,
    /// How many requests had been accounted for when it was sent.
    pub(super) sent_after: u64,
}

impl Poller {
    /// The request of a task; `None` if there is nothing to ask for now.
    pub(super) fn request(&self, id: &TaskId) -> Option<PollRequest> {
        let (mut query, mut markets) = (Vec::new(), Vec::new());
        let key = id.key();
        let path = match id.subject {
            PollSubject::Competitions => "/sports".to_owned(),
            PollSubject::Events => format!("/sports/{key}/events"),
            PollSubject::Scores => {
                if !self.is_anything_on(id) {
                    return None;
                }
                query.push(("daysFrom", "1".to_owned()));
                format!("/sports/{key}/scores")
            }
            PollSubject::Odds => {
                markets = self.requested_markets(id);
                format!("/sports/{key}/odds")
            }
            PollSubject::EventOdds => {
                markets = self.requested_markets(id);
                let event = id.event.as_ref().filter(|_| !self.is_over(id))?;
                format!("/sports/{key}/events/{}/odds", percent_encoded(event.as_str()))
            }
        };
        if matches!(id.subject, PollSubject::Odds | PollSubject::EventOdds) {
            let names: Vec<&str> = markets.iter().map(|market| &*market.v4_key).collect();
            if names.is_empty() {
                return None;
            }
            let regions: Vec<&str> = self.config.regions.iter().map(Region::key).collect();
            query.push(("regions", regions.join(",")));
            query.push(("markets", names.join(",")));
            query.push(("oddsFormat", self.config.odds_format.key().to_owned()));
        }
        if id.subject != PollSubject::Competitions {
            query.push(("dateFormat", "iso".to_owned()));
        }
        let (odds_format, cost_max) = (self.config.odds_format, self.schedule.reserve(id));
        Some(PollRequest { id: id.clone(), path, query, markets, odds_format, cost_max })
    }

    /// The markets that a task asks for: without those that the upstream rejected, and without those that are left out
    /// to find the one that it rejects.
    pub(super) fn requested_markets(&self, id: &TaskId) -> Vec<RequestedMarket> {
        let mut markets = self.available_markets(id);
        markets.truncate(markets.len().saturating_sub(self.schedule.left_out(id)));
        markets
    }

    /// The markets of a task's competition that the upstream has not rejected.
    pub(super) fn available_markets(&self, id: &TaskId) -> Vec<RequestedMarket> {
        let (catalogue, now_ms) = (self.context.boards.catalogue(), self.now().mono_ms);
        let Some(competition) = &id.competition else { return Vec::new() };
        let mut markets = match id.subject {
            PollSubject::Odds => self.markets.of_odds(competition, catalogue),
            _ => self.markets.of_events(competition, catalogue),
        };
        markets.retain(|market| !self.unavailable.has_market(&competition.key, &market.v4_key, now_ms));
        markets
    }

    /// Whether an event of the competition has begun and is not over: only then is there a score to ask for.
    fn is_anything_on(&self, id: &TaskId) -> bool {
        let Some(competition) = &id.competition else { return false };
        let board = self.context.boards.load_full(self.config.world);
        let now = self.now().timestamp();
        let index = board.sport(competition.sport).current();
        let mut open =
            [EventStatus::Live, EventStatus::Scheduled].into_iter().flat_map(|status| index.with_status(status));
        open.any(|node| node.event().commence <= now && *node.event().competition_key == *competition.key)
    }

    /// Whether the event of a task is known to be over.
    fn is_over(&self, id: &TaskId) -> bool {
        let (Some(competition), Some(event)) = (&id.competition, &id.event) else { return false };
        let board = self.context.boards.load_full(self.config.world);
        let node = board.sport(competition.sport).current().get(event.as_str());
        node.is_some_and(|node| node.event().status.is_over())
    }
}

impl PollRequest {
    /// Sends the request and parses the answer.
    pub(super) async fn send(
        self,
        client: Arc<UpstreamClient>,
        catalogue: Arc<Catalogue>,
        clock: Clock,
        sent_after: u64,
    ) -> Exchange {
        let sent_ms = clock.mono_ms();
        let query: Vec<(&str, &str)> = self.query.iter().map(|(name, value)| (*name, &**value)).collect();
        let answered = client.get(&self.path, &query).await;
        let received = clock.now();
        let quota = match &answered {
            Ok(response) => response.quota,
            Err(RequestError::Status { quota, .. }) => **quota,
            Err(_) => UpstreamQuota::default(),
        };
        let cost = quota.last.unwrap_or(match &answered {
            // An error status costs nothing, and neither does a request that was not sent.
            Err(RequestError::Status { .. } | RequestError::Connect(_)) => 0,
            _ => self.cost_max,
        });
        let is_answered = answered.is_ok();
        let outcome = match answered {
            Ok(response) => self.parse(response.body, received, catalogue).await,
            Err(error) => Err(error),
        };
        let latency_ms = u32::try_from(received.mono_ms.saturating_sub(sent_ms)).unwrap_or(u32::MAX);
        let PollRequest { id, markets, .. } = self;
        Exchange { id, markets, outcome, is_answered, quota, cost, received, latency_ms, sent_after }
    }

    async fn parse(
        &self,
        body: Vec<u8>,
        received: Moment,
        catalogue: Arc<Catalogue>,
    ) -> Result<PollAnswer, RequestError> {
        let unusable = |why: String| RequestError::Body(why.into());
        if self.id.subject == PollSubject::Competitions {
            let entries = read_sports(&body).map_err(|error| unusable(error.to_string()))?;
            if entries.is_empty() {
                return Err(unusable("it lists no sport at all".to_owned()));
            }
            return Ok(PollAnswer::Competitions(entries));
        }
        let sport: Option<SportId> = self.id.competition.as_ref().map(|competition| competition.sport);
        let read = payload::read(body, (sport, Some(self.odds_format)), received.timestamp(), catalogue).await;
        let payload = read.map_err(|error| unusable(error.to_string()))?;
        let payload = payload.map_err(|error| unusable(error.to_string()))?;
        match payload.examples.first() {
            Some((_, first)) if payload.is_unreadable() => {
                Err(unusable(format!("none of its events can be read: {first}")))
            }
            _ => Ok(PollAnswer::Payload(Box::new(payload))),
        }
    }
}
