//! The secret text of an API key.
//!
//! Owns its format: the prefix of its kind, thirty random letters, and a checksum of six letters over both. The text
//! exists from issue until it has been shown once; only its SHA-256 is stored. `Debug` omits it, there is no `Display`
//! and no `Clone`, and its memory is overwritten on drop.

use std::cell::RefCell;
use std::fmt;
use std::iter;
use std::mem;

use sha2::{Digest, Sha256};

use super::base62::{RandomError, fill_random, six_letters};
use super::feeder::FeedToken;
use super::record::{KeyKind, SecretHash};

const PREFIX_LEN: usize = 11;
const RANDOM_LEN: usize = 30;
const CHECKSUM_LEN: usize = 6;
const LAST_SHOWN: usize = 4;

/// What is stored of a secret, of a key's or of a feed token's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredSecret {
    pub hash: SecretHash,
    pub last_four: Box<str>,
}

/// A key's secret while it can still be shown.
pub struct Secret {
    kind: KeyKind,
    text: String,
}

impl Secret {
    /// The length of every secret in characters.
    pub const LEN: usize = PREFIX_LEN + RANDOM_LEN + CHECKSUM_LEN;

    /// Generates a secret from the operating system's randomness.
    pub fn generate(kind: KeyKind) -> Result<Secret, RandomError> {
        Ok(Secret { kind, text: generate_text(kind.prefix())? })
    }

    /// The kind and hash of a text, if it is well-formed. Runs on every request: it does not allocate, and computes
    /// a SHA-256 only for a well-formed text.
    pub fn hash_of(text: impl AsRef<[u8]>) -> Option<(KeyKind, SecretHash)> {
        let text = text.as_ref();
        let kind = KeyKind::ALL.into_iter().find(|kind| text.starts_with(kind.prefix().as_bytes()))?;
        Some((kind, hash_text(text, kind.prefix())?))
    }

    pub fn kind(&self) -> KeyKind {
        self.kind
    }

    pub fn hash(&self) -> SecretHash {
        digest(&self.text)
    }

    /// The text, for the one time that it is shown.
    pub fn expose(&self) -> &str {
        &self.text
    }

    /// The last four characters, which may be shown later to tell keys apart.
    pub fn last_four(&self) -> &str {
        self.text.get(Self::LEN - LAST_SHOWN..).unwrap_or_default()
    }

    pub fn stored(&self) -> StoredSecret {
        StoredSecret { hash: self.hash(), last_four: self.last_four().into() }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secret({}…)", self.kind.prefix())
    }
}

impl Drop for Secret {
    fn drop(&mut self) {
        wipe(&mut mem::take(&mut self.text).into_bytes());
    }
}

/// The hashes of key texts that were presented lately, so that the same text need not be hashed again.
///
/// It knows nothing of whether a key is valid: the keyring is asked on every request. Each thread that answers requests
/// has its own, so that nothing is locked. A text has one slot and takes it over from another. Comparing takes the same
/// time however much of two texts agrees, so that the time of an answer does not help in guessing a text.
pub(super) struct HashMemo(Box<[Option<Memo>]>);

struct Memo {
    text: [u8; Secret::LEN],
    hash: SecretHash,
}

impl HashMemo {
    const SLOTS: usize = 512;

    /// As [`Secret::hash_of`], with the memo of this thread.
    pub(super) fn hash_on_this_thread(text: &[u8]) -> Option<SecretHash> {
        thread_local! {
            static MEMO: RefCell<HashMemo> = RefCell::new(HashMemo::new());
        }
        MEMO.with_borrow_mut(|memo| memo.hash_of(text))
    }

    fn new() -> HashMemo {
        HashMemo(iter::repeat_with(|| None).take(Self::SLOTS).collect())
    }

    fn hash_of(&mut self, text: &[u8]) -> Option<SecretHash> {
        let text: &[u8; Secret::LEN] = text.try_into().ok()?;
        let slot = self.0.get_mut(Self::slot_of(text))?;
        if let Some(memo) = slot
            && memo.text.iter().zip(text).fold(0, |differs, (own, other)| differs | (own ^ other)) == 0
        {
            return Some(memo.hash);
        }
        let (_, hash) = Secret::hash_of(text)?;
        *slot = Some(Memo { text: *text, hash });
        Some(hash)
    }

