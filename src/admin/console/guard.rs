//! Which requests are ours: sent to this console by name, and from a page of this console.
//!
//! A page from elsewhere can make a browser send requests here. It cannot forge `Host`, `Origin` or `Sec-Fetch-Site`,
//! it is not sent our cookie (which is `SameSite=Strict`), and it cannot read the token that every command needs.

use std::net::{IpAddr, Ipv6Addr};

use hyper::header::{COOKIE, HOST, HeaderName, ORIGIN};
use hyper::{HeaderMap, Uri};

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const CSRF: HeaderName = HeaderName::from_static("x-csrf-token");

/// Whom a request is sent to, if it is one of our names: an address, `localhost`, or the name that the operator gave. A name
/// that somebody else's server resolves to this address is none of these.
pub(super) fn host<'h>(uri: &'h Uri, headers: &'h HeaderMap, named: Option<&str>) -> Option<&'h str> {
    let mut sent = headers.get_all(HOST).iter();
    let host = match (uri.authority(), sent.next(), sent.next()) {
        // HTTP/2 says it in its own way, which wins.
        (Some(authority), _, None) => authority.as_str(),
        (None, Some(host), None) => host.to_str().ok()?,
        _ => return None,
    };
    let name = without_port(host);
    let is_named = named.is_some_and(|named| named.eq_ignore_ascii_case(name));
    (is_named || is_address(name) || name.eq_ignore_ascii_case("localhost")).then_some(host)
}

fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) && !name.ends_with(':') => name,
        _ => host,
    }
}

fn is_address(name: &str) -> bool {
    match name.strip_prefix('[').and_then(|name| name.strip_suffix(']')) {
        Some(inner) => inner.parse::<Ipv6Addr>().is_ok(),
        None => name.parse::<IpAddr>().is_ok_and(|address| address.is_ipv4()),
    }
}

/// Whether a browser says that a page from elsewhere sent this. Programs and old browsers say nothing.
pub(super) fn is_from_elsewhere(headers: &HeaderMap) -> bool {
    headers.get(SEC_FETCH_SITE).is_some_and(|site| site != "same-origin" && site != "none")
}

/// Whether a request that changes something comes from a page of the console: every browser sends `Origin` with it.
pub(super) fn is_same_origin(headers: &HeaderMap, scheme: &str, host: &str) -> bool {
    let mut sent = headers.get_all(ORIGIN).iter();
    let (Some(origin), None) = (sent.next(), sent.next()) else { return false };
    let own = format!("{scheme}://{host}");
    origin.to_str().is_ok_and(|origin| origin.eq_ignore_ascii_case(&own)) && !is_from_elsewhere(headers)
}

/// Whether the token of a session was sent along.
pub(super) fn has_token(headers: &HeaderMap, token: &str) -> bool {
    use subtle::ConstantTimeEq;
    headers.get(CSRF).is_some_and(|sent| bool::from(sent.as_bytes().ct_eq(token.as_bytes())))
}

/// The value of a cookie.
pub(super) fn cookie<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    let lines = headers.get_all(COOKIE).iter().filter_map(|line| line.to_str().ok());
    let mut pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(sent, _)| *sent == name).map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderValue;

    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, HeaderValue::from_str(value).unwrap());
        }
        headers
    }

    #[test]
    fn only_addresses_and_known_names_are_answered() {
        for good in ["127.0.0.1:8081", "localhost:9000", "LOCALHOST", "[::1]:8081", "[::1]", "10.0.0.7", "odds.lan:1"] {
            assert_eq!(host(&Uri::default(), &headers(&[("host", good)]), Some("odds.lan")), Some(good), "{good}");
        }
        for bad in ["evil.example", "evil.example:8081", "127.0.0.1.evil.example", "localhost.evil.example", "", ":80"]
        {
            assert_eq!(host(&Uri::default(), &headers(&[("host", bad)]), Some("odds.lan")), None, "{bad}");
        }
        assert_eq!(host(&Uri::default(), &headers(&[("host", "odds.lan")]), None), None);
        let uri = |text: &str| Uri::try_from(text).unwrap();
        assert_eq!(host(&uri("https://localhost:1/"), &HeaderMap::new(), None), Some("localhost:1"));
        assert_eq!(host(&uri("https://evil.example/"), &headers(&[("host", "localhost")]), None), None);
        assert_eq!(host(&Uri::default(), &headers(&[("host", "localhost"), ("host", "localhost")]), None), None);
        assert_eq!(host(&Uri::default(), &HeaderMap::new(), None), None);
    }

    #[test]
    fn a_change_must_come_from_a_page_of_the_console() {
        let own = "127.0.0.1:8081";
        let same = |pairs: &[(&'static str, &str)]| is_same_origin(&headers(pairs), "http", own);
        assert!(same(&[("origin", "http://127.0.0.1:8081")]));
        assert!(same(&[("origin", "http://127.0.0.1:8081"), ("sec-fetch-site", "same-origin")]));
        for forged in ["https://127.0.0.1:8081", "http://127.0.0.1:8080", "http://evil.example", "null", ""] {
            assert!(!same(&[("origin", forged)]), "{forged}");
        }
        assert!(!same(&[]));
        assert!(!same(&[("origin", "http://127.0.0.1:8081"), ("sec-fetch-site", "cross-site")]));
        assert!(!same(&[("origin", "http://127.0.0.1:8081"), ("sec-fetch-site", "same-site")]));
    }

    #[test]
    fn cookies_are_found_among_others() {
        let sent = headers(&[("cookie", "a=1; oddsbox=two; b"), ("cookie", "c=3")]);
        assert_eq!(cookie(&sent, "oddsbox"), Some("two"));
        assert_eq!(cookie(&sent, "c"), Some("3"));
        assert_eq!(cookie(&sent, "b"), None);
        assert_eq!(cookie(&sent, "dsbox"), None);
    }
}
