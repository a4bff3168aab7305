//! Issuing, rotating, revoking and changing keys.
//!
//! Owns the rules that a key must satisfy to be issued or changed. Each function takes a record and returns a new one
//! without storing or activating it, and the result depends on the arguments alone: the randomness of a new key or secret is
//! one of them. Every error says what to do instead.

#[cfg(test)]
mod tests;

use super::keyring::KeyTicket;
use super::meter::{BURST_MAX, QUOTA_MAX};
use super::record::{KeyId, KeyKind, KeyRecord, Limits, Retired, STREAMS_MAX};
use super::secret::{StoredSecret, may_hold_key};
use crate::model::{Catalogue, Timestamp};

/// The maximum number of replaced secrets that a key remembers. Those in their grace period are kept first.
pub const RETIRED_MAX: usize = 8;

/// The maximum length of a key's name and of an approver's, in characters.
const NAME_MAX: usize = 100;

/// How long the old secret is accepted after its holder has rotated a key, and how long the next time takes to come.
pub const SELF_ROTATION_S: u32 = 86_400;

/// The parameters of a key to be issued.
#[derive(Clone, Debug)]
pub struct NewKey {
    pub kind: KeyKind,
    pub name: Box<str>,
    /// Sport groups to restrict the key to; empty for every sport.
    pub groups: Vec<Box<str>>,
    pub limits: Limits,
    pub expires: Option<Timestamp>,
    pub approved_by: Option<Box<str>>,
    /// Whether its holder may rotate it.
    pub self_service: bool,
}

/// A change to a key. Fields left at their default stay as they are.
#[derive(Clone, Debug, Default)]
pub struct KeyChange {
    pub name: Option<Box<str>>,
    /// An empty list lifts the restriction.
    pub groups: Option<Vec<Box<str>>>,
    pub burst_per_minute: Option<u32>,
    pub per_day: FieldEdit<u64>,
    pub per_month: FieldEdit<u64>,
    pub streams: Option<u32>,
    pub expires: FieldEdit<Timestamp>,
    pub self_service: Option<bool>,
    /// Resets the usage of the day and the month. The record holds no usage: the caller that stores the record resets
    /// it.
    pub reset_usage: bool,
}

/// A change to an optional field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FieldEdit<T> {
    #[default]
    Keep,
    Remove,
    To(T),
}

impl<T> FieldEdit<T> {
    fn apply(self, before: Option<T>) -> Option<T> {
        match self {
            FieldEdit::Keep => before,
            FieldEdit::Remove => None,
            FieldEdit::To(after) => Some(after),
        }
    }
}

/// Why a key could not be issued, rotated or changed.
#[derive(Debug, thiserror::Error)]
pub enum IssueError {
    #[error("a name has 1 to {max} characters, no control characters and no key in it: choose another", max = NAME_MAX)]
    BadName,
    #[error("a production key needs approval: say who approved it")]
    NotApproved,
    #[error("an approver's name has 1 to {max} characters, no control characters and no key in it", max = NAME_MAX)]
    BadApprover,
    #[error("a sandbox key cannot be restricted to groups: leave them out, or use a production key")]
    GroupsOfSandbox,
    #[error("there is no group {group:?}: choose from {known}")]
    UnknownGroup { group: Box<str>, known: String },
    #[error("a limit of 0 lets nothing pass: give 1 or more, or revoke the key")]
    ZeroLimit,
    #[error("a key can have at most {STREAMS_MAX} streams")]
    TooManyStreams,
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
    #[error("{0} has expired, and a new secret would be rejected too: set a later expiry first")]
    Expired(KeyId),
    #[error("this key is not allowed to rotate itself: ask the operator of the service for a new secret")]
    NotSelfService,
    #[error("this secret has been replaced and cannot rotate its key: use the key's new secret")]
    OldSecret,
    #[error(
        "a key can rotate itself once in 24 hours: try again in {retry_after_s} seconds, or ask the operator of the service"
    )]
    RotatedLately { retry_after_s: u32 },
    #[error("no rotation of {0} can be undone: its last one left the old secret no grace period, or that has ended")]
    NothingToUndo(KeyId),
}

