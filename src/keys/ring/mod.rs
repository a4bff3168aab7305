//! The keyring: from the text that a request brings to the key it opens.
//!
//! Owns every key in force, and every one that no longer opens, so that the reason can be told. Looking one up costs
//! a hash and one step in a map, whether there are ten keys or ten thousand; it waits for nobody. A change builds a
//! new map beside the old one and swaps it in: when [`Keyring::put`] returns, every later request sees the change.
//! It stores nothing.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use arc_swap::ArcSwap;
use foldhash::fast::RandomState;
use http::HeaderValue;

use crate::clock::Moment;
use crate::keys::desk::LeaseDesk;
use crate::keys::grant::Grant;
use crate::keys::meter::Meter;
use crate::keys::record::{KeyId, KeyRecord, SecretHash, Usage};
use crate::keys::secret::{HashMemo, Secret};
use crate::model::{Catalogue, SportSet, Timestamp};

/// A key as the service holds it: its record, its meter, and the sports that its groups come to.
#[derive(Debug)]
pub struct KeyEntry {
    record: KeyRecord,
    meter: Arc<Meter>,
    sports: SportSet,
    /// Its place in the order of issue.
    place: usize,
    /// Its limits as the answers to it name them, kept for as long as they are these.
    policy: OnceLock<HeaderValue>,
}

impl KeyEntry {
    fn new(record: KeyRecord, meter: Arc<Meter>, catalogue: &Catalogue, place: usize) -> Self {
        KeyEntry { sports: sports_of(&record, catalogue), record, meter, place, policy: OnceLock::new() }
    }

    pub fn id(&self) -> &KeyId {
        &self.record.id
    }

    pub fn record(&self) -> &KeyRecord {
        &self.record
    }

    /// The key's meter, the same one for as long as the process lives.
    pub fn meter(&self) -> &Meter {
        &self.meter
    }

    pub fn sports(&self) -> SportSet {
        self.sports
    }

    pub(super) fn policy(&self) -> &OnceLock<HeaderValue> {
        &self.policy
    }

    /// Each of its secrets, and until when it opens: the current one as long as the key does.
    fn secrets(&self) -> impl Iterator<Item = (SecretHash, Option<Timestamp>)> {
        let retired = self.record.retired.iter().map(|retired| (retired.hash, Some(retired.until)));
        retired.chain([(self.record.hash, None)])
    }
}

/// Why a text opens nothing. A client is told the same in every case; logs and metrics tell them apart.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AuthError {
    #[error("no key was sent")]
    Missing,
    #[error("what was sent has not the form of a key")]
    Malformed,
    #[error("no key has this secret")]
    Unknown,
    #[error("{0} was revoked")]
    Revoked(KeyId),
    #[error("{0} has expired")]
    Expired(KeyId),
    #[error("this secret of {0} was rotated out")]
    RotatedOut(KeyId),
}

impl AuthError {
    /// One word for it, to count by.
    pub const fn reason(&self) -> &'static str {
        match self {
            AuthError::Missing => "missing",
            AuthError::Malformed => "malformed",
            AuthError::Unknown => "unknown",
            AuthError::Revoked(_) => "revoked",
            AuthError::Expired(_) => "expired",
            AuthError::RotatedOut(_) => "rotated_out",
        }
    }

    /// The key that the secret belongs to, where there is one.
    pub const fn key(&self) -> Option<&KeyId> {
        match self {
            AuthError::Missing | AuthError::Malformed | AuthError::Unknown => None,
            AuthError::Revoked(id) | AuthError::Expired(id) | AuthError::RotatedOut(id) => Some(id),
        }
    }
}

/// What a secret leads to.
#[derive(Clone, Debug)]
struct Slot {
    entry: Arc<KeyEntry>,
    /// When a rotated secret's grace ends; `None` for the current one.
    until: Option<Timestamp>,
}

impl Slot {
    /// The first second of its end no longer opens.
    fn open(&self, now: Timestamp) -> Result<Grant, AuthError> {
        let record = self.entry.record();
        let over = |end: Option<Timestamp>| end.is_some_and(|end| end <= now);
        if record.revoked.is_some() {
            Err(AuthError::Revoked(record.id.clone()))
        } else if over(self.until) {
            Err(AuthError::RotatedOut(record.id.clone()))
        } else if over(record.expires) {
            Err(AuthError::Expired(record.id.clone()))
        } else {
            Ok(Grant::new(Arc::clone(&self.entry)))
        }
    }
}

/// All keys at one moment. Never changes.
#[derive(Clone, Debug, Default)]
struct Ring {
    by_secret: HashMap<SecretHash, Slot, RandomState>,
    by_id: HashMap<KeyId, Arc<KeyEntry>, RandomState>,
}

