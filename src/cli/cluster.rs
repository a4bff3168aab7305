//! `oddsbox cluster`: the nodes that serve the same.

use std::process::ExitCode;

use clap::{Args, Subcommand};

use super::invocation::{Invocation, block_on};
use super::output::{Output, or_dash};
use crate::admin::{self, Access, ClusterAnswer, Command, MembershipAnswer, NodeAnswer, Setup};
use crate::cluster::connect::connect;
use crate::cluster::engine::Engine;
use crate::config::{ClusterConfig, Config};
use crate::log::escaped;

/// Show the nodes of the cluster: positions, lag, leases, and who polls and publishes
///
/// Safe on a running server: it only reads. Ask any node.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  oddsbox cluster
  oddsbox cluster --json
  oddsbox cluster init --config oddsbox.toml
  oddsbox cluster remove node-b --config oddsbox.toml")]
pub(super) struct ClusterArgs {
    #[command(subcommand)]
    command: Option<ClusterCommand>,
}

#[derive(Debug, Subcommand)]
enum ClusterCommand {
    Init(InitArgs),
    Leave(LeaveArgs),
    Reseed(ReseedArgs),
    Remove(RemoveArgs),
}

/// Make this data directory the first node of a new cluster
///
/// Refuses while a server runs. Keys, prices, history and the audit log stay; an empty directory gets a new file. Other nodes
/// join by starting `oddsbox serve` with the same cluster.url on an empty directory.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  oddsbox cluster init --config oddsbox.toml
  oddsbox cluster init --replace --config oddsbox.toml")]
struct InitArgs {
    /// Give up the cluster of this name that the engine holds, as after a restore
    #[arg(long)]
    replace: bool,
}

/// Make this data directory a single node again
///
/// Refuses while a server runs. Keys, prices, history and the audit log stay. The other nodes go on without it.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  oddsbox cluster leave --config oddsbox.toml
  oddsbox cluster leave --engine-gone")]
struct LeaveArgs {
    /// Do not tell the other nodes: their engine is gone
    #[arg(long)]
    engine_gone: bool,
}

/// Begin the cluster anew from this data directory, after the engine has lost its data
///
/// Refuses while a server runs, and while the engine still has the log of the cluster. Choose the node with the highest
/// position. The others join again from empty directories: keep theirs until you know that nothing is missing.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  oddsbox cluster reseed --config oddsbox.toml")]
struct ReseedArgs {}

/// Forget a node that will not come back
///
/// Safe on a running server. Commands then no longer name it as one that has not confirmed them. A node that is removed while it runs is back a second later.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  oddsbox cluster remove node-b --config oddsbox.toml")]
struct RemoveArgs {
    /// Name of the node
    node: String,
}

