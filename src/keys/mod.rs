//! API keys: their secrets, what is kept of them, who holds a valid one, and how much of it is left.

pub mod record;

pub use record::{KeyId, KeyKind, KeyRecord, Limits, Retired, SCOPE, SecretHash, Usage};
