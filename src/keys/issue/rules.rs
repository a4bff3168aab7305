//! What a key must satisfy, one rule at a time. Each rule refuses with the error that says what to do instead.

use super::IssueError;
use crate::keys::meter::{BURST_MAX, QUOTA_MAX};
use crate::keys::record::{KeyKind, Limits};
use crate::keys::secret::may_hold_key;
use crate::model::{Catalogue, Timestamp};

pub(super) const NAME_MAX: usize = 100;

pub(super) fn name(name: &str) -> Result<(), IssueError> {
    if is_name(name) { Ok(()) } else { Err(IssueError::BadName) }
}

/// Shown in tables and logs, where a control character could forge a line and a secret would stay for ever.
fn is_name(text: &str) -> bool {
    let fits = !text.trim().is_empty() && text.chars().count() <= NAME_MAX;
    fits && !text.chars().any(char::is_control) && !may_hold_key(text)
}

pub(super) fn approval(kind: KeyKind, approved_by: Option<&str>) -> Result<(), IssueError> {
    match approved_by {
        None if kind == KeyKind::Production => Err(IssueError::NotApproved),
        Some(who) if !is_name(who) => Err(IssueError::BadApprover),
        _ => Ok(()),
    }
}

pub(super) fn limits(limits: Limits) -> Result<(), IssueError> {
    let mut quotas = limits.per_day.into_iter().chain(limits.per_month).peekable();
    if quotas.peek().is_none() {
        return Err(IssueError::NoQuota);
    }
    if limits.burst_per_minute > BURST_MAX {
        return Err(IssueError::BurstTooHigh);
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

pub(super) fn expiry(expires: Option<Timestamp>, now: Timestamp) -> Result<(), IssueError> {
    match expires {
        Some(at) if at <= now => Err(IssueError::PastExpiry(at)),
        _ => Ok(()),
    }
}

/// The groups, each once, in the order given.
pub(super) fn groups(
    kind: KeyKind,
    wanted: Vec<Box<str>>,
    catalogue: &Catalogue,
) -> Result<Box<[Box<str>]>, IssueError> {
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
