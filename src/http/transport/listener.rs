//! The listener: accepts connections within bounds, and ends in order.
//!
//! 1. A place is taken before a connection is accepted, so that a flood waits in the kernel's queue and not in ours.
//! 2. The connection is accepted; an error, such as too many open files, is waited out and never ends the loop.
//! 3. The connection runs as a task of its own and gives its place back when it ends.
//! 4. When told to stop: accept no more, let connections finish what they have begun, drop what is left after the
//!    deadline, or at once if it is to hurry. Either way no connection outlives the listener: whoever counts what it
//!    answered can do so.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, watch};
use tracing::Level;

use super::client_address::Peer;
use super::connection;
use super::connection_slots::ConnectionSlots;
use super::deadline::Deadlines;
use super::heads::Heads;
use super::respond::Respond;
use super::shutdown::{Phases, Stop};
use crate::log::{LineKind, limited};
use crate::networks::Networks;
use crate::tls::Acceptor;

/// The bounds of a listener.
#[derive(Clone, Debug)]
pub struct Options {
    /// How many connections may be open at once.
    pub connections_max: u32,
    /// How many of them one address may hold, or one /64 network of IPv6; `None` for as many as there are. Loopback
    /// addresses and trusted proxies may hold any number: many clients can be behind one of them.
    pub connections_per_address_max: Option<u32>,
    pub deadlines: Deadlines,
    /// How long connections may take to finish when the listener stops.
    pub drain: Duration,
    /// `None` for plain text.
    pub tls: Option<Arc<Acceptor>>,
    /// Proxies that are believed when they report whom they ask for.
    pub trusted_proxies: Networks,
    /// The bytes of unfinished heads, shared with other listeners.
    pub heads: Arc<Heads>,
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
        }
    }
}

impl Options {
    /// How many connections an address may hold; `None` for any number.
    fn connections_max_of(&self, address: IpAddr) -> Option<u32> {
        let is_exempt = address.to_canonical().is_loopback() || self.trusted_proxies.contain(address);
        self.connections_per_address_max.filter(|_| !is_exempt)
    }
}

/// What a listener did in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Summary {
    /// Connections accepted and served.
    pub accepted: u64,
    /// Connections turned away because their address held too many.
    pub turned_away: u64,
    /// Connections that had not finished when the drain was over.
    pub dropped: u32,
}

/// How many connections may wait to be accepted, where the kernel allows as many. When all clients come at once, as after a
/// restart, one that finds no room is not told: it takes itself for connected, and waits.
const WAITING_MAX: u32 = 4096;

/// A socket to serve at.
pub fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    // Connections of a service that has just stopped do not keep the next one from its address.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(WAITING_MAX)
}

/// Serves until `shutdown` is ready, then drains until `hurry` is. Options that change are those of the connections
/// that come next.
pub async fn run(
    listener: TcpListener,
    service: Arc<impl Respond>,
    options: watch::Receiver<Options>,
    shutdown: impl Future<Output = ()>,
    hurry: impl Future<Output = ()>,
) -> Summary {
    let (stop, phases) = Stop::new();
    let mut places = ConnectionSlots::new(options.borrow().connections_max);
    let mut door = Door { service, options, phases, addresses: Addresses::default(), accepted: 0, turned_away: 0 };
    tokio::select! {
        () = shutdown => {}
        () = door.accept_all(&listener, &mut places) => {}
    }
    drop(listener);
    stop.drain();
    let drain = door.options.borrow().drain;
    let dropped = tokio::select! {
        biased;
        () = places.all_back() => 0,
        () = tokio::time::sleep(drain) => places.taken(),
        () = hurry => places.taken(),
    };
    stop.close();
    // A connection that is dropped while another thread runs it finishes the step that it is in.
    places.all_back().await;
    Summary { accepted: door.accepted, turned_away: door.turned_away, dropped }
}

/// How often the loop says that it goes round.
const BEAT_EVERY: Duration = Duration::from_secs(1);

/// The next connection, once there is a place for it.
async fn accept(
    listener: &TcpListener,
    places: &mut ConnectionSlots,
) -> io::Result<(TcpStream, IpAddr, OwnedSemaphorePermit)> {
    let place = places.take().await;
    let (stream, peer) = listener.accept().await?;
    Ok((stream, peer.ip(), place))
}

/// Returns when there are other options.
async fn changed(options: &mut watch::Receiver<Options>) {
    if options.changed().await.is_err() {
        // Whoever could change them is gone.
        std::future::pending::<()>().await;
    }
}

/// What accepting needs and counts.
#[derive(Debug)]
struct Door<R> {
    service: Arc<R>,
    options: watch::Receiver<Options>,
    phases: Phases,
    addresses: Addresses,
    accepted: u64,
    turned_away: u64,
}

