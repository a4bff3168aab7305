//! The console's listener: a few connections at a time, each under the deadlines of the public door.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;

use super::desk::Desk;
use super::files::Files;
use super::respond::{Console, respond};
use super::strips::{self, Strips};
use crate::admin::Context;
use crate::clock::Clock;
use crate::http::{Deadlines, paced};
use crate::tls::Acceptor;

/// Browsers hold six connections each.
const CONNECTIONS_MAX: usize = 64;
/// How long to wait after a connection could not be accepted, for want of file descriptors most likely.
const ACCEPT_RETRY: Duration = Duration::from_millis(100);

/// Where the console is to be.
#[derive(Clone, Debug)]
pub struct Place {
    pub address: SocketAddr,
    /// Whether a free port will do if this one is taken.
    pub any_port: bool,
    /// The name that it is called by, beside its address.
    pub host: Option<String>,
    pub deadlines: Deadlines,
    /// `None` is plain text.
    pub tls: Option<Arc<Acceptor>>,
}

/// The console's address cannot be had.
#[derive(Debug, thiserror::Error)]
#[error("the console cannot listen on {address} ({error}): stop what uses it, or set another `[console] listen`")]
pub struct ConsoleError {
    address: SocketAddr,
    error: io::Error,
}

/// The console, bound and not yet answering.
#[derive(Debug)]
pub struct Door {
    socket: TcpListener,
    desk: Arc<Desk>,
    place: Place,
}

impl Door {
    /// Takes the address. Links can be handed out from now on.
    pub async fn bind(place: Place, clock: Clock) -> Result<Door, ConsoleError> {
        let failed = |error| ConsoleError { address: place.address, error };
        let socket = match TcpListener::bind(place.address).await {
            Err(error) if place.any_port && error.kind() == io::ErrorKind::AddrInUse => {
                TcpListener::bind((place.address.ip(), 0)).await
            }
            bound => bound,
        };
        let socket = socket.map_err(failed)?;
        let bound = socket.local_addr().map_err(failed)?;
        let desk = Arc::new(Desk::new(&base(bound, place.host.as_deref(), place.tls.is_some()), clock));
        Ok(Door { socket, desk, place })
    }

    pub fn desk(&self) -> &Arc<Desk> {
        &self.desk
    }

    /// Answers until `shutdown` comes; then what is under way has `grace` to end.
    pub async fn serve(self, context: Context, shutdown: impl Future<Output = ()>, grace: Duration) {
        let Door { socket, desk, place } = self;
        let strips = Arc::new(Strips::default());
        let (boards, clock) = (Arc::clone(&context.boards), context.clock.clone());
        let port = socket.local_addr().map_or(0, |address| address.port());
        let Place { host, deadlines, tls, .. } = place;
        let console = Arc::new(Console::new(context, desk, Files::new(), Arc::clone(&strips), host, port));
        let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        let (stop, stopping) = watch::channel(false);
        let mut connections = JoinSet::new();
        let mut shutdown = pin!(shutdown);
        let mut sampling = pin!(strips::sample(&strips, &boards, &clock));
        loop {
            tokio::select! {
                () = &mut shutdown => break,
                () = &mut sampling => {}
                Some(_) = connections.join_next(), if !connections.is_empty() => {}
                (stream, place) = accept(&socket, &places) => {
                    let talk = Talk { console: Arc::clone(&console), deadlines, tls: tls.clone(), stopping: stopping.clone() };
                    connections.spawn(talk.converse(stream, place));
                }
            }
        }
        drop((console, socket));
        let _ = stop.send(true);
        let ended = async { while connections.join_next().await.is_some() {} };
        let _ = tokio::time::timeout(grace, ended).await;
    }
}

/// The console's address as a browser writes it. Whoever listens everywhere is reached here.
fn base(bound: SocketAddr, host: Option<&str>, is_tls: bool) -> String {
    let address = match bound.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    let scheme = if is_tls { "https" } else { "http" };
    match host {
        Some(name) => format!("{scheme}://{name}:{}", bound.port()),
        None => format!("{scheme}://{}", SocketAddr::new(address, bound.port())),
    }
}

/// The next connection, once there is a place for it.
async fn accept(socket: &TcpListener, places: &Arc<Semaphore>) -> (TcpStream, Option<OwnedSemaphorePermit>) {
    let place = Arc::clone(places).acquire_owned().await.ok();
    loop {
        match socket.accept().await {
            Ok((stream, _)) => return (stream, place),
            Err(error) => {
                tracing::warn!(%error, "a console connection could not be accepted");
                tokio::time::sleep(ACCEPT_RETRY).await;
            }
        }
    }
}

/// One connection.
struct Talk {
    console: Arc<Console>,
    deadlines: Deadlines,
    tls: Option<Arc<Acceptor>>,
    stopping: watch::Receiver<bool>,
}

impl Talk {
    async fn converse(self, stream: TcpStream, _place: Option<OwnedSemaphorePermit>) {
        let _ = stream.set_nodelay(true);
        let Some(acceptor) = self.tls.clone() else { return self.serve(stream).await };
        match tokio::time::timeout(self.deadlines.head, acceptor.accept(stream)).await {
            Ok(Ok(stream)) => self.serve(stream).await,
            Ok(Err(error)) => tracing::debug!(%error, "a console connection did not come to TLS"),
            Err(_elapsed) => tracing::debug!("a console connection took too long to come to TLS"),
        }
    }

    async fn serve(self, stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) {
        let Talk { console, deadlines, mut stopping, .. } = self;
        let stop = async { drop(stopping.wait_for(|stop| *stop).await) };
        paced::serve(stream, deadlines, |request| respond(request, Arc::clone(&console)), stop).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_lead_to_where_the_console_can_be_reached() {
        for (bound, host, link) in [
            ("127.0.0.1:8081", None, "http://127.0.0.1:8081"),
            ("0.0.0.0:8081", None, "http://127.0.0.1:8081"),
            ("[::]:8081", None, "http://[::1]:8081"),
            ("10.0.0.7:8081", Some("odds.lan"), "https://odds.lan:8081"),
        ] {
            assert_eq!(base(bound.parse().unwrap(), host, link.starts_with("https")), link);
        }
    }
}
