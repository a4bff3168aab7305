//! Keeps a world fed by polling an interface in the shape of The Odds API, one feed in one task.
//!
//! Each sport key is asked for its odds and, while an event is on, for its scores, one request after the other. A good
//! answer with odds is a complete poll: what it no longer has is closed. Anything else changes nothing, is told once, and
//! is tried again later and later.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use super::pull_credits::Spending;
use super::pull_keys::{KeyError, Keys};
use super::{FeedError, ServeError};
use crate::board::Boards;
use crate::clock::{Clock, Moment};
use crate::config::{FeedConfig, FeedKey};
use crate::ingest::the_odds_api::{self, Answer, Ask, Client, Payload, Quota, REFUSED_WAIT_MS, Trouble, read_sports};
use crate::ingest::{FeedKind, Ledger, Upstream};
use crate::model::{EventId, EventStatus, Market, News, Reason, Region, SportId, Timestamp, World};
use crate::writer::{IngestReport, Poll, PollScope, WriteError, WriterHandle};

/// The longest sleep: a clock that a test moves is looked at this often.
const NAP: Duration = Duration::from_millis(100);
/// How often the upstream is asked which competitions are on.
const KEYS_EVERY_MS: u64 = 3_600_000;
/// Polls of a sport that are due within this belong to one round.
const ROUND_GAP_MS: u64 = 1_000;
/// A wait for credits is looked at again this often: the wall clock may be set, and the upstream may have more.
const CREDITS_EVERY_MS: u64 = 3_600_000;
/// What scores of the last day cost where the upstream does not say so.
const SCORES_COST: u64 = 2;

/// What every feed works with.
#[derive(Clone, Debug)]
pub(super) struct Surroundings {
    pub(super) writer: WriterHandle,
    pub(super) boards: Arc<Boards>,
    pub(super) ledger: Arc<Ledger>,
    pub(super) clock: Clock,
    /// Without a good read for longer, a source is stale; or for three intervals of its feed.
    pub(super) stale_after_s: u32,
    /// Any number, for the part of a wait that is left to chance.
    pub(super) chance: fn() -> u32,
}

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Want {
    Keys,
    Odds,
    Scores,
}

/// A request that comes again and again.
#[derive(Debug)]
struct Task {
    want: Want,
    /// The sport key; none for the list of keys.
    key: Box<str>,
    sport: Option<SportId>,
    due_ms: u64,
    cost: u64,
}

/// A feed at work.
#[derive(Debug)]
pub(super) struct Pull {
    config: FeedConfig,
    around: Surroundings,
    client: Client,
    keys: Keys,
    spending: Spending,
    tasks: Vec<Task>,
    /// Sports of which polls were taken in and more are to come in the same round.
    rounds: BTreeSet<SportId>,
    /// Whether the sport keys are known, and the first round has its time.
    is_placed: bool,
    quota_asked_ms: Option<u64>,
    /// Nothing is asked before this, after trouble.
    held_until_ms: u64,
    quota: Quota,
    /// What was last complained of, so that it is told once.
    complaint: Option<String>,
}

/// What a request came to nothing by.
enum Failed {
    Upstream(Trouble),
    Writer(WriteError),
}

impl From<Trouble> for Failed {
    fn from(trouble: Trouble) -> Self {
        Failed::Upstream(trouble)
    }
}

impl From<WriteError> for Failed {
    fn from(error: WriteError) -> Self {
        Failed::Writer(error)
    }
}

impl Pull {
    pub(super) fn new(config: FeedConfig, around: Surroundings) -> Result<Self, ServeError> {
        let wrong = |what: String| FeedError { feed: config.name.clone(), what };
        let key = match &config.key {
            FeedKey::Text(key) => key.expose().to_owned(),
            FeedKey::File(path) => std::fs::read_to_string(path)
                .map_err(|error| wrong(format!("key_file {} cannot be read ({error})", path.display())))?,
        };
        if key.trim().is_empty() {
            return Err(wrong("its key is empty".to_owned()).into());
        }
        let client = Client::new(&config.url, key.trim(), config.timeout, config.ca.as_deref());
        let client = client.map_err(|error| wrong(error.to_string()))?;
        let keys = Keys::new(&config.sports, around.boards.catalogue());
        let keys = keys.map_err(|KeyError(key)| wrong(format!("sports: there is no sport {key:?}")))?;
        let now = around.clock.now();
        let spending = Spending::new(&config, key.trim(), now);
        around.ledger.open(&config.name, FeedKind::TheOddsApi, config.world);
        let mut pull = Pull {
            config,
            around,
            client,
            keys,
            spending,
            tasks: Vec::new(),
            rounds: BTreeSet::new(),
            is_placed: false,
            quota_asked_ms: None,
            held_until_ms: 0,
            quota: Quota::default(),
            complaint: None,
        };
        pull.plan(now);
        Ok(pull)
    }

