//! Proof of authority, as values that cannot be made elsewhere.
//!
//! A [`Grant`] says that the request holds a valid key; only the keyring makes one. A [`SportAccess`] says that the key
//! may read one sport of one world; only a grant makes one. A function that takes either has nothing left to check,
//! and one that forgets to ask has nothing to pass on.

use std::any::Any;
use std::sync::Arc;

use super::keyring::KeyEntry;
use super::leases::LeaseDeclined;
use super::meter::Meter;
use super::record::{KeyId, KeyRecord};
use crate::clock::Moment;
use crate::model::{SportId, SportSet, World};

/// A request that holds a valid key. Good for this request: a later one asks the keyring again. It borrows the entry of
/// the key, because a reference count that every thread writes would cost each request a cache miss.
#[derive(Clone, Copy, Debug)]
pub struct Grant<'k> {
    entry: &'k Arc<KeyEntry>,
}

impl<'k> Grant<'k> {
    pub(super) fn new(entry: &'k Arc<KeyEntry>) -> Self {
        Grant { entry }
    }

    /// The same for a request that has to wait and must not hold on to the keyring meanwhile.
    pub fn to_waiting(self) -> WaitingGrant {
        self.to_waiting_for(1)
    }

    /// The same for a request that takes several units of its quotas.
    pub fn to_waiting_for(self, units: u64) -> WaitingGrant {
        WaitingGrant { entry: Arc::clone(self.entry), units }
    }

    /// The world that the key reads.
    pub fn world(&self) -> World {
        self.entry.record().kind.world()
    }

    pub fn key_id(&self) -> &'k KeyId {
        self.entry.id()
    }

    pub fn record(&self) -> &'k KeyRecord {
        self.entry.record()
    }

    pub fn meter(&self) -> &'k Meter {
        self.entry.meter()
    }

    /// The rate-limit policy of the key's responses. `write` runs once per set of limits, or on every call for a key
    /// with a monthly quota, as the length of the month varies.
    pub fn policy<T: Any + Clone + Send + Sync>(&self, write: impl FnOnce() -> T) -> T {
        match self.record().limits.per_month {
            Some(_) => write(),
            None => self.entry.policy().get_or_make(write),
        }
    }

    /// The sports that the key may read.
    pub fn sports(&self) -> SportSet {
        self.entry.sports()
    }

    /// The right to read one sport, if the key is not restricted to others.
    pub fn for_sport(&self, sport: SportId) -> Result<SportAccess, Forbidden> {
        if self.entry.sports().contains(sport) {
            Ok(SportAccess { world: self.world(), sport })
        } else {
            Err(Forbidden { sport })
        }
    }
}

/// A request that held a valid key and waits: for the key's lease, or for a reading of the log.
#[derive(Debug)]
pub struct WaitingGrant {
    entry: Arc<KeyEntry>,
    units: u64,
}

impl WaitingGrant {
    /// Waits until the request can be charged: see [`Meter::lease_arrives`].
    pub async fn lease_arrives(&self, now: Moment) -> Result<(), LeaseDeclined> {
        self.entry.meter().lease_arrives_for(self.units, now).await
    }

    pub fn grant(&self) -> Grant<'_> {
        Grant::new(&self.entry)
    }
}

/// The right to read one sport of one world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SportAccess {
    world: World,
    sport: SportId,
}

impl SportAccess {
    pub const fn world(self) -> World {
        self.world
    }

    pub const fn sport(self) -> SportId {
        self.sport
    }
}

/// The key is restricted to groups that this sport is not in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this key is restricted to other sports")]
pub struct Forbidden {
    pub sport: SportId,
}
