//! What a polled feed spends, and what of it is stored.
//!
//! A request is stored as spent before it is sent: usually with the commit of the request before, else with one of its
//! own. So a process that is killed at any moment, again and again, never spends more than its budget.

use sha2::{Digest, Sha256};

use super::client::UpstreamQuota;
use super::pace::{Pace, SpendingPlan};
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
    announced: Option<SpendingPlan>,
    is_silence_announced: bool,
    /// What the upstream had left when it was last known, less what was spent since.
    is_estimate: bool,
    used_up_until: Option<Timestamp>,
    is_end_announced: bool,
}

impl Spending {
    pub(super) fn new(config: &FeedConfig, key: &str, now: Moment) -> Self {
        let interval_ms = u64::try_from(config.interval.as_millis()).unwrap_or(u64::MAX);
        Spending {
            feed: config.name.clone(),
            pace: Pace::new(interval_ms, config.requests_per_day, now.unix_ms),
            stored: None,
            polled: None,
            polled_before: None,
            account: checksum(&[&config.url, key]),
            scope: scope(config),
            announced: None,
            is_silence_announced: false,
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
    pub(super) fn first_wait_ms(&mut self, round_cost: u64, now: Moment) -> u64 {
        let Some(polled) = self.polled_before else { return 0 };
        let Some(interval_ms) = self.pace.stretched_ms(round_cost, now.unix_ms) else { return 0 };
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

    /// Counts what a request cost, and what the upstream says is left.
    pub(super) fn account_for(&mut self, cost: u64, quota: UpstreamQuota, now: Moment) {
        self.pace.charge(cost, now.unix_ms);
        self.is_estimate |= cost > 0;
        if let Some(left) = quota.remaining {
            self.is_estimate = false;
            if self.pace.report(left, now.unix_ms) {
                tracing::debug!(feed = &*self.feed, left, "upstream reports more credits than before");
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

    /// Logs how the credits will be spent, once, and again when that changes.
    pub(super) fn announce(&mut self, round_cost: u64, now: Moment) {
        if round_cost == 0 || self.used_up_until.is_some() {
            return;
        }
        let Some(plan) = self.pace.plan(round_cost, now.unix_ms) else { return };
        if self.announced.is_some_and(|announced| !plan.is_other_than(&announced)) {
            return;
        }
        tracing::info!(
            feed = &*self.feed,
            credits_left = plan.left,
            until = %plan.until,
            credits_per_day = plan.per_day,
            interval_s = plan.interval_ms / 1000,
            "polling plan"
        );
        self.announced = Some(plan);
    }

    /// Logs once that an upstream reports no quota.
    pub(super) fn announce_silence(&mut self, quota: UpstreamQuota, now: Moment) {
        let is_silent = quota.remaining.is_none() && self.pace.left_today(now.unix_ms).is_none();
        if is_silent && self.announced.is_none() && !self.is_silence_announced {
            tracing::info!(feed = &*self.feed, "upstream reports no quota; polling at the configured interval");
            self.is_silence_announced = true;
        }
    }
}

/// A checksum of the parameters that decide what an answer contains.
fn scope(config: &FeedConfig) -> u32 {
    let regions: Vec<&str> = config.regions.iter().map(Region::key).collect();
    let markets: Vec<&str> = config.markets.iter().map(|market| market.key()).collect();
    let sports = config.sports.join(",");
    checksum(&[&sports, &regions.join(","), &markets.join(","), config.odds_format.key(), config.world.name()])
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
