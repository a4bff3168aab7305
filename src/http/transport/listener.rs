//! The listener of every interface, over TCP or a Unix socket: accepts connections within bounds, and shuts down in order.
//!
//! 1. A slot is taken before a connection is accepted, so that a flood waits in the kernel's queue and not in ours.
//! 2. The connection is accepted; an error, such as too many open files, is retried after a delay and never ends the loop.
//! 3. The connection runs as a task of its own and gives its slot back when it ends.
//! 4. On shutdown: accept no more, let connections finish what they have begun, drop what is left after the
//!    deadline, or at once if asked to hurry. Either way no connection outlives the listener, so that its counters are final.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpSocket, TcpStream, UnixListener, UnixStream};
use tokio::sync::{OwnedSemaphorePermit, watch};
use tracing::Level;

use super::client_address::Peer;
use super::connection::{self, Handler, HttpOptions};
use super::connection_slots::{AddressCount, Addresses, ConnectionSlots};
use super::deadline::Deadlines;
use super::heads::Heads;
use super::respond::Respond;
use super::shutdown::{Phases, Stop};
use super::stream::BoxedStream;
use crate::log::{LineKind, limited};
use crate::networks::Networks;
use crate::tls::Acceptor;

/// The bounds of a listener.
#[derive(Clone, Debug)]
pub struct Options {
    /// How many connections may be open at once.
    pub connections_max: u32,
    /// How many of them one address may have open, or one /64 network of IPv6; `None` for all of them. Loopback addresses
    /// and trusted proxies are exempt: many clients can be behind one of them.
    pub connections_per_address_max: Option<u32>,
    pub deadlines: Deadlines,
    /// How long connections may take to finish when the listener stops.
    pub drain: Duration,
    /// `None` for plain text.
    pub tls: Option<Arc<Acceptor>>,
    /// Proxies whose forwarding headers are trusted.
    pub trusted_proxies: Networks,
    /// The bytes of unfinished heads, shared with other listeners.
    pub heads: Arc<Heads>,
    pub http: HttpOptions,
    /// How long a connection may be open at all; `None` for any time.
    pub lifetime_max: Option<Duration>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            connections_max: 10_240,
            connections_per_address_max: None,
            deadlines: Deadlines::default(),
            drain: Duration::from_secs(10),
            tls: None,
            trusted_proxies: Networks::default(),
            heads: Arc::default(),
            http: HttpOptions::default(),
            lifetime_max: None,
        }
    }
}

impl Options {
    /// How many connections an address may have open; `None` for any number.
    fn connections_max_of(&self, address: IpAddr) -> Option<u32> {
        let is_exempt = address.to_canonical().is_loopback() || self.trusted_proxies.contains(address);
        self.connections_per_address_max.filter(|_| !is_exempt)
    }
}

/// Totals of a listener that has stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListenerSummary {
    /// Connections accepted and served.
    pub accepted: u64,
    /// Connections rejected because their address had too many open.
    pub rejected: u64,
    /// Connections that had not finished when the drain was over.
    pub dropped: u32,
}

/// The accept backlog, where the kernel allows as many. When all clients come at once, as after a restart, one beyond it
/// believes the handshake completed and hangs.
const WAITING_MAX: u32 = 4096;

/// Binds a TCP socket.
pub fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    // So that connections of a server that has just stopped do not block the address.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(WAITING_MAX)
}

/// A bound socket of either kind.
#[derive(Debug)]
pub enum ListenSocket {
    Tcp(TcpListener),
    Unix(UnixListener),
}

impl From<TcpListener> for ListenSocket {
    fn from(socket: TcpListener) -> Self {
        ListenSocket::Tcp(socket)
    }
}

impl From<UnixListener> for ListenSocket {
    fn from(socket: UnixListener) -> Self {
        ListenSocket::Unix(socket)
    }
}

/// A connection as it was accepted, and where it comes from.
enum Accepted {
    Tcp(TcpStream, IpAddr),
    Unix(UnixStream),
}

impl ListenSocket {
    async fn accept(&self) -> io::Result<Accepted> {
        Ok(match self {
            ListenSocket::Tcp(socket) => {
                let (stream, peer) = socket.accept().await?;
                Accepted::Tcp(stream, peer.ip())
            }
            ListenSocket::Unix(socket) => Accepted::Unix(socket.accept().await?.0),
        })
    }
}