    /// The slot of a text, from its last letters: they are a checksum, so they differ where anything does.
    fn slot_of(text: &[u8; Secret::LEN]) -> usize {
        let letters = text.last_chunk::<CHECKSUM_LEN>().unwrap_or(&[0; CHECKSUM_LEN]);
        letters.iter().fold(0, |sum: usize, letter| sum.wrapping_mul(61).wrapping_add(usize::from(*letter)))
            % Self::SLOTS
    }
}

impl Drop for Memo {
    fn drop(&mut self) {
        wipe(&mut self.text);
    }
}

/// Generates a text: the prefix, random letters and the checksum.
pub(super) fn generate_text(prefix: &str) -> Result<String, RandomError> {
    let mut random = [0; RANDOM_LEN];
    fill_random(&mut random)?;
    // Allocated at full size: growing would leave a copy in freed memory that is never overwritten.
    let mut text = String::with_capacity(prefix.len() + RANDOM_LEN + CHECKSUM_LEN);
    text.push_str(prefix);
    text.extend(random.iter().copied().map(char::from));
    text.extend(checksum(text.as_bytes()).map(char::from));
    wipe(&mut random);
    Ok(text)
}

/// The hash of a text, if it has the format of [`generate_text`].
pub(super) fn hash_text(text: &[u8], prefix: &str) -> Option<SecretHash> {
    let random = text.strip_prefix(prefix.as_bytes())?;
    let (random, check) = random.split_at_checked(RANDOM_LEN)?;
    let checked = &text[..prefix.len() + RANDOM_LEN];
    // Over all of them, without an early end: that compiles to vector instructions.
    let is_base62 = random.iter().fold(true, |is_base62, byte| is_base62 & byte.is_ascii_alphanumeric());
    (is_base62 && check == checksum(checked)).then(|| digest(text))
}

/// Overwrites secret bytes. The black box keeps the compiler from removing a write that is never read, as far as safe
/// Rust allows.
pub(super) fn wipe(bytes: &mut [u8]) {
    bytes.fill(0);
    std::hint::black_box(bytes);
}

fn checksum(checked: &[u8]) -> [u8; CHECKSUM_LEN] {
    six_letters(crc32fast::hash(checked))
}

pub(super) fn digest(text: impl AsRef<[u8]>) -> SecretHash {
    SecretHash(Sha256::digest(text).into())
}

/// Whether a text contains the prefix of a key or token. Such a text is never stored, logged or echoed.
pub fn may_hold_key(text: &str) -> bool {
    KeyKind::ALL.iter().any(|kind| text.contains(kind.prefix())) || text.contains(FeedToken::PREFIX)
}

/// Whether a text given as an id or a name looks like a secret, with or without its prefix. No id has a run of that
/// many letters and digits.
pub fn looks_like_secret(text: &str) -> bool {
    let runs = text.split(|letter: char| !letter.is_ascii_alphanumeric());
    may_hold_key(text) || runs.map(str::len).max() >= Some(RANDOM_LEN)
}

/// The last four characters of a complete secret, as shown in listings. `None` for a truncated or mistyped text, whose
/// last four would match no listed key.
pub fn last_four_of(text: &str) -> Option<&str> {
    let is_whole = Secret::hash_of(text).is_some() || FeedToken::hash_of(text).is_some();
    is_whole.then(|| text.get(text.len() - LAST_SHOWN..))?
}

