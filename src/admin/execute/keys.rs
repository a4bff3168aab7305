//! Commands about keys.

use std::sync::Arc;

use super::super::context::Context;
use super::super::protocol::{
    Answer, Failure, FailureCode, FieldSetting, IssueKey, KeyAnswer, LimitsAnswer, SecretText, SetKey,
};
use crate::clock::Moment;
use crate::keys::{FieldEdit, KeyChange, KeyEntry, KeyKind, KeyRecord, Limits, NewKey, SCOPE};
use crate::model::Timestamp;
use crate::writer::{Issued, KeyError};

pub(super) async fn issue(new: IssueKey, context: &Context, who: &str) -> Result<Answer, Failure> {
    let new = new_key(new, context.clock.now())?;
    let key = context.writer.issue_key(new, who).await?;
    context.writer.spread().await;
    Ok(issued(&key, context.clock.now()))
}

pub(super) fn list(context: &Context) -> Answer {
    let now = context.clock.now();
    Answer::Keys(context.keyring.list().iter().map(|key| shown(key, now)).collect())
}

pub(super) fn show(key: &str, context: &Context) -> Result<Answer, Failure> {
    Ok(Answer::Key(Box::new(shown(&*find(key, context)?, context.clock.now()))))
}

pub(super) async fn rotate(key: &str, grace_s: u32, context: &Context, who: &str) -> Result<Answer, Failure> {
    let key = find(key, context)?;
    let rotated = context.writer.rotate_key(key.id().as_str(), grace_s, who).await?;
    let secret = Some(SecretText::new(rotated.secret.expose()));
    Ok(changed(&rotated.key, secret, context).await)
}

pub(super) async fn undo_rotation(key: &str, context: &Context, who: &str) -> Result<Answer, Failure> {
    let key = context.writer.undo_rotation(find(key, context)?.id().as_str(), who).await?;
    Ok(changed(&key, None, context).await)
}

pub(super) async fn revoke(key: &str, context: &Context, who: &str) -> Result<Answer, Failure> {
    let key = context.writer.revoke_key(find(key, context)?.id().as_str(), who).await?;
    Ok(changed(&key, None, context).await)
}

pub(super) async fn set(change: SetKey, context: &Context, who: &str) -> Result<Answer, Failure> {
    let key = find(&change.id, context)?;
    let change = key_change(change, context.clock.now());
    let key = context.writer.set_key(key.id().as_str(), change, who).await?;
    Ok(changed(&key, None, context).await)
}

/// The answer about a key that was changed, when nobody goes by what it was before.
async fn changed(key: &KeyEntry, secret: Option<SecretText>, context: &Context) -> Answer {
    let ((), unconfirmed) = tokio::join!(key.meter().streams().settled(), context.writer.settled());
    let unconfirmed = unconfirmed.into_iter().map(String::from).collect();
    Answer::Key(Box::new(KeyAnswer { key: secret, unconfirmed, ..shown(key, context.clock.now()) }))
}

/// The key with this id or else with this name, which must belong to one key only.
fn find(text: &str, context: &Context) -> Result<Arc<KeyEntry>, KeyError> {
    let mut found = context.keyring.find(text);
    if found.len() > 1 {
        let ids = found.iter().map(|key| key.id().to_string()).collect();
        return Err(KeyError::AmbiguousName { name: text.into(), ids });
    }
    found.pop().ok_or_else(|| KeyError::no_such_key(text))
}

fn new_key(new: IssueKey, now: Moment) -> Result<NewKey, Failure> {
    let kind = KeyKind::parse(&new.kind)
        .ok_or_else(|| Failure::bad_request(format!("{:?} is no kind of key: sandbox or production", new.kind)))?;
    let default = Limits::default_of(kind);
    let limits = Limits {
        burst_per_minute: new.burst_per_minute.unwrap_or(default.burst_per_minute),
        per_day: limit(new.requests_per_day, default.per_day),
        per_month: limit(new.requests_per_month, default.per_month),
        streams: new.streams.unwrap_or(default.streams),
    };
    Ok(NewKey {
        kind,
        name: new.name.into(),
        groups: new.groups.into_iter().map(Box::from).collect(),
        limits,
        expires: new.expires_in_s.map(|seconds| now.in_seconds(seconds)),
        approved_by: new.approved_by.map(Box::from),
        self_service: new.self_service,
    })
}

