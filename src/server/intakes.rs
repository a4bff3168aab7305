//! The ways in for feed lines beside the admin interface, where they are configured: the push interface, behind a listener
//! like the public one, and the drop directory.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

use super::facts::Phase;
use super::{ListenError, ServeError};
use crate::config::Config;
use crate::http;
use crate::ingest::{DropDirectory, IngestContext, PushInterface};

/// What was opened and does not accept input yet.
#[derive(Debug)]
pub(super) struct Intakes {
    push: Option<(TcpListener, SocketAddr)>,
    inflated_max: u64,
    drop: Option<DropDirectory>,
}

impl Intakes {
    pub(super) fn open(config: &Config) -> Result<Self, ServeError> {
        let push = match config.ingest_listen {
            None => None,
            Some(address) => {
                let error = |error| ListenError { address, error, setting: "ingest.listen" };
                let listener = http::listen(address).map_err(error)?;
                let address = listener.local_addr()?;
                Some((listener, address))
            }
        };
        let drop = config.ingest_drop.as_deref().map(DropDirectory::open).transpose()?;
        Ok(Intakes { push, inflated_max: config.ingest_inflated_max, drop })
    }

    /// Where feeders on other machines send.
    pub(super) fn address(&self) -> Option<SocketAddr> {
        self.push.as_ref().map(|(_, address)| *address)
    }

    /// Begins to accept lines. The returned task ends when feeders were answered that the server stops.
    pub(super) fn start(
        self,
        context: IngestContext,
        options: watch::Receiver<http::Options>,
        phases: watch::Receiver<Phase>,
        tasks: &mut JoinSet<()>,
    ) -> Option<JoinHandle<()>> {
        if let Some(directory) = self.drop {
            tasks.spawn(directory.run(context.clone()));
        }
        let (listener, address) = self.push?;
        let scheme = if options.borrow().tls.is_some() { "https" } else { "http" };
        tracing::info!("taking feed lines on {scheme}://{address}/ingest");
        Some(tokio::spawn(push(listener, context, self.inflated_max, options, phases)))
    }
}

async fn push(
    listener: TcpListener,
    context: IngestContext,
    inflated_max: u64,
    options: watch::Receiver<http::Options>,
    mut phases: watch::Receiver<Phase>,
) {
    let (stop, stopping) = watch::channel(false);
    let silence_max = options.borrow().deadlines.idle;
    let interface = PushInterface::new(context, silence_max, inflated_max, stopping);
    let shutdown = async {
        let _ = phases.wait_for(|phase| matches!(phase, Phase::Draining | Phase::Closed)).await;
        let _ = stop.send(true);
    };
    let summary = http::run(listener, Arc::new(interface), options, shutdown, std::future::pending()).await;
    tracing::info!(connections = summary.accepted, dropped = summary.dropped, "stopped taking feed lines");
}
