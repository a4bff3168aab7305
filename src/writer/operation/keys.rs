//! Operations on keys. An id is that of the key, not its name.

use std::sync::Arc;

use super::super::{KeyError, Writer};
use super::{Lane, Meanwhile, Operation};
use crate::keys::issue::{KeyChange, NewKey};
use crate::keys::{KeyEntry, KeyId, KeyTicket, StoredSecret};

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

/// The key as it is in force after the operation.
type Changed = Result<Arc<KeyEntry>, KeyError>;

impl Operation for IssueKey {
    type Answer = Changed;
    const LANE: Lane = Lane::Fast;

    fn run(self, writer: &mut Writer, _: Meanwhile<'_>) -> Changed {
        writer.put_new_key(self)
    }
}

impl Operation for RotateKey {
    type Answer = Changed;
    const LANE: Lane = Lane::Fast;

    fn run(self, writer: &mut Writer, _: Meanwhile<'_>) -> Changed {
        writer.put_rotated_key(self)
    }
}

impl Operation for RotateOwnKey {
    type Answer = Changed;
    const LANE: Lane = Lane::Fast;

    fn run(self, writer: &mut Writer, _: Meanwhile<'_>) -> Changed {
        writer.rotate_own_key(self)
    }
}

impl Operation for UndoRotation {
    type Answer = Changed;
    const LANE: Lane = Lane::Fast;

    fn run(self, writer: &mut Writer, _: Meanwhile<'_>) -> Changed {
        writer.undo_rotation(&self.id, &self.who)
    }
}

impl Operation for RevokeKey {
    type Answer = Changed;
    const LANE: Lane = Lane::Fast;

    fn run(self, writer: &mut Writer, _: Meanwhile<'_>) -> Changed {
        writer.revoke_key(&self.id, &self.who)
    }
}

impl Operation for SetKey {
    type Answer = Changed;
    const LANE: Lane = Lane::Fast;

    fn run(self, writer: &mut Writer, _: Meanwhile<'_>) -> Changed {
        writer.set_key(&self.id, self.change, &self.who)
    }
}
