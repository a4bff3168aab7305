//! The loop of a feed:
//!
//! 1. end the rounds that have no further poll due
//! 2. start the requests that are due, as far as the credits and the bound on requests in flight allow
//! 3. wait for an answer, or until the next request is due
//! 4. account for the answer, take it over, and decide when its request comes again

use std::time::Duration;

use super::client::{RequestError, UpstreamQuota};
use super::pace::REFUSED_WAIT_MS;
use super::requests::Exchange;
use super::schedule::{PollSubject, TaskId};
use super::{CREDITS_EVERY_MS, LIST_EVERY_MS, PollError, Poller, REQUESTS_MAX, SLEEP_MAX};
use crate::ingest::ledger::{SkippedPoll, Upstream};
use crate::model::SportId;
use crate::writer::WriteError;

/// How many intervals an event without prices waits for its next poll.
const EMPTY_EVENT_INTERVALS: u64 = 10;

impl Poller {
    /// Polls until it is dropped, or until the writer has ended.
    pub(super) async fn run(mut self) {
        let resumed = self.spending.resume(&self.context.writer, self.now()).await;
        if resumed.is_err() || (!self.competitions.are_asked_for() && self.end_other_polls().await.is_err()) {
            return;
        }
        // Credits may have been renewed or bought while nothing ran.
        if let Some(first) = self.schedule.first_odds() {
            self.wait_for_credits_ms(&first).await;
        }
        self.place_first_round();
        while !self.schedule.is_empty() {
            if self.end_rounds().await.is_err() {
                return;
            }
            let Ok(until_ms) = self.start_due().await else { return };
            self.note_upstream();
            if let Some(exchange) = self.wait(until_ms).await
                && self.finish(exchange).await.is_err()
            {
                return;
            }
        }
    }

    /// After a restart the first round waits for its time, if credits are short. Its time is known once the competitions
    /// are.
    fn place_first_round(&mut self) {
        if self.is_first_round_placed {
            return;
        }
        self.is_first_round_placed = !self.competitions.are_asked_for() || self.competitions.are_found();
        let now = self.now();
        let wait_ms = self.spending.first_wait_ms(self.schedule.demand(now), now);
        self.schedule.put_off(now.mono_ms.saturating_add(wait_ms));
    }

    /// Ends the rounds that have no further poll due, because one failed or has to wait; then logs the plan.
    async fn end_rounds(&mut self) -> Result<(), WriteError> {
        let (now, interval_ms) = (self.now(), self.interval_ms());
        let is_over = |sport: &SportId| !self.schedule.is_more_due(*sport, None, interval_ms, now);
        let over: Vec<SportId> = self.rounds.iter().copied().filter(is_over).collect();
        for sport in over {
            self.rounds.remove(&sport);
            self.context.writer.end_round(self.config.world, sport).await?;
        }
        if self.rounds.is_empty() && self.in_flight.is_empty() {
            self.spending.announce(self.schedule.demand(now), now);
        }
        Ok(())
    }

    /// Starts the requests that are due; returns when to look again if no answer comes before.
    async fn start_due(&mut self) -> Result<u64, WriteError> {
        loop {
            let Some((id, due_ms)) = self.schedule.next() else { return Ok(u64::MAX) };
            let now = self.now();
            if due_ms > now.mono_ms {
                return Ok(due_ms);
            }
            if self.in_flight.len() >= self.requests_max() {
                return Ok(u64::MAX);
            }
            let wait_ms = self.wait_for_credits_ms(&id).await;
            if wait_ms > 0 && !self.in_flight.is_empty() {
                // What is in flight may cost less than was reserved for it.
                return Ok(u64::MAX);
            }
            if wait_ms > 0 {
                self.schedule.set_due(&id, now.mono_ms.saturating_add(wait_ms.min(CREDITS_EVERY_MS)));
                continue;
            }
            self.start(&id).await?;
        }
    }

