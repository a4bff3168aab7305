//! The console's listener: bound when the server starts, served like the public one with fewer connections.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use tokio::net::TcpListener;
use tokio::sync::watch;

use super::files::Files;
use super::past::PastBoards;
use super::respond::Console;
use super::sessions::ConsoleSessions;
use super::strips::{self, Strips};
use super::views::ViewContext;
use crate::admin::{Context, DataDir};
use crate::clock::Clock;
use crate::http;

/// Browsers hold six connections each.
pub const CONNECTIONS_MAX: u32 = 64;

/// Where the console is to listen.
#[derive(Clone, Debug)]
pub struct ConsoleAddress {
    pub address: SocketAddr,
    /// Whether any free port will do if this one is in use.
    pub any_port: bool,
    /// The host name it answers to, beside its address.
    pub host: Option<String>,
    pub is_tls: bool,
}

/// The console's address cannot be bound.
#[derive(Debug, thiserror::Error)]
#[error("the console cannot listen on {address} ({error}): stop what uses it, or set another `[console] listen`")]
pub struct ConsoleError {
    address: SocketAddr,
    error: io::Error,
}

/// The console, bound and not yet answering.
#[derive(Debug)]
pub struct ConsoleListener {
    socket: TcpListener,
    sessions: Arc<ConsoleSessions>,
    host: Option<String>,
    port: u16,
}

impl ConsoleListener {
    /// Binds the address and loads the sessions of the data directory. Links can be issued from now on.
    pub async fn bind(place: ConsoleAddress, clock: Clock, data: &DataDir) -> Result<ConsoleListener, ConsoleError> {
        let failed = |error| ConsoleError { address: place.address, error };
        let socket = match TcpListener::bind(place.address).await {
            Err(error) if place.any_port && error.kind() == io::ErrorKind::AddrInUse => {
                TcpListener::bind((place.address.ip(), 0)).await
            }
            bound => bound,
        };
        let socket = socket.map_err(failed)?;
        let bound = socket.local_addr().map_err(failed)?;
        let base = base(bound, place.host.as_deref(), place.is_tls);
        let sessions = Arc::new(ConsoleSessions::open(&base, clock, data));
        Ok(ConsoleListener { socket, sessions, host: place.host, port: bound.port() })
    }

    pub fn sessions(&self) -> &Arc<ConsoleSessions> {
        &self.sessions
    }

    /// Answers until `shutdown` comes, and then for as long as the options let what is under way go on.
    pub async fn serve(self, context: Context, options: http::Options, shutdown: impl Future<Output = ()>) {
        let ConsoleListener { socket, sessions, host, port } = self;
        let strips = Arc::new(Strips::default());
        let (boards, clock) = (Arc::clone(&context.boards), context.clock.clone());
        let view = ViewContext { context, strips: Arc::clone(&strips), past: PastBoards::default() };
        let console = Console::new(view, sessions, Files::new(), host, port);
        let connections_max = options.connections_max.min(CONNECTIONS_MAX);
        let options = http::Options { connections_max, connections_per_address_max: None, ..options };
        let options = watch::Sender::new(options);
        tokio::select! {
            _ = http::run(socket, Arc::new(console), options.subscribe(), shutdown, std::future::pending()) => {}
            () = strips::sample(&strips, &boards, &clock) => {}
        }
    }
}

/// The console's address as a browser writes it. One that listens on every address is reached on loopback.
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

    #[tokio::test]
    async fn port_in_use_is_an_error_unless_any_port_will_do() {
        let taken = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = taken.local_addr().unwrap();
        let place = |any_port| ConsoleAddress { address, any_port, host: None, is_tls: false };
        let (clock, data) = (Clock::manual(0), DataDir::new("/nowhere"));
        let error = ConsoleListener::bind(place(false), clock.clone(), &data).await.unwrap_err().to_string();
        assert!(error.starts_with(&format!("the console cannot listen on {address}")), "{error}");
        let listener = ConsoleListener::bind(place(true), clock, &data).await.unwrap();
        assert_ne!(listener.port, address.port());
        assert_eq!(listener.sessions().base(), format!("http://127.0.0.1:{}", listener.port));
    }
}
