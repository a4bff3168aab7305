//! Polls an interface in the shape of The Odds API, one task for each feed.
//!
//! The odds of each sport key and, while an event is on, its scores are requested one after the other:
//! `schedule` knows when each is due, `requests` sends it and hands the answer to the writer. An answer that is not good
//! changes nothing and is logged once; the request is retried with increasing delays.
//!
//! - `supervisor` runs the feeds of the configuration in force
//! - `client` sends a request within bounds of time and size
//! - `pace` decides how often, by the `credits` that are left; `spending` keeps what was spent in the file
//! - `sport_keys` are the sport keys that a feed asks for

mod client;
mod credits;
mod pace;
mod requests;
mod schedule;
mod spending;
mod sport_keys;
mod supervisor;

use std::collections::BTreeSet;
use std::time::Duration;

use hyper_util::client::proxy::matcher::Matcher;

use self::client::{RequestError, UpstreamClient, UpstreamQuota};
use self::pace::REFUSED_WAIT_MS;
use self::schedule::{PollSchedule, PollSubject};
use self::spending::Spending;
use self::sport_keys::{SportKeys, UnknownSport};
use super::feed::{Feed, IngestContext};
use super::ledger::{FeedKind, Upstream};
use crate::clock::Moment;
use crate::config::{FeedConfig, FeedKey};
use crate::model::{Catalogue, SportId, World};
use crate::writer::WriteError;

pub use supervisor::Pollers;

/// The longest sleep: a clock that a test moves is read this often.
const SLEEP_MAX: Duration = Duration::from_millis(100);
/// How often the upstream is asked which competitions are on.
const SPORT_KEYS_EVERY_MS: u64 = 3_600_000;
/// How often a wait for credits is checked again: the wall clock may be set, and the upstream may have more.
const CREDITS_EVERY_MS: u64 = 3_600_000;

/// A feed that cannot be polled as it is configured.
#[derive(Debug, thiserror::Error)]
#[error("feeds.{feed}: {what}: mend that and start again")]
pub struct FeedError {
    feed: Box<str>,
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
    client: UpstreamClient,
    keys: SportKeys,
    spending: Spending,
    schedule: PollSchedule,
    /// Sports of which some polls were written and more are due in the same round.
    rounds: BTreeSet<SportId>,
    /// Whether the sport keys are known, and the first round has its time.
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
    keys: SportKeys,
}

impl PreparedFeed {
    fn new(config: &FeedConfig, catalogue: &Catalogue) -> Result<Self, FeedError> {
        let wrong = |what: String| FeedError { feed: config.name.clone(), what };
        let key = match &config.key {
            FeedKey::Text(key) => key.expose().to_owned(),
            FeedKey::File(path) => std::fs::read_to_string(path)
                .map_err(|error| wrong(format!("cannot read key_file {}: {error}", path.display())))?,
        };
        if key.trim().is_empty() {
            return Err(wrong("its key is empty".to_owned()));
        }
        let client =
            UpstreamClient::new(&config.url, key.trim(), config.timeout, config.ca.as_deref(), &Matcher::from_env());
        let client = client.map_err(|error| wrong(error.to_string()))?;
        let keys = SportKeys::new(&config.sports, catalogue);
        let keys = keys.map_err(|UnknownSport(key)| wrong(format!("sports: there is no sport {key:?}")))?;
        Ok(PreparedFeed { key, client, keys })
    }
}

impl Poller {
    fn new(config: FeedConfig, context: IngestContext, settings: PollSettings) -> Result<Self, FeedError> {
        let PreparedFeed { key, client, keys } = PreparedFeed::new(&config, context.boards.catalogue())?;
        let now = context.clock.now();
        let spending = Spending::new(&config, key.trim(), now);
        context.ledger.open(&config.name, FeedKind::TheOddsApi, config.world);
        let mut schedule = PollSchedule::default();
        schedule.plan(&keys, &config, context.boards.catalogue(), now);
        Ok(Poller {
            feed: Feed::poll(&config.name),
            config,
            context,
            settings,
            client,
            keys,
            spending,
            schedule,
            rounds: BTreeSet::new(),
            is_first_round_placed: false,
            quota_asked_ms: None,
            quota: UpstreamQuota::default(),
            last_failure: None,
        })
    }

