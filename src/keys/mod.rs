//! API keys: their secrets, what is kept of them, who holds a valid one, and how much of it is left.

mod base62;
pub mod record;
mod secret;

pub use base62::RandomError;
pub use record::{KeyId, KeyKind, KeyRecord, Limits, Retired, SCOPE, SecretHash, Usage};
pub use secret::Secret;
