//! Where a request comes from: the address of the connection's peer or, where the peer is a trusted proxy, the address that the
//! proxy reports.
//!
//! Anyone can send `X-Forwarded-For`, so the header is read only if the peer is in `trusted_proxies`, and from the right:
//! each proxy appends the address that it saw. The rightmost address that is not itself a trusted proxy is the client;
//! everything left of it was sent by the client and is not trusted.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use http::header::FORWARDED;
use http::{HeaderMap, HeaderName};

use crate::networks::Networks;

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// The other end of a connection.
#[derive(Debug)]
pub struct Peer {
    address: IpAddr,
    /// The user at the other end of a Unix socket.
    user: Option<u32>,
    /// Empty unless the peer itself is one of them.
    trusted: Networks,
}

impl Peer {
    pub fn new(address: IpAddr, trusted_proxies: &Networks) -> Peer {
        let address = address.to_canonical();
        let trusted = if trusted_proxies.contains(address) { trusted_proxies.clone() } else { Networks::default() };
        Peer { address, user: None, trusted }
    }

    /// The other end of a Unix socket, on this machine.
    pub fn local(user: u32) -> Peer {
        Peer { user: Some(user), ..Peer::new(Ipv4Addr::LOCALHOST.into(), &Networks::default()) }
    }

    /// The id of the user at the other end of a Unix socket, as the kernel reports it.
    pub fn user(&self) -> Option<u32> {
        self.user
    }

    /// The address that the connection comes from.
    pub fn address(&self) -> IpAddr {
        self.address
    }

    /// The address that what a request uses is counted under; `None` for loopback addresses and trusted proxies, which many
    /// clients can be behind.
    pub fn counted_client(&self, headers: &HeaderMap) -> Option<IpAddr> {
        let client = self.client(headers);
        (!client.is_loopback() && !self.trusted.contains(client)).then_some(client)
    }

    /// The address that a request comes from, as far as it can be believed.
    pub fn client(&self, headers: &HeaderMap) -> IpAddr {
        if self.trusted.is_empty() {
            return self.address;
        }
        let mut client = self.address;
        for hop in forwarded(headers) {
            // A proxy may hide the client's address: then its own is the last one known.
            let Some(address) = hop else { break };
            client = address;
            if !self.trusted.contains(client) {
                break;
            }
        }
        client
    }
}

/// The reported addresses from the nearest to the farthest; `None` for one that is hidden or cannot be read.
fn forwarded(headers: &HeaderMap) -> Box<dyn Iterator<Item = Option<IpAddr>> + '_> {
    let lines = |name| headers.get_all(name).iter().rev().map(|line| line.to_str().unwrap_or_default());
    if headers.contains_key(X_FORWARDED_FOR) {
        Box::new(lines(X_FORWARDED_FOR).flat_map(|line| line.rsplit(',')).map(address_of))
    } else {
        Box::new(lines(FORWARDED).flat_map(|line| line.rsplit(',')).map(|element| {
            let mut pairs = element.split(';').filter_map(|pair| pair.split_once('='));
            let (_, value) = pairs.find(|(name, _)| name.trim().eq_ignore_ascii_case("for"))?;
            address_of(value.trim().trim_matches('"'))
        }))
    }
}

/// Reads an address, with or without a port: `192.0.2.1`, `192.0.2.1:80`, `2001:db8::1`, `[2001:db8::1]:80`.
fn address_of(text: &str) -> Option<IpAddr> {
    let text = text.trim();
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    let address = bare.parse().ok().or_else(|| text.parse::<SocketAddr>().ok().map(|address| address.ip()));
    address.map(|address: IpAddr| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn client(peer: &str, trusted: &str, lines: &[(&'static str, &str)]) -> String {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(*name, HeaderValue::from_str(value).unwrap());
        }
        let peer = Peer::new(peer.parse().unwrap(), &Networks::parse(trusted).unwrap());
        peer.client(&headers).to_string()
    }

    #[test]
    fn forwarded_address_of_an_untrusted_peer_is_ignored() {
        let lines = [("x-forwarded-for", "203.0.113.7"), ("forwarded", "for=203.0.113.7")];
        assert_eq!(client("192.0.2.1", "", &lines), "192.0.2.1");
        assert_eq!(client("192.0.2.1", "10.0.0.0/8", &lines), "192.0.2.1");
    }

    #[test]
    fn rightmost_address_that_is_no_trusted_proxy_is_the_client() {
        let trusted = "10.0.0.0/8,2001:db8::/32";
        for (lines, expected) in [
            (&[("x-forwarded-for", "203.0.113.7")][..], "203.0.113.7"),
            (&[("x-forwarded-for", "1.2.3.4, 203.0.113.7, 10.0.0.2")], "203.0.113.7"),
            (&[("x-forwarded-for", "1.2.3.4"), ("x-forwarded-for", "203.0.113.7:5000,10.0.0.2:80")], "203.0.113.7"),
            (&[("x-forwarded-for", "10.0.0.3, 10.0.0.2")], "10.0.0.3"),
            (&[("x-forwarded-for", "203.0.113.7, unknown, 10.0.0.2")], "10.0.0.2"),
            (&[("x-forwarded-for", "::ffff:203.0.113.7, [2001:db8::1]:80")], "203.0.113.7"),
            (&[("forwarded", "for=1.2.3.4, for=\"[2001:db9::1]:80\";proto=https, By=x;For=10.0.0.2")], "2001:db9::1"),
            (&[("forwarded", "for=_hidden")], "10.0.0.1"),
            (&[("x-forwarded-for", "")], "10.0.0.1"),
            (&[], "10.0.0.1"),
        ] {
            assert_eq!(client("10.0.0.1", trusted, lines), expected, "{lines:?}");
            assert_eq!(client("::ffff:10.0.0.1", trusted, lines), expected, "{lines:?}");
        }
    }
}