    /// Polls until it is dropped, or until the writer has ended.
    async fn run(mut self) {
        let resumed = self.spending.resume(&self.context.writer, self.now()).await;
        if resumed.is_err() || (!self.keys.are_asked_for() && self.end_other_polls().await.is_err()) {
            return;
        }
        // Credits may have been renewed or bought while nothing ran.
        if let Some(first) = self.schedule.first_odds() {
            self.wait_for_credits_ms(first).await;
        }
        self.place_first_round();
        loop {
            let Some(next) = self.schedule.next() else { return };
            if self.end_rounds().await.is_err() {
                return;
            }
            self.note_upstream();
            self.sleep_until(self.schedule.due_ms(next)).await;
            let now = self.now();
            let wait_ms = self.wait_for_credits_ms(next).await;
            if wait_ms > 0 {
                self.schedule.set_due(next, now.mono_ms.saturating_add(wait_ms.min(CREDITS_EVERY_MS)));
                continue;
            }
            match self.perform(next).await {
                Ok(is_asked) => self.succeeded(next, is_asked),
                Err(PollError::Writer(WriteError::Stopped | WriteError::Died)) => return,
                Err(PollError::Writer(error)) => self.failed(next, &error.to_string(), None),
                Err(PollError::Request(error)) => self.failed(next, &error.to_string(), Some(&error)),
            }
        }
    }

    fn now(&self) -> Moment {
        self.context.clock.now()
    }

    async fn sleep_until(&self, due_ms: u64) {
        loop {
            let left_ms = due_ms.saturating_sub(self.now().mono_ms);
            if left_ms == 0 {
                return;
            }
            tokio::time::sleep(SLEEP_MAX.min(Duration::from_millis(left_ms))).await;
        }
    }

    /// After a restart the first round waits for its time, if credits are short. Its time is known once the sport keys
    /// are.
    fn place_first_round(&mut self) {
        if self.is_first_round_placed {
            return;
        }
        self.is_first_round_placed = !self.keys.are_asked_for() || self.keys.are_found();
        let now = self.now();
        let wait_ms = self.spending.first_wait_ms(self.schedule.round_cost(), now);
        self.schedule.put_off(now.mono_ms.saturating_add(wait_ms));
    }

    /// Ends the rounds that have no further poll due, because one failed or has to wait; then logs the plan.
    async fn end_rounds(&mut self) -> Result<(), WriteError> {
        let now = self.now();
        let is_over = |sport: &SportId| !self.schedule.is_more_due(*sport, None, &self.config, now);
        let over: Vec<SportId> = self.rounds.iter().copied().filter(is_over).collect();
        for sport in over {
            self.rounds.remove(&sport);
            self.context.writer.end_round(self.config.world, sport).await?;
        }
        if self.rounds.is_empty() {
            self.spending.announce(self.schedule.round_cost(), self.now());
        }
        Ok(())
    }

    /// How long a task has to wait for credits. Where only our own count says that none are left, the upstream is asked
    /// for its list of sports, which costs nothing and says what is left.
    async fn wait_for_credits_ms(&mut self, at: usize) -> u64 {
        let (now, cost) = (self.now(), self.schedule.task(at).cost);
        let wait_ms = self.spending.pace.wait_for_credits_ms(cost, now.unix_ms);
        if self.schedule.task(at).subject == PollSubject::Odds {
            self.spending.note_used_up(cost, now);
        }
        let is_asked = self.quota_asked_ms.is_some_and(|asked| now.mono_ms.saturating_sub(asked) < CREDITS_EVERY_MS);
        if wait_ms == 0 || is_asked || !self.spending.is_unconfirmed() {
            return wait_ms;
        }
        self.quota_asked_ms = Some(now.mono_ms);
        match self.client.get("/sports", &[]).await {
            Ok(response) => self.take_quota(response.quota.last.unwrap_or(0), response.quota),
            Err(RequestError::Status { quota, .. }) => self.take_quota(quota.last.unwrap_or(0), quota),
            Err(error) => tracing::debug!(feed = &*self.config.name, %error, "quota check failed"),
        }
        let now = self.now();
        self.spending.note_used_up(cost, now);
        self.spending.pace.wait_for_credits_ms(cost, now.unix_ms)
    }

