//! Where everything is put together. A server's life, in order:
//!
//! 1. open the file and load everything from it,
//! 2. fill the simulated worlds,
//! 3. open the admin door, then the public one,
//! 4. serve, until a signal,
//! 5. stop accepting and let the answers under way end,
//! 6. stop the feeds, then write the last counters and close the file.

mod logging;
mod simulate;

use std::future::Future;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::admin;
use crate::board::Boards;
use crate::clock::Clock;
use crate::config::{Config, catalogue};
use crate::feeds::Simulator;
use crate::http;
use crate::keys::{Keyring, LeaseRequests, desk};
use crate::model::{Catalogue, World};
use crate::store::{OpenError, Store, StoreError, StoreOptions};
use crate::writer::{self, Stopped, WriteError, Writer, WriterHandle, WriterOptions};

pub use logging::init as init_logging;

use simulate::Simulation;

/// The name of the file in the data directory.
pub const FILE_NAME: &str = "oddsbox.redb";

/// Why a server does not start, or did not end well.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error("the data cannot be loaded: {0}")]
    Load(#[from] StoreError),
    #[error("{path}: {detail}", path = path.display())]
    Catalogue { path: PathBuf, detail: String },
    #[error("cannot listen on {address}: {error}; stop what uses that address, or choose another with --listen")]
    Listen { address: String, error: io::Error },
    #[error(transparent)]
    Admin(#[from] admin::SocketError),
    #[error(transparent)]
    Write(#[from] WriteError),
    #[error("the system gave no thread or signal: {0}")]
    System(#[from] io::Error),
}

/// A service with its data loaded, not yet serving.
#[derive(Debug)]
pub struct Server {
    data: PathBuf,
    config: Config,
    clock: Clock,
    catalogue: Arc<Catalogue>,
    boards: Arc<Boards>,
    keyring: Arc<Keyring>,
    writer: WriterHandle,
    stopped: Stopped,
    lease_requests: LeaseRequests,
}

impl Server {
    /// Opens the data directory and loads everything that it holds.
    pub fn open(data: &Path, config: Config, clock: Clock) -> Result<Server, ServeError> {
        let catalogue = Arc::new(load_catalogue(config.catalogue.as_deref())?);
        let options = StoreOptions { cache_bytes: config.cache_bytes, ..StoreOptions::default() };
        let store = Store::open(&data.join(FILE_NAME), Arc::clone(&catalogue), options)?;
        let opened = Writer::open(store, Arc::clone(&catalogue), clock.clone(), writer_options(&config))?;
        for damage in opened.damage.listed() {
            tracing::error!(%damage, "a damaged record is left out; `oddsbox check` lists them all");
        }
        let (boards, keyring) = (Arc::clone(opened.writer.boards()), Arc::clone(opened.writer.keyring()));
        let (writer, stopped) = writer::spawn(opened.writer)?;
        let lease_requests = opened.lease_requests;
        let data = data.to_owned();
        Ok(Server { data, config, clock, catalogue, boards, keyring, writer, stopped, lease_requests })
    }

    pub fn writer(&self) -> &WriterHandle {
        &self.writer
    }

    pub fn boards(&self) -> &Arc<Boards> {
        &self.boards
    }

    pub fn keyring(&self) -> &Arc<Keyring> {
        &self.keyring
    }
}

fn load_catalogue(path: Option<&Path>) -> Result<Catalogue, ServeError> {
    let Some(path) = path else { return Ok(catalogue::builtin()) };
    let failed = |detail: String| ServeError::Catalogue { path: path.to_owned(), detail };
    let text = std::fs::read_to_string(path).map_err(|error| failed(format!("cannot be read: {error}")))?;
    catalogue::parse(&text).map_err(|error| failed(error.to_string()))
}

/// What the configuration says to the writer.
pub(crate) fn writer_options(config: &Config) -> WriterOptions {
    let seconds = |duration: std::time::Duration| u32::try_from(duration.as_secs()).unwrap_or(u32::MAX);
    WriterOptions {
        refresh_ms: i64::try_from(config.refresh.as_millis()).unwrap_or(i64::MAX),
        stale_after_s: seconds(config.stale_after),
        retention_s: seconds(config.retention),
    }
}
