//! The value of a `Host` header: `uri-host [ ":" port ]`, RFC 9110, section 7.2.

/// Whether a value names a host. An empty one is grammatical but names none, and an `http` URI must.
pub(super) fn is_valid(value: &[u8]) -> bool {
    let (host, port) = match value.strip_prefix(b"[") {
        Some(rest) => {
            let Some(end) = rest.iter().position(|byte| *byte == b']') else { return false };
            (&rest[..end], &rest[end + 1..])
        }
        None => value.split_at(value.iter().position(|byte| *byte == b':').unwrap_or(value.len())),
    };
    let is_literal = value.starts_with(b"[");
    let is_host = if is_literal { is_address(host) } else { is_name(host) };
    let is_port = port.is_empty() || port.strip_prefix(b":").is_some_and(|port| port.iter().all(u8::is_ascii_digit));
    !host.is_empty() && is_host && is_port
}

/// An IPv6 address, or a later one: `IP-literal` without its brackets.
fn is_address(host: &[u8]) -> bool {
    host.iter().all(|byte| is_unreserved_or_delimiter(*byte) || *byte == b':')
}

/// A registered name or an IPv4 address.
fn is_name(mut host: &[u8]) -> bool {
    while let Some((byte, rest)) = host.split_first() {
        host = match byte {
            b'%' => match rest.split_at_checked(2) {
                Some((pair, rest)) if pair.iter().all(u8::is_ascii_hexdigit) => rest,
                _ => return false,
            },
            byte if is_unreserved_or_delimiter(*byte) => rest,
            _ => return false,
        };
    }
    true
}

fn is_unreserved_or_delimiter(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::is_valid;

    #[test]
    fn hosts_follow_the_grammar() {
        for host in ["a", "odds.example.com", "A-b_c.d:8080", "127.0.0.1:80", "[::1]", "[::1]:80", "a:", "a%20b"] {
            assert!(is_valid(host.as_bytes()), "{host}");
        }
        for host in [
            "", ":80", "a b", "a/b", "u@a", "a:80:80", "a:x", "[::1", "[]", "[::1]80", "::1", "a%zz", "a%2", "\u{e9}",
            "a\"b", "a\\b",
        ] {
            assert!(!is_valid(host.as_bytes()), "{host}");
        }
    }
}