    /// Goes on until it is dropped, or until nobody writes any more.
    pub(super) async fn run(mut self) {
        let resumed = self.spending.resume(&self.around.writer, self.now()).await;
        if resumed.is_err() || (!self.keys.are_asked_for() && self.end_others().await.is_err()) {
            return;
        }
        // What is left may have been renewed or bought while nothing ran.
        if let Some(first) = self.tasks.iter().position(|task| task.want == Want::Odds) {
            self.wait_for_credits_ms(first).await;
        }
        self.place_first_round();
        loop {
            let Some(next) = self.next() else { return };
            if self.end_rounds().await.is_err() {
                return;
            }
            self.note_upstream();
            let due_ms = self.tasks[next].due_ms.max(self.held_until_ms);
            self.sleep_until(due_ms).await;
            let now = self.now();
            let wait_ms = self.wait_for_credits_ms(next).await;
            if wait_ms > 0 {
                self.tasks[next].due_ms = now.mono_ms.saturating_add(wait_ms.min(CREDITS_EVERY_MS));
                continue;
            }
            match self.perform(next).await {
                Ok(is_asked) => self.done(next, is_asked),
                Err(Failed::Writer(WriteError::Stopped | WriteError::Died)) => return,
                Err(Failed::Writer(error)) => self.failed(next, &error.to_string(), None),
                Err(Failed::Upstream(trouble)) => self.failed(next, &trouble.to_string(), Some(&trouble)),
            }
        }
    }

    fn now(&self) -> Moment {
        self.around.clock.now()
    }

    async fn sleep_until(&self, due_ms: u64) {
        loop {
            let left_ms = due_ms.saturating_sub(self.now().mono_ms);
            if left_ms == 0 {
                return;
            }
            tokio::time::sleep(NAP.min(Duration::from_millis(left_ms))).await;
        }
    }

    fn next(&self) -> Option<usize> {
        (0..self.tasks.len()).min_by_key(|at| self.tasks[*at].due_ms)
    }

    /// After a restart the first round waits for its time, as far as the credits ask for that. It is known once the
    /// sport keys are.
    fn place_first_round(&mut self) {
        if self.is_placed {
            return;
        }
        self.is_placed = !self.keys.are_asked_for() || self.keys.are_found();
        let now = self.now();
        let wait_ms = self.spending.first_wait_ms(self.round_cost(), now);
        self.put_off(now.mono_ms.saturating_add(wait_ms));
    }

    /// Lets nothing that costs credits be asked for before a time.
    fn put_off(&mut self, until_ms: u64) {
        for task in self.tasks.iter_mut().filter(|task| task.want != Want::Keys) {
            task.due_ms = task.due_ms.max(until_ms);
        }
    }

    /// Whether odds of a sport are due now, other than those of one task.
    fn is_more_due(&self, sport: SportId, other_than: Option<usize>) -> bool {
        let interval_ms = u64::try_from(self.config.interval.as_millis()).unwrap_or(u64::MAX);
        let soon_ms = self.now().mono_ms.saturating_add(ROUND_GAP_MS.min(interval_ms / 2));
        let is_due = |task: &Task| task.want == Want::Odds && task.due_ms.max(self.held_until_ms) <= soon_ms;
        let tasks = self.tasks.iter().enumerate();
        tasks.filter(|(at, task)| Some(*at) != other_than && task.sport == Some(sport)).any(|(_, task)| is_due(task))
    }

    /// Ends the rounds that have no further poll due, because one failed or has to wait; then logs the plan.
    async fn end_rounds(&mut self) -> Result<(), WriteError> {
        let over: Vec<SportId> = self.rounds.iter().copied().filter(|sport| !self.is_more_due(*sport, None)).collect();
        for sport in over {
            self.rounds.remove(&sport);
            self.around.writer.end_round(self.config.world, sport).await?;
        }
        if self.rounds.is_empty() {
            self.spending.announce(self.round_cost(), self.now());
        }
        Ok(())
    }

