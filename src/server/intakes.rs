//! Where feed lines come in beside the admin interface, if configured: the push interface for feeders on other machines,
//! behind the same listener as the public interface, and the watched directory.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

use super::facts::Phase;
use super::{ListenError, ServeError};
use crate::admin::{Context, DropDirectory, PushDoor};
use crate::config::Config;
use crate::http;
use crate::metrics::Traffic;

/// The one route that there is.
const INGEST: &str = "/ingest";

/// What was opened, not yet taking anything.
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

    /// Begins to take lines. The returned task ends when feeders have received their final reports.
    pub(super) fn start(
        self,
        context: Context,
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
    context: Context,
    inflated_max: u64,
    options: watch::Receiver<http::Options>,
    mut phases: watch::Receiver<Phase>,
) {
    let (stop, stopping) = watch::channel(false);
    let silence_max = options.borrow().deadlines.idle;
    let door = PushDoor::new(context, silence_max, inflated_max, stopping);
    let shutdown = async {
        let _ = phases.wait_for(|phase| *phase != Phase::Serving).await;
        let _ = stop.send(true);
    };
    let summary = http::run(
        listener,
        Arc::new(Push { door, traffic: Arc::new(Traffic::new(&[INGEST], &[])) }),
        options,
        shutdown,
        std::future::pending(),
    )
    .await;
    tracing::info!(connections = summary.accepted, dropped = summary.dropped, "stopped taking feed lines");
}

/// The push interface with its own count of connections.
#[derive(Debug)]
struct Push {
    door: PushDoor,
    traffic: Arc<Traffic>,
}

impl http::Respond for Push {
    fn respond<'a>(&'a self, request: http::IncomingRequest, peer: &'a http::Peer) -> http::ResponseFuture<'a> {
        Box::pin(async move {
            let began = Instant::now();
            let reply = self.door.respond(request, peer).await;
            self.traffic.count_request(INGEST, reply.status().as_u16(), began.elapsed());
            reply
        })
    }

    fn traffic(&self) -> &Arc<Traffic> {
        &self.traffic
    }
}
