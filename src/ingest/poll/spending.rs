//! What a polled feed spends, and what of it is stored.
//!
//! A request is stored as spent before it is sent: usually with the commit of the request before, else with one of its
//! own. So a process that is killed at any moment, again and again, never spends more than its budget.

use std::time::Duration;

use sha2::{Digest, Sha256};

use super::client::UpstreamQuota;
use super::pace::Pace;
use super::plan::{CreditPlan, Demand, PlanLimit, PollIntervals};
use crate::clock::Moment;
use crate::config::FeedConfig;
use crate::model::{FeedBudget, Region, Timestamp};
use crate::writer::{FeedCharge, WriteError, WriterHandle};

#[derive(Debug)]
pub(super) struct Spending {
    feed: Box<str>,
    pub(super) pace: Pace,
    /// What is stored.
    stored: Option<FeedBudget>,
    polled: Option<Timestamp>,
    /// When the process before this one polled, if it asked for the same.
    polled_before: Option<Timestamp>,
    account: u32,
    scope: u32,
    /// The plan that was logged.
    announced: Option<CreditPlan>,
    /// Whether the upstream reports no quota.
    is_silent: bool,
    /// What the upstream had left when it was last known, less what was spent since.
    is_estimate: bool,
    used_up_until: Option<Timestamp>,
    is_end_announced: bool,
}

impl Spending {
    pub(super) fn new(config: &FeedConfig, key: &str, now: Moment) -> Self {
        let millis = |interval: Duration| u64::try_from(interval.as_millis()).unwrap_or(u64::MAX);
        let odds_ms = millis(config.interval);
        let intervals = PollIntervals { odds_ms, scores_ms: config.scores_interval.map_or(odds_ms, millis) };
        Spending {
            feed: config.name.clone(),
            pace: Pace::new(intervals, config.requests_per_day, now.unix_ms),
            stored: None,
            polled: None,
            polled_before: None,
            account: checksum(&[&config.url, key]),
            scope: scope(config),
            announced: None,
            is_silent: false,
            is_estimate: false,
            used_up_until: None,
            is_end_announced: false,
        }
    }

    /// Resumes from what is stored. Credits of another account do not count, only the day's spending does.
    pub(super) async fn resume(&mut self, writer: &WriterHandle, now: Moment) -> Result<(), WriteError> {
        let Some(stored) = writer.feed_budget(&self.feed).await? else { return Ok(()) };
        let is_same = stored.account == self.account;
        let stored = FeedBudget { reported: stored.reported.filter(|_| is_same), ..stored };
        self.pace.resume(&stored, now.unix_ms);
        self.is_estimate = stored.reported.is_some();
        self.polled_before = stored.polled.filter(|_| is_same && stored.scope == self.scope);
        self.polled = self.polled_before;
        self.stored = Some(stored);
        Ok(())
    }

    /// How long the first round waits: where credits are short, a restart does not begin a round before its time.
    pub(super) fn first_wait_ms(&mut self, demand: Demand, now: Moment) -> u64 {
        let Some(polled) = self.polled_before else { return 0 };
        let Some(interval_ms) = self.pace.stretched_ms(demand, now.unix_ms) else { return 0 };
        match u64::try_from(now.unix_ms - polled.unix_ms()) {
            Ok(passed_ms) => interval_ms.saturating_sub(passed_ms),
            // The clock was set back: how long ago that was is unknown.
            Err(_) => 0,
        }
    }

    /// Records that odds are about to be requested.
    pub(super) fn polls(&mut self, now: Timestamp) {
        self.polled = Some(now);
    }

    /// Stores a request as spent before it is sent.
    pub(super) async fn reserve(&mut self, writer: &WriterHandle, cost: u64, now: Moment) -> Result<(), WriteError> {
        if cost == 0 || self.pace.is_reserved(self.stored.as_ref(), cost, now.unix_ms) {
            return Ok(());
        }
        let charge = self.charge(cost, now);
        let budget = charge.budget;
        writer.put_feed_budget(charge).await?;
        self.is_stored(budget);
        Ok(())
    }

    /// What is to be stored with an answer: all that was spent, and the request that comes next.
    pub(super) fn charge(&mut self, next_cost: u64, now: Moment) -> FeedCharge {
        let budget = self.pace.with_reserve(next_cost, now.unix_ms);
        let budget = FeedBudget { polled: self.polled, account: self.account, scope: self.scope, ..budget };
        FeedCharge { feed: self.feed.clone(), budget }
    }