    /// How long a task has to wait for credits. Where only our own count says that none are left, the upstream is asked
    /// for its list of sports, which costs nothing and says what is left.
    async fn wait_for_credits_ms(&mut self, at: usize) -> u64 {
        let (now, cost) = (self.now(), self.tasks[at].cost);
        let wait_ms = self.spending.pace.wait_for_credits_ms(cost, now.unix_ms);
        if self.tasks[at].want == Want::Odds {
            self.spending.note_used_up(cost, now);
        }
        let is_asked = self.quota_asked_ms.is_some_and(|asked| now.mono_ms.saturating_sub(asked) < CREDITS_EVERY_MS);
        if wait_ms == 0 || is_asked || !self.spending.is_unconfirmed() {
            return wait_ms;
        }
        self.quota_asked_ms = Some(now.mono_ms);
        match self.client.get("/sports", &[]).await {
            Ok(answer) => self.take_quota(answer.quota.last.unwrap_or(0), answer.quota),
            Err(Trouble::Status { quota, .. }) => self.take_quota(quota.last.unwrap_or(0), quota),
            Err(error) => tracing::debug!(feed = &*self.config.name, %error, "quota check failed"),
        }
        let now = self.now();
        self.spending.note_used_up(cost, now);
        self.spending.pace.wait_for_credits_ms(cost, now.unix_ms)
    }

    fn take_quota(&mut self, cost: u64, quota: Quota) {
        if quota.remaining.is_some() || quota.used.is_some() {
            self.quota = quota;
        }
        self.spending.account_for(cost, quota, self.now());
    }

    /// What the next request may cost.
    fn next_cost(&self) -> u64 {
        self.tasks.iter().map(|task| task.cost).max().unwrap_or(0)
    }

    /// Brings the tasks in line with the keys: those that stay keep their time, new ones are due at once.
    fn plan(&mut self, now: Moment) {
        let mut tasks = std::mem::take(&mut self.tasks);
        let mut planned = |want: Want, key: &str, sport: Option<SportId>, cost: u64| {
            let known = tasks.iter().position(|task| task.want == want && *task.key == *key);
            known.map_or_else(
                || Task { want, key: key.into(), sport, due_ms: now.mono_ms, cost },
                |at| tasks.swap_remove(at),
            )
        };
        let mut all = Vec::new();
        if self.keys.are_asked_for() {
            all.push(planned(Want::Keys, "", None, 0));
        }
        let regions = self.config.regions.iter().count() as u64;
        for (key, sport) in self.keys.iter() {
            let markets = self.markets(sport).len() as u64;
            all.push(planned(Want::Odds, key, Some(sport), regions * markets));
            if self.config.scores_interval.is_some() {
                all.push(planned(Want::Scores, key, Some(sport), SCORES_COST));
            }
        }
        self.tasks = all;
    }

