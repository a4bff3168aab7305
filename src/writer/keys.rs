//! Operations on keys. Each takes effect before it is answered: it is committed first, then put into the keyring that
//! every request is checked against.

use std::sync::Arc;

use super::operation::{IssueKey, RotateKey, RotateOwnKey};
use super::{WriteError, Writer};
use crate::keys::issue::{self, IssueError, KeyChange, NewKey, SELF_ROTATION_S};
use crate::keys::{
    KeyEntry, KeyId, KeyRecord, RandomError, RecentUse, Secret, SharedUse, Usage, last_four_of, looks_like_secret,
};
use crate::model::Timestamp;
use crate::store::Change;

/// A key and its secret, which exists nowhere else.
#[derive(Debug)]
pub struct Issued {
    pub key: Arc<KeyEntry>,
    pub secret: Secret,
}

/// Why a key was not issued or changed.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    #[error("no key has the id or name {0}; `oddsbox keys list` shows them")]
    NoSuchKey(Box<str>),
    #[error("{} keys are named {name}: give the id of one of {}", .ids.len(), .ids.join(", "))]
    AmbiguousName { name: Box<str>, ids: Vec<String> },
    /// With the last four characters, if it is a whole secret.
    #[error("that looks like a key's secret, not its id: {}", how_to_find_the_id(.0.as_deref()))]
    SecretForId(Option<Box<str>>),
    #[error(transparent)]
    Refused(#[from] IssueError),
    #[error(transparent)]
    Random(#[from] RandomError),
    #[error(transparent)]
    Write(#[from] WriteError),
}

/// How to find the id of a key from its secret, without repeating the secret.
fn how_to_find_the_id(last_four: Option<&str>) -> String {
    match last_four {
        Some(last_four) => format!("`oddsbox keys list` shows the id of the key that ends in {last_four}"),
        None => "`oddsbox keys list` shows the ids".to_owned(),
    }
}

impl KeyError {
    /// For an id that no key has. A secret that was typed by mistake is not repeated.
    pub fn no_such_key(id: &str) -> Self {
        if looks_like_secret(id) {
            return KeyError::SecretForId(last_four_of(id).map(Box::from));
        }
        KeyError::NoSuchKey(id.into())
    }
}

impl Writer {
    pub fn issue_key(&mut self, new: NewKey, who: &str) -> Result<Issued, KeyError> {
        let (id, secret) = (KeyId::generate()?, Secret::generate(new.kind)?);
        let key = self.put_new_key(IssueKey { new, id, secret: secret.stored(), who: who.into() })?;
        Ok(Issued { key, secret })
    }

    pub(super) fn put_new_key(&mut self, issued: IssueKey) -> Result<Arc<KeyEntry>, KeyError> {
        let IssueKey { new, id, secret, who } = issued;
        let record = issue::issue(new, (id, secret), &self.catalogue, self.now())?;
        let detail = described(&record);
        self.put_key(record, &who, "issue", detail)
    }

    /// Issues a new secret for the same key; the old one stays valid for `grace_s`, rounded up to the end of a second.
    pub fn rotate_key(&mut self, id: &str, grace_s: u32, who: &str) -> Result<Issued, KeyError> {
        let secret = Secret::generate(self.key(id)?.record().kind)?;
        let rotation = RotateKey { id: id.into(), secret: secret.stored(), grace_s, who: who.into() };
        let key = self.put_rotated_key(rotation)?;
        Ok(Issued { key, secret })
    }

    pub(super) fn put_rotated_key(&mut self, rotation: RotateKey) -> Result<Arc<KeyEntry>, KeyError> {
        let RotateKey { id, secret, grace_s, who } = rotation;
        let (whole_grace_s, now) = self.whole_seconds(grace_s);
        let record = issue::rotate(self.key(&id)?.record(), secret, whole_grace_s, now)?;
        self.put_key(record, &who, "rotate", format!("grace {grace_s} s"))
    }

    /// The same on behalf of the key's holder, with the secret that was presented.
    pub(super) fn rotate_own_key(&mut self, rotation: RotateOwnKey) -> Result<Arc<KeyEntry>, KeyError> {
        let RotateOwnKey { id, presented, secret, who } = rotation;
        let (grace_s, now) = self.whole_seconds(SELF_ROTATION_S);
        let record = issue::rotate_itself(self.key(&id)?.record(), presented, secret, grace_s, now)?;
        self.put_key(record, &who, "rotate", format!("by its holder, grace {SELF_ROTATION_S} s"))
    }

    /// Takes the last rotation back, while the old secret is in its grace period.
    pub fn undo_rotation(&mut self, id: &str, who: &str) -> Result<Arc<KeyEntry>, KeyError> {
        let record = issue::undo_rotation(self.key(id)?.record(), self.now())?;
        let detail = "the old secret is in force again, and the new one has ended".to_owned();
        self.put_key(record, who, "undo rotation", detail)
    }

    /// A duration from now on, rounded up to the end of a second, and now.
    fn whole_seconds(&self, seconds: u32) -> (u32, Timestamp) {
        let now = self.clock.now();
        (now.in_seconds(seconds).seconds_since(now.timestamp()), now.timestamp())
    }

    pub fn revoke_key(&mut self, id: &str, who: &str) -> Result<Arc<KeyEntry>, KeyError> {
        let key = self.key(id)?;
        if key.record().revoked.is_some() {
            return Ok(key);
        }
        let record = issue::revoke(key.record(), self.now());
        self.put_key(record, who, "revoke", String::new())
    }

    pub fn set_key(&mut self, id: &str, change: KeyChange, who: &str) -> Result<Arc<KeyEntry>, KeyError> {
        let (entry, resets) = (self.key(id)?, change.reset_usage);
        let record = issue::set(entry.record(), change, &self.catalogue, self.now())?;
        let detail = described(&record);
        if !resets {
            return self.put_key(record, who, "set", detail);
        }
        let now = self.clock.now();
        let (key, usage) = (record.id.clone(), Usage::fresh(now));
        let record = KeyRecord { last_used: record.last_used.min(Some(now.timestamp())), ..record };
        let last_used = match entry.meter().shared_use() {
            Some(shared) => shared.last_used,
            None => entry.meter().last_used(),
        };
        let last_used = last_used.min(Some(now.timestamp()));
        let note = self.note(who, "set", key.as_str(), format!("{detail}, day and month begun anew"));
        let put = Change::PutKey(Arc::new(record.clone()));
        self.commit(&[put, Change::PutUsage { key, usage, last_used }, Change::Audit(note)])?;
        entry.meter().restart(usage, now);
        self.lost_usage.retain(|lost| *lost != record.id);
        Ok(self.put_in_force(record))
    }

    /// Stores what meters may hand out, ahead of use.
    pub fn take_leases(&mut self, leases: &[(KeyId, Usage)]) -> Result<(), WriteError> {
        // A lease that was planned before the usage of its key was reset would undo the reset.
        let is_void = |id: &KeyId| self.keyring.get(id).is_some_and(|key| key.meter().has_void_lease());
        let leases = leases.iter().filter(|(id, _)| !is_void(id));
        let changes: Vec<_> = leases.filter_map(|(id, usage)| self.usage_change(id, *usage)).collect();
        self.commit(&changes)
    }

    /// Records what keys have used on one of the nodes.
    pub(super) fn record_use(&mut self, uses: &[(KeyId, u64, Timestamp)]) -> Result<(), WriteError> {
        let now = self.now();
        let recorded = |(id, units, used): &(KeyId, u64, Timestamp)| {
            let key = self.keyring.get(id)?;
            let shared = key.meter().shared_use()?.plus(*units, *used, now);
            Some((key, shared))
        };
        let recorded: Vec<_> = uses.iter().filter_map(recorded).collect();
        let changes = recorded.iter().flat_map(|(key, SharedUse { usage, recent, last_used })| {
            let usage = Change::PutUsage { key: key.id().clone(), usage: *usage, last_used: *last_used };
            [usage, Change::PutRecentUse { key: key.id().clone(), recent: Box::new(*recent) }]
        });
        self.commit(&changes.collect::<Vec<_>>())?;
        for (key, shared) in recorded {
            key.meter().put_shared_use(shared);
        }
        Ok(())
    }

    /// Stores that keys whose counters were lost count as exhausted, so that this ends with their day and their month,
    /// whatever happens until then.
    pub(super) fn store_exhausted(&mut self) -> Result<(), WriteError> {
        let mut changes = Vec::new();
        for id in &self.lost_usage {
            let Some(key) = self.keyring.get(id) else { continue };
            changes.extend(self.usage_change(id, key.meter().usage()));
            let detail = "the counters cannot be read: day and month count as spent until they end, or until \
                          `oddsbox keys set` with --reset-usage";
            changes.push(Change::Audit(self.note("oddsbox", "usage lost", id.as_str(), detail.to_owned())));
        }
        self.commit(&changes)
    }

    /// Stores what was really used. Only for an orderly stop: what was leased and not used is returned. The file of a node of a
    /// cluster has it from the log.
    pub(super) fn flush_usage(&mut self) -> Result<(), WriteError> {
        let keys = self.keyring.list();
        let own = keys.iter().filter(|key| key.meter().shared_use().is_none());
        let changes: Vec<_> = own.filter_map(|key| self.usage_change(key.id(), key.meter().usage())).collect();
        self.commit(&changes)
    }

    /// Stores what keys have used lately, of those that were used since this was last stored.
    pub(super) fn store_recent_use(&mut self) -> Result<(), WriteError> {
        let now = self.local_clock.now().timestamp();
        let keys = self.keyring.list();
        let used: Vec<_> =
            keys.iter().filter_map(|key| Some((key, Box::new(key.meter().take_recent_use(now)?)))).collect();
        let change = |(key, recent): &(&Arc<KeyEntry>, Box<RecentUse>)| Change::PutRecentUse {
            key: key.id().clone(),
            recent: recent.clone(),
        };
        let changes: Vec<Change> = used.iter().map(change).collect();
        self.commit(&changes).inspect_err(|_| used.iter().for_each(|(key, _)| key.meter().keep_recent_use()))
    }

    fn usage_change(&self, id: &KeyId, usage: Usage) -> Option<Change> {
        let last_used = self.keyring.get(id)?.meter().last_used();
        Some(Change::PutUsage { key: id.clone(), usage, last_used })
    }

    fn key(&self, id: &str) -> Result<Arc<KeyEntry>, KeyError> {
        let found = KeyId::new(id).and_then(|id| self.keyring.get(&id));
        found.ok_or_else(|| KeyError::no_such_key(id))
    }

    /// Lets requests be checked against a key as it is in the file, and its open streams too.
    fn put_in_force(&self, record: KeyRecord) -> Arc<KeyEntry> {
        let key = self.keyring.put(record);
        key.meter().streams().recheck();
        key
    }

    fn put_key(
        &mut self,
        record: KeyRecord,
        who: &str,
        action: &str,
        detail: String,
    ) -> Result<Arc<KeyEntry>, KeyError> {
        let note = self.note(who, action, record.id.as_str(), detail);
        self.commit(&[Change::PutKey(Arc::new(record.clone())), Change::Audit(note)])?;
        Ok(self.put_in_force(record))
    }
}

/// The description of a key in the audit log.
fn described(key: &KeyRecord) -> String {
    let quota = |limit: Option<u64>| limit.map_or("none".to_owned(), |limit| limit.to_string());
    let limits = format!(
        "{} key {:?}, {} a minute, {} a day, {} a month",
        key.kind.name(),
        key.name,
        key.limits.burst_per_minute,
        quota(key.limits.per_day),
        quota(key.limits.per_month)
    );
    let groups = (!key.groups.is_empty()).then(|| format!("only {}", key.groups.join(" and ")));
    let expires = key.expires.map(|expires| format!("until {expires}"));
    let approved = key.approved_by.as_ref().map(|who| format!("approved by {who:?}"));
    let self_service = key.self_service.then(|| "self-service".to_owned());
    [Some(limits), groups, expires, approved, self_service].into_iter().flatten().collect::<Vec<_>>().join(", ")
}
