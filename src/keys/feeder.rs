//! Feeders: clients on other machines that may push feed lines, authenticated by a token.
//!
//! A feeder has a name and a world that its lines go to. [`Feeders`] holds them in memory as the keyring holds keys:
//! lookups never block, and a change is in force when [`Feeders::put`] returns. A [`FeedToken`] has the format of a
//! key's secret with a prefix of its own, so that neither is accepted as the other; only its hash is stored. A rotation
//! follows the rules of keys: the replaced token is accepted until its grace period ends.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::{fmt, mem};

use arc_swap::ArcSwap;

use super::base62::RandomError;
use super::issue::retire;
use super::record::{Retired, SecretHash};
use super::secret::{StoredSecret, digest, generate_text, hash_text, may_hold_key, wipe};
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
    /// Rotated tokens, newest last. Those past their grace period are kept only to report why they are rejected.
    pub retired: Box<[Retired]>,
}

impl Feeder {
    pub const NAME_MAX: usize = 40;

    /// Whether a text is a valid name. Names appear in tables, logs and commands, so they need no quoting, and must not
    /// contain a secret by mistake.
    pub fn is_name(text: &str) -> bool {
        let clean = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        (1..=Self::NAME_MAX).contains(&text.len()) && text.bytes().all(clean) && !may_hold_key(text)
    }

    /// The feeder with a new token. The old one is accepted for `grace_seconds` more; grace periods of tokens replaced
    /// earlier stay as they are.
    #[must_use]
    pub fn rotated(&self, token: StoredSecret, grace_seconds: u32, now: Timestamp) -> Feeder {
        let old = Retired { hash: self.hash, until: now.plus_seconds(grace_seconds) };
        let StoredSecret { hash, last_four } = token;
        Feeder { hash, last_four, retired: retire(&self.retired, old, now), ..self.clone() }
    }

    /// The end of the last grace period that still runs.
    pub fn grace_until(&self, now: Timestamp) -> Option<Timestamp> {
        self.retired.iter().map(|retired| retired.until).filter(|until| *until > now).max()
    }

    /// All tokens of the feeder, each with the end of its grace period; `None` for the current one.
    fn tokens(&self) -> impl Iterator<Item = (SecretHash, Option<Timestamp>)> {
        let retired = self.retired.iter().map(|retired| (retired.hash, Some(retired.until)));
        retired.chain([(self.hash, None)])
    }
}

/// A feeder, and the one of its tokens that it was admitted with.
#[derive(Clone, Debug)]
pub struct AdmittedFeeder {
    pub feeder: Arc<Feeder>,
    token: SecretHash,
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
    #[error("this token of {0} was rotated out")]
    RotatedOut(Box<str>),
}

/// The feeder that a token belongs to.
#[derive(Clone, Debug)]
struct TokenEntry {
    feeder: Arc<Feeder>,
    /// The end of a rotated token's grace period; `None` for the current token.
    until: Option<Timestamp>,
}

impl TokenEntry {
    /// Ends are exclusive, as for keys.
    fn authorise(&self, now: Timestamp) -> Result<&Arc<Feeder>, FeedTokenError> {
        let name = || self.feeder.name.clone();
        if self.feeder.revoked.is_some() {
            Err(FeedTokenError::Revoked(name()))
        } else if self.until.is_some_and(|until| until <= now) {
            Err(FeedTokenError::RotatedOut(name()))
        } else {
            Ok(&self.feeder)
        }
    }
}

#[derive(Clone, Debug, Default)]
struct FeederMap {
    by_token: HashMap<SecretHash, TokenEntry>,
    by_name: BTreeMap<Box<str>, Arc<Feeder>>,
}