impl ClusterArgs {
    pub(super) fn run(self, invocation: &Invocation) -> anyhow::Result<ExitCode> {
        match self.command {
            None => {
                let answer: ClusterAnswer = invocation.ask(Access::Existing, Command::Cluster)?;
                invocation.output.answer(&answer, |output| shown(output, &answer))?;
            }
            Some(ClusterCommand::Init(InitArgs { replace })) => {
                let (config, cluster) = settings(invocation)?;
                let setup = Setup::of(&config)?;
                let init = async { Ok(admin::init_cluster(&invocation.data, setup, &cluster, replace).await?) };
                followed(invocation, &block_on(init)?)?;
            }
            Some(ClusterCommand::Reseed(ReseedArgs {})) => {
                let (config, cluster) = settings(invocation)?;
                let setup = Setup::of(&config)?;
                let reseed = async { Ok(admin::reseed_cluster(&invocation.data, setup, &cluster).await?) };
                followed(invocation, &block_on(reseed)?)?;
            }
            Some(ClusterCommand::Leave(leave)) => leave.run(invocation)?,
            Some(ClusterCommand::Remove(RemoveArgs { node })) => remove(invocation, &node)?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl LeaveArgs {
    fn run(self, invocation: &Invocation) -> anyhow::Result<()> {
        let config = invocation.settings()?.read()?;
        if config.cluster.is_none() && !self.engine_gone {
            anyhow::bail!("cluster.url is not set: set it, or use --engine-gone if the engine will not come back");
        }
        let (setup, cluster) = (Setup::of(&config)?, config.cluster.filter(|_| !self.engine_gone));
        let leave = async { Ok(admin::leave_cluster(&invocation.data, setup, cluster.as_ref()).await?) };
        let answer = block_on(leave)?;
        invocation.output.answer(&answer, |_| format!("{} is a single node.\n", answer.data.display()))
    }
}

/// Fails if nodes may still go by what was before a change of a key or a token.
pub(super) fn confirmed(unconfirmed: &[String]) -> anyhow::Result<()> {
    if unconfirmed.is_empty() {
        return Ok(());
    }
    anyhow::bail!(
        "changed, but not confirmed by {}: cut off from the engine of the cluster, it may go by what was before until it is \
         back; stop it, or run the command again when `oddsbox cluster` shows it with a lease",
        unconfirmed.join(", ")
    )
}

fn settings(invocation: &Invocation) -> anyhow::Result<(Config, ClusterConfig)> {
    let config = invocation.settings()?.read()?;
    let Some(cluster) = config.cluster.clone() else {
        anyhow::bail!(
            "cluster.url is not set: name the Redis or Valkey server of the cluster, such as redis://10.0.0.5:6379"
        );
    };
    Ok((config, cluster))
}

fn followed(invocation: &Invocation, answer: &MembershipAnswer) -> anyhow::Result<()> {
    invocation.output.answer(answer, |_| {
        let (node, cluster) = (or_dash(answer.node.as_ref()), or_dash(answer.cluster.as_ref()));
        format!("{} is node {node} of cluster {cluster}. Start it with `oddsbox serve`.\n", answer.data.display())
    })
}

fn remove(invocation: &Invocation, node: &str) -> anyhow::Result<()> {
    let (_, cluster) = settings(invocation)?;
    let is_removed = block_on(async { Ok(connect(&cluster)?.end_lease(node, true).await?) })?;
    if !is_removed {
        anyhow::bail!("the cluster has no node {node:?}: `oddsbox cluster` lists them");
    }
    invocation.output.answer(&serde_json::json!({ "removed": node }), |_| format!("Removed {node}.\n"))
}

fn shown(output: Output, answer: &ClusterAnswer) -> String {
    let contact = answer.contact_ms.map_or("never".to_owned(), |ms| format!("{} ago", seconds(ms)));
    // The engine may have worded it.
    let detail = answer.detail.as_ref().map(|detail| format!(" ({})", escaped(detail))).unwrap_or_default();
    let head = format!(
        "This is {}: {}{detail}, at {}; last contact with the engine {contact}.\n\n",
        answer.node, answer.standing, answer.position
    );
    let header = ["NODE", "LEASE", "POSITION", "BEHIND", "POLLS", "CUT OFF", "VERSION", "ADDRESS"];
    let rows: Vec<Vec<String>> = answer.nodes.iter().map(row).collect();
    head + &output.table(&header, &rows)
}

fn row(node: &NodeAnswer) -> Vec<String> {
    vec![
        node.name.clone(),
        if node.lease_ms == 0 { "ended".to_owned() } else { seconds(node.lease_ms) },
        node.position.clone(),
        if node.behind_ms == 0 { "-".to_owned() } else { seconds(node.behind_ms) },
        if node.on_duty { "yes" } else { "-" }.to_owned(),
        if node.serves_when_cut_off { "serves" } else { "refuses" }.to_owned(),
        or_dash(node.version.as_ref()),
        or_dash(node.address.as_ref()),
    ]
}

fn seconds(ms: u64) -> String {
    format!("{}.{} s", ms / 1000, ms % 1000 / 100)
}