    /// How many requests may be in flight: one until the upstream has answered well and what it has left is known, after
    /// a failure, and where credits do not suffice for a whole round.
    fn requests_max(&mut self) -> usize {
        let now = self.now();
        let is_one = !self.has_answered
            || !self.spending.is_quota_known(now)
            || self.spending.pace.has_failed()
            || self.spending.pace.is_short(self.schedule.demand(now), now.unix_ms);
        if is_one { 1 } else { REQUESTS_MAX }
    }

    /// Sends the request of a task, if there is anything to ask for. What it may cost is in the file before.
    async fn start(&mut self, id: &TaskId) -> Result<(), WriteError> {
        let now = self.now();
        let Some(request) = self.request(id) else {
            self.skip(id);
            return Ok(());
        };
        let reserve = self.schedule.cost_in_flight().saturating_add(request.cost_max);
        if matches!(id.subject, PollSubject::Odds | PollSubject::EventOdds) {
            self.spending.polls(now.timestamp());
        }
        match self.spending.reserve(&self.context.writer, reserve, now).await {
            Err(error @ (WriteError::Stopped | WriteError::Died)) => return Err(error),
            Err(error) => {
                self.failed(id, &error.to_string(), None);
                return Ok(());
            }
            Ok(()) => {}
        }
        // The process may have been stopped meanwhile, and another node polls by now.
        if !self.context.writer.is_in_turn() {
            return Err(WriteError::Stopped);
        }
        self.schedule.set_in_flight(id, true);
        let (client, catalogue) = (self.client.clone(), self.context.boards.catalogue().clone());
        self.in_flight.spawn(request.send(client, catalogue, self.context.clock.clone(), self.accounted));
        Ok(())
    }

    /// Decides when a task comes again that had nothing to ask for.
    fn skip(&mut self, id: &TaskId) {
        let now = self.now();
        let wait_ms = match id.subject {
            // Looking for an event that is on costs nothing, so it is done at the configured interval.
            PollSubject::Scores => self.spending.pace.configured().scores_ms,
            _ => LIST_EVERY_MS,
        };
        self.schedule.set_idle(id, true);
        self.schedule.set_due(id, now.mono_ms.saturating_add(wait_ms));
    }

    /// What is stored as spent ahead: the requests in flight, and the one that comes next.
    pub(super) fn reserve_ahead(&self) -> u64 {
        self.schedule.cost_in_flight().saturating_add(self.schedule.next_cost())
    }

    /// Waits for an answer, or until a time.
    async fn wait(&mut self, until_ms: u64) -> Option<Exchange> {
        loop {
            let left_ms = until_ms.saturating_sub(self.now().mono_ms);
            if left_ms == 0 {
                return None;
            }
            tokio::select! {
                Some(answered) = self.in_flight.join_next(), if !self.in_flight.is_empty() => match answered {
                    Ok(exchange) => return Some(exchange),
                    Err(error) => self.lost_request(&error),
                },
                () = tokio::time::sleep(SLEEP_MAX.min(Duration::from_millis(left_ms))) => {}
            }
        }
    }

    /// A request panicked. Which one is not known, so all are due again once none is in flight.
    fn lost_request(&mut self, error: &tokio::task::JoinError) {
        tracing::error!(feed = &*self.config.name, %error, "a request of the feed failed to run");
        if self.in_flight.is_empty() {
            self.schedule.release_in_flight(self.now().mono_ms.saturating_add(REFUSED_WAIT_MS));
        }
    }

