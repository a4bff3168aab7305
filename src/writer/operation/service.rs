//! Operations on the service as a whole.

use super::super::{Publication, Sweep, WriteError, Writer};
use super::{Lane, Meanwhile, Operation};
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

impl Operation for SetMaintenance {
    type Answer = Result<(), WriteError>;
    const LANE: Lane = Lane::Fast;

    fn run(self, writer: &mut Writer, _: Meanwhile<'_>) -> Self::Answer {
        writer.set_maintenance(self.until, &self.who)
    }
}

impl Operation for MarkSimulated {
    type Answer = Result<(), WriteError>;
    const LANE: Lane = Lane::Other;

    fn run(self, writer: &mut Writer, _: Meanwhile<'_>) -> Self::Answer {
        writer.mark_simulated(&self.who)
    }
}

impl Operation for WriteAudit {
    type Answer = Result<(), WriteError>;
    const LANE: Lane = Lane::Fast;

    fn run(self, writer: &mut Writer, _: Meanwhile<'_>) -> Self::Answer {
        writer.audit(&self.who, &self.action, &self.subject, self.detail)
    }
}

impl Operation for Publication {
    type Answer = Result<(), WriteError>;
    const LANE: Lane = Lane::Other;

    fn run(self, writer: &mut Writer, _: Meanwhile<'_>) -> Self::Answer {
        writer.publish(&self)
    }
}

impl Operation for Sweep {
    type Answer = Result<(), WriteError>;
    const LANE: Lane = Lane::Other;

    fn run(self, writer: &mut Writer, _: Meanwhile<'_>) -> Self::Answer {
        writer.sweep(self)
    }
}

impl Operation for PublishNow {
    type Answer = ();
    const LANE: Lane = Lane::Other;

    fn run(self, writer: &mut Writer, _: Meanwhile<'_>) {
        writer.publish_now(self.world);
    }
}
