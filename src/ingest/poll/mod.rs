//! Polls an interface in the shape of The Odds API, one task for each feed.
//!
//! A feed polls the odds of each of its competitions, scores while an event is live and, event by event, the markets that
//! the upstream has for single events only. `schedule` knows when each is due, `requests` sends it, and `answers` passes
//! what came back to the writer. A few requests are in flight at a time; their answers are handled one after the other. An
//! invalid answer changes nothing and is logged once; the request is retried with increasing delays.
//!
//! - `supervisor` runs the feeds of the configuration in force, `poller` is the loop of one
//! - `client` sends a request within bounds of time and size
//! - `competitions` and `markets` are what a feed asks for, `unavailable` what the upstream does not have of it
//! - `plan` computes how often from the `credits` that are left, `pace` keeps to it, `spending` keeps what was spent in
//!   the file

mod answers;
mod client;
mod competitions;
mod credits;
mod markets;
mod pace;
mod plan;
mod poller;
mod requests;
mod schedule;
mod spending;
mod supervisor;
mod unavailable;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use hyper_util::client::proxy::matcher::Matcher;
use tokio::task::JoinSet;

use self::client::{RequestError, UpstreamClient, UpstreamQuota};
use self::competitions::PolledCompetitions;
use self::markets::FeedMarkets;
use self::requests::Exchange;
use self::schedule::{PollSchedule, PolledResources};
use self::spending::Spending;
use self::unavailable::Unavailable;
use super::feed::{Feed, IngestContext};
use super::ledger::FeedKind;
use crate::clock::Moment;
use crate::config::{FeedConfig, FeedKey};
use crate::model::{Catalogue, SportId, World};
use crate::writer::WriteError;

pub use plan::PlanLimit;
pub use supervisor::Pollers;

/// The longest sleep: a clock that a test moves is read this often.
const SLEEP_MAX: Duration = Duration::from_millis(100);
/// How often the upstream is asked which competitions are active, and which events a competition has.
const LIST_EVERY_MS: u64 = 3_600_000;
/// How often a wait for credits is checked again: the wall clock may be set, and the upstream may have more.
const CREDITS_EVERY_MS: u64 = 3_600_000;
/// How many requests of a feed are in flight at a time.
const REQUESTS_MAX: usize = 4;

/// A feed that cannot be polled as it is configured.
#[derive(Debug, thiserror::Error)]
#[error("feeds.{feed}{what}")]
pub struct FeedError {
    feed: Box<str>,
    /// Begins with the name of the field, where one is at fault.
    what: String,
}

/// What all polled feeds have in common.
#[derive(Clone, Copy, Debug)]
pub struct PollSettings {
    /// Without a good read for longer, a source is stale; or for three intervals of its feed.
    pub stale_after_s: u32,
    /// Any number, for the random part of a wait.
    pub random: fn() -> u32,
}

/// A feed that is polled.
#[derive(Debug)]
struct Poller {
    config: FeedConfig,
    context: IngestContext,
    settings: PollSettings,
    feed: Feed,
    client: Arc<UpstreamClient>,
    competitions: PolledCompetitions,
    markets: FeedMarkets,
    unavailable: Unavailable,
    spending: Spending,
    schedule: PollSchedule,
    in_flight: JoinSet<Exchange>,
    /// How many requests were accounted for.
    accounted: u64,
    /// Whether the upstream has answered anything well.
    has_answered: bool,
    /// Sports of which some polls were written and more are due in the same round.
    rounds: BTreeSet<SportId>,
    /// Whether the competitions are known, and the first round has its time.
    is_first_round_placed: bool,
    quota_asked_ms: Option<u64>,
    quota: UpstreamQuota,
    /// The last failure, so that it is logged once.
    last_failure: Option<String>,
}

/// Why a poll failed.
enum PollError {
    Request(RequestError),
    Writer(WriteError),
}

impl From<RequestError> for PollError {
    fn from(error: RequestError) -> Self {
        PollError::Request(error)
    }
}

impl From<WriteError> for PollError {
    fn from(error: WriteError) -> Self {
        PollError::Writer(error)
    }
}

