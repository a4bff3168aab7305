//! What a running server can tell of itself at the admin door.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::sync::watch;

use crate::admin::ServerFacts;
use crate::clock::{Clock, Moment};
use crate::metrics::Traffic;

/// How far a server has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Serving,
    /// No connection is accepted any more; answers under way are let end.
    Draining,
    Closed,
}

#[derive(Debug)]
pub(super) struct Facts {
    started: Moment,
    address: SocketAddr,
    ingest_address: Option<SocketAddr>,
    is_tls: bool,
    traffic: Arc<Traffic>,
    phase: watch::Receiver<Phase>,
}

impl Facts {
    pub(super) fn new(
        clock: &Clock,
        address: SocketAddr,
        ingest_address: Option<SocketAddr>,
        is_tls: bool,
        traffic: Arc<Traffic>,
        phase: watch::Receiver<Phase>,
    ) -> Self {
        Facts { started: clock.now(), address, ingest_address, is_tls, traffic, phase }
    }
}

impl ServerFacts for Facts {
    /// The door opens when boards are full, so a server that can be asked is ready until it stops accepting.
    fn is_ready(&self) -> bool {
        *self.phase.borrow() == Phase::Serving
    }

    fn started(&self) -> Moment {
        self.started
    }

    fn address(&self) -> SocketAddr {
        self.address
    }

    fn is_tls(&self) -> bool {
        self.is_tls
    }

    fn ingest_address(&self) -> Option<SocketAddr> {
        self.ingest_address
    }

    fn traffic(&self) -> &Traffic {
        &self.traffic
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
