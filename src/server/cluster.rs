//! A server as a node of a cluster.

use std::future::Future;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use humantime::format_duration;
use tokio::task::JoinSet;

use super::ServeError;
use crate::cluster::connect::{connect, node_name};
use crate::cluster::engine::ServedEngine;
use crate::cluster::lease::{NodeDetails, SharedSettings, WhenCutOff, hex_digest};
use crate::cluster::member::{Member, MemberOptions, MemberParts};
use crate::cluster::node::Standing;
use crate::config::{ClusterConfig, catalogue};
use crate::model::Membership;
use crate::writer::WriterOptions;

/// How long an engine that does not answer holds up the end of a node.
const LEAVE_WITHIN: Duration = Duration::from_secs(5);

pub(super) type ServedMember = Member<ServedEngine>;

/// To be raised when an entry of the log is written in another form, or comes to another state than before: nodes of the two
/// versions then refuse each other.
const ENTRY_FORMAT: u32 = 1;

/// What must be the same on all nodes: they apply the same entries, and must come to the same state.
pub(super) fn shared_settings(config: &ClusterConfig, options: &WriterOptions, catalogue: &str) -> SharedSettings {
    let WriterOptions { refresh_ms, stale_after_s, retention_s, quota, history } = options;
    let seconds = |seconds: u32| format_duration(Duration::from_secs(seconds.into())).to_string();
    let refresh = Duration::from_millis(u64::try_from(*refresh_ms).unwrap_or_default());
    let digest = hex_digest([catalogue::BUILTIN, catalogue].concat().as_bytes());
    let settings = [
        ("the format of the log", ENTRY_FORMAT.to_string()),
        ("the catalogue", format!("version {digest}")),
        ("cluster.lease", format_duration(config.lease).to_string()),
        ("refresh", format_duration(refresh).to_string()),
        ("stale_after", seconds(*stale_after_s)),
        ("retention", seconds(*retention_s)),
        ("history.keep", seconds(history.keep_s)),
        ("history.keep_sandbox", seconds(history.keep_sandbox_s)),
        ("history.max_bytes", history.bytes_max.to_string()),
        ("history.resume", seconds(history.resume_s)),
        ("ingest.bookmakers_per_day", quota.bookmakers_per_day.to_string()),
        ("ingest.bookmakers", quota.bookmakers.to_string()),
        ("ingest.events_per_day", quota.events_per_day.to_string()),
        ("ingest.events", quota.events.to_string()),
        ("ingest.names_per_day", quota.names_per_day.to_string()),
        ("ingest.names", quota.names.to_string()),
    ];
    settings.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// The node that a file is, if it is to be one.
pub(super) fn member(
    config: Option<&ClusterConfig>,
    membership: Option<Membership>,
    parts: MemberParts,
    data: &Path,
    settings: impl FnOnce(&ClusterConfig) -> SharedSettings,
) -> Result<Option<Arc<ServedMember>>, ServeError> {
    let (config, membership) = match (config, membership) {
        (None, None) => return Ok(None),
        (None, Some(_)) => return Err(ServeError::NoEngine(data.to_owned())),
        (Some(_), None) => return Err(ServeError::NoMember(data.to_owned())),
        (Some(config), Some(membership)) => (config, membership),
    };
    let when_cut_off = if config.serves_when_cut_off { WhenCutOff::Serve } else { WhenCutOff::Refuse };
    let details = NodeDetails {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        // It is known when the server listens.
        address: None,
        when_cut_off,
        started: parts.clock.now().timestamp().unix(),
        settings: settings(config),
    };
    let options = MemberOptions { name: node_name(config)?, lease: config.lease, details };
    let engine = Arc::new(connect(config)?);
    Ok(Some(Member::new(engine, options, membership, parts, random_number()?)))
}

/// Says how the engine is set up in ways that cost data.
pub(super) async fn warn_of_engine(member: &ServedMember) {
    for shortcoming in member.node().engine().shortcomings().await.unwrap_or_default() {
        tracing::warn!("{shortcoming}");
    }
}

/// The last words of a server, when no request can be charged any more. `leases` ends by itself in a node, which gives back what
/// it has not used.
pub(super) async fn leave(member: Option<Arc<ServedMember>>, mut leases: JoinSet<()>) {
    let Some(member) = member else { return };
    let words = async {
        while leases.join_next().await.is_some() {}
        member.leave().await;
    };
    if tokio::time::timeout(LEAVE_WITHIN, words).await.is_err() {
        tracing::warn!("the engine does not answer: what this node has not used of the limits of keys counts as used");
    }
}

/// Waits until `stop` is ready, or until the node must be started again to go on; returns why.
pub(super) async fn must_restart(member: Option<Arc<ServedMember>>, stop: impl Future<Output = ()>) -> Option<String> {
    let is_behind = async {
        match member {
            Some(member) if member.node().ended().await == Standing::Behind => {}
            // A node that goes no further for another reason answers nothing, or goes on with its last prices, and says why.
            _ => std::future::pending().await,
        }
    };
    tokio::select! {
        () = stop => None,
        () = is_behind => Standing::Behind.end(),
    }
}

/// The number of the first entry of this run. Those that follow must not begin again at 0.
fn random_number() -> io::Result<u64> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(u64::from_ne_bytes(bytes) >> 1)
}
