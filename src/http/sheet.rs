//! The headers of an answer with content to a valid key: nearly every answer there is.
//!
//! Their names are always the same few, so they stand ready: for the HTTP library as maps with the names in place, of
//! which an answer is a copy with the values written in, and for a head that is written here as the text around the
//! values. Either costs a fraction of finding the place of every name anew.

use std::sync::LazyLock;

use http::header::{CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, ETAG, LINK, VARY, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderMap, HeaderName, HeaderValue};

use super::again::Head;
use super::reply::{Chosen, NOSNIFF, VARY_ENCODING};
use super::request_id::{RequestId, X_REQUEST_ID};
use super::usage::{RATELIMIT, RATELIMIT_POLICY, Usage, Values, X_REQUESTS_REMAINING, X_REQUESTS_USED};
use crate::board::render::json;

/// What an answer says of itself.
#[derive(Debug)]
pub(super) struct Sheet {
    pub chosen: Chosen,
    pub cache_control: HeaderValue,
    pub request_id: RequestId,
    pub link: Option<HeaderValue>,
    /// Of an answer that has a body.
    pub content_type: Option<HeaderValue>,
    pub usage: Usage,
}

/// One sheet for each choice of the three headers that not every answer has.
static SHEETS: LazyLock<[HeaderMap; 8]> = LazyLock::new(|| std::array::from_fn(sheet));

const LINK_BIT: usize = 1;
const TYPE_BIT: usize = 2;
const ENCODING_BIT: usize = 4;

/// The names in the order in which [`Sheet::into_map`] writes their values, and behind them what is the same in every answer.
fn sheet(bits: usize) -> HeaderMap {
    let blank = HeaderValue::from_static("");
    let chosen = |bit: usize, name: HeaderName| (bits & bit != 0).then_some(name);
    let always =
        [ETAG, CACHE_CONTROL, X_REQUEST_ID, X_REQUESTS_USED, X_REQUESTS_REMAINING, RATELIMIT_POLICY, RATELIMIT];
    let names = always
        .into_iter()
        .chain(chosen(LINK_BIT, LINK))
        .chain(chosen(TYPE_BIT, CONTENT_TYPE))
        .chain(chosen(ENCODING_BIT, CONTENT_ENCODING));
    let mut sheet: HeaderMap = names.map(|name| (name, blank.clone())).collect();
    sheet.insert(VARY, VARY_ENCODING);
    sheet.insert(X_CONTENT_TYPE_OPTIONS, NOSNIFF);
    sheet
}

impl Sheet {
    /// A key without a quota has no header that says what remains of it.
    pub(super) fn into_map(self) -> HeaderMap {
        let Sheet { chosen, cache_control, request_id, link, content_type, usage } = self;
        let Values { used, remaining, policy, limits } = usage.into_values();
        let content_encoding = chosen.content_encoding();
        let bit = |value: &Option<HeaderValue>, bit: usize| if value.is_some() { bit } else { 0 };
        let bits = bit(&link, LINK_BIT) | bit(&content_type, TYPE_BIT) | bit(&content_encoding, ENCODING_BIT);
        let has_quota = remaining.is_some();
        let mut headers = SHEETS[bits].clone();
        let mut places = headers.values_mut();
        // One after the other, in the order of the sheet's names.
        let mut put = |value: HeaderValue| {
            if let Some(place) = places.next() {
                *place = value;
            }
        };
        put(chosen.etag().clone());
        put(cache_control);
        put(request_id.header());
        put(used);
        put(remaining.unwrap_or(HeaderValue::from_static("")));
        put(policy);
        put(limits);
        [link, content_type, content_encoding].into_iter().flatten().for_each(put);
        if !has_quota {
            headers.remove(X_REQUESTS_REMAINING);
        }
        headers
    }

    /// The same, as text.
    pub(super) fn write(&self, head: &mut Head) {
        head.header(b"etag: ", self.chosen.etag().as_bytes());
        head.header(b"cache-control: ", self.cache_control.as_bytes());
        head.header(b"x-request-id: ", self.request_id.as_bytes());
        head.header_with(b"x-requests-used: ", |out| self.usage.write_used(out));
        if let Some(remaining) = self.usage.remaining() {
            head.header_with(b"x-requests-remaining: ", |out| json::integer(remaining, out));
        }
        head.header(b"ratelimit-policy: ", self.usage.policy.as_bytes());
        head.header_with(b"ratelimit: ", |out| self.usage.write_limits(out));
        if let Some(link) = &self.link {
            head.header(b"link: ", link.as_bytes());
        }
        if let Some(content_type) = &self.content_type {
            head.header(b"content-type: ", content_type.as_bytes());
        }
        if let Some(encoding) = self.chosen.content_encoding() {
            head.header(b"content-encoding: ", encoding.as_bytes());
        }
        head.header(b"vary: accept-encoding\r\nx-content-type-options: ", NOSNIFF.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::board::{Body, Encoding};
    use crate::http::request_id::RequestIds;
    use crate::keys::{BurstStanding, QuotaStanding, Standing};

    fn value(text: &'static str) -> HeaderValue {
        HeaderValue::from_static(text)
    }

    fn sheet(link: bool, content_type: bool, encoding: Encoding, limit: Option<u64>) -> Sheet {
        let quota = QuotaStanding { limit, used: 7, reset_s: 60 };
        let burst = BurstStanding { limit: 60, remaining: 59, reset_s: 58 };
        let body = Arc::new(Body::new("{}", None));
        Sheet {
            chosen: Chosen { body, encoding, is_current: !content_type },
            cache_control: value("control"),
            request_id: RequestIds::new().id_of(Some(&value("id"))),
            link: link.then(|| value("link")),
            content_type: content_type.then(|| value("type")),
            usage: Usage::new(
                Standing { burst, day: quota, month: QuotaStanding { limit: None, ..quota } },
                value("policy"),
            ),
        }
    }

    #[test]
    fn every_value_stands_under_its_name_in_either_form() {
        for bits in 0..16 {
            let [link, content_type, is_compressed, has_quota] = [1, 2, 4, 8].map(|bit| bits & bit != 0);
            let encoding = if is_compressed { Encoding::Gzip } else { Encoding::Identity };
            let sheet = sheet(link, content_type, encoding, has_quota.then_some(10));
            let etag = sheet.chosen.etag().clone();
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
            let (mut written, mut from_map) = (Head::default(), Head::default());
            sheet.write(&mut written);
            from_map.headers(&expected);
            assert_eq!(written.bytes(), from_map.bytes(), "{bits}");
            assert_eq!(sheet.into_map(), expected, "{bits}");
        }
    }
}