/// What a feed's configuration refers to.
struct PreparedFeed {
    key: String,
    client: UpstreamClient,
    competitions: PolledCompetitions,
    markets: FeedMarkets,
}

impl PreparedFeed {
    fn new(config: &FeedConfig, catalogue: &Catalogue) -> Result<Self, FeedError> {
        let wrong = |what: String| FeedError { feed: config.name.clone(), what };
        let mend = |what: String| wrong(format!(": {what}: mend that and start again"));
        let key = match &config.key {
            FeedKey::Text(key) => key.expose().to_owned(),
            FeedKey::File(path) => std::fs::read_to_string(path)
                .map_err(|error| mend(format!("cannot read key_file {}: {error}", path.display())))?,
        };
        if key.trim().is_empty() {
            return Err(mend("its key is empty".to_owned()));
        }
        let client =
            UpstreamClient::new(&config.url, key.trim(), config.timeout, config.ca.as_deref(), &Matcher::from_env());
        let client = client.map_err(|error| mend(error.to_string()))?;
        let competitions = PolledCompetitions::new(&config.sports, catalogue);
        let competitions = competitions.map_err(|error| wrong(format!(".sports: {error}")))?;
        let markets = FeedMarkets::new(&config.markets, &config.event_markets, catalogue);
        let markets = markets.map_err(|error| wrong(format!(".{error}")))?;
        Ok(PreparedFeed { key, client, competitions, markets })
    }
}

impl Poller {
    fn new(config: FeedConfig, context: IngestContext, settings: PollSettings) -> Result<Self, FeedError> {
        let prepared = PreparedFeed::new(&config, context.boards.catalogue())?;
        let PreparedFeed { key, client, competitions, markets } = prepared;
        let spending = Spending::new(&config, key.trim(), context.clock.now());
        context.ledger.open(&config.name, FeedKind::TheOddsApi, config.world);
        let mut poller = Poller {
            feed: Feed::poll(&config.name),
            config,
            context,
            settings,
            client: Arc::new(client),
            competitions,
            markets,
            unavailable: Unavailable::default(),
            spending,
            schedule: PollSchedule::default(),
            in_flight: JoinSet::new(),
            accounted: 0,
            has_answered: false,
            rounds: BTreeSet::new(),
            is_first_round_placed: false,
            quota_asked_ms: None,
            quota: UpstreamQuota::default(),
            last_failure: None,
        };
        poller.plan();
        Ok(poller)
    }

    /// Brings the schedule in line with the competitions.
    fn plan(&mut self) {
        self.schedule.plan(self.competitions.are_asked_for(), &self.resources(), self.now());
    }

    /// What is polled of each competition.
    fn resources(&self) -> Vec<PolledResources> {
        let catalogue = self.context.boards.catalogue();
        let of = |competition| PolledResources {
            odds_cost: self.cost_of(self.markets.of_odds(&competition, catalogue).len()),
            has_scores: self.config.scores_interval.is_some(),
            has_event_markets: !self.markets.of_events(&competition, catalogue).is_empty(),
            competition,
        };
        self.competitions.polled(catalogue).into_iter().map(of).collect()
    }

    /// The most that a request for so many markets costs.
    fn cost_of(&self, markets: usize) -> u64 {
        (markets * self.config.regions.iter().count()) as u64
    }

    fn now(&self) -> Moment {
        self.context.clock.now()
    }

    /// The interval that is configured.
    fn interval_ms(&self) -> u64 {
        u64::try_from(self.config.interval.as_millis()).unwrap_or(u64::MAX)
    }

    /// How long the prices of a poll count as fresh: three intervals, where that is longer than the setting.
    fn stale_after_s(&mut self, now: Moment) -> u32 {
        let interval_ms = self.spending.pace.steady_interval_ms(self.schedule.demand(now), now.unix_ms);
        let three_s = u32::try_from(interval_ms.saturating_mul(3) / 1000).unwrap_or(u32::MAX);
        self.settings.stale_after_s.max(three_s)
    }

    fn account(&self) -> (&str, FeedKind, World) {
        self.feed.account(self.config.world)
    }
}