/// Replaces every word that looks like a secret with `(hidden)`.
pub fn without_secrets(text: &str) -> String {
    let is_word = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(is_word) {
        let (before, word) = rest.split_at(start);
        let (word, after) = word.split_at(word.find(|letter| !is_word(letter)).unwrap_or(word.len()));
        shown.push_str(before);
        shown.push_str(if looks_like_secret(word) { "(hidden)" } else { word });
        rest = after;
    }
    shown + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secret_is_recognised_whole_truncated_and_without_its_prefix() {
        for secret in secrets() {
            let text = secret.expose();
            for part in [text, &text[..20], &text[PREFIX_LEN..], &text[3..PREFIX_LEN + RANDOM_LEN]] {
                assert!(looks_like_secret(part), "{part}");
                assert_eq!(without_secrets(&format!("a '{part}', b_1 é\n")), "a '(hidden)', b_1 é\n");
            }
            assert_eq!(last_four_of(text), Some(secret.last_four()));
            assert_eq!(last_four_of(&text[..Secret::LEN - 1]), None);
        }
        for plain in ["", "key_0123456789AB", "app", "a name of several words that is quite long", "é"] {
            assert!(!looks_like_secret(plain), "{plain}");
            assert_eq!(without_secrets(plain), plain);
        }
    }

    fn secrets() -> impl Iterator<Item = Secret> {
        KeyKind::ALL.into_iter().cycle().take(200).map(|kind| Secret::generate(kind).unwrap())
    }

    #[test]
    fn memo_gives_the_hash_of_the_text_that_was_presented() {
        let mut memo = HashMemo::new();
        let texts: Vec<Secret> = secrets().take(3).collect();
        for secret in texts.iter().chain(&texts).chain(&texts[..1]).chain(&texts[..1]) {
            assert_eq!(memo.hash_of(secret.expose().as_bytes()), Some(secret.hash()));
        }
        let mistyped = texts[0].expose().replace("_ob_", "_oc_");
        for wrong in ["", "sk_test_ob_", &mistyped, &texts[0].expose()[1..]] {
            assert_eq!(memo.hash_of(wrong.as_bytes()), None, "{wrong}");
        }
        assert_eq!(memo.hash_of(texts[0].expose().as_bytes()), Some(texts[0].hash()));
    }

    #[test]
    fn generated_secret_is_well_formed() {
        for secret in secrets() {
            assert_eq!(secret.expose().len(), Secret::LEN);
            assert!(secret.expose().starts_with(secret.kind().prefix()));
            assert!(secret.expose().ends_with(secret.last_four()));
            assert_eq!(secret.last_four().len(), 4);
            assert_eq!(Secret::hash_of(secret.expose()), Some((secret.kind(), secret.hash())));
        }
    }

    #[test]
    fn format_matches_an_independent_implementation() {
        // Computed with Python's zlib.crc32 and hashlib.sha256. Issued keys must stay valid, so the format is fixed.
        let text = "sk_test_ob_0123456789ABCDEFGHIJKLMNOPabcd2JykUn";
        let (kind, hash) = Secret::hash_of(text).unwrap();
        assert_eq!(kind, KeyKind::Sandbox);
        assert_eq!(hash.0[..4], [94, 27, 29, 237]);
    }

    #[test]
    fn checksum_detects_every_single_character_change() {
        for kind in KeyKind::ALL {
            let secret = Secret::generate(kind).unwrap();
            let text = secret.expose().as_bytes();
            for at in 0..text.len() {
                for other in (0x20..0x7F).filter(|byte| *byte != text[at]) {
                    let mut changed = text.to_vec();
                    changed[at] = other;
                    let changed = String::from_utf8(changed).unwrap();
                    assert_eq!(Secret::hash_of(&changed), None, "character {at} became {}", char::from(other));
                }
            }
        }
    }

    #[test]
    fn malformed_texts_are_rejected() {
        let secret = Secret::generate(KeyKind::Production).unwrap();
        let text = secret.expose();
        let shorter = ["", "sk_live_ob_", "é", &text[..Secret::LEN - 1], &text[1..]];
        let longer = [format!("{text}0"), format!(" {text}"), text.replace("live", "test"), "é".repeat(24)];
        for text in shorter.into_iter().chain(longer.iter().map(String::as_str)) {
            assert_eq!(Secret::hash_of(text), None, "{text:?}");
        }
        // A valid checksum over letters outside of the alphabet.
        let dashes = format!("sk_live_ob_{}", "-".repeat(RANDOM_LEN));
        let dashes = dashes.clone() + std::str::from_utf8(&checksum(dashes.as_bytes())).unwrap();
        assert_eq!(Secret::hash_of(&dashes), None);
    }

    #[test]
    fn debug_omits_the_secret() {
        let secret = Secret::generate(KeyKind::Sandbox).unwrap();
        assert_eq!(format!("{secret:?}"), "Secret(sk_test_ob_…)");
        assert_eq!(format!("{:?}", secret.hash()), "SecretHash(…)");
    }

    #[test]
    fn multi_byte_character_at_the_checksum_boundary_does_not_panic() {
        let text = format!("sk_test_ob_{}é{}", "0".repeat(29), "0".repeat(5));
        assert_eq!((text.len(), Secret::hash_of(&text)), (Secret::LEN, None));
    }
}
