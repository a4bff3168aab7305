//! Feeders on other machines: who may send feed lines, by the token that each was given.
//!
//! A feeder has a name and a world that its lines go to. [`Feeders`] holds them all, as the keyring holds keys: looking
//! one up waits for nobody, and a change is in force when [`Feeders::put`] returns. It stores nothing.

mod token;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;

use super::record::SecretHash;
use super::secret::may_hold_key;
use crate::model::{Timestamp, World};

pub use token::FeedToken;

/// A feeder as it is stored: everything but its token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Feeder {
    pub name: Box<str>,
    pub world: World,
    pub created: Timestamp,
    pub revoked: Option<Timestamp>,
    pub hash: SecretHash,
    /// The last four characters of the token, to tell tokens apart.
    pub last_four: Box<str>,
}

impl Feeder {
    pub const NAME_MAX: usize = 40;

    /// Stands in tables, logs and commands, so it needs no quoting anywhere; and it is no secret by mistake.
    pub fn is_name(text: &str) -> bool {
        let clean = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        (1..=Self::NAME_MAX).contains(&text.len()) && text.bytes().all(clean) && !may_hold_key(text)
    }
}

/// Why a token opens nothing. A feeder is told the same in every case; the log tells them apart.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotAdmitted {
    #[error("no token was sent")]
    Missing,
    #[error("what was sent has not the form of a token")]
    Malformed,
    #[error("no feeder has this token")]
    Unknown,
    #[error("the token of {0} was revoked")]
    Revoked(Box<str>),
}

#[derive(Clone, Debug, Default)]
struct Ring {
    by_token: HashMap<SecretHash, Arc<Feeder>>,
    by_name: BTreeMap<Box<str>, Arc<Feeder>>,
}

impl Ring {
    fn insert(&mut self, feeder: Arc<Feeder>) {
        if let Some(before) = self.by_name.insert(feeder.name.clone(), Arc::clone(&feeder)) {
            self.by_token.remove(&before.hash);
        }
        self.by_token.insert(feeder.hash, feeder);
    }
}

/// Every feeder, shared by whoever admits them.
#[derive(Debug, Default)]
pub struct Feeders {
    ring: ArcSwap<Ring>,
    /// Held while a ring is copied and swapped, so that two changes cannot lose one another.
    changing: Mutex<()>,
}

impl Feeders {
    pub fn new(loaded: impl IntoIterator<Item = Feeder>) -> Self {
        let mut ring = Ring::default();
        for feeder in loaded {
            ring.insert(Arc::new(feeder));
        }
        Feeders { ring: ArcSwap::from_pointee(ring), changing: Mutex::new(()) }
    }

    /// The feeder that a token belongs to.
    pub fn admit(&self, token: Option<&str>) -> Result<Arc<Feeder>, NotAdmitted> {
        let token = token.filter(|token| !token.is_empty()).ok_or(NotAdmitted::Missing)?;
        let hash = FeedToken::hash_of(token).ok_or(NotAdmitted::Malformed)?;
        let feeder = self.ring.load().by_token.get(&hash).cloned().ok_or(NotAdmitted::Unknown)?;
        if feeder.revoked.is_some() { Err(NotAdmitted::Revoked(feeder.name.clone())) } else { Ok(feeder) }
    }

    /// Whether what was admitted would be admitted now.
    pub fn is_in_force(&self, feeder: &Feeder) -> bool {
        self.ring.load().by_token.get(&feeder.hash).is_some_and(|held| held.revoked.is_none())
    }

    /// Puts a new or changed feeder in force. A name has one token: the one before opens no more.
    pub fn put(&self, feeder: Feeder) -> Arc<Feeder> {
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let feeder = Arc::new(feeder);
        let mut ring = Ring::clone(&self.ring.load());
        ring.insert(Arc::clone(&feeder));
        self.ring.store(Arc::new(ring));
        feeder
    }

    pub fn get(&self, name: &str) -> Option<Arc<Feeder>> {
        self.ring.load().by_name.get(name).cloned()
    }

    /// Every feeder, in the order of their names.
    pub fn list(&self) -> Vec<Arc<Feeder>> {
        self.ring.load().by_name.values().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn feeder(name: &str) -> (Feeder, FeedToken) {
        let token = FeedToken::generate().unwrap();
        let (hash, last_four) = (token.hash(), token.last_four().into());
        let created = Timestamp::from_unix(60);
        (Feeder { name: name.into(), world: World::Live, created, revoked: None, hash, last_four }, token)
    }

    #[test]
    fn a_token_opens_until_it_is_revoked_or_replaced() {
        let (first, token) = feeder("scraper");
        let feeders = Feeders::new([first.clone()]);
        let admitted = feeders.admit(Some(token.expose())).unwrap();
        assert_eq!((&*admitted, feeders.is_in_force(&admitted)), (&first, true));

        feeders.put(Feeder { revoked: Some(Timestamp::from_unix(70)), ..first });
        assert_eq!(feeders.admit(Some(token.expose())), Err(NotAdmitted::Revoked("scraper".into())));
        assert!(!feeders.is_in_force(&admitted));

        let (second, other) = feeder("scraper");
        feeders.put(second);
        assert_eq!(feeders.admit(Some(token.expose())), Err(NotAdmitted::Unknown));
        assert!(feeders.admit(Some(other.expose())).is_ok() && !feeders.is_in_force(&admitted));
        assert_eq!(feeders.list().len(), 1);
    }

    #[test]
    fn what_is_no_token_opens_nothing() {
        let feeders = Feeders::default();
        assert_eq!(feeders.admit(None), Err(NotAdmitted::Missing));
        assert_eq!(feeders.admit(Some("")), Err(NotAdmitted::Missing));
        assert_eq!(feeders.admit(Some("ft_ob_x")), Err(NotAdmitted::Malformed));
    }

    #[test]
    fn a_name_needs_no_quoting_and_is_no_secret() {
        assert!(Feeder::is_name("odds-scraper_2.eu") && Feeder::is_name(&"x".repeat(40)));
        for wrong in ["", "two words", "a/b", "é", "a\n", &"x".repeat(41), "ft_ob_abc", "sk_live_ob_1"] {
            assert!(!Feeder::is_name(wrong), "{wrong}");
        }
    }
}
