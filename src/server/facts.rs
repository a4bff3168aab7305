//! What the admin interface shows of a running server.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use super::cluster::ServedMember;
use super::writer_watch::WriterWatch;
use crate::admin::ServerFacts;
use crate::board::Boards;
use crate::clock::{Clock, Moment};
use crate::cluster::member::ClusterStanding;
use crate::http;
use crate::metrics::Traffic;

/// How long the writer may take to answer while the server counts as ready.
const WRITER_PATIENCE: Duration = Duration::from_secs(5);

/// The phase of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Its data is not up to date yet.
    Starting,
    Serving,
    /// No connection is accepted any more; responses in flight are finished.
    Draining,
    Closed,
}

#[derive(Debug)]
pub(super) struct Facts {
    pub(super) started: Moment,
    pub(super) address: SocketAddr,
    pub(super) ingest_address: Option<SocketAddr>,
    pub(super) is_tls: bool,
    pub(super) traffic: Arc<Traffic>,
    pub(super) heads: Arc<http::Heads>,
    pub(super) phase: watch::Receiver<Phase>,
    pub(super) writer: Arc<WriterWatch>,
    pub(super) boards: Arc<Boards>,
    pub(super) clock: Clock,
    pub(super) member: Option<Arc<ServedMember>>,
}

impl ServerFacts for Facts {
    /// A server is ready when its boards are full and until it stops accepting, as long as its writer answers, and its lease
    /// in a cluster holds: without these no key can be revoked.
    fn is_ready(&self) -> bool {
        *self.phase.borrow() == Phase::Serving
            && self.writer.answers_or_checks(WRITER_PATIENCE)
            && self.boards.condition().may_serve(|| self.clock.mono_ms())
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

    fn heads(&self) -> &http::Heads {
        &self.heads
    }

    fn cluster(&self) -> Option<ClusterStanding> {
        self.member.as_ref().map(|member| member.standing())
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
