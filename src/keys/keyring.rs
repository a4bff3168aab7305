//! The keyring: authenticates the secret of a request.
//!
//! Owns every key, including revoked and expired ones, so that the reason for a rejection is known. A lookup is one
//! SHA-256 and one map access, whatever the number of keys, and never blocks. A change builds a new map, which shares all but
//! one part with the last one, and swaps it in: when [`Keyring::put`] returns, every later request sees the change. Nothing is persisted here.

mod parts;
#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::{ArcSwap, Guard};
use tokio::task::JoinSet;

use self::parts::{Parted, PartedMap};
use crate::attachment::Attachment;
use crate::clock::Moment;
use crate::keys::grant::Grant;
use crate::keys::leases::LeaseQueue;
use crate::keys::meter::{Meter, RecentUse};
use crate::keys::record::{KeyId, KeyRecord, SecretHash, Usage};
use crate::keys::secret::HashMemo;
use crate::model::{Catalogue, SportSet, Timestamp};

/// A key in memory: its record, its meter, and the sports that its groups resolve to.
#[derive(Debug)]
pub struct KeyEntry {
    record: KeyRecord,
    meter: Arc<Meter>,
    sports: SportSet,
    /// Position in the order of issue.
    position: usize,
    /// The cached rate-limit policy for the record's limits.
    policy: Attachment,
}

impl KeyEntry {
    fn new(record: KeyRecord, meter: Arc<Meter>, catalogue: &Catalogue, position: usize) -> Self {
        KeyEntry { sports: sports_of(&record, catalogue), record, meter, position, policy: Attachment::default() }
    }

    pub fn id(&self) -> &KeyId {
        &self.record.id
    }

    pub fn record(&self) -> &KeyRecord {
        &self.record
    }

    /// The key's meter. Changes to the key keep it.
    pub fn meter(&self) -> &Meter {
        &self.meter
    }

    pub fn sports(&self) -> SportSet {
        self.sports
    }

    pub(super) fn policy(&self) -> &Attachment {
        &self.policy
    }

    /// All secrets of the key, each with the end of its grace period; `None` for the current one.
    fn secrets(&self) -> impl Iterator<Item = (SecretHash, Option<Timestamp>)> {
        let retired = self.record.retired.iter().map(|retired| (retired.hash, Some(retired.until)));
        retired.chain([(self.record.hash, None)])
    }
}

/// Why a key was rejected. The client gets the same response in every case; logs and metrics have the reason.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AuthError {
    #[error("no key was sent")]
    Missing,
    #[error("the key is malformed")]
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
    /// The reason as a metric label.
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

    /// The key that the secret belongs to, if known.
    pub const fn key(&self) -> Option<&KeyId> {
        match self {
            AuthError::Missing | AuthError::Malformed | AuthError::Unknown => None,
            AuthError::Revoked(id) | AuthError::Expired(id) | AuthError::RotatedOut(id) => Some(id),
        }
    }
}

/// The key that a secret belongs to.
#[derive(Clone, Debug)]
struct SecretEntry {
    entry: Arc<KeyEntry>,
    /// The end of a rotated secret's grace period; `None` for the current secret.
    until: Option<Timestamp>,
}

impl SecretEntry {
    /// Ends are exclusive: at the second of its expiry a key is rejected.
    fn authorise(&self, now: Timestamp) -> Result<Grant<'_>, AuthError> {
        let record = self.entry.record();
        let has_passed = |end: Option<Timestamp>| end.is_some_and(|end| end <= now);
        if record.revoked.is_some() {
            Err(AuthError::Revoked(record.id.clone()))
        } else if has_passed(self.until) {
            Err(AuthError::RotatedOut(record.id.clone()))
        } else if has_passed(record.expires) {
            Err(AuthError::Expired(record.id.clone()))
        } else {
            Ok(Grant::new(&self.entry))
        }
    }
}

/// Hashes are uniform. Their first bytes are what a map uses.
impl Parted for SecretHash {
    fn part(&self) -> u8 {
        self.0[31]
    }
}

/// Ids are random letters and digits.
impl Parted for KeyId {
    fn part(&self) -> u8 {
        self.as_str().bytes().fold(0, |part, letter| part.rotate_left(3) ^ letter)
    }
}

/// An immutable snapshot of all keys.
#[derive(Clone, Debug, Default)]
struct KeyMap {
    by_secret: PartedMap<SecretHash, SecretEntry>,
    by_id: PartedMap<KeyId, Arc<KeyEntry>>,
}

impl KeyMap {
    fn insert(&mut self, entry: &Arc<KeyEntry>) {
        if let Some(before) = self.by_id.insert(entry.id().clone(), Arc::clone(entry)) {
            for (hash, _) in before.secrets() {
                self.by_secret.remove(&hash);
            }
        }
        for (hash, until) in entry.secrets() {
            self.by_secret.insert(hash, SecretEntry { entry: Arc::clone(entry), until });
        }
    }
}

/// The keys that one request is authenticated against.
#[derive(Debug)]
pub struct Keys {
    map: Guard<Arc<KeyMap>>,
}

impl Keys {
    /// Authenticates a secret. An empty text counts as missing. A text that this thread has just seen is not hashed again;
    /// whether its key is in force is looked up each time.
    pub fn authenticate<T>(&self, text: Option<&T>, now: Moment) -> Result<Grant<'_>, AuthError>
    where
        T: AsRef<[u8]> + ?Sized,
    {
        let text = text.map(AsRef::as_ref).filter(|text: &&[u8]| !text.is_empty()).ok_or(AuthError::Missing)?;
        let hash = HashMemo::hash_on_this_thread(text).ok_or(AuthError::Malformed)?;
        self.map.by_secret.get(&hash).ok_or(AuthError::Unknown)?.authorise(now.timestamp())
    }

