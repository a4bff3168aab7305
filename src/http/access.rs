//! The access log: one event for each request. Never the key, and never the query string, which may hold one.

use std::time::Duration;

use http::Method;

use super::handle::Note;
use crate::keys::KeyId;

/// Every word that a note's `refused` can hold.
pub(super) static REFUSED: [&str; 10] =
    ["missing", "malformed", "unknown", "revoked", "expired", "rotated_out", "burst", "day", "month", GROUP];
/// The key is restricted to other groups of sports.
pub(super) const GROUP: &str = "group";

pub(super) fn log(method: &Method, note: &Note, took: Duration) {
    tracing::info!(
        target: "access",
        method = method.as_str(),
        route = note.route,
        status = note.status.as_u16(),
        bytes = note.bytes,
        micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX),
        key = note.key.as_ref().map_or("-", KeyId::as_str),
        refused = note.refused,
        request_id = note.request_id.as_str(),
    );
}
