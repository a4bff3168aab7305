//! Operations on feeders. Like those on keys, each is in force when it is answered.

use std::sync::Arc;

use super::operation::{IssueToken, RotateToken};
use super::{WriteError, Writer};
use crate::keys::{FeedToken, Feeder, RandomError, looks_like_secret};
use crate::model::World;
use crate::store::Change;

/// A feeder and its token, which exists nowhere else.
#[derive(Debug)]
pub struct IssuedToken {
    pub feeder: Arc<Feeder>,
    pub token: FeedToken,
}

/// Why a token was not issued or revoked.
#[derive(Debug, thiserror::Error)]
pub enum FeederError {
    #[error("no feeder is called {0}; `oddsbox feeds` shows them")]
    NoSuchFeeder(Box<str>),
    #[error("that looks like a secret, not a feeder's name: `oddsbox feeds tokens` shows the names")]
    SecretForName,
    #[error("a feeder's name has 1 to {} letters, digits, dots, - and _, and is no secret", Feeder::NAME_MAX)]
    BadName,
    #[error(
        "{0} has a token already: replace it with `oddsbox feeds token {0} --rotate`, or end it with \
         `oddsbox feeds token {0} --revoke`"
    )]
    HasToken(Box<str>),
    #[error("the token of {0} is revoked, which cannot be undone: issue a new one with `oddsbox feeds token {0}`")]
    Revoked(Box<str>),
    #[error(transparent)]
    Random(#[from] RandomError),
    #[error(transparent)]
    Write(#[from] WriteError),
}

impl Writer {
    pub fn issue_token(&mut self, name: &str, world: World, who: &str) -> Result<IssuedToken, FeederError> {
        let token = FeedToken::generate()?;
        let issued = IssueToken { name: name.into(), world, token: token.stored(), who: who.into() };
        Ok(IssuedToken { feeder: self.put_new_token(issued)?, token })
    }

    pub(super) fn put_new_token(&mut self, issued: IssueToken) -> Result<Arc<Feeder>, FeederError> {
        let IssueToken { name, world, token, who } = issued;
        if looks_like_secret(&name) {
            return Err(FeederError::SecretForName);
        }
        if !Feeder::is_name(&name) {
            return Err(FeederError::BadName);
        }
        if self.feeders.get(&name).is_some_and(|held| held.revoked.is_none()) {
            return Err(FeederError::HasToken(name));
        }
        let feeder = Feeder {
            name,
            world,
            created: self.now(),
            revoked: None,
            hash: token.hash,
            last_four: token.last_four,
            retired: Box::default(),
        };
        Ok(self.put_feeder(feeder, &who, "issue token", format!("for the {world} world"))?)
    }

    /// Issues a new token for the same feeder; the old one stays valid for `grace_s`, rounded up to the end of a second.
    pub fn rotate_token(&mut self, name: &str, grace_s: u32, who: &str) -> Result<IssuedToken, FeederError> {
        let token = FeedToken::generate()?;
        let rotation = RotateToken { name: name.into(), token: token.stored(), grace_s, who: who.into() };
        Ok(IssuedToken { feeder: self.put_rotated_token(rotation)?, token })
    }

    pub(super) fn put_rotated_token(&mut self, rotation: RotateToken) -> Result<Arc<Feeder>, FeederError> {
        let RotateToken { name, token, grace_s, who } = rotation;
        let held = self.feeder(&name)?;
        if held.revoked.is_some() {
            return Err(FeederError::Revoked(held.name.clone()));
        }
        let now = self.clock.now();
        let whole_grace_s = now.in_seconds(grace_s).seconds_since(now.timestamp());
        let rotated = held.rotated(token, whole_grace_s, now.timestamp());
        Ok(self.put_feeder(rotated, &who, "rotate token", format!("grace {grace_s} s"))?)
    }

    /// Ends the token of a feeder, and those in their grace period.
    pub fn revoke_token(&mut self, name: &str, who: &str) -> Result<Arc<Feeder>, FeederError> {
        let held = self.feeder(name)?;
        if held.revoked.is_some() {
            return Ok(held);
        }
        let revoked = Feeder { revoked: Some(self.now()), ..Feeder::clone(&held) };
        Ok(self.put_feeder(revoked, who, "revoke token", String::new())?)
    }

    fn feeder(&self, name: &str) -> Result<Arc<Feeder>, FeederError> {
        self.feeders.get(name).ok_or_else(|| {
            if looks_like_secret(name) { FeederError::SecretForName } else { FeederError::NoSuchFeeder(name.into()) }
        })
    }

    /// What memory holds of a feeder; one that was never in force is put back as revoked from its beginning, since
    /// nothing takes a feeder's name away.
    pub(super) fn held_feeder(&self, refused: &Feeder) -> Arc<Feeder> {
        let never = || Arc::new(Feeder { revoked: Some(refused.created), ..refused.clone() });
        self.feeders.get(&refused.name).unwrap_or_else(never)
    }

    fn put_feeder(
        &mut self,
        feeder: Feeder,
        who: &str,
        action: &str,
        detail: String,
    ) -> Result<Arc<Feeder>, WriteError> {
        let note = self.note(who, action, &feeder.name, detail);
        self.commit(&[Change::PutFeeder(Arc::new(feeder.clone())), Change::Audit(note)])?;
        Ok(self.feeders.put(feeder))
    }
}
