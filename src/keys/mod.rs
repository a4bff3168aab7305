//! API keys: their secrets, what is kept of them, who holds a valid one, and how much of it is left.
//!
//! - `secret` the text, from issue until it has been shown
//! - `record` what is kept of a key
//! - `issue` the rules by which keys come about and change
//! - `ring` from a text to the key that it opens; `grant` the proof of it that handlers take
//! - `meter` what is left of the minute, the day and the month
//! - `feeder` who may send feed lines from another machine, by the token that each has
//! - `desk` where meters ask for what they may hand out next
//!
//! Nothing here stores, listens or reads a clock of its own.

mod base62;
pub mod desk;
pub mod feeder;
#[cfg(test)]
mod fixture;
mod grant;
pub mod issue;
mod meter;
pub mod record;
mod ring;
mod secret;

pub use base62::RandomError;
pub use desk::{LeaseBook, LeaseDeclined, LeaseDesk, LeaseRequests};
pub use feeder::{FeedToken, Feeder, Feeders, NotAdmitted};
pub use grant::{Forbidden, Grant, SportAccess};
pub use issue::{Edit, IssueError, KeyChange, NewKey};
pub use meter::{
    BURST_MAX, BurstStanding, Charge, Cost, Meter, QUOTA_MAX, QuotaStanding, Refusal, Standing, lease_size,
};
pub use record::{KeyId, KeyKind, KeyRecord, Limits, Retired, SCOPE, SecretHash, Usage};
pub use ring::{AuthError, KeyEntry, Keyring};
pub use secret::{HashMemo, Secret, last_four_of, looks_like_secret, may_hold_key, without_secrets};
