//! The access log: one line for each request that was charged to a key, and for as many others as the limiter admits.
//! Never the key, and never the query string, which may hold one.
//!
//! What a key may ask is bounded by its limits. Requests that are charged to nobody are bounded by nothing else, so
//! their lines are limited by [`LineKind`]; those of strangers apart from those of a key, which a flood of strangers
//! must not hide.

use std::time::Duration;

use http::Request;
use tracing::Level;

use super::client_address::Peer;
use super::handle::Note;
use crate::keys::KeyId;
use crate::log::{self, LineKind};

/// Every word that a note's `refused` can hold: six for a key that is not valid, then those of a valid one.
pub(super) static REFUSED: [&str; 10] =
    ["missing", "malformed", "unknown", "revoked", "expired", "rotated_out", "burst", "day", "month", GROUP];
const INVALID_KEY: usize = 6;
/// The key is restricted to other groups of sports.
pub(super) const GROUP: &str = "group";

/// Writes the line of a request, unless too many like it came in this second.
pub(super) fn log<B>(request: &Request<B>, peer: &Peer, note: &Note, took: Duration) {
    if !tracing::enabled!(target: "access", Level::INFO) {
        return;
    }
    let Some(suppressed) = kind(note).map_or(Some(0), log::admit) else { return };
    let client = peer.client(request.headers());
    tracing::info!(
        target: "access",
        method = request.method().as_str(),
        route = note.route,
        status = note.status.as_u16(),
        bytes = note.bytes,
        micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX),
        key = note.key.as_ref().map_or("-", KeyId::as_str),
        client = %client,
        peer = (client != peer.address()).then(|| tracing::field::display(peer.address())),
        refused = note.refused,
        request_id = note.request_id.as_str(),
        suppressed = (suppressed > 0).then_some(suppressed),
    );
}

/// The limit that a line is under; none for a request that was charged to a key.
fn kind(note: &Note) -> Option<LineKind> {
    let has_invalid_key = note.refused.is_some_and(|reason| REFUSED[..INVALID_KEY].contains(&reason));
    if note.key.is_none() || has_invalid_key {
        Some(LineKind::Unauthenticated)
    } else if note.refused.is_some() || note.status.is_server_error() {
        Some(LineKind::Refused)
    } else {
        None
    }
}
