//! Operations on the service as a whole.

use crate::model::{Maintenance, World};

#[derive(Debug)]
pub struct SetMaintenance {
    pub until: Option<Maintenance>,
    pub who: Box<str>,
}

/// Marks the live world as simulated.
#[derive(Debug)]
pub struct MarkSimulated {
    pub who: Box<str>,
}

#[derive(Debug)]
pub struct WriteAudit {
    pub who: Box<str>,
    pub action: Box<str>,
    pub subject: Box<str>,
    pub detail: String,
}

/// Publishes what waits for the tick.
#[derive(Debug)]
pub struct PublishNow {
    pub world: World,
}
