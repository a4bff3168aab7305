//! The headers with what is left of a key's limits: two short ones of our own, and the two fields of
//! draft-ietf-httpapi-ratelimit-headers that name every limit of the key.
//!
//! Every response to a valid key has them. Each value is copied out of one buffer: that costs less than reference counts
//! on a shared one.

use http::{HeaderMap, HeaderName, HeaderValue};

use crate::board::render::json;
use crate::keys::{Grant, QuotaStanding, Standing};
use crate::model::Timestamp;

pub(crate) const X_REQUESTS_REMAINING: HeaderName = HeaderName::from_static("x-requests-remaining");
pub(crate) const X_REQUESTS_USED: HeaderName = HeaderName::from_static("x-requests-used");
const X_REQUESTS_LAST: HeaderName = HeaderName::from_static("x-requests-last");
pub(crate) const RATELIMIT_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
pub(crate) const RATELIMIT: HeaderName = HeaderName::from_static("ratelimit");

const MINUTE_S: u32 = 60;
const DAY_S: u32 = 86_400;

/// Room for any of the values of a key with every limit.
const TEXT_BYTES: usize = 256;

/// What those headers say.
#[derive(Debug)]
pub(crate) struct UsageHeaders {
    standing: Standing,
    pub policy: HeaderValue,
}

impl UsageHeaders {
    /// Of the key that holds a grant.
    pub(crate) fn of(standing: Standing, grant: Grant<'_>, now: Timestamp) -> Self {
        UsageHeaders::new(standing, grant.policy(|| value(&mut Vec::new(), |out| write_policy(&standing, now, out))))
    }

    /// With the limits themselves as a header has them.
    pub(crate) fn new(standing: Standing, policy: HeaderValue) -> Self {
        UsageHeaders { standing, policy }
    }

    /// `"burst";r=59;t=58, "day";r=9999;t=3600`
    fn write_limits(&self, out: &mut Vec<u8>) {
        let Standing { burst, day, month } = self.standing;
        out.extend_from_slice(b"\"burst\"");
        write_field(b";r=", burst.remaining, out);
        write_field(b";t=", burst.reset_s, out);
        write_quota(b", \"day\"", day, out);
        write_quota(b", \"month\"", month, out);
    }

    /// The values in the order in which an answer has them.
    pub(super) fn into_values(self) -> Values {
        let mut text = Vec::with_capacity(TEXT_BYTES);
        Values {
            used: self.standing.quota().used.into(),
            remaining: self.standing.quota().remaining().map(HeaderValue::from),
            limits: value(&mut text, |out| self.write_limits(out)),
            policy: self.policy,
        }
    }

    pub(crate) fn insert_into(self, headers: &mut HeaderMap) {
        let Values { used, remaining, policy, limits } = self.into_values();
        headers.insert(X_REQUESTS_USED, used);
        if let Some(remaining) = remaining {
            headers.insert(X_REQUESTS_REMAINING, remaining);
        }
        headers.insert(RATELIMIT_POLICY, policy);
        headers.insert(RATELIMIT, limits);
    }
}

/// The same as the values of headers.
#[derive(Debug)]
pub(crate) struct Values {
    pub used: HeaderValue,
    /// Of a key that has a quota.
    pub remaining: Option<HeaderValue>,
    pub policy: HeaderValue,
    pub limits: HeaderValue,
}

/// What a request took of the quota: nearly every one costs one or nothing.
pub(crate) fn insert_cost(headers: &mut HeaderMap, units: u64) {
    headers.insert(X_REQUESTS_LAST, units.into());
}

/// What is written, as a value: digits, letters and punctuation always are one.
fn value(text: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) -> HeaderValue {
    text.clear();
    write(text);
    HeaderValue::from_bytes(text).unwrap_or(HeaderValue::from_static(""))
}

/// `"burst";q=60;w=60, "day";q=10000;w=86400`
fn write_policy(standing: &Standing, now: Timestamp, out: &mut Vec<u8>) {
    out.extend_from_slice(b"\"burst\"");
    write_field(b";q=", standing.burst.limit, out);
    write_field(b";w=", MINUTE_S, out);
    if let Some(limit) = standing.day.limit {
        out.extend_from_slice(b", \"day\"");
        write_field(b";q=", limit, out);
        write_field(b";w=", DAY_S, out);
    }
    if let Some(limit) = standing.month.limit {
        out.extend_from_slice(b", \"month\"");
        write_field(b";q=", limit, out);
        write_field(b";w=", month_s(now), out);
    }
}

fn write_quota(name: &[u8], quota: QuotaStanding, out: &mut Vec<u8>) {
    if let Some(remaining) = quota.remaining() {
        out.extend_from_slice(name);
        write_field(b";r=", remaining, out);
        write_field(b";t=", quota.reset_s, out);
    }
}

fn write_field(name: &[u8], value: impl itoa::Integer, out: &mut Vec<u8>) {
    out.extend_from_slice(name);
    json::integer(value, out);
}

/// How long the month is that a moment falls in.
fn month_s(now: Timestamp) -> u32 {
    let date = jiff::Timestamp::from_second(now.unix().into()).map(|at| jiff::tz::Offset::UTC.to_datetime(at).date());
    DAY_S * date.map_or(30, |date| u32::from(date.days_in_month().unsigned_abs()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::BurstStanding;

    fn headers(day: Option<u64>, month: Option<u64>) -> Vec<(String, String)> {
        let burst = BurstStanding { limit: 60, remaining: 59, reset_s: 58 };
        let day = QuotaStanding { limit: day, used: 7, reset_s: 3600 };
        let month = QuotaStanding { limit: month, used: 70, reset_s: 7200 };
        let mut headers = HeaderMap::new();
        // In November.
        let (standing, now) = (Standing { burst, day, month }, Timestamp::from_unix(1_794_699_540));
        let policy = value(&mut Vec::new(), |out| write_policy(&standing, now, out));
        UsageHeaders::new(standing, policy).insert_into(&mut headers);
        let text = |(name, value): (&HeaderName, &HeaderValue)| (name.to_string(), value.to_str().unwrap().to_owned());
        headers.iter().map(text).collect()
    }

    fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
        expected.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn the_day_comes_first_and_every_limit_is_named() {
        let day = pairs(&[
            ("x-requests-used", "7"),
            ("x-requests-remaining", "9993"),
            ("ratelimit-policy", r#""burst";q=60;w=60, "day";q=10000;w=86400"#),
            ("ratelimit", r#""burst";r=59;t=58, "day";r=9993;t=3600"#),
        ]);
        assert_eq!(headers(Some(10_000), None), day);
        let month = pairs(&[
            ("x-requests-used", "70"),
            ("x-requests-remaining", "30"),
            ("ratelimit-policy", r#""burst";q=60;w=60, "month";q=100;w=2592000"#),
            ("ratelimit", r#""burst";r=59;t=58, "month";r=30;t=7200"#),
        ]);
        assert_eq!(headers(None, Some(100)), month);
        let both = headers(Some(5), Some(100));
        assert_eq!(both[1].1, "0");
        assert_eq!(both[3].1, r#""burst";r=59;t=58, "day";r=0;t=3600, "month";r=30;t=7200"#);
    }
}
