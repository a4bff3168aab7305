//! `oddsbox status` and `oddsbox ready`: the state of the service.

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use indicatif::HumanBytes;

use super::flags::shown_seconds;
use super::invocation::{Invocation, block_on};
use super::output::pairs;
use crate::admin::{Access, AdminAccess, ClusterStatus, Command, ReadyAnswer, ServerAnswer, StatusAnswer, WorldAnswer};

/// How long `ready` waits for the server's answer.
const READY_WITHIN: Duration = Duration::from_secs(5);

/// Show the status that clients see, sizes, uptime, connections and requests
///
/// Safe on a running server: it only reads. Without one it reports on the data file.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  oddsbox status
  oddsbox status --json")]
pub(super) struct StatusArgs {}

impl StatusArgs {
    pub(super) fn run(invocation: &Invocation) -> anyhow::Result<ExitCode> {
        let status: StatusAnswer = invocation.ask(Access::Existing, Command::Status)?;
        invocation.output.answer(&status, |_| shown(&status, invocation))?;
        Ok(ExitCode::SUCCESS)
    }
}

fn shown(status: &StatusAnswer, invocation: &Invocation) -> String {
    let Some(server) = &status.server else {
        let data = invocation.data.path().display();
        return format!("No server runs on {data}; its data file has:\n\n{}", pairs(&file_rows(status)));
    };
    let rows = [("status", status.status.clone())].into_iter().chain(server_rows(server)).chain(file_rows(status));
    pairs(&rows.collect::<Vec<_>>())
}

/// The rows of a server that runs.
fn server_rows(server: &ServerAnswer) -> Vec<(&'static str, String)> {
    let running = format!(
        "{}://{}, up {}, {} connections, {} requests, {:.1} a second",
        server.scheme(),
        server.address,
        shown_seconds(server.uptime_s),
        server.connections,
        server.requests,
        server.requests_per_second
    );
    let cluster = server.cluster.as_ref().map(|cluster| {
        let ClusterStatus { node, standing, leased_nodes } = cluster;
        ("cluster", format!("node {node}, {standing}, {leased_nodes} nodes with a lease"))
    });
    [("server", running)].into_iter().chain(cluster).collect()
}

/// The rows that need no server.
fn file_rows(status: &StatusAnswer) -> Vec<(&'static str, String)> {
    let maintenance = match &status.maintenance {
        None => "off".to_owned(),
        Some(span) => match &span.until {
            Some(until) => format!("since {}, until {until}", span.since),
            None => format!("since {}, until `oddsbox maintenance off`", span.since),
        },
    };
    let keys = &status.keys;
    let writable = if status.writable { "" } else { ", not writable: see the server's log" };
    let is_served = status.server.is_some();
    vec![
        ("maintenance", maintenance),
        ("live", live(&status.worlds.live, is_served)),
        ("sandbox", world(&status.worlds.sandbox, is_served)),
        ("history", history(status)),
        ("keys", format!("{} active, {} revoked, {} expired", keys.active, keys.revoked, keys.expired)),
        ("file", format!("{}{writable}", HumanBytes(status.file_bytes))),
        ("version", status.version.clone()),
    ]
}

/// What the log of changes has of each world.
fn history(status: &StatusAnswer) -> String {
    let of = |name: &str, world: &WorldAnswer| match &world.history_since {
        None => format!("{name} none"),
        Some(since) => {
            let (changes, bytes) = (world.history_changes, HumanBytes(world.history_bytes));
            format!("{name} since {since}, {changes} changes, {bytes}")
        }
    };
    format!("{}; {}", of("live", &status.worlds.live), of("sandbox", &status.worlds.sandbox))
}

/// The live world, marked if it is simulated.
fn live(live: &WorldAnswer, is_served: bool) -> String {
    if live.simulated { format!("simulated, {}", world(live, is_served)) } else { world(live, is_served) }
}

/// A world that is not served has no status.
fn world(world: &WorldAnswer, is_served: bool) -> String {
    let status = if is_served { format!("{}: ", world.status) } else { String::new() };
    format!(
        "{status}{} active sports, {} events, {} records, {} sources ({} stale)",
        world.sports_active, world.events, world.records, world.sources, world.sources_stale
    )
}

/// Succeed if a server answers on this data directory
///
/// Safe on a running server: it only reads. Meant for health checks in images without curl.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  oddsbox ready
  oddsbox ready --data /var/lib/oddsbox --json")]
pub(super) struct ReadyArgs {}

impl ReadyArgs {
    pub(super) fn run(invocation: &Invocation) -> anyhow::Result<ExitCode> {
        let result = block_on(async { Ok(tokio::time::timeout(READY_WITHIN, ask(invocation)).await) })?;
        let ready = result.unwrap_or_else(|_| Err(anyhow::anyhow!("the server does not answer: see its log")));
        let answer = ReadyAnswer { ready: ready.is_ok() };
        if invocation.output.json || answer.ready {
            invocation.output.answer(&answer, |_| "ready\n".to_owned())?;
        }
        ready.map(|()| ExitCode::SUCCESS)
    }
}

async fn ask(invocation: &Invocation) -> anyhow::Result<()> {
    let data = invocation.data.path().display();
    let Some(server) = AdminAccess::server(&invocation.data).await? else {
        anyhow::bail!("no server runs on {data}: start one with `oddsbox serve`");
    };
    let answer: ReadyAnswer = server.ask(Command::Ready).await?;
    if answer.ready {
        Ok(())
    } else {
        anyhow::bail!(
            "the server on {data} is starting or stopping, or its writer does not answer: see its log, or try again"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn node_of_a_cluster_has_one_more_row() {
        let single = ServerAnswer {
            ready: true,
            address: ([127, 0, 0, 1], 8080).into(),
            ingest_address: None,
            tls: false,
            started: "2026-11-14T12:00:00Z".into(),
            uptime_s: 60,
            connections: 1,
            requests: 2,
            requests_per_second: 0.5,
            cluster: None,
        };
        let rows = server_rows(&single);
        assert_eq!(
            rows,
            [("server", "http://127.0.0.1:8080, up 1m, 1 connections, 2 requests, 0.5 a second".to_owned())]
        );
        let cluster = ClusterStatus { node: "a".into(), standing: "cut off".into(), leased_nodes: 3 };
        let rows = server_rows(&ServerAnswer { cluster: Some(cluster), ..single });
        assert_eq!(rows[1..], [("cluster", "node a, cut off, 3 nodes with a lease".to_owned())]);
    }
}