impl<R: Respond> Door<R> {
    /// Accepts until it is dropped.
    async fn accept_all(&mut self, listener: &TcpListener, places: &mut ConnectionSlots) {
        let mut patience = Patience::default();
        let mut beats = tokio::time::interval(BEAT_EVERY);
        loop {
            let connections_max = self.options.borrow_and_update().connections_max;
            self.service.traffic().set_connections_max(connections_max);
            places.fit(connections_max);
            let accepted = tokio::select! {
                accepted = accept(listener, places) => accepted,
                () = changed(&mut self.options) => continue,
                _ = beats.tick() => {
                    self.service.traffic().beat();
                    continue;
                }
            };
            match accepted {
                Ok((stream, address, place)) => {
                    patience = Patience::default();
                    self.admit(stream, address, place);
                }
                Err(error) => {
                    limited!(LineKind::Connection, Level::WARN, %error, "failed to accept a connection");
                    tokio::time::sleep(patience.next()).await;
                }
            }
        }
    }

    fn admit(&mut self, stream: TcpStream, address: IpAddr, place: OwnedSemaphorePermit) {
        let options = self.options.borrow().clone();
        let max = options.connections_max_of(address);
        let Options { deadlines, tls, trusted_proxies, heads, .. } = options;
        let bounds = connection::Bounds { deadlines, heads };
        let peer = Peer::new(address, &trusted_proxies);
        let Some(held) = self.addresses.enter(address, max) else {
            self.turned_away += 1;
            self.service.traffic().count_turned_away();
            limited!(
                LineKind::Connection,
                Level::WARN,
                peer = %peer.address(),
                connections_per_address = max,
                "connection rejected: its address has too many open; a proxy belongs in trusted_proxies"
            );
            return;
        };
        self.accepted += 1;
        // Answers are written whole: waiting to fill a packet would only delay them. A failure costs just that delay.
        let _ = stream.set_nodelay(true);
        let traffic = Arc::clone(self.service.traffic());
        let (service, phases) = (Arc::clone(&self.service), self.phases.clone());
        tokio::spawn(async move {
            let counted = traffic.connection();
            match tls {
                None => connection::run(stream, peer, service, bounds, phases).await,
                Some(tls) => connection::run_tls(stream, peer, &tls, service, bounds, phases).await,
            }
            drop((counted, held, place));
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

/// How many connections each address holds, counted only where there is a bound. An IPv6 address counts as its /64
/// network: a host usually has all the addresses of one.
#[derive(Clone, Debug, Default)]
struct Addresses(Arc<Mutex<HashMap<IpAddr, u32>>>);

/// What a connection from an address is counted under.
fn counted_as(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & (u128::MAX << 64)).into(),
    }
}

/// One connection of an address, until it is dropped.
#[derive(Debug)]
struct Held(Option<(Addresses, IpAddr)>);

impl Addresses {
    /// `None` if the address holds its full number.
    fn enter(&self, address: IpAddr, max: Option<u32>) -> Option<Held> {
        let Some(max) = max else { return Some(Held(None)) };
        let address = counted_as(address);
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(address).or_default();
        if *count >= max {
            return None;
        }
        *count += 1;
        Some(Held(Some((self.clone(), address))))
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let Some((addresses, address)) = self.0.take() else { return };
        let mut counts = addresses.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = counts.get_mut(&address) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&address);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;

    use super::*;
    use crate::http::testing::Fixture;

    #[test]
    fn an_address_holds_no_more_than_its_number() {
        let addresses = Addresses::default();
        let address = IpAddr::from([127, 0, 0, 1]);
        let held = addresses.enter(address, Some(1));
        assert!(held.is_some());
        assert!(addresses.enter(address, Some(1)).is_none());
        assert!(addresses.enter([127, 0, 0, 2].into(), Some(1)).is_some());
        drop(held);
        assert!(addresses.enter(address, Some(1)).is_some());
        assert!(addresses.0.lock().unwrap().len() <= 1);
    }

    #[test]
    fn addresses_of_one_ipv6_network_count_as_one() {
        let addresses = Addresses::default();
        let enter = |address: &str| addresses.enter(address.parse().unwrap(), Some(1));
        let _held = (enter("2001:db8:0:1::1"), enter("192.0.2.1"));
        for (address, has_room) in [
            ("2001:db8:0:1:ffff::2", false),
            ("2001:db8:0:2::1", true),
            ("::ffff:192.0.2.1", false),
            ("192.0.2.2", true),
        ] {
            assert_eq!(enter(address).is_some(), has_room, "{address}");
        }
    }

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
        let mut door = Door {
            service: Arc::clone(&fixture.service),
            options: options.subscribe(),
            phases,
            addresses: Addresses::default(),
            accepted: 0,
            turned_away: 0,
        };
        let listener = listen("127.0.0.1:0".parse().unwrap()).unwrap();
        let mut places = ConnectionSlots::new(10);
        let mut clients = Vec::new();
        for address in [[192, 0, 2, 1], [192, 0, 2, 1], [192, 0, 2, 2]] {
            clients.push(TcpStream::connect(listener.local_addr().unwrap()).await.unwrap());
            let (stream, _, place) = accept(&listener, &mut places).await.unwrap();
            door.admit(stream, address.into(), place);
        }
        assert_eq!((door.accepted, door.turned_away), (2, 1));
        assert_eq!(fixture.service.traffic().turned_away(), 1);
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
