//! Where everything is put together. A server's life, in order:
//!
//! 1. open the file and load everything from it,
//! 2. fill the simulated worlds,
//! 3. open the admin door, then the public one,
//! 4. serve, until a signal,
//! 5. stop accepting and let the answers under way end,
//! 6. stop the feeds, then write the last counters and close the file.

mod logging;
mod signals;
mod simulate;

use std::future::Future;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::net::TcpListener;
use tokio::task::JoinSet;

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

pub use logging::{LogFilterError, init as init_logging};
pub use signals::signals;

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

/// What is served beside the data itself.
#[derive(Clone, Copy, Debug, Default)]
pub struct Extras {
    /// Simulate the live world too, as the demonstration does.
    pub simulate_live: bool,
}

impl Server {
    /// Serves on a listener until `stop` is ready, then drains; `hurry` ends the draining.
    ///
    /// `ready` is called when the first request can be answered from full boards.
    pub async fn serve(
        self,
        listener: TcpListener,
        extras: Extras,
        ready: impl AsyncFnOnce(&Server),
        stop: impl Future<Output = ()>,
        hurry: impl Future<Output = ()>,
    ) -> Result<(), ServeError> {
        let mut tasks = JoinSet::new();
        for mut simulation in self.simulations(extras) {
            simulation.fill(&self.boards).await?;
            tasks.spawn(simulation.run());
        }
        let (socket, door) = (admin::Socket::bind(&self.data)?, self.admin_context());
        tasks.spawn(socket.serve(door));
        ready(&self).await;

        let Server { config, clock, boards, keyring, writer, stopped, lease_requests, .. } = self;
        tasks.spawn(hand_out_leases(lease_requests, Arc::clone(&keyring), clock.clone(), writer));
        let service = Arc::new(http::Service::new(boards, keyring, clock, interface_settings(&config)));
        tokio::select! {
            summary = http::run(listener, service, listener_options(&config), stop) => {
                tracing::info!(connections = summary.accepted, dropped = summary.dropped, "stopped listening");
            }
            () = hurry => tracing::warn!("stopped at once: answers under way are cut off"),
        }
        // With the last handle goes the writer, after it has written the counters: no request can change them now.
        tasks.shutdown().await;
        tokio::task::spawn_blocking(|| stopped.join()).await.map_err(io::Error::from)??;
        Ok(())
    }

    /// The sandbox is always simulated.
    fn simulations(&self, extras: Extras) -> Vec<Simulation> {
        let seed = self.config.simulator_seed;
        let live = extras.simulate_live.then_some((World::Live, seed.wrapping_add(1)));
        let worlds = [Some((World::Sandbox, seed)), live].into_iter().flatten();
        let simulation = |(world, seed)| {
            let simulator = Simulator::new(seed, &self.catalogue);
            Simulation::new(world, simulator, self.writer.clone(), self.clock.clone())
        };
        worlds.map(simulation).collect()
    }
}

/// Writes down what meters hand out, ahead of use, for as long as the server runs.
async fn hand_out_leases(requests: LeaseRequests, keyring: Arc<Keyring>, clock: Clock, writer: WriterHandle) {
    desk::serve(requests, &keyring, &clock, &writer).await;
}

fn interface_settings(config: &Config) -> http::Settings {
    http::Settings {
        allow_query_key: config.allow_query_key,
        refresh_ms: writer_options(config).refresh_ms,
        ..http::Settings::default()
    }
}

fn listener_options(config: &Config) -> http::Options {
    let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    http::Options {
        connections_max: count(config.connections),
        connections_per_address_max: config.connections_per_address.map(count),
        deadlines: http::Deadlines {
            head: config.header_timeout,
            idle: config.idle_timeout,
            write: config.write_timeout,
        },
        drain: config.drain_timeout,
    }
}
