//! Shared test fixtures: a small catalogue, keys and moments.

use super::issue::{self, IssueError, NewKey};
use super::keyring::KeyTicket;
use super::record::{KeyId, KeyKind, KeyRecord, Limits};
use super::secret::Secret;
use crate::clock::Moment;
use crate::model::{Catalogue, Sport, SportKind, Timestamp};

/// 2026-11-14T12:00:00Z, day 20,771 and month 682.
pub(super) const NOON: u32 = 1_794_657_600;

pub(super) fn at(unix: u32) -> Timestamp {
    Timestamp::from_unix(unix)
}

/// A moment at noon and `seconds` later, on both clocks.
pub(super) fn noon_and(seconds: u32) -> Moment {
    Moment::unset(at(NOON + seconds).unix_ms(), u64::from(seconds) * 1000)
}

/// A moment at this wall-clock time; the monotonic clock stays at zero.
pub(super) fn wall(unix: u32) -> Moment {
    Moment::unset(at(unix).unix_ms(), 0)
}

/// mma and boxing in one group, tennis in another.
pub(super) fn catalogue() -> Catalogue {
    let sport = |key: &str, group: &str, kind| Sport {
        key: key.into(),
        title: key.into(),
        group: group.into(),
        kind,
        hides_fields: false,
        v4: None,
    };
    let fights = ["mma", "boxing"].map(|key| sport(key, "combat", SportKind::Fight));
    let sports = fights.into_iter().chain([sport("tennis", "tennis", SportKind::HeadToHead)]);
    Catalogue::new(sports.collect(), Vec::new()).unwrap()
}

pub(super) fn new_key(kind: KeyKind) -> NewKey {
    NewKey {
        kind,
        name: "a test".into(),
        groups: Vec::new(),
        limits: Limits::default_of(kind),
        expires: None,
        approved_by: (kind == KeyKind::Production).then(|| "the test".into()),
        self_service: false,
    }
}

pub(super) fn issued(new: NewKey) -> (KeyRecord, Secret) {
    let (id, secret) = (KeyId::generate().unwrap(), Secret::generate(new.kind).unwrap());
    (issue::issue(new, (id, secret.stored()), &catalogue(), at(NOON)).unwrap(), secret)
}

pub(super) fn rotate(key: &KeyRecord, grace_s: u32, now: Timestamp) -> Result<(KeyRecord, Secret), IssueError> {
    let secret = Secret::generate(key.kind).unwrap();
    Ok((issue::rotate(key, secret.stored(), grace_s, now)?, secret))
}

pub(super) fn rotate_itself(
    key: &KeyRecord,
    presented: KeyTicket,
    grace_s: u32,
    now: Timestamp,
) -> Result<(KeyRecord, Secret), IssueError> {
    let secret = Secret::generate(key.kind).unwrap();
    Ok((issue::rotate_itself(key, presented, secret.stored(), grace_s, now)?, secret))
}

pub(super) fn limited(burst_per_minute: u32, per_day: Option<u64>, per_month: Option<u64>) -> KeyRecord {
    let limits = Limits { burst_per_minute, per_day, per_month, streams: 10 };
    issued(NewKey { limits, ..new_key(KeyKind::Sandbox) }).0
}