/// Serves until `shutdown` is ready, then drains until `hurry` is. Options that change are those of the connections
/// that come next.
pub async fn run(
    socket: impl Into<ListenSocket>,
    service: Arc<dyn Respond>,
    options: watch::Receiver<Options>,
    shutdown: impl Future<Output = ()>,
    hurry: impl Future<Output = ()>,
) -> ListenerSummary {
    let (stop, phases) = Stop::new();
    let socket = socket.into();
    let mut slots = ConnectionSlots::new(options.borrow().connections_max);
    let mut listener =
        AcceptLoop { service, options, phases, addresses: Addresses::default(), accepted: 0, rejected: 0 };
    tokio::select! {
        () = shutdown => {}
        () = listener.accept_all(&socket, &mut slots) => {}
    }
    drop(socket);
    stop.drain();
    let drain = listener.options.borrow().drain;
    let dropped = tokio::select! {
        biased;
        () = slots.all_back() => 0,
        () = tokio::time::sleep(drain) => slots.taken(),
        () = hurry => slots.taken(),
    };
    stop.close();
    // A connection that is dropped while another thread runs it finishes the step that it is in.
    slots.all_back().await;
    ListenerSummary { accepted: listener.accepted, rejected: listener.rejected, dropped }
}

/// How often the accept loop reports that it is alive.
const BEAT_EVERY: Duration = Duration::from_secs(1);

/// The next connection, once there is a slot for it.
async fn accept(socket: &ListenSocket, slots: &mut ConnectionSlots) -> io::Result<(Accepted, OwnedSemaphorePermit)> {
    let slot = slots.take().await;
    Ok((socket.accept().await?, slot))
}

/// Returns when there are other options.
async fn changed(options: &mut watch::Receiver<Options>) {
    if options.changed().await.is_err() {
        // The sender is gone: they no longer change.
        std::future::pending::<()>().await;
    }
}

/// What accepting needs and counts.
struct AcceptLoop {
    service: Arc<dyn Respond>,
    options: watch::Receiver<Options>,
    phases: Phases,
    addresses: Addresses,
    accepted: u64,
    rejected: u64,
}

impl AcceptLoop {
    /// Accepts until it is dropped.
    async fn accept_all(&mut self, socket: &ListenSocket, slots: &mut ConnectionSlots) {
        let mut patience = Patience::default();
        let mut beats = tokio::time::interval(BEAT_EVERY);
        loop {
            let connections_max = self.options.borrow_and_update().connections_max;
            self.service.traffic().set_connections_max(connections_max);
            slots.fit(connections_max);
            let accepted = tokio::select! {
                accepted = accept(socket, slots) => accepted,
                () = changed(&mut self.options) => continue,
                _ = beats.tick() => {
                    self.service.traffic().beat();
                    continue;
                }
            };
            match accepted {
                Ok((Accepted::Tcp(stream, address), slot)) => {
                    patience = Patience::default();
                    self.admit_tcp(stream, address, slot);
                }
                Ok((Accepted::Unix(stream), slot)) => {
                    patience = Patience::default();
                    self.admit_unix(stream, slot);
                }
                Err(error) => {
                    limited!(LineKind::Connection, Level::WARN, %error, "failed to accept a connection");
                    tokio::time::sleep(patience.next()).await;
                }
            }
        }
    }

    fn admit_tcp(&mut self, stream: TcpStream, address: IpAddr, slot: OwnedSemaphorePermit) {
        let (max, peer) = {
            let options = self.options.borrow();
            (options.connections_max_of(address), Peer::new(address, &options.trusted_proxies))
        };
        let Some(count) = self.addresses.enter(address, max) else {
            self.reject();
            limited!(
                LineKind::Connection,
                Level::WARN,
                peer = %peer.address(),
                connections_per_address = max,
                "connection rejected: its address has too many open; a proxy belongs in trusted_proxies"
            );
            return;
        };
        // Responses are written whole: waiting to fill a packet would only delay them. A failure costs just that delay.
        let _ = stream.set_nodelay(true);
        self.spawn(Box::new(stream), peer, (count, slot));
    }

