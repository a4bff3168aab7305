//! Operations on keys.

use serde::{Deserialize, Serialize};

use super::EntryError;
use super::fields::{SecretFields, read_hash};
use crate::keys::{FieldEdit, KeyChange, KeyId, KeyKind, KeyTicket, Limits, NewKey};
use crate::model::Timestamp;
use crate::model::text::hex;
use crate::writer::SharedOperation;
use crate::writer::operation::{IssueKey, RecordUse, RevokeKey, RotateKey, RotateOwnKey, SetKey, UndoRotation};

#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum KeyFields {
    Issue { id: String, new: Box<NewKeyFields>, secret: SecretFields, who: Box<str> },
    Rotate { id: Box<str>, secret: SecretFields, grace_s: u32, who: Box<str> },
    RotateOwn { id: Box<str>, presented: String, secret: SecretFields, who: Box<str> },
    UndoRotation { id: Box<str>, who: Box<str> },
    Revoke { id: Box<str>, who: Box<str> },
    Set { id: Box<str>, change: Box<KeyChangeFields>, who: Box<str> },
    RecordUse { uses: Vec<(String, u64, u32)> },
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NewKeyFields {
    kind: String,
    name: Box<str>,
    groups: Vec<Box<str>>,
    burst_per_minute: u32,
    per_day: Option<u64>,
    per_month: Option<u64>,
    streams: u32,
    expires: Option<u32>,
    approved_by: Option<Box<str>>,
    self_service: bool,
}

/// Fields that are left out stay as they are.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct KeyChangeFields {
    name: Option<Box<str>>,
    groups: Option<Vec<Box<str>>>,
    burst_per_minute: Option<u32>,
    per_day: EditFields<u64>,
    per_month: EditFields<u64>,
    streams: Option<u32>,
    expires: EditFields<u32>,
    self_service: Option<bool>,
    reset_usage: bool,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum EditFields<T> {
    Keep,
    Remove,
    To(T),
}

impl<T> EditFields<T> {
    fn of<V>(edit: FieldEdit<V>, value: impl FnOnce(V) -> T) -> Self {
        match edit {
            FieldEdit::Keep => EditFields::Keep,
            FieldEdit::Remove => EditFields::Remove,
            FieldEdit::To(to) => EditFields::To(value(to)),
        }
    }

    fn edit<V>(self, value: impl FnOnce(T) -> V) -> FieldEdit<V> {
        match self {
            EditFields::Keep => FieldEdit::Keep,
            EditFields::Remove => FieldEdit::Remove,
            EditFields::To(to) => FieldEdit::To(value(to)),
        }
    }
}

impl KeyFields {
    pub(super) fn operation(self) -> Result<SharedOperation, EntryError> {
        Ok(match self {
            KeyFields::Issue { id, new, secret, who } => {
                IssueKey { new: new.new_key()?, id: read_key(&id)?, secret: secret.secret()?, who }.into()
            }
            KeyFields::Rotate { id, secret, grace_s, who } => {
                RotateKey { id, secret: secret.secret()?, grace_s, who }.into()
            }
            KeyFields::RotateOwn { id, presented, secret, who } => {
                let presented = KeyTicket::of(read_hash(&presented)?);
                RotateOwnKey { id, presented, secret: secret.secret()?, who }.into()
            }
            KeyFields::UndoRotation { id, who } => UndoRotation { id, who }.into(),
            KeyFields::Revoke { id, who } => RevokeKey { id, who }.into(),
            KeyFields::Set { id, change, who } => SetKey { id, change: change.change(), who }.into(),
            KeyFields::RecordUse { uses } => {
                let read = |(key, units, used): (String, u64, u32)| {
                    read_key(&key).map(|key| (key, units, Timestamp::from_unix(used)))
                };
                RecordUse { uses: uses.into_iter().map(read).collect::<Result<_, EntryError>>()? }.into()
            }
        })
    }
}

