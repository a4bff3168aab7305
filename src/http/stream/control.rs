//! Events about a stream itself.

use bytes::Bytes;

use super::context::StreamContext;
use super::request::{StreamPlan, Unmatched};
use crate::board::control_frame;
use crate::board::render::json;
use crate::model::Position;

/// Clients of a service that stops come back within this time, not all at once.
const RETURN_WITHIN_MS: u64 = 10_000;

/// Why a stream ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EndReason {
    Revoked,
    Expired,
    Limit,
    Forbidden,
    Shutdown,
    Maintenance { retry_after_s: u32 },
}

impl EndReason {
    const fn key(self) -> &'static str {
        match self {
            EndReason::Revoked => "revoked",
            EndReason::Expired => "expired",
            EndReason::Limit => "limit",
            EndReason::Forbidden => "forbidden",
            EndReason::Shutdown => "shutdown",
            EndReason::Maintenance { .. } => "maintenance",
        }
    }

    /// When to come back, if that can help. `spread` differs from stream to stream.
    fn retry_after_ms(self, spread: usize) -> Option<u64> {
        match self {
            EndReason::Shutdown => {
                let spread = xxhash_rust::xxh3::xxh3_64(&spread.to_le_bytes());
                Some(1000 + spread % (RETURN_WITHIN_MS - 1000))
            }
            EndReason::Maintenance { retry_after_s } => Some(u64::from(retry_after_s.max(1)) * 1000),
            _ => None,
        }
    }
}

/// The first event: where the service is, and which filters are in force.
pub(super) fn hello(
    plan: &StreamPlan,
    context: &StreamContext,
    position: Position,
    resumed: Option<Position>,
) -> Bytes {
    let Unmatched { bookmakers, competitions } = &plan.unmatched;
    control_frame("hello", resumed, |out| {
        out.extend_from_slice(b"{\"position\":");
        json::string(&position.to_string(), out);
        out.extend_from_slice(b",\"refresh_s\":");
        json::integer(context.settings.refresh_ms.div_euclid(1000), out);
        out.extend_from_slice(b",\"filters\":");
        plan.filter.spec.write(context.boards.catalogue(), out);
        out.extend_from_slice(b",\"unmatched\":{\"bookmakers\":");
        json::array(bookmakers, out, |key, out| json::string(key, out));
        out.extend_from_slice(b",\"competitions\":");
        json::array(competitions, out, |key, out| json::string(key, out));
        out.extend_from_slice(b"}}");
    })
}

/// From here on come changes.
pub(super) fn ready(position: Position) -> Bytes {
    control_frame("ready", Some(position), |out| {
        out.extend_from_slice(b"{\"position\":");
        json::string(&position.to_string(), out);
        out.push(b'}');
    })
}

/// The client has to begin anew.
pub(super) fn reset(why: &str, resumes_at: Option<Position>) -> Bytes {
    control_frame("reset", resumes_at, |out| {
        out.extend_from_slice(b"{\"why\":");
        json::string(why, out);
        out.push(b'}');
    })
}

/// The last event, after the line that tells a browser when to come back.
pub(super) fn bye(reason: EndReason, spread: usize) -> Bytes {
    let retry_after_ms = reason.retry_after_ms(spread);
    let event = control_frame("bye", None, |out| {
        out.extend_from_slice(b"{\"why\":");
        json::string(reason.key(), out);
        out.extend_from_slice(b",\"retry_after_s\":");
        match retry_after_ms {
            Some(ms) => json::integer(ms.div_ceil(1000), out),
            None => out.extend_from_slice(b"null"),
        }
        out.push(b'}');
    });
    match retry_after_ms {
        Some(ms) => [format!("retry: {ms}\n").as_bytes(), &event].concat().into(),
        None => event,
    }
}
