//! The stored part of an API key: everything but its secret.

use std::fmt;
use std::hash::{Hash, Hasher};

use subtle::ConstantTimeEq;

use super::base62::{RandomError, fill_random};
use crate::model::{Timestamp, World};

/// A key's public identifier: `key_` and twelve letters and digits. Used in commands and logs; not a credential.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyId([u8; KeyId::LEN]);

impl KeyId {
    const PREFIX: &[u8; 4] = b"key_";
    const LEN: usize = Self::PREFIX.len() + 12;

    pub fn new(text: &str) -> Option<Self> {
        let bytes: [u8; Self::LEN] = text.as_bytes().try_into().ok()?;
        let clean = bytes.strip_prefix(Self::PREFIX)?.iter().all(u8::is_ascii_alphanumeric);
        clean.then_some(KeyId(bytes))
    }

    /// Generates an id. Twelve letters hold 71 bits, so collisions need no handling.
    pub fn generate() -> Result<Self, RandomError> {
        let mut bytes = [0; Self::LEN];
        bytes[..Self::PREFIX.len()].copy_from_slice(Self::PREFIX);
        fill_random(&mut bytes[Self::PREFIX.len()..])?;
        Ok(KeyId(bytes))
    }

    pub fn as_str(&self) -> &str {
        // Always valid UTF-8: the constructors accept ASCII only.
        str::from_utf8(&self.0).unwrap_or_default()
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A key's kind, which decides the world it reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KeyKind {
    Sandbox,
    Production,
}

impl KeyKind {
    pub const ALL: [KeyKind; 2] = [KeyKind::Sandbox, KeyKind::Production];

    /// The prefix of every secret of this kind.
    pub const fn prefix(self) -> &'static str {
        match self {
            KeyKind::Sandbox => "sk_test_ob_",
            KeyKind::Production => "sk_live_ob_",
        }
    }

    pub const fn name(self) -> &'static str {
        match self {
            KeyKind::Sandbox => "sandbox",
            KeyKind::Production => "production",
        }
    }

    pub fn parse(text: &str) -> Option<KeyKind> {
        KeyKind::ALL.into_iter().find(|kind| kind.name() == text)
    }

    pub const fn world(self) -> World {
        match self {
            KeyKind::Sandbox => World::Sandbox,
            KeyKind::Production => World::Live,
        }
    }
}

/// More than any client needs.
pub const STREAMS_MAX: u32 = 10_000;

/// Limits of requests per minute, UTC day and UTC month, and of streams. The day or the month may be unlimited, but not both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    pub burst_per_minute: u32,
    pub per_day: Option<u64>,
    pub per_month: Option<u64>,
    /// Open at the same time.
    pub streams: u32,
}

impl Limits {
    pub const fn default_of(kind: KeyKind) -> Self {
        match kind {
            KeyKind::Sandbox => Limits { burst_per_minute: 60, per_day: Some(10_000), per_month: None, streams: 2 },
            KeyKind::Production => {
                Limits { burst_per_minute: 600, per_day: Some(1_000_000), per_month: None, streams: 10 }
            }
        }
    }
}

/// The SHA-256 of a secret. The secret itself is not stored.
#[derive(Clone, Copy, Eq)]
pub struct SecretHash(pub [u8; 32]);

/// Compares in constant time, so that timing does not reveal how much of a guessed hash matches.
impl PartialEq for SecretHash {
    fn eq(&self, other: &Self) -> bool {
        let differs = words(self).zip(words(other)).fold(0, |differs, (own, other)| differs | (own ^ other));
        differs.ct_eq(&0).into()
    }
}

fn words(hash: &SecretHash) -> impl Iterator<Item = u64> {
    hash.0.as_chunks().0.iter().map(|chunk| u64::from_le_bytes(*chunk))
}

/// A SHA-256 is already uniform, so its first eight bytes are enough for a map.
impl Hash for SecretHash {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.0.first_chunk().map_or(0, |first| u64::from_le_bytes(*first)));
    }
}

impl fmt::Debug for SecretHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretHash(…)")
    }
}

/// A secret that was replaced by a rotation and is accepted until its grace period ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Retired {
    pub hash: SecretHash,
    pub until: Timestamp,
}

/// A key as it is stored. Its permission is always `odds:read`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRecord {
    pub id: KeyId,
    pub kind: KeyKind,
    pub name: Box<str>,
    /// The sport groups that the key is restricted to; empty means every sport. Production keys only.
    pub groups: Box<[Box<str>]>,
    pub limits: Limits,
    pub created: Timestamp,
    pub expires: Option<Timestamp>,
    /// Who approved production access; always present for a production key.
    pub approved_by: Option<Box<str>>,
    pub revoked: Option<Timestamp>,
    pub hash: SecretHash,
    /// The last four characters of the secret, to tell keys apart.
    pub last_four: Box<str>,
    /// Rotated secrets, newest last. Those past their grace period are kept only to report why they are rejected.
    pub retired: Box<[Retired]>,
    /// The last four characters of the newest rotated secret, to show them again if its rotation is undone. Empty if
    /// they are not known.
    pub replaced_last_four: Box<str>,
    /// Whether the key's holder may rotate it.
    pub self_service: bool,
    /// When its holder last did, also if that was undone.
    pub self_rotated: Option<Timestamp>,
    pub last_used: Option<Timestamp>,
}

/// The only permission: read access to odds, events and scores.
pub const SCOPE: &str = "odds:read";

/// The requests that a key has used, or leased ahead of use, in one day and one month. Days are counted from
/// 1970-01-01, months from January 1970. This is the stored form: after a crash the meter continues from it, so that
/// a key never gets more than it had left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    pub day: u32,
    pub day_used: u64,
    pub month: u32,
    pub month_used: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_ids_are_ids() {
        for _ in 0..100 {
            let id = KeyId::generate().unwrap();
            assert_eq!(KeyId::new(id.as_str()), Some(id));
        }
    }

    #[test]
    fn hashes_are_equal_only_when_every_byte_is() {
        let hash = SecretHash([7; 32]);
        assert_eq!(hash, SecretHash([7; 32]));
        for at in 0..32 {
            let mut other = hash;
            other.0[at] ^= 1;
            assert_ne!(hash, other);
        }
    }
}