    /// On a Unix socket the kernel knows who connected. A connection that it has no credentials of is rejected.
    fn admit_unix(&mut self, stream: UnixStream, slot: OwnedSemaphorePermit) {
        match stream.peer_cred() {
            Ok(credentials) => {
                self.spawn(Box::new(stream), Peer::local(credentials.uid()), (AddressCount::default(), slot));
            }
            Err(error) => {
                self.reject();
                limited!(
                    LineKind::AdminConnection,
                    Level::WARN,
                    %error,
                    "rejected admin connection: peer credentials unavailable"
                );
            }
        }
    }

    fn reject(&mut self) {
        self.rejected += 1;
        self.service.traffic().count_rejected_connection();
    }

    fn spawn(&mut self, stream: BoxedStream, peer: Peer, guards: (AddressCount, OwnedSemaphorePermit)) {
        self.accepted += 1;
        let Options { deadlines, tls, heads, http, lifetime_max, .. } = self.options.borrow().clone();
        let bounds = connection::ConnectionBounds { deadlines, heads, http };
        let (phases, service) = (self.phases.clone(), Arc::clone(&self.service));
        tokio::spawn(async move {
            let traffic = Arc::clone(service.traffic());
            let counted = traffic.connection();
            let connection = connection::run(stream, tls, Handler { peer, service }, bounds, phases);
            match lifetime_max {
                None => connection.await,
                Some(max) => drop(tokio::time::timeout(max, connection).await),
            }
            drop((counted, guards));
        });
    }
}

/// How long to wait after a failed accept: longer each time, up to a second.
#[derive(Debug)]
struct Patience(Duration);

impl Default for Patience {
    fn default() -> Self {
        Patience(Duration::from_millis(5))
    }
}

impl Patience {
    fn next(&mut self) -> Duration {
        let wait = self.0;
        self.0 = (wait * 2).min(Duration::from_secs(1));
        wait
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;
    use tokio::sync::Semaphore;

    use super::*;
    use crate::http::testing::Fixture;

    #[test]
    fn loopback_and_trusted_proxies_may_hold_any_number_of_connections() {
        let trusted_proxies = Networks::parse("10.0.0.0/8").unwrap();
        let options = Options { connections_per_address_max: Some(7), trusted_proxies, ..Options::default() };
        for (address, max) in [
            ("127.0.0.1", None),
            ("::1", None),
            ("::ffff:127.0.0.2", None),
            ("10.1.2.3", None),
            ("::ffff:10.1.2.3", None),
            ("192.0.2.1", Some(7)),
            ("2001:db8::1", Some(7)),
        ] {
            assert_eq!(options.connections_max_of(address.parse().unwrap()), max, "{address}");
        }
    }

    #[tokio::test]
    async fn connection_beyond_the_bound_of_its_address_is_closed_and_counted() {
        let fixture = Fixture::new();
        let options = watch::Sender::new(Options { connections_per_address_max: Some(1), ..Options::default() });
        let (_stop, phases) = Stop::new();
        let mut listener = AcceptLoop {
            service: fixture.service.clone(),
            options: options.subscribe(),
            phases,
            addresses: Addresses::default(),
            accepted: 0,
            rejected: 0,
        };
        let socket = listen("127.0.0.1:0".parse().unwrap()).unwrap();
        let slots = Arc::new(Semaphore::new(3));
        let mut clients = Vec::new();
        for address in [[192, 0, 2, 1], [192, 0, 2, 1], [192, 0, 2, 2]] {
            clients.push(TcpStream::connect(socket.local_addr().unwrap()).await.unwrap());
            let (stream, _) = socket.accept().await.unwrap();
            listener.admit_tcp(stream, address.into(), Arc::clone(&slots).try_acquire_owned().unwrap());
        }
        assert_eq!((listener.accepted, listener.rejected), (2, 1));
        assert_eq!(fixture.service.traffic().rejected_connections(), 1);
        assert_eq!(clients[1].read(&mut [0; 1]).await.unwrap(), 0, "it is closed at once");
    }

    #[test]
    fn patience_grows_to_a_second() {
        let mut patience = Patience::default();
        let waits: Vec<Duration> = std::iter::repeat_with(|| patience.next()).take(12).collect();
        assert_eq!(waits[0], Duration::from_millis(5));
        assert_eq!(waits[11], Duration::from_secs(1));
    }
}
