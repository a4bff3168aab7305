//! The operator's word that the service is being worked on.

use super::time::Timestamp;

/// A time in which data is not served because the operator says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Maintenance {
    pub since: Timestamp,
    /// When it ends by itself; `None` lasts until it is ended.
    pub until: Option<Timestamp>,
}
