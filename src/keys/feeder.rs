//! Feeders: clients on other machines that may push feed lines, authenticated by a token.
//!
//! A feeder has a name and a world that its lines go to. [`Feeders`] holds them in memory as the keyring holds keys:
//! lookups never block, and a change is in force when [`Feeders::put`] returns. A [`FeedToken`] has the format of a
//! key's secret with a prefix of its own, so that neither is accepted as the other; only its hash is stored.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::{fmt, mem};

use arc_swap::ArcSwap;

use super::base62::RandomError;
use super::record::SecretHash;
use super::secret::{digest, generate_text, hash_text, may_hold_key, wipe};
use crate::model::{Timestamp, World};

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

    /// Whether a text is a valid name. Names appear in tables, logs and commands, so they need no quoting, and must not
    /// contain a secret by mistake.
    pub fn is_name(text: &str) -> bool {
        let clean = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        (1..=Self::NAME_MAX).contains(&text.len()) && text.bytes().all(clean) && !may_hold_key(text)
    }
}

/// Why a token was rejected. The feeder gets the same response in every case; the log has the reason.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FeedTokenError {
    #[error("no token was sent")]
    Missing,
    #[error("the token is malformed")]
    Malformed,
    #[error("no feeder has this token")]
    Unknown,
    #[error("the token of {0} was revoked")]
    Revoked(Box<str>),
}

#[derive(Clone, Debug, Default)]
struct FeederMap {
    by_token: HashMap<SecretHash, Arc<Feeder>>,
    by_name: BTreeMap<Box<str>, Arc<Feeder>>,
}

impl FeederMap {
    fn insert(&mut self, feeder: Arc<Feeder>) {
        if let Some(before) = self.by_name.insert(feeder.name.clone(), Arc::clone(&feeder)) {
            self.by_token.remove(&before.hash);
        }
        self.by_token.insert(feeder.hash, feeder);
    }
}

/// All feeders, by token and by name.
#[derive(Debug, Default)]
pub struct Feeders {
    map: ArcSwap<FeederMap>,
    /// Held while the map is copied and swapped, so that concurrent changes are not lost.
    changing: Mutex<()>,
}

impl Feeders {
    pub fn new(loaded: impl IntoIterator<Item = Feeder>) -> Self {
        let mut map = FeederMap::default();
        for feeder in loaded {
            map.insert(Arc::new(feeder));
        }
        Feeders { map: ArcSwap::from_pointee(map), changing: Mutex::new(()) }
    }

    /// The feeder that a token belongs to.
    pub fn admit(&self, token: Option<&str>) -> Result<Arc<Feeder>, FeedTokenError> {
        let token = token.filter(|token| !token.is_empty()).ok_or(FeedTokenError::Missing)?;
        let hash = FeedToken::hash_of(token).ok_or(FeedTokenError::Malformed)?;
        let feeder = self.map.load().by_token.get(&hash).cloned().ok_or(FeedTokenError::Unknown)?;
        if feeder.revoked.is_some() { Err(FeedTokenError::Revoked(feeder.name.clone())) } else { Ok(feeder) }
    }

    /// Whether the token that a feeder was admitted with is still valid.
    pub fn is_in_force(&self, feeder: &Feeder) -> bool {
        self.map.load().by_token.get(&feeder.hash).is_some_and(|stored| stored.revoked.is_none())
    }

    /// Adds or replaces a feeder. A name has one token: the previous one is no longer accepted.
    pub fn put(&self, feeder: Feeder) -> Arc<Feeder> {
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let feeder = Arc::new(feeder);
        let mut map = FeederMap::clone(&self.map.load());
        map.insert(Arc::clone(&feeder));
        self.map.store(Arc::new(map));
        feeder
    }

    pub fn get(&self, name: &str) -> Option<Arc<Feeder>> {
        self.map.load().by_name.get(name).cloned()
    }

    /// All feeders, ordered by name.
    pub fn list(&self) -> Vec<Arc<Feeder>> {
        self.map.load().by_name.values().cloned().collect()
    }
}

/// The text of a token, from issue until it has been shown once. `Debug` omits it, and drop overwrites it.
pub struct FeedToken(String);

impl FeedToken {
    pub const PREFIX: &str = "ft_ob_";
    const LAST_SHOWN: usize = 4;

    /// Generates a token from the operating system's randomness.
    pub fn generate() -> Result<FeedToken, RandomError> {
        Ok(FeedToken(generate_text(Self::PREFIX)?))
    }