impl Ring {
    fn insert(&mut self, entry: &Arc<KeyEntry>) {
        if let Some(before) = self.by_id.insert(entry.id().clone(), Arc::clone(entry)) {
            for (hash, _) in before.secrets() {
                self.by_secret.remove(&hash);
            }
        }
        for (hash, until) in entry.secrets() {
            self.by_secret.insert(hash, Slot { entry: Arc::clone(entry), until });
        }
    }
}

/// The keys, shared by everyone who serves a request.
#[derive(Debug)]
pub struct Keyring {
    ring: ArcSwap<Ring>,
    /// Held while a ring is copied and swapped, so that two changes cannot lose one another.
    changing: Mutex<()>,
    catalogue: Arc<Catalogue>,
    desk: LeaseDesk,
}

impl Keyring {
    /// The keyring of what was stored, in the order of issue; its meters ask for leases at `desk`.
    pub fn new(
        catalogue: Arc<Catalogue>,
        loaded: impl IntoIterator<Item = (KeyRecord, Usage)>,
        desk: LeaseDesk,
    ) -> Self {
        let mut ring = Ring::default();
        for (place, (record, usage)) in loaded.into_iter().enumerate() {
            let meter = Arc::new(Meter::new(&record, usage, &desk));
            ring.insert(&Arc::new(KeyEntry::new(record, meter, &catalogue, place)));
        }
        Keyring { ring: ArcSwap::from_pointee(ring), changing: Mutex::new(()), catalogue, desk }
    }

    /// The grant that a key's text opens. An empty text is none.
    pub fn authenticate(&self, text: Option<&str>, now: Moment) -> Result<Grant, AuthError> {
        self.grant(text.map(str::as_bytes), now, |text| Secret::hash_of(text).map(|(_, hash)| hash))
    }

    /// The same for a connection, which need not hash a text that it has just presented. Whether the key is in force is
    /// looked up each time.
    pub fn authenticate_again(&self, text: Option<&[u8]>, memo: &HashMemo, now: Moment) -> Result<Grant, AuthError> {
        self.grant(text, now, |text| memo.hash_of(text))
    }

    fn grant(
        &self,
        text: Option<&[u8]>,
        now: Moment,
        hash_of: impl FnOnce(&[u8]) -> Option<SecretHash>,
    ) -> Result<Grant, AuthError> {
        let text = text.filter(|text| !text.is_empty()).ok_or(AuthError::Missing)?;
        let hash = hash_of(text).ok_or(AuthError::Malformed)?;
        let ring = self.ring.load();
        ring.by_secret.get(&hash).ok_or(AuthError::Unknown)?.open(now.timestamp())
    }

    /// Puts a new or changed key in force. A known key keeps its meter, with the new limits.
    pub fn put(&self, record: KeyRecord) -> Arc<KeyEntry> {
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let before = self.ring.load_full();
        // Keys are never taken away, so their number is the next one's place.
        let (meter, place) = match before.by_id.get(&record.id) {
            Some(known) => (Arc::clone(&known.meter), known.place),
            None => (Arc::new(Meter::new(&record, Usage::default(), &self.desk)), before.by_id.len()),
        };
        meter.set_limits(record.limits);
        let entry = Arc::new(KeyEntry::new(record, meter, &self.catalogue, place));
        let mut ring = Ring::clone(&before);
        ring.insert(&entry);
        self.ring.store(Arc::new(ring));
        entry
    }

    pub fn get(&self, id: &KeyId) -> Option<Arc<KeyEntry>> {
        self.ring.load().by_id.get(id).cloned()
    }

    /// The keys that an operator may mean by a text: the one with that id, else all with that name.
    pub fn find(&self, text: &str) -> Vec<Arc<KeyEntry>> {
        match KeyId::new(text).and_then(|id| self.get(&id)) {
            Some(entry) => vec![entry],
            None => self.list().into_iter().filter(|entry| *entry.record.name == *text).collect(),
        }
    }

    /// Every key in the order of issue, the oldest first.
    pub fn list(&self) -> Vec<Arc<KeyEntry>> {
        let mut entries: Vec<_> = self.ring.load().by_id.values().cloned().collect();
        entries.sort_by_key(|entry| entry.place);
        entries
    }
}

/// The sports that a key may read. A group that the catalogue no longer has contributes nothing: a restricted key
/// must not become an unrestricted one because a line of data went away.
fn sports_of(record: &KeyRecord, catalogue: &Catalogue) -> SportSet {
    if record.groups.is_empty() {
        return SportSet::ALL;
    }
    record.groups.iter().fold(SportSet::NONE, |sports, group| sports.union(catalogue.group(group)))
}
