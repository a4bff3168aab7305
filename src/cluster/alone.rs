//! The limits of keys on a node that is cut off and goes on (`when_cut_off = "serve"`): it cannot know what the others use, so it
//! counts alone.
//!
//! Of each minute it takes one part of as many as there are nodes; of a day and a month the same part of what was left when it
//! last heard of it, beside what it had been given. So all nodes together may pass more than a limit, by that part at most.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::keys::{BurstNeed, BurstShare, KeyId, KeyNeed, KeyShare, QuotaNeed, QuotaShare};

/// A minute, as the engine counts it.
const WINDOW_MS: u64 = 60_000;

/// A day or a month.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Quota {
    Day,
    Month,
}

/// What is known of a key's limits.
#[derive(Clone, Debug, Default)]
struct Known {
    /// When the window was opened here, and what was given of it.
    burst: Option<(u64, u32)>,
    /// What all nodes had of a period.
    totals: HashMap<(Quota, u32), u64>,
    /// What this node may use of a period while it is alone.
    caps: HashMap<(Quota, u32), u64>,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct AloneShares(Mutex<HashMap<KeyId, Known>>);

impl AloneShares {
    /// Notes what the engine has given, for when it cannot be reached.
    pub(super) fn note(&self, needs: &[(KeyId, KeyNeed)], shares: &[KeyShare]) {
        let mut keys = self.keys();
        for ((key, _), share) in needs.iter().zip(shares) {
            let mut known = Known::default();
            for (quota, share) in [(Quota::Day, share.day), (Quota::Month, share.month)] {
                if let Some(share) = share {
                    known.totals.insert((quota, share.period), u64::try_from(share.total).unwrap_or(0));
                }
            }
            // A share of one limit says nothing of the others.
            let before = keys.remove(key).unwrap_or_default();
            let is_same = |(quota, _): &(Quota, u32)| known.totals.keys().any(|(noted, _)| noted == quota);
            let kept: Vec<_> = before.totals.into_iter().filter(|(period, _)| !is_same(period)).collect();
            known.totals.extend(kept);
            keys.insert(key.clone(), known);
        }
    }

    /// Shares for needs, on one of so many nodes.
    pub(super) fn share(&self, needs: &[(KeyId, KeyNeed)], nodes: u64, now_ms: u64) -> Vec<KeyShare> {
        let mut keys = self.keys();
        let share = |(key, need): &(KeyId, KeyNeed)| keys.entry(key.clone()).or_default().share(need, nodes, now_ms);
        needs.iter().map(share).collect()
    }

    fn keys(&self) -> MutexGuard<'_, HashMap<KeyId, Known>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    fn share(&mut self, need: &KeyNeed, nodes: u64, now_ms: u64) -> KeyShare {
        KeyShare {
            resets: need.resets,
            burst: need.burst.map(|need| self.share_burst(need, nodes, now_ms)),
            day: need.day.map(|need| self.share_quota(Quota::Day, need, nodes)),
            month: need.month.map(|need| self.share_quota(Quota::Month, need, nodes)),
        }
    }

    fn share_burst(&mut self, need: BurstNeed, nodes: u64, now_ms: u64) -> BurstShare {
        let BurstNeed { wanted, limit, .. } = need;
        let (opened_ms, before) =
            self.burst.filter(|(opened_ms, _)| now_ms < opened_ms + WINDOW_MS).unwrap_or((now_ms, 0));
        let cap = u32::try_from((u64::from(limit) / nodes).max(1)).unwrap_or(u32::MAX);
        let after = before.saturating_add(wanted).min(cap).max(before);
        self.burst = Some((opened_ms, after));
        let total = if after == before { limit.into() } else { i64::from(after) };
        BurstShare { window: opened_ms, elapsed_ms: now_ms.saturating_sub(opened_ms), before, after, total }
    }

    fn share_quota(&mut self, quota: Quota, need: QuotaNeed, nodes: u64) -> QuotaShare {
        let QuotaNeed { period, own, stored, wanted, limit } = need;
        let total = self.totals.get(&(quota, period)).copied().unwrap_or(stored);
        let cap = *self.caps.entry((quota, period)).or_insert_with(|| own + limit.saturating_sub(total) / nodes);
        let after = own.saturating_add(wanted).min(cap).max(own);
        let total = if after == own { limit } else { total.min(limit.saturating_sub(1)) };
        QuotaShare { period, before: own, after, total: i64::try_from(total).unwrap_or(i64::MAX) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODES: u64 = 3;

    fn key() -> KeyId {
        KeyId::new("key_AAAAAAAAAAAA").unwrap()
    }

    fn day(own: u64) -> KeyNeed {
        let day = QuotaNeed { period: 9, own, stored: 0, wanted: 100, limit: 1_000 };
        KeyNeed { day: Some(day), ..KeyNeed::default() }
    }

    /// What it has of a day in the end.
    fn used_up(shares: &AloneShares, mut own: u64) -> u64 {
        loop {
            let need = day(own);
            let share = shares.share(&[(key(), need)], NODES, 0)[0];
            if !need.unmet(&share).is_empty() {
                return own;
            }
            own = share.day.unwrap().after;
        }
    }

    #[test]
    fn day_is_its_part_of_what_was_left() {
        assert_eq!(used_up(&AloneShares::default(), 0), 333, "of a day of which nobody had anything");
        let shares = AloneShares::default();
        let given =
            KeyShare { day: Some(QuotaShare { period: 9, before: 0, after: 100, total: 700 }), ..KeyShare::default() };
        shares.note(&[(key(), day(0))], &[given]);
        assert_eq!(used_up(&shares, 100), 200, "and what it had been given");
        assert_eq!(used_up(&shares, 200), 200, "however often it asks");
        let later = KeyShare {
            day: Some(QuotaShare { period: 9, before: 0, after: 200, total: 1_000 }),
            ..KeyShare::default()
        };
        shares.note(&[(key(), day(0))], &[later]);
        assert_eq!(used_up(&shares, 200), 200, "nothing of a day that is used up");
    }

    #[test]
    fn each_minute_is_its_part_of_the_limit() {
        let shares = AloneShares::default();
        let burst = BurstNeed { window: 0, own: 0, wanted: 20, limit: 60 };
        let need = KeyNeed { burst: Some(burst), ..KeyNeed::default() };
        let ask = |now_ms| shares.share(&[(key(), need)], NODES, now_ms)[0];
        assert_eq!(ask(5).burst.unwrap().after, 20);
        assert!(!need.unmet(&ask(6)).is_empty(), "that was all");
        let next = ask(5 + WINDOW_MS).burst.unwrap();
        assert_eq!((next.before, next.after, next.elapsed_ms), (0, 20, 0));
    }
}