impl FeederMap {
    fn insert(&mut self, feeder: Arc<Feeder>) {
        if let Some(before) = self.by_name.insert(feeder.name.clone(), Arc::clone(&feeder)) {
            for (hash, _) in before.tokens() {
                self.by_token.remove(&hash);
            }
        }
        for (hash, until) in feeder.tokens() {
            self.by_token.insert(hash, TokenEntry { feeder: Arc::clone(&feeder), until });
        }
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
    pub fn admit(&self, token: Option<&str>, now: Timestamp) -> Result<AdmittedFeeder, FeedTokenError> {
        let token = token.filter(|token| !token.is_empty()).ok_or(FeedTokenError::Missing)?;
        let token = FeedToken::hash_of(token).ok_or(FeedTokenError::Malformed)?;
        let map = self.map.load();
        let feeder = map.by_token.get(&token).ok_or(FeedTokenError::Unknown)?.authorise(now)?;
        Ok(AdmittedFeeder { feeder: Arc::clone(feeder), token })
    }

    /// Whether the token that a feeder was admitted with is still valid.
    pub fn is_in_force(&self, admitted: &AdmittedFeeder, now: Timestamp) -> bool {
        self.map.load().by_token.get(&admitted.token).is_some_and(|entry| entry.authorise(now).is_ok())
    }

    /// Adds or replaces a feeder. Only the tokens of the new one are accepted.
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

    pub fn stored(&self) -> StoredSecret {
        StoredSecret { hash: self.hash(), last_four: self.last_four().into() }
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
        let retired = Box::default();
        (Feeder { name: name.into(), world: World::Live, created, revoked: None, hash, last_four, retired }, token)
    }

    fn at(seconds: u32) -> Timestamp {
        Timestamp::from_unix(seconds)
    }

    #[test]
    fn token_is_accepted_until_it_is_revoked_or_replaced() {
        let (first, token) = feeder("scraper");
        let feeders = Feeders::new([first.clone()]);
        let admitted = feeders.admit(Some(token.expose()), at(60)).unwrap();
        assert_eq!((&*admitted.feeder, feeders.is_in_force(&admitted, at(60))), (&first, true));
        let rejected = |token: &FeedToken| feeders.admit(Some(token.expose()), at(70)).unwrap_err();

        feeders.put(Feeder { revoked: Some(at(70)), ..first });
        assert_eq!(rejected(&token), FeedTokenError::Revoked("scraper".into()));
        assert!(!feeders.is_in_force(&admitted, at(70)));

        let (second, other) = feeder("scraper");
        feeders.put(second);
        assert_eq!(rejected(&token), FeedTokenError::Unknown);
        assert!(feeders.admit(Some(other.expose()), at(70)).is_ok() && !feeders.is_in_force(&admitted, at(70)));
        assert_eq!(feeders.list().len(), 1);
    }

    #[test]
    fn rotated_token_is_accepted_until_its_grace_ends_and_revocation_ends_both() {
        let (first, old) = feeder("scraper");
        let feeders = Feeders::new([first.clone()]);
        let admitted = feeders.admit(Some(old.expose()), at(100)).unwrap();
        let new = FeedToken::generate().unwrap();
        let rotated = feeders.put(first.rotated(new.stored(), 10, at(100)));
        let admit = |token: &FeedToken, now| feeders.admit(Some(token.expose()), at(now)).map(|it| it.feeder);
        assert_eq!(admit(&old, 109), Ok(Arc::clone(&rotated)));
        assert_eq!(admit(&new, 110), Ok(Arc::clone(&rotated)));
        assert_eq!(admit(&old, 110), Err(FeedTokenError::RotatedOut("scraper".into())));
        assert!(feeders.is_in_force(&admitted, at(109)) && !feeders.is_in_force(&admitted, at(110)));
        assert_eq!((rotated.grace_until(at(109)), rotated.grace_until(at(110))), (Some(at(110)), None));
        assert_eq!(&*rotated.last_four, new.last_four());

        let third = FeedToken::generate().unwrap();
        let rotated = feeders.put(rotated.rotated(third.stored(), 0, at(101)));
        assert_eq!(admit(&new, 101), Err(FeedTokenError::RotatedOut("scraper".into())));
        assert!(admit(&old, 109).is_ok(), "an earlier grace period stays as it is");

        feeders.put(Feeder { revoked: Some(at(102)), ..Feeder::clone(&rotated) });
        for token in [&old, &new, &third] {
            assert_eq!(admit(token, 102), Err(FeedTokenError::Revoked("scraper".into())));
        }
    }

    #[test]
    fn missing_or_malformed_token_is_rejected() {
        let feeders = Feeders::default();
        let rejected = |token: Option<&str>| feeders.admit(token, at(60)).unwrap_err();
        assert_eq!(rejected(None), FeedTokenError::Missing);
        assert_eq!(rejected(Some("")), FeedTokenError::Missing);
        assert_eq!(rejected(Some("ft_ob_x")), FeedTokenError::Malformed);
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
