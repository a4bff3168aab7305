//! What the engine has given to nodes of the limits of keys.

use std::collections::BTreeMap;

use crate::keys::{BurstNeed, BurstShare, KeyId, KeyNeed, KeyShare, QuotaNeed, QuotaShare, Unused};

/// See the module.
#[derive(Clone, Debug, Default)]
pub(super) struct Limits {
    given: BTreeMap<(KeyId, Limit), Given>,
    resets: BTreeMap<KeyId, u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Limit {
    Burst,
    /// A period, and how often what was used was reset.
    Day(u32, u64),
    Month(u32, u64),
}

/// What is given of a limit.
#[derive(Clone, Debug, Default)]
struct Given {
    opened_ms: u64,
    total: i64,
    nodes: BTreeMap<Box<str>, u64>,
}

impl Given {
    /// What a node had, what it has now, and what all have.
    fn give(&mut self, node: &str, (own, wanted, limit): (u64, u64, u64), live: u64) -> (u64, u64, i64) {
        let had = self.nodes.get(node).copied().unwrap_or_default();
        let before = had.max(own);
        self.total += (before - had).cast_signed();
        let left = limit.cast_signed().saturating_sub(self.total).max(0).unsigned_abs();
        let share = wanted.min(left).min((left / (4 * live)).max(1));
        self.total += share.cast_signed();
        self.nodes.insert(node.into(), before + share);
        (before, before + share, self.total)
    }
}

impl Limits {
    /// Forgets what was given.
    pub(super) fn clear(&mut self) {
        self.given.clear();
    }

    /// What was used of a key's quotas no longer counts.
    pub(super) fn reset(&mut self, key: &KeyId) {
        *self.resets.entry(key.clone()).or_default() += 1;
    }

    /// What a node gets of a key's limits while `live` nodes have a lease.
    pub(super) fn share(&mut self, node: &str, (key, need): (&KeyId, &KeyNeed), live: u64, now_ms: u64) -> KeyShare {
        let resets = self.resets.get(key).copied().unwrap_or_default();
        let burst = need.burst.map(|BurstNeed { window, own, wanted, limit }| {
            let given = self.given.entry((key.clone(), Limit::Burst)).or_default();
            if given.opened_ms + 60_000 <= now_ms {
                // One that is not over, and not known here, is from before a restart.
                let opened_ms = if window + 60_000 > now_ms { window } else { now_ms };
                *given = Given { opened_ms, ..Given::default() };
            }
            let own = if window == given.opened_ms { own } else { 0 };
            let (before, after, total) = given.give(node, (own.into(), wanted.into(), limit.into()), live);
            let count = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
            let (window, elapsed_ms) = (given.opened_ms, now_ms.saturating_sub(given.opened_ms));
            BurstShare { window, elapsed_ms, before: count(before), after: count(after), total }
        });
        let mut quota = |limit: Limit, asked: QuotaNeed| {
            let stored = if resets == 0 { asked.stored.cast_signed() } else { 0 };
            let unknown = || Given { total: stored, ..Given::default() };
            let given = self.given.entry((key.clone(), limit)).or_insert_with(unknown);
            let own = if need.resets == resets { asked.own } else { 0 };
            let (before, after, total) = given.give(node, (own, asked.wanted, asked.limit), live);
            QuotaShare { period: asked.period, before, after, total }
        };
        let day = need.day.map(|need| quota(Limit::Day(need.period, resets), need));
        let month = need.month.map(|need| quota(Limit::Month(need.period, resets), need));
        KeyShare { resets, burst, day, month }
    }

    pub(super) fn give_back(&mut self, key: &KeyId, unused: &Unused) {
        let Unused { resets, burst: (window, burst), day: (day, of_day), month: (month, of_month) } = *unused;
        let (day, month) = (Limit::Day(day, resets), Limit::Month(month, resets));
        for (limit, unused) in [(Limit::Burst, burst.into()), (day, of_day), (month, of_month)] {
            let given = self.given.get_mut(&(key.clone(), limit));
            if let Some(given) = given.filter(|given| limit != Limit::Burst || given.opened_ms == window) {
                given.total -= unused.cast_signed();
            }
        }
    }
}
