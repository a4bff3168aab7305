//! API Status: `/v1/status`. Speaks of the key's own world, and answers during maintenance too.

use crate::board::Boards;
use crate::board::render::json;
use crate::http::exchange::error::ApiError;
use crate::http::exchange::query::Params;
use crate::http::exchange::reply::Content;
use crate::keys::{Grant, Limits};
use crate::model::{Timestamp, World};

pub(crate) const API_VERSION: &str = "v1";

pub(crate) fn get(boards: &Boards, grant: Grant<'_>, now: Timestamp, query: Option<&str>) -> Result<Content, ApiError> {
    Params::read(query, &[])?;
    let board = boards.load(grant.world());
    let status = if boards.condition().maintenance(now).is_some() {
        "maintenance"
    } else if boards.condition().is_unwritable() || board.sports().iter().any(|sport| sport.has_stale_source(now)) {
        "degraded"
    } else {
        "ok"
    };
    let active = board.sports().iter().filter(|sport| sport.is_active(now)).count();
    // The sandbox is always simulated.
    let simulated = grant.world() == World::Live && boards.condition().is_simulated(World::Live);
    let history_since = boards.condition().history_since(grant.world());
    Ok(Content::once(render(status, now, grant.record().limits, active, (simulated, history_since))))
}

fn render(
    status: &str,
    now: Timestamp,
    limits: Limits,
    sports_active: usize,
    (simulated, history_since): (bool, Option<Timestamp>),
) -> Vec<u8> {
    let mut out = Vec::with_capacity(192);
    out.extend_from_slice(b"{\"status\":");
    json::string(status, &mut out);
    out.extend_from_slice(b",\"api_version\":");
    json::string(API_VERSION, &mut out);
    out.extend_from_slice(b",\"server_time\":\"");
    now.write(&mut out);
    out.extend_from_slice(b"\",\"rate_limit\":{\"burst_per_minute\":");
    json::integer(limits.burst_per_minute, &mut out);
    out.extend_from_slice(b",\"requests_per_day\":");
    // For a key with a monthly quota only, that is the limit that applies.
    json::integer(limits.per_day.or(limits.per_month).unwrap_or(0), &mut out);
    out.extend_from_slice(b"},\"sports_active\":");
    json::integer(sports_active, &mut out);
    out.extend_from_slice(b",\"history_since\":");
    match history_since {
        Some(since) => {
            out.push(b'"');
            since.write(&mut out);
            out.push(b'"');
        }
        None => out.extend_from_slice(b"null"),
    }
    if simulated {
        out.extend_from_slice(b",\"simulated\":true");
    }
    out.push(b'}');
    out
}