    /// How long a task has to wait for credits. Where only our own count says that none are left, the upstream is asked
    /// for its list of sports, which costs nothing and says what is left.
    async fn wait_for_credits_ms(&mut self, id: &TaskId) -> u64 {
        let (now, cost) = (self.now(), self.schedule.reserve(id));
        let in_flight = self.schedule.cost_in_flight();
        let wait_ms = self.spending.pace.wait_for_credits_ms(cost.saturating_add(in_flight), now.unix_ms);
        if in_flight > 0 {
            return wait_ms;
        }
        if self.schedule.is_main(id) {
            self.spending.note_used_up(cost, now);
        }
        let is_asked = self.quota_asked_ms.is_some_and(|asked| now.mono_ms.saturating_sub(asked) < CREDITS_EVERY_MS);
        if wait_ms == 0 || is_asked || !self.spending.is_unconfirmed() || !self.context.writer.is_in_turn() {
            return wait_ms;
        }
        self.quota_asked_ms = Some(now.mono_ms);
        match self.client.get("/sports", &[]).await {
            Ok(response) => self.take_quota(response.quota.last.unwrap_or(0), response.quota, true),
            Err(RequestError::Status { quota, .. }) => self.take_quota(quota.last.unwrap_or(0), *quota, true),
            Err(error) => tracing::debug!(feed = &*self.config.name, %error, "quota check failed"),
        }
        let now = self.now();
        self.spending.note_used_up(cost, now);
        self.spending.pace.wait_for_credits_ms(cost, now.unix_ms)
    }

    fn take_quota(&mut self, cost: u64, quota: UpstreamQuota, is_newest: bool) {
        if quota.remaining.is_some() || quota.used.is_some() {
            self.quota = quota;
        }
        self.accounted += 1;
        self.spending.account_for(cost, quota, is_newest, self.now());
    }

    /// Accounts for a request whatever came of it, and takes over what did. Fails when the writer has ended.
    async fn finish(&mut self, mut exchange: Exchange) -> Result<(), WriteError> {
        let id = exchange.id.clone();
        self.schedule.set_in_flight(&id, false);
        self.take_quota(exchange.cost, exchange.quota, exchange.sent_after == self.accounted);
        if exchange.is_answered {
            self.schedule.set_cost(&id, exchange.cost);
            self.spending.note_report(exchange.quota, self.now());
        }
        // Its competition may have ended meanwhile.
        if !self.schedule.has(&id) {
            return Ok(());
        }
        let outcome = std::mem::replace(&mut exchange.outcome, Err(RequestError::Body("".into())));
        let taken = match outcome {
            Ok(answer) => self.take(&exchange, answer).await,
            Err(error) => Err(PollError::Request(error)),
        };
        match taken {
            Ok(()) => self.succeeded(&exchange),
            Err(PollError::Writer(error @ (WriteError::Stopped | WriteError::Died))) => return Err(error),
            Err(PollError::Writer(error)) => self.failed(&id, &error.to_string(), None),
            Err(PollError::Request(error)) => {
                if !self.take_missing(&exchange, &error).await? {
                    self.failed(&id, &error.to_string(), Some(&error));
                }
            }
        }
        Ok(())
    }

    /// Decides when a task comes again that succeeded.
    fn succeeded(&mut self, exchange: &Exchange) {
        let (id, now) = (&exchange.id, self.now());
        self.spending.pace.succeeded();
        self.has_answered = true;
        if self.last_failure.take().is_some() {
            tracing::info!(feed = &*self.config.name, "poll succeeded again");
        }
        match id.subject {
            PollSubject::Odds => {
                self.schedule.set_idle(id, false);
                self.unavailable.found(id.key());
                self.accept_markets(exchange);
            }
            PollSubject::EventOdds => self.accept_markets(exchange),
            PollSubject::Scores => self.schedule.set_idle(id, false),
            PollSubject::Competitions | PollSubject::Events => {}
        }
        let (demand, cost) = (self.schedule.demand(now), self.schedule.reserve(id));
        let intervals = self.spending.pace.intervals(demand, now.unix_ms);
        if self.schedule.is_main(id) {
            self.spending.note_used_up(cost, now);
        }
        if cost > 0 {
            let gap_ms = self.spending.pace.gap_ms(cost, demand, now.unix_ms);
            self.schedule.put_off(now.mono_ms.saturating_add(gap_ms));
        }
        let wait_ms = match id.subject {
            PollSubject::Competitions | PollSubject::Events => LIST_EVERY_MS,
            PollSubject::EventOdds if self.schedule.is_idle(id) => {
                intervals.odds_ms.saturating_mul(EMPTY_EVENT_INTERVALS)
            }
            PollSubject::Odds | PollSubject::EventOdds => intervals.odds_ms,
            PollSubject::Scores => intervals.scores_ms,
        };
        self.schedule.set_due(id, now.mono_ms.saturating_add(wait_ms));
        if id.subject == PollSubject::Competitions {
            self.place_first_round();
        }
    }