    fn take_quota(&mut self, cost: u64, quota: UpstreamQuota) {
        if quota.remaining.is_some() || quota.used.is_some() {
            self.quota = quota;
        }
        self.spending.account_for(cost, quota, self.now());
    }

    /// Decides when a task comes again that succeeded, or had nothing to ask for.
    fn succeeded(&mut self, at: usize, is_asked: bool) {
        let now = self.now();
        if is_asked {
            self.spending.pace.succeeded();
            if self.last_failure.take().is_some() {
                tracing::info!(feed = &*self.config.name, "poll succeeded again");
            }
        }
        let scores_ms =
            self.config.scores_interval.map_or(0, |every| u64::try_from(every.as_millis()).unwrap_or(u64::MAX));
        let (round_cost, task) = (self.schedule.round_cost(), self.schedule.task(at));
        let (subject, cost) = (task.subject, task.cost);
        let interval_ms = self.spending.pace.interval_ms(round_cost, now.unix_ms);
        if subject == PollSubject::Odds {
            self.spending.note_used_up(cost, now);
        }
        if is_asked && cost > 0 {
            let gap_ms = self.spending.pace.gap_ms(cost, round_cost, now.unix_ms);
            self.schedule.put_off(now.mono_ms.saturating_add(gap_ms));
        }
        let wait_ms = match subject {
            PollSubject::SportKeys => SPORT_KEYS_EVERY_MS,
            PollSubject::Odds => interval_ms,
            PollSubject::Scores => scores_ms.max(interval_ms),
        };
        self.schedule.set_due(at, now.mono_ms.saturating_add(wait_ms));
        if subject == PollSubject::SportKeys {
            self.schedule.plan(&self.keys, &self.config, self.context.boards.catalogue(), now);
            self.place_first_round();
        }
    }

    /// Notes a failure and decides when to try again.
    fn failed(&mut self, at: usize, why: &str, error: Option<&RequestError>) {
        let now = self.now();
        let status = match error {
            Some(RequestError::Status { status, retry_after_s, .. }) => Some((*status, *retry_after_s)),
            _ => None,
        };
        match status {
            Some((401 | 403, _)) => self.schedule.hold_until(now.mono_ms.saturating_add(REFUSED_WAIT_MS)),
            Some((300..=428 | 430..=499, _)) => {
                self.schedule.set_due(at, now.mono_ms.saturating_add(REFUSED_WAIT_MS));
            }
            _ => {
                let asked_ms = status.and_then(|(_, retry)| retry).map(|retry_s| retry_s.saturating_mul(1000));
                let wait_ms = self.spending.pace.failed(asked_ms, (self.settings.random)());
                self.schedule.hold_until(now.mono_ms.saturating_add(wait_ms));
            }
        }
        let key = &*self.schedule.task(at).key;
        let why = if key.is_empty() { why.to_owned() } else { format!("{key}: {why}") };
        self.context.ledger.failed(self.account(), now.timestamp(), &why);
        if self.last_failure.as_deref() == Some(&why) {
            tracing::debug!(feed = &*self.config.name, error = why, "poll failed again");
        } else {
            tracing::warn!(feed = &*self.config.name, error = why, "poll failed; keeping the last prices");
        }
        self.last_failure = Some(why);
    }

    fn account(&self) -> (&str, FeedKind, World) {
        self.feed.account(self.config.world)
    }

    /// Notes in the feed's account what the upstream allows and when it is asked next.
    fn note_upstream(&mut self) {
        let now = self.now();
        let due_ms = self.schedule.next().map_or(0, |at| self.schedule.due_ms(at));
        let wait_s = u32::try_from(due_ms.saturating_sub(now.mono_ms) / 1000).unwrap_or(u32::MAX);
        let upstream = Upstream {
            remaining: self.quota.remaining,
            used: self.quota.used,
            budget_left: self.spending.pace.left_today(now.unix_ms),
            next_poll: Some(self.spending.used_up_until().unwrap_or(now.timestamp().plus_seconds(wait_s))),
            used_up_until: self.spending.used_up_until(),
            budget_per_day: self.spending.pace.budget_per_day(),
            plan: self.spending.pace.outlook(self.schedule.round_cost(), now.unix_ms),
        };
        self.context.ledger.upstream(self.account(), upstream);
    }
}
