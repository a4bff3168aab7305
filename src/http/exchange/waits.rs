//! What a request may have to wait for before it can be answered, and what it is handled with again after that.

use std::sync::Arc;

use super::history::{Finished, HistoryRead};
use super::work::BodyJob;
use crate::board::Body;
use crate::http::mcp::Posted;
use crate::keys::{PaidCharge, WaitingGrant};

/// What a request needs computed, and whose request it is.
#[derive(Debug)]
pub struct WorkNeed {
    pub(crate) grant: WaitingGrant,
    pub(crate) job: BodyJob,
    pub(crate) paid: PaidCharge,
}

impl WorkNeed {
    /// Nothing is going to be computed.
    pub(crate) fn refund(self) {
        self.paid.attach(self.grant.grant().meter()).refund();
    }
}

/// A request whose body is needed, and whose request it is. It is read for holders of a valid key only.
#[derive(Debug)]
pub struct BodyNeed {
    pub(crate) grant: WaitingGrant,
    pub(crate) paid: PaidCharge,
}

impl BodyNeed {
    /// Nothing is going to be read.
    pub(crate) fn refund(self) {
        self.paid.attach(self.grant.grant().meter()).refund();
    }
}

/// What a request needs of the log, and whose request it is.
#[derive(Debug)]
pub struct HistoryNeed {
    pub(crate) grant: WaitingGrant,
    pub(crate) read: HistoryRead,
    /// The request stays charged while the log is read: a client that leaves has had its reading.
    pub(crate) paid: PaidCharge,
}

impl HistoryNeed {
    /// Nothing is going to be read.
    pub(crate) fn refund(self) {
        self.paid.attach(self.grant.grant().meter()).refund();
    }
}

/// What was done for a request since it was handled before.
#[derive(Debug, Default)]
pub(crate) struct Resumed<'f> {
    /// What was read of the log.
    pub(crate) finished: Option<&'f Finished>,
    /// What was computed.
    pub(crate) body: Option<&'f Arc<Body>>,
    /// Its body, if that was needed.
    pub(crate) posted: Option<&'f Posted>,
    /// The charge of the request, unless it was refunded since.
    pub(crate) paid: Option<PaidCharge>,
}
