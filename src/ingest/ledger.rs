//! Counts what each feed has sent since the server started, so that an operator sees which one fails.
//!
//! Every feed has an account under its name. Nothing here influences what is accepted, and nothing of it is stored; what
//! feeders have used of their quotas is copied from the writer, which stores it.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::poll::PlanLimit;
use super::rejected::RejectedMessages;
use crate::model::{FeederQuota, FeederUse, Reason, Timestamp, World};

/// How a feed's news comes in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FeedKind {
    Simulator,
    /// `oddsbox ingest`, or lines posted to the admin interface.
    Push,
    /// A feeder on another machine, by its token.
    Token,
    /// Files in the drop directory.
    Drop,
    /// Polls of an interface in the shape of The Odds API.
    TheOddsApi,
}

impl FeedKind {
    pub const fn key(self) -> &'static str {
        match self {
            FeedKind::Simulator => "simulator",
            FeedKind::Push => "push",
            FeedKind::Token => "token",
            FeedKind::Drop => "drop",
            FeedKind::TheOddsApi => "the-odds-api",
        }
    }
}

/// What a feed has sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    pub kind: FeedKind,
    pub world: World,
    /// Messages that were accepted, whether or not they changed anything.
    pub accepted: u64,
    pub rejected: BTreeMap<Reason, u64>,
    /// The last of them, a few of each reason.
    pub rejected_messages: RejectedMessages,
    /// Bytes of lines that came, as inflated.
    pub bytes: u64,
    /// What it has used of its quota, for a feeder that has one.
    pub added: Option<(FeederUse, FeederQuota)>,
    /// When a message of it was last accepted.
    pub last_good: Option<Timestamp>,
    /// When it last failed as a whole, and why; it may have succeeded since.
    pub last_failure: Option<(Timestamp, Box<str>)>,
    /// The quota of its upstream, for a feed that is polled.
    pub upstream: Option<Upstream>,
}

/// What is left of an upstream's quota, and how it is spent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Upstream {
    pub remaining: Option<u64>,
    pub used: Option<u64>,
    /// What is left of the operator's own budget for the day, where one is set.
    pub budget_left: Option<u64>,
    /// That budget.
    pub budget_per_day: Option<u64>,
    pub next_poll: Option<Timestamp>,
    /// The quota is used up: the upstream is not polled before this.
    pub used_up_until: Option<Timestamp>,
    pub plan: Option<UpstreamPlan>,
    /// What is configured and not polled now.
    pub skipped: Vec<SkippedPoll>,
}

/// A competition, or a market of it, that is configured and not polled now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkippedPoll {
    pub competition: Box<str>,
    /// `None` for all of the competition.
    pub market: Option<Box<str>>,
    pub why: Box<str>,
    /// When it is requested again, at the latest.
    pub until: Timestamp,
}

/// How the credits of an upstream are spent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UpstreamPlan {
    /// What polling at these intervals costs in a day.
    pub credits_per_day: u64,
    /// The parts of it.
    pub odds_per_day: u64,
    pub event_odds_per_day: u64,
    pub scores_per_day: u64,
    /// The time between two polls of the same odds, also of single events.
    pub interval_s: u64,
    pub scores_interval_s: u64,
    /// What makes the intervals longer than configured; `None` if they are not.
    pub limit: Option<PlanLimit>,
    /// When the upstream renews its quota; `None` for one that reports no quota.
    pub resets: Option<Timestamp>,
}

/// The accounts of every feed, by name.
#[derive(Debug, Default)]
pub struct Ledger(Mutex<BTreeMap<Box<str>, Account>>);

impl Ledger {
    /// A copy of every account, in the order of the names.
    pub fn accounts(&self) -> Vec<(Box<str>, Account)> {
        self.lock().iter().map(|(name, account)| (name.clone(), account.clone())).collect()
    }

    /// Opens a feed's account before anything has come, so that a feed that sends nothing is shown as well.
    pub fn open(&self, name: &str, kind: FeedKind, world: World) {
        self.with(name, kind, world, |_| ());
    }

    /// Counts messages that were accepted or rejected.
    pub fn count(
        &self,
        (name, kind, world): (&str, FeedKind, World),
        at: Timestamp,
        accepted: u64,
        rejected: impl Iterator<Item = (Reason, u64)>,
    ) {
        self.with(name, kind, world, |account| {
            account.accepted += accepted;
            if accepted > 0 {
                account.last_good = Some(at);
            }
            for (reason, count) in rejected {
                *account.rejected.entry(reason).or_default() += count;
            }
        });
    }

    /// Keeps messages that were rejected, as examples.
    pub(super) fn keep_rejected(&self, (name, kind, world): (&str, FeedKind, World), messages: RejectedMessages) {
        if !messages.is_empty() {
            self.with(name, kind, world, |account| account.rejected_messages.append(messages));
        }
    }

    /// Counts bytes, and notes what a feeder has used of its quota.
    pub fn used(
        &self,
        (name, kind, world): (&str, FeedKind, World),
        bytes: u64,
        added: Option<(FeederUse, FeederQuota)>,
    ) {
        self.with(name, kind, world, |account| {
            account.bytes += bytes;
            account.added = added.or(account.added);
        });
    }

    /// Notes that a feed failed as a whole. The text must contain no secret.
    pub fn failed(&self, (name, kind, world): (&str, FeedKind, World), at: Timestamp, why: &str) {
        self.with(name, kind, world, |account| account.last_failure = Some((at, why.into())));
    }

    /// Notes the quota of an upstream.
    pub fn upstream(&self, (name, kind, world): (&str, FeedKind, World), upstream: Upstream) {
        self.with(name, kind, world, |account| account.upstream = Some(upstream));
    }

    /// Drops the account of a feed that was removed.
    pub fn close(&self, name: &str) {
        self.lock().remove(name);
    }

    fn with(&self, name: &str, kind: FeedKind, world: World, change: impl FnOnce(&mut Account)) {
        let mut accounts = self.lock();
        if !accounts.contains_key(name) {
            accounts.insert(name.into(), Account::new(kind, world));
        }
        if let Some(account) = accounts.get_mut(name) {
            change(account);
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Box<str>, Account>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Account {
    fn new(kind: FeedKind, world: World) -> Self {
        Account {
            kind,
            world,
            accepted: 0,
            rejected: BTreeMap::new(),
            rejected_messages: RejectedMessages::default(),
            bytes: 0,
            added: None,
            last_good: None,
            last_failure: None,
            upstream: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_feed_has_an_account_before_it_sends_anything() {
        let ledger = Ledger::default();
        let feed = ("push", FeedKind::Push, World::Live);
        ledger.open(feed.0, feed.1, feed.2);
        assert_eq!(ledger.accounts()[0].1.last_good, None);

        let at = Timestamp::from_unix(60);
        ledger.count(feed, at, 0, [(Reason::Late, 2)].into_iter());
        assert_eq!(ledger.accounts()[0].1.last_good, None, "nothing was accepted");
        ledger.count(feed, at, 5, [(Reason::Late, 1)].into_iter());
        ledger.failed(feed, at, "no answer");

        let account = &ledger.accounts()[0].1;
        assert_eq!((account.accepted, account.last_good), (5, Some(at)));
        assert_eq!(account.rejected, BTreeMap::from([(Reason::Late, 3)]));
        ledger.close("push");
        assert!(ledger.accounts().is_empty());
    }
}