    /// A secret without its text, for a request that goes on for longer than a moment.
    pub fn ticket<T: AsRef<[u8]> + ?Sized>(&self, text: &T) -> Option<KeyTicket> {
        HashMemo::hash_on_this_thread(text.as_ref()).map(KeyTicket)
    }

    /// Authenticates the secret of a ticket again, and says until when that holds if nothing changes.
    pub fn renew(&self, ticket: &KeyTicket, now: Timestamp) -> Result<(Grant<'_>, Option<Timestamp>), AuthError> {
        let secret = self.map.by_secret.get(&ticket.0).ok_or(AuthError::Unknown)?;
        let grant = secret.authorise(now)?;
        let until = [secret.until, secret.entry.record().expires].into_iter().flatten().min();
        Ok((grant, until))
    }
}

/// A secret that was authenticated once, to be authenticated again while its request goes on.
#[derive(Clone, Copy, Debug)]
pub struct KeyTicket(SecretHash);

impl KeyTicket {
    pub const fn of(hash: SecretHash) -> Self {
        KeyTicket(hash)
    }

    pub const fn hash(self) -> SecretHash {
        self.0
    }

    /// Whether it is the present secret of a key, and none that was rotated out.
    pub(super) fn is_secret_of(self, key: &KeyRecord) -> bool {
        self.0 == key.hash
    }
}

/// All keys, shared by every request.
#[derive(Debug)]
pub struct Keyring {
    map: ArcSwap<KeyMap>,
    /// Held while the map is copied and swapped, so that concurrent changes are not lost.
    changing: Mutex<()>,
    catalogue: Arc<Catalogue>,
    queue: LeaseQueue,
}

impl Keyring {
    /// Builds the keyring from the stored keys, in the order of issue. Meters request leases through `queue`.
    pub fn new(
        catalogue: Arc<Catalogue>,
        loaded: impl IntoIterator<Item = (KeyRecord, Usage)>,
        queue: LeaseQueue,
    ) -> Self {
        let mut map = KeyMap::default();
        for (position, (record, usage)) in loaded.into_iter().enumerate() {
            let meter = Arc::new(Meter::new(&record, usage, &queue));
            map.insert(&Arc::new(KeyEntry::new(record, meter, &catalogue, position)));
        }
        Keyring { map: ArcSwap::from_pointee(map), changing: Mutex::new(()), catalogue, queue }
    }

    /// Continues from what keys had used lately.
    pub fn restore_recent_use(&self, stored: impl IntoIterator<Item = (KeyId, RecentUse)>) {
        let keys = self.map.load();
        for (id, recent) in stored {
            if let Some(key) = keys.by_id.get(&id) {
                key.meter().restore_recent_use(recent);
            }
        }
    }

    /// The keys as they are now, for one request.
    pub fn load(&self) -> Keys {
        Keys { map: self.map.load() }
    }

    /// Adds or replaces a key. An existing key keeps its meter, with the new limits.
    pub fn put(&self, record: KeyRecord) -> Arc<KeyEntry> {
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let before = self.map.load_full();
        // Keys are never removed, so their number is the next position.
        let (meter, position) = match before.by_id.get(&record.id) {
            Some(known) => (Arc::clone(&known.meter), known.position),
            None => (Arc::new(Meter::new(&record, Usage::default(), &self.queue)), before.by_id.len()),
        };
        meter.set_limits(record.limits);
        let entry = Arc::new(KeyEntry::new(record, meter, &self.catalogue, position));
        let mut map = KeyMap::clone(&before);
        map.insert(&entry);
        self.map.store(Arc::new(map));
        entry
    }

    pub fn get(&self, id: &KeyId) -> Option<Arc<KeyEntry>> {
        self.map.load().by_id.get(id).cloned()
    }

    /// Finds keys by id or name: the key with that id, else all keys with that name.
    pub fn find(&self, text: &str) -> Vec<Arc<KeyEntry>> {
        match KeyId::new(text).and_then(|id| self.get(&id)) {
            Some(entry) => vec![entry],
            None => self.list().into_iter().filter(|entry| *entry.record.name == *text).collect(),
        }
    }

    /// All keys in the order of issue, oldest first.
    pub fn list(&self) -> Vec<Arc<KeyEntry>> {
        let mut entries: Vec<_> = self.map.load().by_id.values().cloned().collect();
        entries.sort_by_key(|entry| entry.position);
        entries
    }

    /// Waits until the streams of all keys have checked the last changes of their keys: see [`OpenStreams::settled`].
    ///
    /// [`OpenStreams::settled`]: super::streams::OpenStreams::settled
    pub async fn streams_settled(&self) {
        let mut settling = JoinSet::new();
        for entry in self.list() {
            let streams = Arc::clone(entry.meter().streams());
            if streams.count() > 0 {
                settling.spawn(async move { streams.settled().await });
            }
        }
        settling.join_all().await;
    }
}

/// The sports that a key may read. A group that is missing from the catalogue contributes nothing: removing a group
/// from the catalogue must not make a restricted key unrestricted.
fn sports_of(record: &KeyRecord, catalogue: &Catalogue) -> SportSet {
    if record.groups.is_empty() {
        return SportSet::ALL;
    }
    record.groups.iter().fold(SportSet::NONE, |sports, group| sports.union(catalogue.group(group)))
}
