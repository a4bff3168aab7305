//! The headers of a successful response to a valid key: nearly every response there is.
//!
//! Their names are always the same few, so maps with the names in place are built once. A response clones one of them
//! and fills in its values, which costs a fraction of hashing and inserting every name again.

use std::sync::LazyLock;

use http::header::{CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, ETAG, LINK, VARY, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderMap, HeaderName, HeaderValue};

use super::reply::{Chosen, NOSNIFF, VARY_ENCODING};
use super::request_id::{RequestId, X_REQUEST_ID};
use super::usage::{RATELIMIT, RATELIMIT_POLICY, UsageHeaders, Values, X_REQUESTS_REMAINING, X_REQUESTS_USED};

/// The values of those headers.
#[derive(Debug)]
pub(crate) struct ContentHeaders {
    pub chosen: Chosen,
    pub cache_control: HeaderValue,
    pub request_id: RequestId,
    pub link: Option<HeaderValue>,
    /// Of an answer that has a body.
    pub content_type: Option<HeaderValue>,
    pub usage: UsageHeaders,
}

/// One template for each combination of the three headers that not every response has.
static TEMPLATES: LazyLock<[HeaderMap; 8]> = LazyLock::new(|| std::array::from_fn(template));

const LINK_BIT: usize = 1;
const TYPE_BIT: usize = 2;
const ENCODING_BIT: usize = 4;

/// The names in the order in which [`ContentHeaders::into_map`] fills in their values, then the headers whose values never
/// change.
fn template(bits: usize) -> HeaderMap {
    let blank = HeaderValue::from_static("");
    let chosen = |bit: usize, name: HeaderName| (bits & bit != 0).then_some(name);
    let always =
        [ETAG, CACHE_CONTROL, X_REQUEST_ID, X_REQUESTS_USED, X_REQUESTS_REMAINING, RATELIMIT_POLICY, RATELIMIT];
    let names = always
        .into_iter()
        .chain(chosen(LINK_BIT, LINK))
        .chain(chosen(TYPE_BIT, CONTENT_TYPE))
        .chain(chosen(ENCODING_BIT, CONTENT_ENCODING));
    let mut template: HeaderMap = names.map(|name| (name, blank.clone())).collect();
    template.insert(VARY, VARY_ENCODING);
    template.insert(X_CONTENT_TYPE_OPTIONS, NOSNIFF);
    template
}

impl ContentHeaders {
    /// A key without a quota has no header that says what remains of it.
    pub(crate) fn into_map(self) -> HeaderMap {
        let ContentHeaders { chosen, cache_control, request_id, link, content_type, usage } = self;
        let Values { used, remaining, policy, limits } = usage.into_values();
        let content_encoding = chosen.content_encoding();
        let bit = |value: &Option<HeaderValue>, bit: usize| if value.is_some() { bit } else { 0 };
        let bits = bit(&link, LINK_BIT) | bit(&content_type, TYPE_BIT) | bit(&content_encoding, ENCODING_BIT);
        let has_quota = remaining.is_some();
        let mut headers = TEMPLATES[bits].clone();
        let mut slots = headers.values_mut();
        // One after the other, in the order of the template's names.
        let mut put = |value: HeaderValue| {
            if let Some(slot) = slots.next() {
                *slot = value;
            }
        };
        put(chosen.etag());
        put(cache_control);
        put(request_id.header());
        put(used);
        put(remaining.unwrap_or(HeaderValue::from_static("")));
        put(policy);
        put(limits);
        // Written out: a chain of iterators costs as much as inserting by name.
        if let Some(link) = link {
            put(link);
        }
        if let Some(content_type) = content_type {
            put(content_type);
        }
        if let Some(encoding) = content_encoding {
            put(encoding);
        }
        if !has_quota {
            headers.remove(X_REQUESTS_REMAINING);
        }
        headers
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::board::{Body, Encoding};
    use crate::http::exchange::request_id::RequestIds;
    use crate::keys::{BurstStanding, QuotaStanding, Standing};

    fn value(text: &'static str) -> HeaderValue {
        HeaderValue::from_static(text)
    }

    fn headers(link: bool, content_type: bool, encoding: Encoding, limit: Option<u64>) -> ContentHeaders {
        let quota = QuotaStanding { limit, used: 7, reset_s: 60 };
        let burst = BurstStanding { limit: 60, remaining: 59, reset_s: 58 };
        let body = Arc::new(Body::new("{}", None));
        ContentHeaders {
            chosen: Chosen { body, encoding, is_current: !content_type },
            cache_control: value("control"),
            request_id: RequestIds::new().id_of(Some(&value("id"))),
            link: link.then(|| value("link")),
            content_type: content_type.then(|| value("type")),
            usage: UsageHeaders::new(
                Standing { burst, day: quota, month: QuotaStanding { limit: None, ..quota } },
                value("policy"),
            ),
        }
    }

    #[test]
    fn every_value_stands_under_its_name() {
        for bits in 0..16 {
            let [link, content_type, is_compressed, has_quota] = [1, 2, 4, 8].map(|bit| bits & bit != 0);
            let encoding = if is_compressed { Encoding::Gzip } else { Encoding::Identity };
            let headers = headers(link, content_type, encoding, has_quota.then_some(10));
            let etag = headers.chosen.etag();
            let limits = if has_quota { r#""burst";r=59;t=58, "day";r=3;t=60"# } else { r#""burst";r=59;t=58"# };
            let expected = [
                (ETAG, Some(etag)),
                (CACHE_CONTROL, Some(value("control"))),
                (X_REQUEST_ID, Some(value("id"))),
                (X_REQUESTS_USED, Some(value("7"))),
                (X_REQUESTS_REMAINING, has_quota.then(|| value("3"))),
                (RATELIMIT_POLICY, Some(value("policy"))),
                (RATELIMIT, Some(value(limits))),
                (LINK, link.then(|| value("link"))),
                (CONTENT_TYPE, content_type.then(|| value("type"))),
                (CONTENT_ENCODING, (content_type && is_compressed).then(|| value("gzip"))),
                (VARY, Some(VARY_ENCODING)),
                (X_CONTENT_TYPE_OPTIONS, Some(NOSNIFF)),
            ];
            let expected: HeaderMap = expected.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
            assert_eq!(headers.into_map(), expected, "{bits}");
        }
    }
}