    pub(super) fn is_stored(&mut self, budget: FeedBudget) {
        self.stored = Some(budget);
    }

    /// Counts what a request cost, and what the upstream says is left. `is_newest` is false if other requests were
    /// charged since it was sent.
    pub(super) fn account_for(&mut self, cost: u64, quota: UpstreamQuota, is_newest: bool, now: Moment) {
        self.pace.charge(cost, now.unix_ms);
        self.is_estimate |= cost > 0;
        if quota.is_reported() {
            self.is_estimate = false;
            if self.pace.report(quota, is_newest, now.unix_ms) {
                tracing::debug!(
                    feed = &*self.feed,
                    left = quota.remaining,
                    "upstream reports more credits than before"
                );
            }
        }
    }

    /// Notes whether the upstream has too little left for odds of this cost. That is logged once, when it is certain.
    pub(super) fn note_used_up(&mut self, cost: u64, now: Moment) {
        self.used_up_until = self.pace.is_used_up(cost, now.unix_ms);
        let is_certain = self.used_up_until.is_some() && !self.is_estimate;
        if let Some(until) = self.used_up_until.filter(|_| is_certain && !self.is_end_announced) {
            let feed = &*self.feed;
            tracing::warn!(feed, %until, "upstream credits are used up; polling stops until they are renewed");
        }
        self.is_end_announced = is_certain;
    }

    /// Whether the credits are used up by our own count only: the upstream may have more.
    pub(super) fn is_unconfirmed(&self) -> bool {
        self.is_estimate && self.used_up_until.is_some()
    }

    pub(super) fn used_up_until(&self) -> Option<Timestamp> {
        self.used_up_until
    }

    /// Whether it is known what the upstream has left, or that it does not say so: not before its first answer, and not at
    /// the beginning of a month.
    pub(super) fn is_quota_known(&mut self, now: Moment) -> bool {
        self.is_silent || self.pace.resets(now.unix_ms).is_some()
    }

    /// Logs how the credits will be spent, once, and again when that changes.
    pub(super) fn announce(&mut self, demand: Demand, now: Moment) {
        let (plan, resets) = (self.pace.plan(demand, now.unix_ms), self.pace.resets(now.unix_ms));
        if demand.total() == 0 || self.used_up_until.is_some() || !self.is_quota_known(now) {
            return;
        }
        if self.announced.is_some_and(|announced| !plan.is_other_than(&announced)) {
            return;
        }
        tracing::info!(
            feed = &*self.feed,
            credits_per_day = plan.per_day.total(),
            odds = plan.per_day.odds,
            event_odds = plan.per_day.event_odds,
            scores = plan.per_day.scores,
            interval_s = plan.intervals.odds_ms / 1000,
            limited_by = plan.limit.map(PlanLimit::key),
            credits_left = self.pace.left_upstream(now.unix_ms),
            until = resets.map(tracing::field::display),
            "polling plan"
        );
        self.announced = Some(plan);
    }

    /// Notes whether an answer reports a quota, and logs once that none is reported.
    pub(super) fn note_report(&mut self, quota: UpstreamQuota, now: Moment) {
        let was_silent = std::mem::replace(&mut self.is_silent, !quota.is_reported());
        if self.is_silent && !was_silent && self.pace.left_today(now.unix_ms).is_none() {
            tracing::info!(feed = &*self.feed, "upstream reports no quota; polling at the configured interval");
        }
    }
}

/// A checksum of the parameters that decide what an answer contains.
fn scope(config: &FeedConfig) -> u32 {
    let regions: Vec<&str> = config.regions.iter().map(Region::key).collect();
    let horizon = config.event_horizon.as_secs().to_string();
    let (markets, event_markets) = (config.markets.join(","), config.event_markets.join(","));
    let (sports, regions) = (config.sports.join(","), regions.join(","));
    let (format, world) = (config.odds_format.key(), config.world.name());
    checksum(&[&sports, &regions, &markets, &event_markets, &horizon, format, world])
}

/// Long enough to detect a change, and too short to identify a key.
fn checksum(parts: &[&str]) -> u32 {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(part.as_bytes());
        hash.update([0]);
    }
    hash.finalize().iter().take(4).fold(0, |all, byte| all << 8 | u32::from(*byte))
}