    /// The names of the markets that are asked for, as far as the sport has them.
    fn markets(&self, sport: SportId) -> Vec<&'static str> {
        let kind = self.around.boards.catalogue()[sport].kind;
        self.config.markets.iter().filter(|market| market.is_of(kind)).map(|market| Market::v4_key(*market)).collect()
    }

    /// Asks, if there is anything to ask for; whether it did.
    async fn perform(&mut self, at: usize) -> Result<bool, Failed> {
        let Task { want, sport, .. } = self.tasks[at];
        let key = self.tasks[at].key.clone();
        match (want, sport) {
            (Want::Odds, Some(sport)) => self.ask_odds(at, &key, sport).await?,
            (Want::Scores, Some(sport)) if self.is_anything_on(sport) => self.ask_scores(at, &key, sport).await?,
            (Want::Scores, _) => return Ok(false),
            _ => self.ask_keys(at).await?,
        }
        Ok(true)
    }

    async fn ask_odds(&mut self, at: usize, key: &str, sport: SportId) -> Result<(), Failed> {
        let markets = self.markets(sport).join(",");
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
        let answer = self.get(at, &format!("/sports/{key}/odds"), &query).await?;
        let now = self.now();
        let payload = self.read(answer, sport, now.timestamp()).await?;
        let register = Arc::clone(self.around.boards.load_full(self.config.world).books());
        let listed = payload.listed(register.register(), self.config.regions);
        let Payload { messages, rejected, dropped, .. } = payload;
        let interval_ms = self.spending.pace.steady_interval_ms(self.round_cost(), now.unix_ms);
        let three_s = u32::try_from(interval_ms.saturating_mul(3) / 1000).unwrap_or(u32::MAX);
        let scope = PollScope { world: self.config.world, feed: self.config.name.clone(), key: key.into() };
        let has_more = self.is_more_due(sport, Some(at));
        let budget = self.spending.charge(self.next_cost(), now).budget;
        let poll = Poll {
            scope,
            sport,
            news: listed.into_iter().chain(messages.into_iter().map(|message| message.news)).collect(),
            at: now.timestamp(),
            latency_ms: u32::try_from(now.mono_ms.saturating_sub(asked_ms)).unwrap_or(u32::MAX),
            stale_after_s: self.around.stale_after_s.max(three_s),
            has_more,
            budget: Some(budget),
        };
        let report = self.around.writer.poll(poll).await?;
        self.spending.is_stored(budget);
        if has_more {
            self.rounds.insert(sport)
        } else {
            self.rounds.remove(&sport)
        };
        if report.closed > 0 {
            tracing::debug!(feed = &*self.config.name, key, closed = report.closed, "prices are no longer offered");
        }
        self.count(now.timestamp(), &report.news, &rejected, &dropped);
        Ok(())
    }

    async fn ask_scores(&mut self, at: usize, key: &str, sport: SportId) -> Result<(), Failed> {
        let query = [("daysFrom", "1"), ("dateFormat", "iso")];
        let answer = self.get(at, &format!("/sports/{key}/scores"), &query).await?;
        let charge = self.spending.charge(self.next_cost(), self.now());
        let now = self.now().timestamp();
        let payload = self.read(answer, sport, now).await?;
        // Events that nobody announced, or that are over for so long that they were taken out, stay out.
        let board = self.around.boards.load_full(self.config.world);
        let is_held = |id: &EventId| board.sport(sport).current().get(id.as_str()).is_some();
        let news = payload.messages.into_iter().map(|message| message.news).filter(|news| match news {
            News::Event(event) => is_held(&event.id),
            News::Score(score) => is_held(&score.event),
            _ => false,
        });
        let (budget, is_end) = (charge.budget, self.rounds.is_empty());
        let (writer, world) = (&self.around.writer, self.config.world);
        let report = writer.ingest_charged(world, news.collect(), is_end, Some(charge)).await?;
        self.spending.is_stored(budget);
        self.count(now, &report, &payload.rejected, &payload.dropped);
        Ok(())
    }

    async fn ask_keys(&mut self, at: usize) -> Result<(), Failed> {
        let answer = self.get(at, "/sports", &[]).await?;
        let entries = read_sports(&answer.body).map_err(|error| Trouble::Body(error.to_string().into()))?;
        if entries.is_empty() {
            return Err(Trouble::Body("it lists no sport at all".into()).into());
        }
        let active = entries.iter().filter(|entry| entry.active).map(|entry| &*entry.key);
        self.keys.expand(active, self.around.boards.catalogue());
        Ok(self.end_others().await?)
    }

    /// Closes what keys brought that are not asked for any more.
    async fn end_others(&self) -> Result<(), WriteError> {
        let kept = self.keys.iter().map(|(key, _)| key.into()).collect();
        self.around.writer.end_polls(self.config.world, &self.config.name, kept).await.map(|_| ())
    }

    /// One request; what it cost is charged whatever came of it, and is in the file before it is sent.
    async fn get(&mut self, at: usize, path: &str, query: &[(&str, &str)]) -> Result<Answer, Failed> {
        let expected = self.tasks[at].cost;
        self.spending.reserve(&self.around.writer, expected, self.now()).await?;
        let answered = self.client.get(path, query).await;
        let quota = match &answered {
            Ok(answer) => answer.quota,
            Err(Trouble::Status { quota, .. }) => *quota,
            Err(_) => Quota::default(),
        };
        let cost = quota.last.unwrap_or(match &answered {
            // A refusal costs nothing, and neither does a request that was not sent.
            Err(Trouble::Status { .. } | Trouble::Connect(_)) => 0,
            _ => expected,
        });
        self.take_quota(cost, quota);
        if answered.is_ok() {
            self.tasks[at].cost = cost;
            self.spending.announce_silence(quota, self.now());
        }
        Ok(answered?)
    }

    /// Reads a payload on a thread of its own: a long one takes a while.
    async fn read(&self, answer: Answer, sport: SportId, now: Timestamp) -> Result<Payload, Trouble> {
        let catalogue = Arc::clone(self.around.boards.catalogue());
        let odds_format = Some(self.config.odds_format);
        let read = tokio::task::spawn_blocking(move || {
            the_odds_api::read(&answer.body, Ask { catalogue: &catalogue, sport: Some(sport), odds_format, now })
        });
        let unusable = |why: String| Trouble::Body(why.into());
        let payload = read.await.map_err(|error| unusable(error.to_string()))?;
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
        let board = self.around.boards.load_full(self.config.world);
        let now = self.now().timestamp();
        let index = board.sport(sport).current();
        let mut open =
            [EventStatus::Live, EventStatus::Scheduled].into_iter().flat_map(|status| index.with_status(status));
        open.any(|node| node.event().commence <= now)
    }

    fn round_cost(&self) -> u64 {
        self.tasks.iter().map(|task| task.cost).sum()
    }

    /// Decides when a task comes again that went well, or had nothing to ask for.
    fn done(&mut self, at: usize, is_asked: bool) {
        let now = self.now();
        if is_asked {
            self.spending.pace.succeeded();
            if self.complaint.take().is_some() {
                tracing::info!(feed = &*self.config.name, "the feed is good again");
            }
        }
        let scores_ms =
            self.config.scores_interval.map_or(0, |every| u64::try_from(every.as_millis()).unwrap_or(u64::MAX));
        let (round_cost, cost) = (self.round_cost(), self.tasks[at].cost);
        let interval_ms = self.spending.pace.interval_ms(round_cost, now.unix_ms);
        if self.tasks[at].want == Want::Odds {
            self.spending.note_used_up(cost, now);
        }
        if is_asked && cost > 0 {
            let gap_ms = self.spending.pace.gap_ms(cost, round_cost, now.unix_ms);
            self.put_off(now.mono_ms.saturating_add(gap_ms));
        }
        let task = &mut self.tasks[at];
        let wait_ms = match task.want {
            Want::Keys => KEYS_EVERY_MS,
            Want::Odds => interval_ms,
            Want::Scores => scores_ms.max(interval_ms),
        };
        task.due_ms = now.mono_ms.saturating_add(wait_ms);
        if task.want == Want::Keys {
            self.plan(now);
            self.place_first_round();
        }
    }

    /// Notes a failure and decides when to try again.
    fn failed(&mut self, at: usize, told: &str, trouble: Option<&Trouble>) {
        let now = self.now();
        let status = match trouble {
            Some(Trouble::Status { status, retry_after_s, .. }) => Some((*status, *retry_after_s)),
            _ => None,
        };
        match status {
            Some((401 | 403, _)) => self.held_until_ms = now.mono_ms.saturating_add(REFUSED_WAIT_MS),
            Some((300..=428 | 430..=499, _)) => {
                self.tasks[at].due_ms = now.mono_ms.saturating_add(REFUSED_WAIT_MS);
            }
            _ => {
                let asked_ms = status.and_then(|(_, retry)| retry).map(|retry_s| retry_s.saturating_mul(1000));
                let wait_ms = self.spending.pace.failed(asked_ms, (self.around.chance)());
                self.held_until_ms = now.mono_ms.saturating_add(wait_ms);
            }
        }
        let key = &*self.tasks[at].key;
        let told = if key.is_empty() { told.to_owned() } else { format!("{key}: {told}") };
        self.around.ledger.failed(self.feed(), now.timestamp(), &told);
        if self.complaint.as_deref() == Some(&told) {
            tracing::debug!(feed = &*self.config.name, error = told, "still no good answer");
        } else {
            tracing::warn!(feed = &*self.config.name, error = told, "no good answer; what is held stays as it is");
        }
        self.complaint = Some(told);
    }

    fn feed(&self) -> (&str, FeedKind, World) {
        (&self.config.name, FeedKind::TheOddsApi, self.config.world)
    }

    fn count(
        &self,
        at: Timestamp,
        report: &IngestReport,
        rejected: &[u64; Reason::COUNT],
        dropped: &[u64; Reason::COUNT],
    ) {
        let unread = Reason::ALL.into_iter().zip(rejected.iter().zip(dropped));
        let unread = unread.map(|(reason, (rejected, dropped))| (reason, rejected + dropped));
        let unread = unread.filter(|(_, count)| *count > 0);
        self.around.ledger.count(self.feed(), at, report.accepted(), unread.chain(report.reasons()));
    }

    /// Shows what the upstream allows and when it is asked next.
    fn note_upstream(&mut self) {
        let now = self.now();
        let due_ms = self.next().map_or(0, |at| self.tasks[at].due_ms.max(self.held_until_ms));
        let wait_s = u32::try_from(due_ms.saturating_sub(now.mono_ms) / 1000).unwrap_or(u32::MAX);
        let upstream = Upstream {
            remaining: self.quota.remaining,
            used: self.quota.used,
            budget_left: self.spending.pace.left_today(now.unix_ms),
            next_poll: Some(self.spending.used_up_until().unwrap_or(now.timestamp().plus_seconds(wait_s))),
            used_up_until: self.spending.used_up_until(),
        };
        self.around.ledger.upstream(self.feed(), upstream);
    }
}
