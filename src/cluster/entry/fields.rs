//! Values that several operations have.

use serde::{Deserialize, Serialize};

use super::EntryError;
use crate::keys::{SecretHash, StoredSecret};
use crate::model::text::{hex, read_hex};
use crate::model::{Catalogue, EventId, FeedBudget, ReportedCredits, SportId, Timestamp, World};

/// What is stored of a secret.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SecretFields {
    hash: String,
    last_four: Box<str>,
}

impl From<StoredSecret> for SecretFields {
    fn from(secret: StoredSecret) -> Self {
        SecretFields { hash: hex(&secret.hash.0), last_four: secret.last_four }
    }
}

impl SecretFields {
    pub(super) fn secret(self) -> Result<StoredSecret, EntryError> {
        Ok(StoredSecret { hash: read_hash(&self.hash)?, last_four: self.last_four })
    }
}

pub(super) fn read_hash(text: &str) -> Result<SecretHash, EntryError> {
    read_hex(text).map(SecretHash).ok_or_else(|| EntryError::unreadable("a hash is not one"))
}

/// What a polled feed has spent.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct BudgetFields {
    day: u32,
    spent: u64,
    reported: Option<(u64, u32)>,
    polled: Option<u32>,
    account: u32,
    scope: u32,
}

impl From<FeedBudget> for BudgetFields {
    fn from(budget: FeedBudget) -> Self {
        let FeedBudget { day, spent, reported, polled, account, scope } = budget;
        let reported = reported.map(|reported| (reported.left, reported.at.unix()));
        BudgetFields { day, spent, reported, polled: polled.map(Timestamp::unix), account, scope }
    }
}

impl From<BudgetFields> for FeedBudget {
    fn from(fields: BudgetFields) -> Self {
        let BudgetFields { day, spent, reported, polled, account, scope } = fields;
        let reported = reported.map(|(left, at)| ReportedCredits { left, at: Timestamp::from_unix(at) });
        FeedBudget { day, spent, reported, polled: polled.map(Timestamp::from_unix), account, scope }
    }
}

pub(super) fn read_world(text: &str) -> Result<World, EntryError> {
    World::parse(text).ok_or_else(|| EntryError::unreadable(format!("{text:?} is no world")))
}

pub(super) fn read_sport(text: &str, catalogue: &Catalogue) -> Result<SportId, EntryError> {
    catalogue.find(text).ok_or_else(|| EntryError::unreadable(format!("this node's catalogue has no sport {text:?}")))
}

pub(super) fn read_event(text: &str) -> Result<EventId, EntryError> {
    EventId::new(text).ok_or_else(|| EntryError::unreadable(format!("{text:?} is no id of an event")))
}