/// Issues a key under an id and with a secret that were drawn for it.
pub fn issue(
    new: NewKey,
    (id, secret): (KeyId, StoredSecret),
    catalogue: &Catalogue,
    now: Timestamp,
) -> Result<KeyRecord, IssueError> {
    check_name(&new.name)?;
    check_approval(new.kind, new.approved_by.as_deref())?;
    check_limits(new.limits)?;
    check_expiry(new.expires, now)?;
    let groups = check_groups(new.kind, new.groups, catalogue)?;
    Ok(KeyRecord {
        id,
        kind: new.kind,
        name: new.name,
        groups,
        limits: new.limits,
        created: now,
        expires: new.expires,
        approved_by: new.approved_by,
        revoked: None,
        hash: secret.hash,
        last_four: secret.last_four,
        retired: Box::default(),
        replaced_last_four: Box::default(),
        self_service: new.self_service,
        self_rotated: None,
        last_used: None,
    })
}

/// Gives a key a new secret. The old one is accepted for `grace_seconds` more; grace periods of secrets replaced
/// earlier stay as they are.
pub fn rotate(
    key: &KeyRecord,
    secret: StoredSecret,
    grace_seconds: u32,
    now: Timestamp,
) -> Result<KeyRecord, IssueError> {
    check_in_force(key, now)?;
    let old = Retired { hash: key.hash, until: now.plus_seconds(grace_seconds) };
    let StoredSecret { hash, last_four } = secret;
    let (retired, replaced_last_four) = (retire(&key.retired, old, now), key.last_four.clone());
    Ok(KeyRecord { hash, last_four, retired, replaced_last_four, ..key.clone() })
}

/// The same on behalf of the key's holder, who has presented a secret. See [`check_self_rotation`].
pub fn rotate_itself(
    key: &KeyRecord,
    presented: KeyTicket,
    secret: StoredSecret,
    grace_seconds: u32,
    now: Timestamp,
) -> Result<KeyRecord, IssueError> {
    check_self_rotation(key, presented, now)?;
    Ok(KeyRecord { self_rotated: Some(now), ..rotate(key, secret, grace_seconds, now)? })
}

/// Whether the holder of a secret may rotate its key now. An old secret in its grace period may not: whoever has found
/// one could take the key over.
pub fn check_self_rotation(key: &KeyRecord, presented: KeyTicket, now: Timestamp) -> Result<(), IssueError> {
    if !key.self_service {
        return Err(IssueError::NotSelfService);
    }
    if !presented.is_secret_of(key) {
        return Err(IssueError::OldSecret);
    }
    let next = key.self_rotated.map_or(0, |last| last.plus_seconds(SELF_ROTATION_S).seconds_since(now));
    // Longer than that only after the clock was set back: then the time of the last one says nothing.
    if (1..=SELF_ROTATION_S).contains(&next) {
        return Err(IssueError::RotatedLately { retry_after_s: next });
    }
    Ok(())
}

/// Takes the last rotation back: the old secret, which must be in its grace period, is the key's secret again, and the new one
/// ends. When the holder may rotate it again stays as it is, because whoever rotated it may still have the old secret.
pub fn undo_rotation(key: &KeyRecord, now: Timestamp) -> Result<KeyRecord, IssueError> {
    check_in_force(key, now)?;
    let Some((old, before)) = key.retired.split_last().filter(|(old, _)| old.until > now) else {
        return Err(IssueError::NothingToUndo(key.id.clone()));
    };
    let retired = retire(before, Retired { hash: key.hash, until: now }, now);
    let (last_four, replaced_last_four) = (key.replaced_last_four.clone(), key.last_four.clone());
    Ok(KeyRecord { hash: old.hash, last_four, retired, replaced_last_four, ..key.clone() })
}

fn check_in_force(key: &KeyRecord, now: Timestamp) -> Result<(), IssueError> {
    if key.revoked.is_some() {
        return Err(IssueError::Revoked(key.id.clone()));
    }
    if key.expires.is_some_and(|expires| expires <= now) {
        return Err(IssueError::Expired(key.id.clone()));
    }
    Ok(())
}

