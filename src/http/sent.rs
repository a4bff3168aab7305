//! The headers of a request that an answer depends on, found in one pass over all of them.

use http::header::{ACCEPT_ENCODING, HOST, IF_NONE_MATCH};
use http::{HeaderMap, HeaderName, HeaderValue};

use super::request_id::X_REQUEST_ID;

const X_API_KEY: HeaderName = HeaderName::from_static("x-api-key");

/// What was sent under one name.
#[derive(Clone, Copy, Debug, Default)]
pub(super) enum Sent<'r> {
    #[default]
    Nothing,
    Once(&'r HeaderValue),
    MoreThanOnce,
}

impl<'r> Sent<'r> {
    fn add(&mut self, value: &'r HeaderValue) {
        *self = match self {
            Sent::Nothing => Sent::Once(value),
            Sent::Once(_) | Sent::MoreThanOnce => Sent::MoreThanOnce,
        };
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct SentHeaders<'r> {
    all: &'r HeaderMap,
    pub api_key: Sent<'r>,
    pub host: Sent<'r>,
    pub request_id: Option<&'r HeaderValue>,
    accept_encoding: Sent<'r>,
    if_none_match: Sent<'r>,
    /// Of all names and values.
    pub bytes: usize,
    pub count: usize,
}

impl<'r> SentHeaders<'r> {
    pub(super) fn of(all: &'r HeaderMap) -> Self {
        let (api_key, host, accept_encoding, if_none_match) = Default::default();
        let (request_id, count) = (None, all.len());
        let mut found = SentHeaders { all, api_key, host, request_id, accept_encoding, if_none_match, bytes: 0, count };
        for (name, value) in all {
            found.bytes += name.as_str().len() + value.len();
            if *name == ACCEPT_ENCODING {
                found.accept_encoding.add(value);
            } else if *name == IF_NONE_MATCH {
                found.if_none_match.add(value);
            } else if *name == HOST {
                found.host.add(value);
            } else if *name == X_API_KEY {
                found.api_key.add(value);
            } else if *name == X_REQUEST_ID {
                found.request_id.get_or_insert(value);
            }
        }
        found
    }

    pub(super) fn accept_encoding(&self) -> impl Iterator<Item = &'r HeaderValue> {
        self.values(self.accept_encoding, ACCEPT_ENCODING)
    }

    pub(super) fn if_none_match(&self) -> impl Iterator<Item = &'r HeaderValue> {
        self.values(self.if_none_match, IF_NONE_MATCH)
    }

    fn values(&self, sent: Sent<'r>, name: HeaderName) -> impl Iterator<Item = &'r HeaderValue> {
        let (once, several) = match sent {
            Sent::Nothing => (None, None),
            Sent::Once(value) => (Some(value), None),
            Sent::MoreThanOnce => (None, Some(self.all.get_all(name).into_iter())),
        };
        once.into_iter().chain(several.into_iter().flatten())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_found_as_often_as_it_was_sent() {
        let mut all = HeaderMap::new();
        let found = SentHeaders::of(&all);
        assert!(matches!(found.api_key, Sent::Nothing) && found.request_id.is_none());
        assert_eq!((found.accept_encoding().count(), found.if_none_match().count()), (0, 0));
        for (name, value) in [
            ("accept-encoding", "gzip"),
            ("if-none-match", "\"a\""),
            ("accept-encoding", "zstd"),
            ("x-api-key", "k"),
            ("x-request-id", "first"),
            ("x-request-id", "second"),
            ("host", "h"),
        ] {
            all.append(name, HeaderValue::from_static(value));
        }
        let found = SentHeaders::of(&all);
        let texts = |values: &mut dyn Iterator<Item = &HeaderValue>| {
            values.map(|value| value.to_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(texts(&mut found.accept_encoding()), ["gzip", "zstd"]);
        assert_eq!(texts(&mut found.if_none_match()), ["\"a\""]);
        assert_eq!(found.request_id.unwrap(), "first");
        assert!(matches!(found.api_key, Sent::Once(key) if key == "k"));
        assert_eq!((found.count, found.bytes), (7, 2 * 15 + 8 + 13 + 3 + 9 + 1 + 2 * 12 + 5 + 6 + 4 + 1));
        all.append("x-api-key", HeaderValue::from_static("k"));
        assert!(matches!(SentHeaders::of(&all).api_key, Sent::MoreThanOnce));
    }
}
