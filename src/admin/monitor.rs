//! The monitoring address: `/metrics`, `/livez` and `/readyz` over TCP, for whoever watches this machine.
//!
//! It listens on loopback only, shows what the admin door shows of these three, and takes no command. Connections are
//! few and short: one request each, within a deadline.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tracing::Level;

use super::context::Context;
use super::protocol::{Failure, FailureCode};
use super::respond::{self, Reply};
use crate::log::{LineKind, limited};

const CONNECTIONS_MAX: usize = 16;
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(10);
const HEADER_BYTES_MAX: usize = 16 << 10;
/// How long to wait after a connection could not be accepted, for want of file descriptors most likely.
const ACCEPT_RETRY: Duration = Duration::from_millis(100);

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
        let context = Arc::new(context);
        let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        let mut connections = JoinSet::new();
        let mut shutdown = pin!(shutdown);
        loop {
            tokio::select! {
                () = &mut shutdown => return,
                Some(_) = connections.join_next(), if !connections.is_empty() => {}
                (stream, place) = self.accept(&places) => {
                    connections.spawn(converse(stream, place, Arc::clone(&context)));
                }
            }
        }
    }

    /// The next connection, once there is a place for it.
    async fn accept(&self, places: &Arc<Semaphore>) -> (TcpStream, Option<OwnedSemaphorePermit>) {
        let place = Arc::clone(places).acquire_owned().await.ok();
        loop {
            match self.0.accept().await {
                Ok((stream, _)) => return (stream, place),
                Err(error) => {
                    limited!(LineKind::Connection, Level::WARN, %error, "failed to accept a monitoring connection");
                    tokio::time::sleep(ACCEPT_RETRY).await;
                }
            }
        }
    }
}

/// Serves one connection: one request, within the deadline.
async fn converse(stream: TcpStream, _place: Option<OwnedSemaphorePermit>, context: Arc<Context>) {
    let service = service_fn(move |request: Request<Incoming>| {
        let reply = answer(&request, &context);
        async move { Ok::<_, Infallible>(reply) }
    });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).keep_alive(false).max_header_size(HEADER_BYTES_MAX);
    let connection = builder.serve_connection(TokioIo::new(stream), service);
    if let Ok(Err(error)) = tokio::time::timeout(CONNECTION_TIMEOUT, connection).await {
        limited!(LineKind::Connection, Level::DEBUG, %error, "monitoring connection broke off");
    }
}

fn answer(request: &Request<Incoming>, context: &Context) -> Reply {
    let path = request.uri().path();
    match respond::look(path, context) {
        None => respond::failure(&Failure::new(FailureCode::NotFound, "there are /metrics, /livez and /readyz")),
        Some(_) if *request.method() != Method::GET => respond::not_allowed(path, &Method::GET),
        Some(reply) => reply,
    }
}