fn limit(given: FieldSetting<u64>, default: Option<u64>) -> Option<u64> {
    match given {
        FieldSetting::Keep => default,
        FieldSetting::Remove => None,
        FieldSetting::To(limit) => Some(limit),
    }
}

fn key_change(change: SetKey, now: Moment) -> KeyChange {
    KeyChange {
        name: change.name.map(Box::from),
        groups: change.groups.map(|groups| groups.into_iter().map(Box::from).collect()),
        burst_per_minute: change.burst_per_minute,
        per_day: edit(change.requests_per_day),
        per_month: edit(change.requests_per_month),
        streams: change.streams,
        expires: match change.expires_in_s {
            FieldSetting::Keep => FieldEdit::Keep,
            FieldSetting::Remove => FieldEdit::Remove,
            FieldSetting::To(seconds) => FieldEdit::To(now.in_seconds(seconds)),
        },
        self_service: change.self_service,
        reset_usage: change.reset_usage,
    }
}

fn edit<T>(setting: FieldSetting<T>) -> FieldEdit<T> {
    match setting {
        FieldSetting::Keep => FieldEdit::Keep,
        FieldSetting::Remove => FieldEdit::Remove,
        FieldSetting::To(value) => FieldEdit::To(value),
    }
}

/// The one answer that carries a secret.
fn issued(issued: &Issued, now: Moment) -> Answer {
    let key = Some(SecretText::new(issued.secret.expose()));
    Answer::Key(Box::new(KeyAnswer { key, ..shown(&issued.key, now) }))
}

fn shown(key: &KeyEntry, now: Moment) -> KeyAnswer {
    let record = key.record();
    let standing = key.meter().standing(now);
    let time = |time: Option<Timestamp>| time.map(|time| time.to_string());
    let graces = || record.retired.iter().map(|retired| retired.until);
    let is_ahead = |until: &Timestamp| *until > now.timestamp();
    let status = standing_of(record, now.timestamp());
    KeyAnswer {
        id: record.id.to_string(),
        key: None,
        kind: record.kind.name().to_owned(),
        name: record.name.to_string(),
        groups: record.groups.iter().map(ToString::to_string).collect(),
        scope: SCOPE.to_owned(),
        limits: LimitsAnswer {
            burst_per_minute: record.limits.burst_per_minute,
            requests_per_day: record.limits.per_day,
            requests_per_month: record.limits.per_month,
            streams: record.limits.streams,
        },
        created: record.created.to_string(),
        expires: time(record.expires),
        approved_by: record.approved_by.as_deref().map(str::to_owned),
        revoked: time(record.revoked),
        status: status.to_owned(),
        hint: format!("{}…{}", record.kind.prefix(), record.last_four),
        used_today: standing.day.used,
        used_this_month: standing.month.used,
        remaining_today: standing.day.remaining(),
        last_used: time(key.meter().last_used()),
        open_streams: key.meter().streams().count() as u64,
        old_secret_until: time(graces().filter(is_ahead).max()),
        undo_until: time(graces().next_back().filter(is_ahead).filter(|_| status == ACTIVE)),
        self_service: record.self_service,
        unconfirmed: Vec::new(),
    }
}

const ACTIVE: &str = "active";

pub(super) fn standing_of(record: &KeyRecord, now: Timestamp) -> &'static str {
    if record.revoked.is_some() {
        "revoked"
    } else if record.expires.is_some_and(|expires| expires <= now) {
        "expired"
    } else {
        ACTIVE
    }
}

impl From<KeyError> for Failure {
    fn from(error: KeyError) -> Self {
        let code = match &error {
            KeyError::NoSuchKey(_) | KeyError::SecretForId(_) => FailureCode::KeyNotFound,
            KeyError::AmbiguousName { .. } | KeyError::Refused(_) => FailureCode::Refused,
            KeyError::Random(_) | KeyError::Write(_) => FailureCode::Unavailable,
        };
        Failure::new(code, error.to_string())
    }
}
