//! A sport as it was: a board that no publication changes any more.

use std::sync::Arc;

use super::register::Register;
use super::snapshot::SportBoard;
use crate::model::{Permanence, Timestamp};

/// A sport as of an entry of the log.
#[derive(Clone, Debug)]
pub struct AsOf {
    pub board: SportBoard,
    /// The bookmakers of the world now, and those that had prices then.
    pub register: Arc<Register>,
    /// When the entry was made; for a publication of prices, when that was due.
    pub at: Timestamp,
    /// The publications before and after it, each of which changed something.
    pub previous: Option<Timestamp>,
    pub next: Option<Timestamp>,
    /// How long the log has the same answer.
    pub permanence: Permanence,
}
