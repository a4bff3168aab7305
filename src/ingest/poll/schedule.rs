//! The schedule of a feed: one task for each resource that it polls, and the time at which each is due.

use super::sport_keys::SportKeys;
use crate::clock::Moment;
use crate::config::FeedConfig;
use crate::model::{Catalogue, Market, SportId, SportKind};

/// Polls of a sport that are due within this belong to one round.
const ROUND_GAP_MS: u64 = 1_000;
/// What scores of the last day cost where the upstream does not say so.
const SCORES_COST: u64 = 2;

/// What is requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PollSubject {
    /// The list of sport keys.
    SportKeys,
    Odds,
    Scores,
}

/// A request that comes again and again.
#[derive(Debug)]
pub(super) struct PollTask {
    pub(super) subject: PollSubject,
    /// The sport key; empty for the list of sport keys.
    pub(super) key: Box<str>,
    pub(super) sport: Option<SportId>,
    pub(super) due_ms: u64,
    pub(super) cost: u64,
}

/// The tasks of a feed.
#[derive(Debug, Default)]
pub(super) struct PollSchedule {
    tasks: Vec<PollTask>,
    /// After a failure, no request is sent before this.
    held_until_ms: u64,
}

impl PollSchedule {
    pub(super) fn task(&self, at: usize) -> &PollTask {
        &self.tasks[at]
    }

    pub(super) fn set_cost(&mut self, at: usize, cost: u64) {
        self.tasks[at].cost = cost;
    }

    pub(super) fn set_due(&mut self, at: usize, due_ms: u64) {
        self.tasks[at].due_ms = due_ms;
    }

    pub(super) fn hold_until(&mut self, until_ms: u64) {
        self.held_until_ms = until_ms;
    }

    /// The task that is due first.
    pub(super) fn next(&self) -> Option<usize> {
        (0..self.tasks.len()).min_by_key(|at| self.tasks[*at].due_ms)
    }

    pub(super) fn due_ms(&self, at: usize) -> u64 {
        self.tasks[at].due_ms.max(self.held_until_ms)
    }

    pub(super) fn first_odds(&self) -> Option<usize> {
        self.tasks.iter().position(|task| task.subject == PollSubject::Odds)
    }

    /// Lets no request that costs credits be sent before a time.
    pub(super) fn put_off(&mut self, until_ms: u64) {
        for task in self.tasks.iter_mut().filter(|task| task.subject != PollSubject::SportKeys) {
            task.due_ms = task.due_ms.max(until_ms);
        }
    }

    /// Whether odds of a sport are due in the same round, other than those of one task.
    pub(super) fn is_more_due(
        &self,
        sport: SportId,
        other_than: Option<usize>,
        config: &FeedConfig,
        now: Moment,
    ) -> bool {
        let interval_ms = u64::try_from(config.interval.as_millis()).unwrap_or(u64::MAX);
        let soon_ms = now.mono_ms.saturating_add(ROUND_GAP_MS.min(interval_ms / 2));
        let tasks = self.tasks.iter().enumerate();
        let mut odds = tasks.filter(|(_, task)| task.subject == PollSubject::Odds && task.sport == Some(sport));
        odds.any(|(at, _)| Some(at) != other_than && self.due_ms(at) <= soon_ms)
    }

    /// What one request of each task costs together.
    pub(super) fn round_cost(&self) -> u64 {
        self.tasks.iter().map(|task| task.cost).sum()
    }

    /// What the next request may cost.
    pub(super) fn next_cost(&self) -> u64 {
        self.tasks.iter().map(|task| task.cost).max().unwrap_or(0)
    }

    /// Brings the tasks in line with the sport keys: those that stay keep their time, new ones are due at once.
    pub(super) fn plan(&mut self, keys: &SportKeys, config: &FeedConfig, catalogue: &Catalogue, now: Moment) {
        let mut tasks = std::mem::take(&mut self.tasks);
        let mut planned = |subject: PollSubject, key: &str, sport: Option<SportId>, cost: u64| {
            let known = tasks.iter().position(|task| task.subject == subject && *task.key == *key);
            known.map_or_else(
                || PollTask { subject, key: key.into(), sport, due_ms: now.mono_ms, cost },
                |at| tasks.swap_remove(at),
            )
        };
        let mut all = Vec::new();
        if keys.are_asked_for() {
            all.push(planned(PollSubject::SportKeys, "", None, 0));
        }
        let regions = config.regions.iter().count() as u64;
        for (key, sport) in keys.iter() {
            let markets = markets(config, sport, catalogue).len() as u64;
            all.push(planned(PollSubject::Odds, key, Some(sport), regions * markets));
            if config.scores_interval.is_some() {
                all.push(planned(PollSubject::Scores, key, Some(sport), SCORES_COST));
            }
        }
        self.tasks = all;
    }
}

/// The names of the polled markets, as far as the sport has them.
pub(super) fn markets(config: &FeedConfig, sport: SportId, catalogue: &Catalogue) -> Vec<&'static str> {
    let kind = catalogue[sport].kind;
    config.markets.iter().filter(|market| is_usual(**market, kind)).map(|market| market.v4_key()).collect()
}

/// Whether events of a kind usually have a market. Every market that is requested costs credits, whether or not the upstream
/// has prices in it.
fn is_usual(market: Market, kind: SportKind) -> bool {
    let is_of_sides =
        matches!(market, Market::MONEYLINE | Market::SPREAD | Market::TOTAL_ROUNDS | Market::TOTAL_POINTS);
    market.is_of(kind) && is_of_sides != (kind == SportKind::Tournament)
}