impl From<IssueKey> for KeyFields {
    fn from(operation: IssueKey) -> Self {
        let IssueKey { new, id, secret, who } = operation;
        KeyFields::Issue { id: id.to_string(), new: Box::new(NewKeyFields::of(new)), secret: secret.into(), who }
    }
}

impl From<RotateKey> for KeyFields {
    fn from(operation: RotateKey) -> Self {
        let RotateKey { id, secret, grace_s, who } = operation;
        KeyFields::Rotate { id, secret: secret.into(), grace_s, who }
    }
}

impl From<RotateOwnKey> for KeyFields {
    fn from(operation: RotateOwnKey) -> Self {
        let RotateOwnKey { id, presented, secret, who } = operation;
        KeyFields::RotateOwn { id, presented: hex(&presented.hash().0), secret: secret.into(), who }
    }
}

impl From<UndoRotation> for KeyFields {
    fn from(UndoRotation { id, who }: UndoRotation) -> Self {
        KeyFields::UndoRotation { id, who }
    }
}

impl From<RevokeKey> for KeyFields {
    fn from(RevokeKey { id, who }: RevokeKey) -> Self {
        KeyFields::Revoke { id, who }
    }
}

impl From<SetKey> for KeyFields {
    fn from(SetKey { id, change, who }: SetKey) -> Self {
        KeyFields::Set { id, change: Box::new(KeyChangeFields::of(change)), who }
    }
}

impl From<RecordUse> for KeyFields {
    fn from(RecordUse { uses }: RecordUse) -> Self {
        let written = |(key, units, used): (KeyId, u64, Timestamp)| (key.to_string(), units, used.unix());
        KeyFields::RecordUse { uses: uses.into_iter().map(written).collect() }
    }
}

fn read_key(text: &str) -> Result<KeyId, EntryError> {
    KeyId::new(text).ok_or_else(|| EntryError::unreadable(format!("{text:?} is no id of a key")))
}

impl NewKeyFields {
    fn of(new: NewKey) -> Self {
        let NewKey { kind, name, groups, limits, expires, approved_by, self_service } = new;
        let Limits { burst_per_minute, per_day, per_month, streams } = limits;
        NewKeyFields {
            kind: kind.name().to_owned(),
            name,
            groups,
            burst_per_minute,
            per_day,
            per_month,
            streams,
            expires: expires.map(Timestamp::unix),
            approved_by,
            self_service,
        }
    }

    fn new_key(self) -> Result<NewKey, EntryError> {
        let kind = KeyKind::parse(&self.kind);
        let NewKeyFields { burst_per_minute, per_day, per_month, streams, .. } = self;
        Ok(NewKey {
            kind: kind.ok_or_else(|| EntryError::unreadable(format!("{:?} is no kind of key", self.kind)))?,
            name: self.name,
            groups: self.groups,
            limits: Limits { burst_per_minute, per_day, per_month, streams },
            expires: self.expires.map(Timestamp::from_unix),
            approved_by: self.approved_by,
            self_service: self.self_service,
        })
    }
}

impl KeyChangeFields {
    fn of(change: KeyChange) -> Self {
        KeyChangeFields {
            name: change.name,
            groups: change.groups,
            burst_per_minute: change.burst_per_minute,
            per_day: EditFields::of(change.per_day, |quota| quota),
            per_month: EditFields::of(change.per_month, |quota| quota),
            streams: change.streams,
            expires: EditFields::of(change.expires, Timestamp::unix),
            self_service: change.self_service,
            reset_usage: change.reset_usage,
        }
    }

    fn change(self) -> KeyChange {
        KeyChange {
            name: self.name,
            groups: self.groups,
            burst_per_minute: self.burst_per_minute,
            per_day: self.per_day.edit(|quota| quota),
            per_month: self.per_month.edit(|quota| quota),
            streams: self.streams,
            expires: self.expires.edit(Timestamp::from_unix),
            self_service: self.self_service,
            reset_usage: self.reset_usage,
        }
    }
}
