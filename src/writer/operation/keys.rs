//! Operations on keys. An id is that of the key, not its name.

use crate::keys::issue::{KeyChange, NewKey};
use crate::keys::{KeyId, KeyTicket, StoredSecret};
use crate::model::Timestamp;

#[derive(Debug)]
pub struct IssueKey {
    pub new: NewKey,
    pub id: KeyId,
    pub secret: StoredSecret,
    pub who: Box<str>,
}

#[derive(Debug)]
pub struct RotateKey {
    pub id: Box<str>,
    pub secret: StoredSecret,
    pub grace_s: u32,
    pub who: Box<str>,
}

/// By the key's holder, with the secret that was presented.
#[derive(Debug)]
pub struct RotateOwnKey {
    pub id: Box<str>,
    pub presented: KeyTicket,
    pub secret: StoredSecret,
    pub who: Box<str>,
}

#[derive(Debug)]
pub struct UndoRotation {
    pub id: Box<str>,
    pub who: Box<str>,
}

#[derive(Debug)]
pub struct RevokeKey {
    pub id: Box<str>,
    pub who: Box<str>,
}

#[derive(Debug)]
pub struct SetKey {
    pub id: Box<str>,
    pub change: KeyChange,
    pub who: Box<str>,
}

/// What keys have used on one of the nodes, since it last said so.
#[derive(Debug)]
pub struct RecordUse {
    /// Units, and when they were last used.
    pub uses: Vec<(KeyId, u64, Timestamp)>,
}
