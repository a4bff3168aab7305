//! Operations on the tokens of feeders.

use serde::{Deserialize, Serialize};

use super::EntryError;
use super::fields::{SecretFields, read_world};
use crate::writer::SharedOperation;
use crate::writer::operation::{IssueToken, RevokeToken, RotateToken};

#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum TokenFields {
    Issue { name: Box<str>, world: String, token: SecretFields, who: Box<str> },
    Rotate { name: Box<str>, token: SecretFields, grace_s: u32, who: Box<str> },
    Revoke { name: Box<str>, who: Box<str> },
}

impl TokenFields {
    pub(super) fn operation(self) -> Result<SharedOperation, EntryError> {
        Ok(match self {
            TokenFields::Issue { name, world, token, who } => {
                IssueToken { name, world: read_world(&world)?, token: token.secret()?, who }.into()
            }
            TokenFields::Rotate { name, token, grace_s, who } => {
                RotateToken { name, token: token.secret()?, grace_s, who }.into()
            }
            TokenFields::Revoke { name, who } => RevokeToken { name, who }.into(),
        })
    }
}

impl From<IssueToken> for TokenFields {
    fn from(operation: IssueToken) -> Self {
        let IssueToken { name, world, token, who } = operation;
        TokenFields::Issue { name, world: world.to_string(), token: token.into(), who }
    }
}

impl From<RotateToken> for TokenFields {
    fn from(operation: RotateToken) -> Self {
        let RotateToken { name, token, grace_s, who } = operation;
        TokenFields::Rotate { name, token: token.into(), grace_s, who }
    }
}

impl From<RevokeToken> for TokenFields {
    fn from(RevokeToken { name, who }: RevokeToken) -> Self {
        TokenFields::Revoke { name, who }
    }
}