/// The replaced secrets with one more, of which at most [`RETIRED_MAX`] are remembered.
pub(super) fn retire(before: &[Retired], old: Retired, now: Timestamp) -> Box<[Retired]> {
    let mut retired = [before, &[old]].concat();
    while retired.len() > RETIRED_MAX {
        // A secret in its grace period is dropped only if all of them are.
        let oldest_ended = retired.iter().position(|retired| retired.until <= now);
        retired.remove(oldest_ended.unwrap_or(0));
    }
    retired.into()
}

/// Revokes a key. Revoking it again changes nothing: the first revocation time stays.
pub fn revoke(key: &KeyRecord, now: Timestamp) -> KeyRecord {
    KeyRecord { revoked: key.revoked.or(Some(now)), ..key.clone() }
}

/// Changes a key's limits, groups, expiry, name or what its holder may do.
pub fn set(key: &KeyRecord, change: KeyChange, catalogue: &Catalogue, now: Timestamp) -> Result<KeyRecord, IssueError> {
    let limits = Limits {
        burst_per_minute: change.burst_per_minute.unwrap_or(key.limits.burst_per_minute),
        per_day: change.per_day.apply(key.limits.per_day),
        per_month: change.per_month.apply(key.limits.per_month),
        streams: change.streams.unwrap_or(key.limits.streams),
    };
    check_limits(limits)?;
    if let FieldEdit::To(expires) = change.expires {
        check_expiry(Some(expires), now)?;
    }
    let name = change.name.unwrap_or_else(|| key.name.clone());
    check_name(&name)?;
    let groups = match change.groups {
        Some(groups) => check_groups(key.kind, groups, catalogue)?,
        None => key.groups.clone(),
    };
    let self_service = change.self_service.unwrap_or(key.self_service);
    Ok(KeyRecord { name, groups, limits, expires: change.expires.apply(key.expires), self_service, ..key.clone() })
}

fn check_name(name: &str) -> Result<(), IssueError> {
    if is_name(name) { Ok(()) } else { Err(IssueError::BadName) }
}

/// Names appear in tables and logs, where a control character could forge a line and a secret would be kept.
fn is_name(text: &str) -> bool {
    let fits = !text.trim().is_empty() && text.chars().count() <= NAME_MAX;
    fits && !text.chars().any(char::is_control) && !may_hold_key(text)
}

fn check_approval(kind: KeyKind, approved_by: Option<&str>) -> Result<(), IssueError> {
    match approved_by {
        None if kind == KeyKind::Production => Err(IssueError::NotApproved),
        Some(who) if !is_name(who) => Err(IssueError::BadApprover),
        _ => Ok(()),
    }
}

fn check_limits(limits: Limits) -> Result<(), IssueError> {
    let mut quotas = limits.per_day.into_iter().chain(limits.per_month).peekable();
    if quotas.peek().is_none() {
        return Err(IssueError::NoQuota);
    }
    if limits.burst_per_minute > BURST_MAX {
        return Err(IssueError::BurstTooHigh);
    }
    if limits.streams > STREAMS_MAX {
        return Err(IssueError::TooManyStreams);
    }
    if limits.burst_per_minute == 0 {
        return Err(IssueError::ZeroLimit);
    }
    quotas.try_for_each(|quota| match quota {
        0 => Err(IssueError::ZeroLimit),
        1..=QUOTA_MAX => Ok(()),
        _ => Err(IssueError::QuotaTooHigh),
    })
}

fn check_expiry(expires: Option<Timestamp>, now: Timestamp) -> Result<(), IssueError> {
    match expires {
        Some(at) if at <= now => Err(IssueError::PastExpiry(at)),
        _ => Ok(()),
    }
}

/// Returns the groups without duplicates, in the order given.
fn check_groups(kind: KeyKind, wanted: Vec<Box<str>>, catalogue: &Catalogue) -> Result<Box<[Box<str>]>, IssueError> {
    if kind == KeyKind::Sandbox && !wanted.is_empty() {
        return Err(IssueError::GroupsOfSandbox);
    }
    let mut groups: Vec<Box<str>> = Vec::new();
    for group in wanted {
        if catalogue.group(&group).is_empty() {
            return Err(IssueError::UnknownGroup { group, known: catalogue.groups().join(", ") });
        }
        if !groups.contains(&group) {
            groups.push(group);
        }
    }
    Ok(groups.into())
}
