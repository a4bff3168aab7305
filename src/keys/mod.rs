//! API keys: secrets, records, authentication and metering.
//!
//! - `secret`: the secret's text, from issue until it has been shown
//! - `record`: the stored part of a key
//! - `issue`: the rules for issuing and changing keys
//! - `keyring`: authentication, from a secret to its key; `grant`: the proof of it that handlers take
//! - `meter`: what is left of the minute, the day and the month, and what was used lately
//! - `leases`: the queue through which meters request quota ahead of use; `shares`: its other end in a cluster
//! - `feeder`: clients that may push feed lines, and their tokens
//!
//! Nothing here does I/O or reads the clock: the time is an argument.

mod base62;
pub mod feeder;
#[cfg(test)]
mod fixture;
mod grant;
pub mod issue;
mod keyring;
pub mod leases;
mod meter;
pub mod record;
mod secret;
pub mod shares;
mod streams;

pub use base62::RandomError;
pub use feeder::{AdmittedFeeder, FeedToken, FeedTokenError, Feeder, Feeders};
pub use grant::{Forbidden, Grant, SportAccess, WaitingGrant};
pub use issue::{FieldEdit, IssueError, KeyChange, NewKey};
pub use keyring::{AuthError, KeyEntry, KeyTicket, Keyring, Keys};
pub use leases::{LeaseDeclined, LeaseQueue, LeaseRequests, LeaseStore};
pub use meter::{
    BURST_MAX, BurstNeed, BurstShare, BurstStanding, Charge, Cost, KeyNeed, KeyShare, LimitSet, Meter, PaidCharge,
    QUOTA_MAX, QuotaNeed, QuotaShare, QuotaStanding, RECENT_DAYS, RECENT_HOURS, RecentUse, Refusal, SharedUse,
    Standing, UNITS_MAX, Unused, lease_size,
};
pub use record::{KeyId, KeyKind, KeyRecord, Limits, Retired, SCOPE, SecretHash, Usage};
pub use secret::{Secret, StoredSecret, last_four_of, looks_like_secret, may_hold_key, without_secrets};
pub use shares::{Recall, ShareSource};
pub use streams::{OpenStreams, StreamSeat};
