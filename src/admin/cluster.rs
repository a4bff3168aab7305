//! Making a file that of a node of a cluster, or of a single node again, while no server runs on it.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::access::{AdminAccess, AdminError};
use super::data_dir::DataDir;
use super::local::{LocalError, Setup};
use super::who::own_name;
use crate::cluster::connect::{ConnectError, connect, node_name};
use crate::cluster::engine::{Engine, EngineError, LogIdentity, ServedEngine};
use crate::config::ClusterConfig;
use crate::model::{EntryId, Membership};
use crate::store::Store;
use crate::writer::{WriteError, Writer};

/// Why a file was left as it is.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    #[error("a server runs on {}: stop it first", .0.display())]
    ServerRuns(PathBuf),
    #[error("there is no data in {}: name its directory with --data", .0.display())]
    NoData(PathBuf),
    #[error("nodes of a cluster of this name have leases: stop them first")]
    NodesRun,
    #[error("{} belongs to a cluster already", .0.display())]
    Member(PathBuf),
    #[error("{} does not belong to a cluster", .0.display())]
    NoMember(PathBuf),
    #[error("the live world in {} is simulated: delete it with `oddsbox demo clear`", .0.display())]
    Simulated(PathBuf),
    #[error(
        "the engine holds a cluster of this name already: to join it, start `oddsbox serve` on an empty directory; to begin \
         another one, set another cluster.name, or give that one up with --replace"
    )]
    Exists,
    #[error("the engine still has the log of this cluster, so there is nothing to begin anew: start the nodes")]
    NotLost,
    #[error(transparent)]
    Connect(#[from] ConnectError),
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error(transparent)]
    Open(#[from] LocalError),
    #[error(transparent)]
    Write(#[from] WriteError),
    #[error(transparent)]
    System(#[from] io::Error),
    #[error(transparent)]
    AdminAccess(#[from] AdminError),
}

/// What a file belongs to now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MembershipAnswer {
    pub data: PathBuf,
    /// `None` for a single node.
    pub cluster: Option<String>,
    pub node: Option<String>,
    pub epoch: Option<u64>,
}

/// A file that no server has.
struct OfflineFile {
    data: DataDir,
    writer: Writer,
    who: String,
}

impl OfflineFile {
    async fn open(data: &DataDir, setup: Setup) -> Result<OfflineFile, ClusterError> {
        if !data.file().exists() {
            return Err(ClusterError::NoData(data.path().to_owned()));
        }
        Self::open_or_create(data, setup).await
    }

    async fn open_or_create(data: &DataDir, setup: Setup) -> Result<OfflineFile, ClusterError> {
        if AdminAccess::server(data).await?.is_some() {
            return Err(ClusterError::ServerRuns(data.path().to_owned()));
        }
        let (data, who) = (data.clone(), own_name()?);
        tokio::task::spawn_blocking(move || Self::open_now(data, setup, who)).await.map_err(io::Error::other)?
    }

    fn open_now(data: DataDir, mut setup: Setup, who: String) -> Result<OfflineFile, ClusterError> {
        setup.store.wait_for_lock = Duration::ZERO;
        let Setup { catalogue, store, writer, clock, .. } = setup.for_file(&data.file())?;
        let store = Store::open(&data.file(), Arc::clone(&catalogue), store).map_err(LocalError::from)?;
        let opened = Writer::open(store, catalogue, clock, writer).map_err(LocalError::from)?;
        Ok(OfflineFile { data, writer: opened.writer, who })
    }

    fn path(&self) -> PathBuf {
        self.data.path().to_owned()
    }

    /// Makes it the file of a node at the beginning of a log.
    fn follow(mut self, membership: Membership, action: &str, config: &ClusterConfig) -> Result<(), ClusterError> {
        // A file of a cluster takes no change of its own: it is that of a single node in between.
        self.writer.set_membership(None)?;
        self.writer.audit(
            &self.who,
            action,
            "service",
            format!("cluster {}, epoch {}", config.name, membership.epoch),
        )?;
        self.writer.flush()?;
        Ok(self.writer.set_membership(Some(membership))?)
    }
}

fn answer(data: &DataDir, config: &ClusterConfig, epoch: u64) -> Result<MembershipAnswer, ClusterError> {
    let (cluster, node) = (Some(config.name.to_string()), Some(node_name(config)?.to_string()));
    Ok(MembershipAnswer { data: data.path().to_owned(), cluster, node, epoch: Some(epoch) })
}

pub(super) fn random() -> io::Result<u64> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(u64::from_ne_bytes(bytes))
}

/// Makes a file that of the first node of a new cluster.
pub async fn init_cluster(
    data: &DataDir,
    setup: Setup,
    config: &ClusterConfig,
    is_replacing: bool,
) -> Result<MembershipAnswer, ClusterError> {
    let engine = connect(config)?;
    let held = engine.identity().await?;
    let file = OfflineFile::open_or_create(data, setup).await?;
    if file.writer.is_member() {
        return Err(ClusterError::Member(file.path()));
    }
    if file.writer.boards().condition().is_simulated(crate::model::World::Live) {
        return Err(ClusterError::Simulated(file.path()));
    }
    let log = LogIdentity { cluster: random()?, epoch: 1 };
    let applied = match held.filter(|_| is_replacing) {
        Some(held) => replace(&engine, held, log).await?,
        None => engine.create(log).await?,
    };
    let applied = applied.ok_or(ClusterError::Exists)?;
    let membership = Membership { cluster: log.cluster, epoch: log.epoch, file: random()?, applied, fence: 0 };
    file.follow(membership, "cluster init", config)?;
    answer(data, config, log.epoch)
}

/// Begins another cluster in place of one that is given up.
async fn replace(engine: &ServedEngine, held: LogIdentity, log: LogIdentity) -> Result<Option<EntryId>, ClusterError> {
    match engine.look(held).await {
        Ok(view) if view.nodes.iter().any(|node| node.lease_ms > 0) => return Err(ClusterError::NodesRun),
        Ok(_) | Err(EngineError::Lost) => {}
        Err(error) => return Err(error.into()),
    }
    Ok(engine.create_anew(held, log).await?)
}

/// Begins the log of a cluster anew from a file, after the engine has lost it.
pub async fn reseed_cluster(
    data: &DataDir,
    setup: Setup,
    config: &ClusterConfig,
) -> Result<MembershipAnswer, ClusterError> {
    let engine = connect(config)?;
    let file = OfflineFile::open(data, setup).await?;
    let membership = file.writer.membership().ok_or_else(|| ClusterError::NoMember(file.path()))?;
    let log = LogIdentity { cluster: membership.cluster, epoch: membership.epoch + 1 };
    let applied = begin_anew(&engine, membership, log).await?;
    let membership = Membership { epoch: log.epoch, applied, fence: 0, ..membership };
    file.follow(membership, "cluster reseed", config)?;
    answer(data, config, log.epoch)
}

async fn begin_anew(engine: &ServedEngine, membership: Membership, log: LogIdentity) -> Result<EntryId, ClusterError> {
    let old = LogIdentity { cluster: membership.cluster, epoch: membership.epoch };
    // A file that is ahead of the log tells the engine so.
    match engine.look(old).await {
        Ok(view) if view.last >= membership.applied => return Err(ClusterError::NotLost),
        Ok(_) | Err(EngineError::Lost) => {}
        Err(error) => return Err(error.into()),
    }
    engine.create_anew(old, log).await?.ok_or(ClusterError::Exists)
}

/// Makes a file that of a single node again. `None` for a file whose engine is gone.
pub async fn leave_cluster(
    data: &DataDir,
    setup: Setup,
    config: Option<&ClusterConfig>,
) -> Result<MembershipAnswer, ClusterError> {
    let mut file = OfflineFile::open(data, setup).await?;
    if !file.writer.is_member() {
        return Err(ClusterError::NoMember(file.path()));
    }
    if let Some(config) = config {
        connect(config)?.end_lease(&node_name(config)?, true).await?;
    }
    file.writer.set_membership(None)?;
    file.writer.audit(&file.who, "cluster leave", "service", String::new())?;
    file.writer.flush()?;
    Ok(MembershipAnswer { data: file.path(), cluster: None, node: None, epoch: None })
}