    /// Notes a failure and decides when to try again.
    fn failed(&mut self, id: &TaskId, why: &str, error: Option<&RequestError>) {
        let now = self.now();
        let status = match error {
            Some(RequestError::Status { status, retry_after_s, .. }) => Some((*status, *retry_after_s)),
            _ => None,
        };
        match status {
            Some((401 | 403, _)) => self.schedule.hold_until(now.mono_ms.saturating_add(REFUSED_WAIT_MS)),
            Some((300..=428 | 430..=499, _)) => {
                self.schedule.set_due(id, now.mono_ms.saturating_add(REFUSED_WAIT_MS));
            }
            // Another request that was in flight has failed before: that is one failure.
            _ if self.schedule.is_held(now) => {}
            _ => {
                let asked_ms = status.and_then(|(_, retry)| retry).map(|retry_s| retry_s.saturating_mul(1000));
                let wait_ms = self.spending.pace.failed(asked_ms, (self.settings.random)());
                self.schedule.hold_until(now.mono_ms.saturating_add(wait_ms));
            }
        }
        let key = id.key();
        let why = if key.is_empty() { why.to_owned() } else { format!("{key}: {why}") };
        self.context.ledger.failed(self.account(), now.timestamp(), &why);
        if self.last_failure.as_deref() == Some(&why) {
            tracing::debug!(feed = &*self.config.name, error = why, "poll failed again");
        } else {
            tracing::warn!(feed = &*self.config.name, error = why, "poll failed; keeping the last prices");
        }
        self.last_failure = Some(why);
    }

    /// Notes in the feed's account what the upstream allows, how that is spent, and when it is asked next.
    fn note_upstream(&mut self) {
        let now = self.now();
        let due_ms = self.schedule.next().map_or(0, |(_, due_ms)| due_ms);
        let wait_s = u32::try_from(due_ms.saturating_sub(now.mono_ms) / 1000).unwrap_or(u32::MAX);
        let upstream = Upstream {
            remaining: self.quota.remaining,
            used: self.quota.used,
            budget_left: self.spending.pace.left_today(now.unix_ms),
            next_poll: Some(self.spending.used_up_until().unwrap_or(now.timestamp().plus_seconds(wait_s))),
            used_up_until: self.spending.used_up_until(),
            budget_per_day: self.spending.pace.budget_per_day(),
            plan: self.spending.pace.outlook(self.schedule.demand(now), now.unix_ms),
            skipped: self.skipped(),
        };
        self.context.ledger.upstream(self.account(), upstream);
    }

    /// What is configured and not polled now, and why.
    fn skipped(&self) -> Vec<SkippedPoll> {
        let now = self.now();
        let at = |until_ms: u64| {
            let wait_s = u32::try_from(until_ms.saturating_sub(now.mono_ms).div_ceil(1000)).unwrap_or(u32::MAX);
            now.timestamp().plus_seconds(wait_s)
        };
        let inactive = self.competitions.inactive(self.context.boards.catalogue());
        let listed_ms = self.schedule.list_due_ms().unwrap_or(now.mono_ms);
        let inactive = inactive.into_iter().map(|(competition, why)| SkippedPoll {
            competition: competition.into(),
            market: None,
            why: why.into(),
            until: at(listed_ms),
        });
        let missing = self.unavailable.iter(now.mono_ms).map(|(competition, market, entry)| SkippedPoll {
            competition: competition.into(),
            market: market.map(Box::from),
            why: entry.why.clone(),
            until: at(entry.until_ms),
        });
        inactive.chain(missing).collect()
    }
}
