//! Operations on the tokens of feeders.

use std::sync::Arc;

use super::super::{FeederError, Writer};
use super::{Lane, Meanwhile, Operation};
use crate::keys::{Feeder, StoredSecret};
use crate::model::World;

#[derive(Debug)]
pub struct IssueToken {
    pub name: Box<str>,
    pub world: World,
    pub token: StoredSecret,
    pub who: Box<str>,
}

#[derive(Debug)]
pub struct RotateToken {
    pub name: Box<str>,
    pub token: StoredSecret,
    pub grace_s: u32,
    pub who: Box<str>,
}

#[derive(Debug)]
pub struct RevokeToken {
    pub name: Box<str>,
    pub who: Box<str>,
}

type Changed = Result<Arc<Feeder>, FeederError>;

impl Operation for IssueToken {
    type Answer = Changed;
    const LANE: Lane = Lane::Fast;

    fn run(self, writer: &mut Writer, _: Meanwhile<'_>) -> Changed {
        writer.put_new_token(self)
    }
}

impl Operation for RotateToken {
    type Answer = Changed;
    const LANE: Lane = Lane::Fast;

    fn run(self, writer: &mut Writer, _: Meanwhile<'_>) -> Changed {
        writer.put_rotated_token(self)
    }
}

impl Operation for RevokeToken {
    type Answer = Changed;
    const LANE: Lane = Lane::Fast;

    fn run(self, writer: &mut Writer, _: Meanwhile<'_>) -> Changed {
        writer.revoke_token(&self.name, &self.who)
    }
}
