//! The monitoring address: `/metrics`, `/livez` and `/readyz` over TCP, for monitoring on this machine.
//!
//! It listens on loopback only, shows what the admin interface shows of these three, and takes no command. Connections are
//! few and short: one request each, within a deadline.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper::Method;
use tokio::net::TcpListener;
use tokio::sync::watch;

use super::context::Context;
use super::protocol::{Failure, FailureCode};
use super::respond::{self, AdminReply};
use crate::http;
use crate::metrics::Traffic;

const CONNECTIONS_MAX: u32 = 16;
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(10);
const HEADER_BYTES_MAX: usize = 16 << 10;

/// An address that cannot be listened on.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address} ({error}): stop what uses that address, or choose another with admin.listen")]
pub struct MonitorError {
    address: SocketAddr,
    error: io::Error,
}

/// The address, open from the moment it is bound.
#[derive(Debug)]
pub struct Monitor(TcpListener);

impl Monitor {
    pub async fn bind(address: SocketAddr) -> Result<Monitor, MonitorError> {
        TcpListener::bind(address).await.map(Monitor).map_err(|error| MonitorError { address, error })
    }

    pub fn address(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }

    /// Answers until `shutdown` comes.
    pub async fn serve(self, context: Context, shutdown: impl Future<Output = ()>) {
        let interface = MonitorInterface { context, traffic: Arc::new(Traffic::new(&[], &[])) };
        let options = watch::Sender::new(http::Options {
            connections_max: CONNECTIONS_MAX,
            drain: Duration::ZERO,
            http: http::HttpOptions { http2: false, keep_alive: false, head_bytes_max: HEADER_BYTES_MAX },
            lifetime_max: Some(CONNECTION_TIMEOUT),
            ..http::Options::default()
        });
        http::run(self.0, Arc::new(interface), options.subscribe(), shutdown, std::future::pending()).await;
    }
}

/// What answers on that address.
#[derive(Debug)]
struct MonitorInterface {
    context: Context,
    traffic: Arc<Traffic>,
}

impl http::Respond for MonitorInterface {
    fn respond<'a>(&'a self, request: http::IncomingRequest, _: &'a http::Peer) -> http::ResponseFuture<'a> {
        Box::pin(async move { answer(&request, &self.context) })
    }

    fn traffic(&self) -> &Arc<Traffic> {
        &self.traffic
    }
}

fn answer(request: &http::IncomingRequest, context: &Context) -> AdminReply {
    let path = request.uri().path();
    match respond::look(path, context) {
        None => respond::failure(&Failure::new(FailureCode::NotFound, "there are /metrics, /livez and /readyz")),
        Some(_) if *request.method() != Method::GET => respond::not_allowed(path, &Method::GET),
        Some(reply) => reply,
    }
}
