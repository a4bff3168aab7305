//! Operations on the tokens of feeders.

use crate::keys::StoredSecret;
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
