//! What commands are executed with.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use super::console::ConsoleSessions;
use super::data_dir::DataDir;
use crate::board::Boards;
use crate::clock::{Clock, Moment};
use crate::cluster::member::ClusterStanding;
use crate::http::Heads;
use crate::ingest::{IngestContext, Ledger};
use crate::keys::{Feeders, Keyring};
use crate::metrics::Traffic;
use crate::store::HistoryReader;
use crate::writer::WriterHandle;

/// What a running server knows about itself.
pub trait ServerFacts: fmt::Debug + Send + Sync {
    /// Whether requests are answered: not yet while starting, no longer while stopping.
    fn is_ready(&self) -> bool;
    fn started(&self) -> Moment;
    /// Where the public interface listens.
    fn address(&self) -> SocketAddr;
    /// Whether it speaks TLS there.
    fn is_tls(&self) -> bool;
    /// Where feed lines are taken from other machines, if they are.
    fn ingest_address(&self) -> Option<SocketAddr>;
    /// What passes through the public interface, counted.
    fn traffic(&self) -> &Traffic;
    /// The unfinished heads of all listeners.
    fn heads(&self) -> &Heads;
    /// Where it stands in its cluster; `None` for a single node.
    fn cluster(&self) -> Option<ClusterStanding>;
    /// Connections open now.
    fn connections(&self) -> u64;
    /// Requests answered since the start.
    fn requests(&self) -> u64;
    /// Requests answered each second of late.
    fn requests_per_second(&self) -> f64;
}

/// Everything that a command can work on. While one exists, the writer goes on.
#[derive(Clone, Debug)]
pub struct Context {
    pub writer: WriterHandle,
    pub keyring: Arc<Keyring>,
    pub feeders: Arc<Feeders>,
    pub boards: Arc<Boards>,
    pub history: HistoryReader,
    pub clock: Clock,
    pub data: DataDir,
    /// What each feed has brought; empty in a command that opened the file itself.
    pub ledger: Arc<Ledger>,
    /// `None` in a command that opened the file itself.
    pub server: Option<Arc<dyn ServerFacts>>,
    /// `None` where no console is served.
    pub console: Option<Arc<ConsoleSessions>>,
}

impl Context {
    /// What inputs are taken in with.
    pub fn ingest(&self) -> IngestContext {
        IngestContext {
            writer: self.writer.clone(),
            boards: Arc::clone(&self.boards),
            ledger: Arc::clone(&self.ledger),
            feeders: Arc::clone(&self.feeders),
            clock: self.clock.clone(),
            data: self.data.path().to_owned(),
        }
    }
}
