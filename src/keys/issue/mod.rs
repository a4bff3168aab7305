//! Issuing, rotating, revoking and changing keys.
//!
//! Owns the rules that a key must satisfy to be issued or changed. Each function takes a record and returns a new one:
//! nothing is stored and nothing comes into force here, and apart from the randomness of a new secret the answer
//! depends on the arguments alone. Every error says what to do instead.

mod rules;
#[cfg(test)]
mod tests;

use super::base62::RandomError;
use super::meter::{BURST_MAX, QUOTA_MAX};
use super::record::{KeyId, KeyKind, KeyRecord, Limits, Retired};
use super::secret::Secret;
use crate::model::{Catalogue, Timestamp};

/// As many replaced secrets as a key remembers, those in their grace before the others.
pub const RETIRED_MAX: usize = 8;

/// What is asked for when a key is issued.
#[derive(Clone, Debug)]
pub struct NewKey {
    pub kind: KeyKind,
    pub name: Box<str>,
    /// Sport groups to restrict it to; none for every sport.
    pub groups: Vec<Box<str>>,
    pub limits: Limits,
    pub expires: Option<Timestamp>,
    pub approved_by: Option<Box<str>>,
}

/// What is to change of a key; what is left at its default stays as it is.
#[derive(Clone, Debug, Default)]
pub struct KeyChange {
    pub name: Option<Box<str>>,
    /// An empty list lifts the restriction.
    pub groups: Option<Vec<Box<str>>>,
    pub burst_per_minute: Option<u32>,
    pub per_day: Edit<u64>,
    pub per_month: Edit<u64>,
    pub expires: Edit<Timestamp>,
    /// Begins its day and its month anew. Its record does not speak of that: who puts the record does it.
    pub reset_usage: bool,
}

/// A change of something that may also be absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Edit<T> {
    #[default]
    Keep,
    Remove,
    To(T),
}

impl<T> Edit<T> {
    fn of(self, before: Option<T>) -> Option<T> {
        match self {
            Edit::Keep => before,
            Edit::Remove => None,
            Edit::To(after) => Some(after),
        }
    }
}

/// Why a key is not issued, rotated or changed.
#[derive(Debug, thiserror::Error)]
pub enum IssueError {
    #[error("a name has 1 to {max} characters, no control characters and no key in it: choose another", max = rules::NAME_MAX)]
    BadName,
    #[error("a production key needs approval: say who approved it")]
    NotApproved,
    #[error("an approver's name has 1 to {max} characters, no control characters and no key in it", max = rules::NAME_MAX)]
    BadApprover,
    #[error("a sandbox key cannot be restricted to groups: leave them out, or use a production key")]
    GroupsOfSandbox,
    #[error("there is no group {group:?}: choose from {known}")]
    UnknownGroup { group: Box<str>, known: String },
    #[error("a limit of 0 lets nothing pass: give 1 or more, or revoke the key")]
    ZeroLimit,
    #[error("at most {BURST_MAX} a minute can be counted: give a lower burst")]
    BurstTooHigh,
    #[error("at most {QUOTA_MAX} a day or a month can be counted: give a lower limit, or none")]
    QuotaTooHigh,
    #[error("day and month cannot both be without a limit: give one of them")]
    NoQuota,
    #[error("{0} is not in the future: give a later expiry, or none")]
    PastExpiry(Timestamp),
    #[error("{0} is revoked, which cannot be undone: issue a new key instead")]
    Revoked(KeyId),
    #[error("{0} has expired, a new secret would not open either: set a later expiry first")]
    Expired(KeyId),
    #[error(transparent)]
    Random(#[from] RandomError),
}

/// A new key and its secret, which exists nowhere else.
pub fn issue(new: NewKey, catalogue: &Catalogue, now: Timestamp) -> Result<(KeyRecord, Secret), IssueError> {
    rules::name(&new.name)?;
    rules::approval(new.kind, new.approved_by.as_deref())?;
    rules::limits(new.limits)?;
    rules::expiry(new.expires, now)?;
    let groups = rules::groups(new.kind, new.groups, catalogue)?;
    let secret = Secret::generate(new.kind)?;
    let record = KeyRecord {
        id: KeyId::generate()?,
        kind: new.kind,
        name: new.name,
        groups,
        limits: new.limits,
        created: now,
        expires: new.expires,
        approved_by: new.approved_by,
        revoked: None,
        hash: secret.hash(),
        last_four: secret.last_four().into(),
        retired: Box::default(),
        last_used: None,
    };
    Ok((record, secret))
}

/// The same key with a new secret. The old one opens for `grace_seconds` more; those replaced earlier end when they
/// would have ended.
pub fn rotate(key: &KeyRecord, grace_seconds: u32, now: Timestamp) -> Result<(KeyRecord, Secret), IssueError> {
    if key.revoked.is_some() {
        return Err(IssueError::Revoked(key.id.clone()));
    }
    if key.expires.is_some_and(|expires| expires <= now) {
        return Err(IssueError::Expired(key.id.clone()));
    }
    let secret = Secret::generate(key.kind)?;
    let mut retired = key.retired.to_vec();
    retired.push(Retired { hash: key.hash, until: now.plus_seconds(grace_seconds) });
    while retired.len() > RETIRED_MAX {
        // One that still opens is forgotten only when all of them do.
        let oldest_over = retired.iter().position(|retired| retired.until <= now);
        retired.remove(oldest_over.unwrap_or(0));
    }
    let (hash, last_four) = (secret.hash(), secret.last_four().into());
    let record = KeyRecord { hash, last_four, retired: retired.into(), ..key.clone() };
    Ok((record, secret))
}

/// The same key, revoked. Revoking it again changes nothing: the first time is when it stopped.
pub fn revoke(key: &KeyRecord, now: Timestamp) -> KeyRecord {
    KeyRecord { revoked: key.revoked.or(Some(now)), ..key.clone() }
}

/// The same key with other limits, groups, expiry or name.
pub fn set(key: &KeyRecord, change: KeyChange, catalogue: &Catalogue, now: Timestamp) -> Result<KeyRecord, IssueError> {
    let limits = Limits {
        burst_per_minute: change.burst_per_minute.unwrap_or(key.limits.burst_per_minute),
        per_day: change.per_day.of(key.limits.per_day),
        per_month: change.per_month.of(key.limits.per_month),
    };
    rules::limits(limits)?;
    if let Edit::To(expires) = change.expires {
        rules::expiry(Some(expires), now)?;
    }
    let name = change.name.unwrap_or_else(|| key.name.clone());
    rules::name(&name)?;
    let groups = match change.groups {
        Some(groups) => rules::groups(key.kind, groups, catalogue)?,
        None => key.groups.clone(),
    };
    Ok(KeyRecord { name, groups, limits, expires: change.expires.of(key.expires), ..key.clone() })
}
