//! The state of the service: what its clients see, and what only its operator needs to know.

use super::super::context::{Context, ServerFacts};
use super::super::protocol::{
    Answer, ClusterStatus, CountsAnswer, Failure, KeyCounts, ServerAnswer, StatusAnswer, WorldAnswer,
};
use super::{keys, span};
use crate::clock::Moment;
use crate::cluster::member::ClusterStanding;
use crate::model::{Timestamp, World};

const OK: &str = "ok";
const DEGRADED: &str = "degraded";
const MAINTENANCE: &str = "maintenance";

pub(super) async fn status(context: &Context) -> Result<Answer, Failure> {
    let file_bytes = context.writer.file_bytes().await?;
    let now = context.clock.now();
    let condition = context.boards.condition();
    let worlds = CountsAnswer {
        sandbox: world(World::Sandbox, context, now.timestamp()),
        live: world(World::Live, context, now.timestamp()),
    };
    Ok(Answer::Status(Box::new(StatusAnswer {
        status: worse(&worlds.sandbox.status, &worlds.live.status).to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        time: now.timestamp().to_string(),
        server: context.server.as_deref().map(|facts| server(facts, now)),
        maintenance: condition.maintenance(now.timestamp()).map(span),
        writable: !condition.is_unwritable(),
        file_bytes,
        keys: key_counts(context, now.timestamp()),
        worlds,
    })))
}

fn worse<'a>(one: &'a str, other: &'a str) -> &'a str {
    let rank = |status: &str| [OK, DEGRADED, MAINTENANCE].iter().position(|known| *known == status);
    if rank(one) >= rank(other) { one } else { other }
}

fn world(world: World, context: &Context, now: Timestamp) -> WorldAnswer {
    let condition = context.boards.condition();
    let board = context.boards.load_full(world);
    let sources = || board.sports().iter().flat_map(|sport| sport.sources().iter());
    let sources_stale = sources().filter(|source| source.is_stale(now)).count();
    let status = if condition.maintenance(now).is_some() {
        MAINTENANCE
    } else if condition.is_unwritable() || sources_stale > 0 || !condition.may_serve(|| context.clock.mono_ms()) {
        DEGRADED
    } else {
        OK
    };
    let writing = context.writer.writing();
    let log = &writing.logs[world.index()];
    WorldAnswer {
        status: status.to_owned(),
        simulated: condition.is_simulated(world),
        sports_active: board.sports().iter().filter(|sport| sport.is_active(now)).count(),
        events: board.sports().iter().map(crate::board::SportBoard::open_event_count).sum(),
        records: board.record_count(),
        sources: sources().count(),
        sources_stale,
        history_since: condition.history_since(world).map(|since| since.to_string()),
        history_changes: log.changes(),
        history_bytes: log.bytes(),
    }
}

fn server(facts: &dyn ServerFacts, now: Moment) -> ServerAnswer {
    let started = facts.started();
    ServerAnswer {
        ready: facts.is_ready(),
        address: facts.address(),
        ingest_address: facts.ingest_address(),
        tls: facts.is_tls(),
        started: started.timestamp().to_string(),
        uptime_s: now.mono_ms.saturating_sub(started.mono_ms) / 1000,
        connections: facts.connections(),
        requests: facts.requests(),
        requests_per_second: facts.requests_per_second(),
        cluster: facts.cluster().map(cluster),
    }
}

fn cluster(standing: ClusterStanding) -> ClusterStatus {
    ClusterStatus {
        standing: standing.name().to_owned(),
        leased_nodes: standing.leased_nodes(),
        node: standing.node.into(),
    }
}

pub(in crate::admin) fn key_counts(context: &Context, now: Timestamp) -> KeyCounts {
    let mut counts = KeyCounts::default();
    for key in context.keyring.list() {
        match keys::standing_of(key.record(), now) {
            "revoked" => counts.revoked += 1,
            "expired" => counts.expired += 1,
            _ => counts.active += 1,
        }
    }
    counts
}
