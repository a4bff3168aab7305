//! Maintenance mode, which the operator turns on and off.

use super::time::Timestamp;

/// A period in which no data is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Maintenance {
    pub since: Timestamp,
    /// When it ends automatically; `None` if it lasts until the operator ends it.
    pub until: Option<Timestamp>,
}
