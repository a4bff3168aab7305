//! What a running server can tell of itself at the admin door.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::sync::watch;

use crate::admin::ServerFacts;
use crate::clock::{Clock, Moment};
use crate::metrics::Traffic;

#[derive(Debug)]
pub(super) struct Facts {
    started: Moment,
    address: SocketAddr,
    traffic: Arc<Traffic>,
    closed: watch::Receiver<bool>,
}

impl Facts {
    pub(super) fn new(
        clock: &Clock,
        address: SocketAddr,
        traffic: Arc<Traffic>,
        closed: watch::Receiver<bool>,
    ) -> Self {
        Facts { started: clock.now(), address, traffic, closed }
    }
}

impl ServerFacts for Facts {
    /// The door opens when boards are full, so a server that can be asked is ready until it closes.
    fn is_ready(&self) -> bool {
        !*self.closed.borrow()
    }

    fn started(&self) -> Moment {
        self.started
    }

    fn address(&self) -> SocketAddr {
        self.address
    }

    fn connections(&self) -> u64 {
        self.traffic.connections()
    }

    fn requests(&self) -> u64 {
        self.traffic.requests()
    }

    fn requests_per_second(&self) -> f64 {
        self.traffic.requests_per_second()
    }
}
