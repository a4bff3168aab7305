//! The text of a feed token: what a feeder on another machine shows at the door.
//!
//! Of the same form as a key's secret, with a prefix of its own, so that neither opens the other's door. It is shown
//! once, kept as a hash, and is in no `Debug`.

use std::fmt;
use std::mem;

use crate::keys::base62::RandomError;
use crate::keys::record::SecretHash;
use crate::keys::secret::{digest, generate_text, hash_text, wipe};

/// A token while it can still be shown.
pub struct FeedToken(String);

impl FeedToken {
    pub const PREFIX: &str = "ft_ob_";
    const LAST_SHOWN: usize = 4;

    /// A new token, from the operating system's randomness.
    pub fn generate() -> Result<FeedToken, RandomError> {
        Ok(FeedToken(generate_text(Self::PREFIX)?))
    }

    /// The hash of a text, if it has the form of a token.
    pub fn hash_of(text: &str) -> Option<SecretHash> {
        hash_text(text.as_bytes(), Self::PREFIX)
    }

    pub fn hash(&self) -> SecretHash {
        digest(&self.0)
    }

    /// The text, for the one time that it is shown to whom it was issued.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// What may be shown later, to tell tokens apart.
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

    #[test]
    fn a_token_is_known_by_its_form_and_shows_nothing() {
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
    fn neither_a_key_nor_a_token_has_the_form_of_the_other() {
        let (token, key) = (FeedToken::generate().unwrap(), Secret::generate(KeyKind::Production).unwrap());
        assert_eq!(FeedToken::hash_of(key.expose()), None);
        assert_eq!(Secret::hash_of(token.expose()), None);
        for wrong in ["", "ft_ob_", "ft_ob_é", &token.expose()[..41], &format!("{}0", token.expose())] {
            assert_eq!(FeedToken::hash_of(wrong), None, "{wrong}");
        }
    }
}
