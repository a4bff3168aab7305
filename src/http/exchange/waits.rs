//! What a request may have to wait for before it can be answered, and what it is handled with again after that.

use std::sync::Arc;

use super::history::{Finished, HistoryRead};
use crate::board::Body;
use crate::http::mcp::Posted;
use crate::keys::{PaidCharge, WaitingGrant};

/// A request that waits, and stays charged: a client that leaves has had what was done for it.
#[derive(Debug)]
pub struct PaidRequest {
    pub(crate) grant: WaitingGrant,
    pub(crate) charge: PaidCharge,
}

impl PaidRequest {
    /// Nothing is going to be done for it.
    pub(crate) fn refund(self) -> WaitingGrant {
        self.charge.attach(self.grant.grant().meter()).refund();
        self.grant
    }
}

/// What has to be read of the log for a request. It is opaque outside of the crate.
#[derive(Debug)]
pub struct HistoryNeed(pub(crate) HistoryRead);

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
