//! Lists of IP addresses and networks in CIDR notation.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

/// A list of networks; a single address is a network of one. Cheap to clone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Networks(Arc<[Network]>);

impl Networks {
    /// Parses addresses and networks separated by commas; an empty text is an empty list.
    pub fn parse(text: &str) -> Option<Networks> {
        let items = text.split(',').map(str::trim);
        match text.trim() {
            "" => Some(Networks::default()),
            _ => items.map(Network::parse).collect::<Option<Vec<_>>>().map(|networks| Networks(networks.into())),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether an address is in one of the networks. An IPv4-mapped IPv6 address, as a dual-stack socket reports it,
    /// counts as the IPv4 address.
    pub fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.0.iter().any(|network| network.contains(address))
    }
}

impl fmt::Display for Networks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, Network { address, prefix }) in self.0.iter().enumerate() {
            let comma = if number > 0 { "," } else { "" };
            write!(f, "{comma}{address}/{prefix}")?;
        }
        Ok(())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Network {
    address: IpAddr,
    /// The number of leading bits that must match `address`.
    prefix: u32,
}

impl Network {
    fn parse(text: &str) -> Option<Network> {
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().ok()?;
        let bits = if address.is_ipv4() { 32 } else { 128 };
        let prefix = match prefix {
            // The standard library would accept "+8".
            Some(prefix) if prefix.bytes().all(|byte| byte.is_ascii_digit()) => prefix.parse().ok()?,
            Some(_) => return None,
            None => bits,
        };
        (prefix <= bits).then_some(Network { address, prefix })
    }

    fn contains(self, address: IpAddr) -> bool {
        match (self.address, address) {
            (IpAddr::V4(own), IpAddr::V4(other)) => {
                let differing = own.to_bits() ^ other.to_bits();
                differing.leading_zeros() >= self.prefix
            }
            (IpAddr::V6(own), IpAddr::V6(other)) => {
                let differing = own.to_bits() ^ other.to_bits();
                differing.leading_zeros() >= self.prefix
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_matched_by_their_leading_bits() {
        let networks = Networks::parse("10.0.0.0/8, 192.0.2.7,2001:db8::/32, fe80::1").unwrap();
        for (address, is_in) in [
            ("10.255.0.1", true),
            ("11.0.0.1", false),
            ("192.0.2.7", true),
            ("192.0.2.8", false),
            ("2001:db8:ffff::1", true),
            ("2001:db9::1", false),
            ("fe80::1", true),
            ("fe80::2", false),
            ("::ffff:10.1.2.3", true),
        ] {
            assert_eq!(networks.contains(address.parse().unwrap()), is_in, "{address}");
        }
        let all = Networks::parse("0.0.0.0/0").unwrap();
        assert!(all.contains([203, 0, 113, 1].into()) && !all.contains("::1".parse().unwrap()));
    }

    #[test]
    fn malformed_lists_are_rejected() {
        assert!(Networks::parse(" ").unwrap().is_empty());
        for text in ["10.0.0.0/33", "::/129", "localhost", "10.0.0.0/", "10.0.0.0/+8", "10.0.0.1,", "10.0.0.1:80"] {
            assert_eq!(Networks::parse(text), None, "{text}");
        }
        assert_eq!(Networks::parse("10.0.0.0/8,::1").unwrap().to_string(), "10.0.0.0/8,::1/128");
    }
}
