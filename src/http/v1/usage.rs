//! Usage: `/v1/usage`. What the key may use, what it has used, by hour for a day and by day for a month. It counts for the
//! minute only, and answers during maintenance too.

use crate::board::render::json;
use crate::clock::Moment;
use crate::http::exchange::error::ApiError;
use crate::http::exchange::query::Params;
use crate::http::exchange::reply::Content;
use crate::keys::{BurstStanding, Grant, KeyRecord, QuotaStanding};
use crate::model::Timestamp;

pub(crate) fn get(grant: Grant<'_>, now: Moment, query: Option<&str>) -> Result<Content, ApiError> {
    Params::read(query, &[])?;
    let mut out = Vec::with_capacity(3 << 10);
    let (record, meter) = (grant.record(), grant.meter());
    write_key(record, &mut out);
    let standing = meter.standing(now);
    out.extend_from_slice(b",\"minute\":");
    write_minute(standing.burst, &mut out);
    out.extend_from_slice(b",\"day\":");
    write_quota(standing.day, &mut out);
    out.extend_from_slice(b",\"month\":");
    write_quota(standing.month, &mut out);
    out.extend_from_slice(b",\"streams\":{\"limit\":");
    json::integer(record.limits.streams, &mut out);
    out.extend_from_slice(b",\"open\":");
    json::integer(meter.streams().count(), &mut out);
    let recent = meter.recent_use(now.timestamp());
    out.extend_from_slice(b"},\"hours\":");
    json::array(recent.by_hour(now.timestamp()), &mut out, |(start, requests), out| {
        write_used("start", start, TIME_LEN, requests, out);
    });
    out.extend_from_slice(b",\"days\":");
    json::array(recent.by_day(now.timestamp()), &mut out, |(date, requests), out| {
        write_used("date", date, DATE_LEN, requests, out);
    });
    out.push(b'}');
    Ok(Content::once(out))
}

/// How much of `2026-11-16T21:00:00Z` is written.
const TIME_LEN: usize = 20;
const DATE_LEN: usize = 10;

fn write_key(record: &KeyRecord, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"key_id\":");
    json::string(record.id.as_str(), out);
    out.extend_from_slice(b",\"kind\":");
    json::string(record.kind.name(), out);
    out.extend_from_slice(b",\"groups\":");
    json::array(record.groups.iter(), out, |group, out| json::string(group, out));
    out.extend_from_slice(b",\"expires_at\":");
    match record.expires {
        Some(expires) => write_time(expires, TIME_LEN, out),
        None => out.extend_from_slice(b"null"),
    }
    let self_service: &[u8] = if record.self_service { b"true" } else { b"false" };
    out.extend_from_slice(b",\"self_service\":");
    out.extend_from_slice(self_service);
}

fn write_minute(standing: BurstStanding, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"limit\":");
    json::integer(standing.limit, out);
    out.extend_from_slice(b",\"remaining\":");
    json::integer(standing.remaining, out);
    out.extend_from_slice(b",\"reset_s\":");
    json::integer(standing.reset_s, out);
    out.push(b'}');
}

/// Limit and rest are `null` if the quota is unlimited.
fn write_quota(standing: QuotaStanding, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"limit\":");
    json::optional_integer(standing.limit, out);
    out.extend_from_slice(b",\"used\":");
    json::integer(standing.used, out);
    out.extend_from_slice(b",\"remaining\":");
    json::optional_integer(standing.remaining(), out);
    out.extend_from_slice(b",\"reset_s\":");
    json::integer(standing.reset_s, out);
    out.push(b'}');
}

fn write_used(name: &str, start: Timestamp, len: usize, requests: u32, out: &mut Vec<u8>) {
    out.push(b'{');
    json::string(name, out);
    out.push(b':');
    write_time(start, len, out);
    out.extend_from_slice(b",\"requests\":");
    json::integer(requests, out);
    out.push(b'}');
}

fn write_time(time: Timestamp, len: usize, out: &mut Vec<u8>) {
    out.push(b'"');
    let from = out.len();
    time.write(out);
    out.truncate(from + len);
    out.push(b'"');
}