    /// The hash of a text, if it is a well-formed token.
    pub fn hash_of(text: &str) -> Option<SecretHash> {
        hash_text(text.as_bytes(), Self::PREFIX)
    }

    pub fn hash(&self) -> SecretHash {
        digest(&self.0)
    }

    /// The text, for the one time that it is shown.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// The last four characters, which may be shown later to tell tokens apart.
    pub fn last_four(&self) -> &str {
        self.0.get(self.0.len().saturating_sub(Self::LAST_SHOWN)..).unwrap_or_default()
    }
}

impl fmt::Debug for FeedToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FeedToken({}…)", Self::PREFIX)
    }
}

impl Drop for FeedToken {
    fn drop(&mut self) {
        wipe(&mut mem::take(&mut self.0).into_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::{KeyKind, Secret};

    fn feeder(name: &str) -> (Feeder, FeedToken) {
        let token = FeedToken::generate().unwrap();
        let (hash, last_four) = (token.hash(), token.last_four().into());
        let created = Timestamp::from_unix(60);
        (Feeder { name: name.into(), world: World::Live, created, revoked: None, hash, last_four }, token)
    }

    #[test]
    fn token_is_accepted_until_it_is_revoked_or_replaced() {
        let (first, token) = feeder("scraper");
        let feeders = Feeders::new([first.clone()]);
        let admitted = feeders.admit(Some(token.expose())).unwrap();
        assert_eq!((&*admitted, feeders.is_in_force(&admitted)), (&first, true));

        feeders.put(Feeder { revoked: Some(Timestamp::from_unix(70)), ..first });
        assert_eq!(feeders.admit(Some(token.expose())), Err(FeedTokenError::Revoked("scraper".into())));
        assert!(!feeders.is_in_force(&admitted));

        let (second, other) = feeder("scraper");
        feeders.put(second);
        assert_eq!(feeders.admit(Some(token.expose())), Err(FeedTokenError::Unknown));
        assert!(feeders.admit(Some(other.expose())).is_ok() && !feeders.is_in_force(&admitted));
        assert_eq!(feeders.list().len(), 1);
    }

    #[test]
    fn missing_or_malformed_token_is_rejected() {
        let feeders = Feeders::default();
        assert_eq!(feeders.admit(None), Err(FeedTokenError::Missing));
        assert_eq!(feeders.admit(Some("")), Err(FeedTokenError::Missing));
        assert_eq!(feeders.admit(Some("ft_ob_x")), Err(FeedTokenError::Malformed));
    }

    #[test]
    fn name_needs_no_quoting_and_contains_no_secret() {
        assert!(Feeder::is_name("odds-scraper_2.eu") && Feeder::is_name(&"x".repeat(40)));
        for wrong in ["", "two words", "a/b", "é", "a\n", &"x".repeat(41), "ft_ob_abc", "sk_live_ob_1"] {
            assert!(!Feeder::is_name(wrong), "{wrong}");
        }
    }

    #[test]
    fn generated_token_is_well_formed_and_debug_omits_it() {
        let token = FeedToken::generate().unwrap();
        assert!(token.expose().starts_with("ft_ob_") && token.expose().ends_with(token.last_four()));
        assert_eq!((token.expose().len(), token.last_four().len()), (42, 4));
        assert_eq!(FeedToken::hash_of(token.expose()), Some(token.hash()));
        assert_eq!(format!("{token:?}"), "FeedToken(ft_ob_…)");
        for at in 0..token.expose().len() {
            let mut other = token.expose().to_owned().into_bytes();
            other[at] = if other[at] == b'x' { b'y' } else { b'x' };
            assert_eq!(FeedToken::hash_of(std::str::from_utf8(&other).unwrap()), None, "character {at}");
        }
    }

    #[test]
    fn keys_and_tokens_are_not_interchangeable() {
        let (token, key) = (FeedToken::generate().unwrap(), Secret::generate(KeyKind::Production).unwrap());
        assert_eq!(FeedToken::hash_of(key.expose()), None);
        assert_eq!(Secret::hash_of(token.expose()), None);
        for wrong in ["", "ft_ob_", "ft_ob_é", &token.expose()[..41], &format!("{}0", token.expose())] {
            assert_eq!(FeedToken::hash_of(wrong), None, "{wrong}");
        }
    }
}
