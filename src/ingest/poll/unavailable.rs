//! What an upstream has said that it does not have: a competition that it does not know, a market that a competition
//! does not have. Neither is requested again for a while, so that an error is paid for, logged and waited for once.

use std::collections::BTreeMap;

/// A competition, or one of its markets.
type UnavailableKey = (Box<str>, Option<Box<str>>);

#[derive(Debug, PartialEq, Eq)]
pub(super) struct UnavailableEntry {
    /// On the monotonic clock.
    pub(super) until_ms: u64,
    pub(super) why: Box<str>,
}

#[derive(Debug, Default)]
pub(super) struct Unavailable(BTreeMap<UnavailableKey, UnavailableEntry>);

impl Unavailable {
    /// Notes what an upstream does not have; whether that is new.
    pub(super) fn add(
        &mut self,
        competition: &str,
        market: Option<&str>,
        why: &str,
        until_ms: u64,
        now_ms: u64,
    ) -> bool {
        self.expire(now_ms);
        let key = (competition.into(), market.map(Box::from));
        self.0.insert(key, UnavailableEntry { until_ms, why: why.into() }).is_none()
    }

    pub(super) fn has_market(&self, competition: &str, market: &str, now_ms: u64) -> bool {
        let key = (Box::from(competition), Some(Box::from(market)));
        self.0.get(&key).is_some_and(|entry| entry.until_ms > now_ms)
    }

    /// Forgets a competition that the upstream answered for again.
    pub(super) fn found(&mut self, competition: &str) {
        self.0.remove(&(competition.into(), None));
    }

    /// What is not requested now.
    pub(super) fn iter(&self, now_ms: u64) -> impl Iterator<Item = (&str, Option<&str>, &UnavailableEntry)> {
        let current = self.0.iter().filter(move |(_, entry)| entry.until_ms > now_ms);
        current.map(|((competition, market), entry)| (&**competition, market.as_deref(), entry))
    }

    fn expire(&mut self, now_ms: u64) {
        self.0.retain(|_, entry| entry.until_ms > now_ms);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_noted_once_and_until_its_time() {
        let mut missing = Unavailable::default();
        assert!(missing.add("soccer_epl", Some("player_aces"), "answered 422", 100, 0));
        assert!(!missing.add("soccer_epl", Some("player_aces"), "answered 422", 100, 50));
        assert!(missing.add("soccer_x", None, "answered 404", 80, 50));
        assert!(missing.has_market("soccer_epl", "player_aces", 99));
        assert!(!missing.has_market("soccer_epl", "player_aces", 100) && !missing.has_market("soccer_x", "h2h", 60));
        assert_eq!(missing.iter(60).count(), 2);
        assert_eq!(
            missing.iter(90).map(|(key, market, _)| (key, market)).collect::<Vec<_>>(),
            [("soccer_epl", Some("player_aces"))]
        );
        missing.found("soccer_x");
        assert_eq!(missing.iter(60).count(), 1);
        assert!(missing.add("soccer_epl", Some("player_aces"), "answered 422", 300, 200), "noted again after that");
    }
}
