//! The headers of an answer with content to a valid key: nearly every answer there is.
//!
//! Their names are always the same few, so they stand ready in a sheet, and an answer is a copy of it with the values
//! written in. That costs a fraction of finding the place of every name anew.

use std::sync::LazyLock;

use http::header::{CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, ETAG, LINK, VARY, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderMap, HeaderName, HeaderValue};

use super::reply::{NOSNIFF, VARY_ENCODING};
use super::request_id::X_REQUEST_ID;
use super::usage::{RATELIMIT, RATELIMIT_POLICY, Usage, X_REQUESTS_REMAINING, X_REQUESTS_USED};

/// What an answer says of itself.
#[derive(Debug)]
pub(super) struct Values {
    pub etag: HeaderValue,
    pub cache_control: HeaderValue,
    pub request_id: HeaderValue,
    pub link: Option<HeaderValue>,
    /// Of an answer that has a body.
    pub content_type: Option<HeaderValue>,
    /// Of a body that is compressed.
    pub content_encoding: Option<HeaderValue>,
}

/// One sheet for each choice of the three headers that not every answer has.
static SHEETS: LazyLock<[HeaderMap; 8]> = LazyLock::new(|| std::array::from_fn(sheet));

const LINK_BIT: usize = 1;
const TYPE_BIT: usize = 2;
const ENCODING_BIT: usize = 4;

/// The names in the order in which [`filled`] writes their values, and behind them what is the same in every answer.
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

/// A sheet with its values. A key without a quota has no header that says what remains of it.
pub(super) fn filled(values: Values, usage: Usage) -> HeaderMap {
    let Values { etag, cache_control, request_id, link, content_type, content_encoding } = values;
    let Usage { used, remaining, policy, limits } = usage;
    let bit = |value: &Option<HeaderValue>, bit: usize| if value.is_some() { bit } else { 0 };
    let bits = bit(&link, LINK_BIT) | bit(&content_type, TYPE_BIT) | bit(&content_encoding, ENCODING_BIT);
    let has_quota = remaining.is_some();
    let mut headers = SHEETS[bits].clone();
    let always = [Some(etag), Some(cache_control), Some(request_id), Some(used), remaining, Some(policy), Some(limits)];
    let chosen = [link, content_type, content_encoding].into_iter().flatten().map(Some);
    for (place, value) in headers.values_mut().zip(always.into_iter().chain(chosen)) {
        if let Some(value) = value {
            *place = value;
        }
    }
    if !has_quota {
        headers.remove(X_REQUESTS_REMAINING);
    }
    headers
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &'static str) -> HeaderValue {
        HeaderValue::from_static(text)
    }

    #[test]
    fn every_value_stands_under_its_name() {
        for bits in 0..16 {
            let given = |bit: usize, text: &'static str| (bits & bit != 0).then(|| value(text));
            let (link, content_type) = (given(LINK_BIT, "link"), given(TYPE_BIT, "type"));
            let (content_encoding, remaining) = (given(ENCODING_BIT, "encoding"), given(8, "remaining"));
            let usage = Usage {
                used: value("used"),
                remaining: remaining.clone(),
                policy: value("policy"),
                limits: value("limits"),
            };
            let values = Values {
                etag: value("etag"),
                cache_control: value("control"),
                request_id: value("id"),
                link: link.clone(),
                content_type: content_type.clone(),
                content_encoding: content_encoding.clone(),
            };
            let headers = filled(values, usage);
            let expected = [
                (ETAG, Some(value("etag"))),
                (CACHE_CONTROL, Some(value("control"))),
                (X_REQUEST_ID, Some(value("id"))),
                (X_REQUESTS_USED, Some(value("used"))),
                (X_REQUESTS_REMAINING, remaining),
                (RATELIMIT_POLICY, Some(value("policy"))),
                (RATELIMIT, Some(value("limits"))),
                (LINK, link),
                (CONTENT_TYPE, content_type),
                (CONTENT_ENCODING, content_encoding),
                (VARY, Some(VARY_ENCODING)),
                (X_CONTENT_TYPE_OPTIONS, Some(NOSNIFF)),
            ];
            assert_eq!(headers.len(), expected.iter().filter(|(_, value)| value.is_some()).count());
            for (name, value) in expected {
                assert_eq!(headers.get(&name), value.as_ref(), "{name} of {bits}");
            }
        }
    }
}
