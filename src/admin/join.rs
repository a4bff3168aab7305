//! Bringing up a node from another one, before it serves: a node of an empty directory, or one that was away for so long that the
//! log of the cluster does not reach back to where it was.
//!
//! The copy arrives beside the file, every record of it is read, and it takes the place of the file in one step.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::data_dir::DataDir;
use super::local::{LocalError, Setup};
use super::restore::remove_leftovers;
use crate::cluster::connect::{ConnectError, connect};
use crate::cluster::copies::{self, CopyError, Received};
use crate::cluster::engine::{Engine, EngineError, LogIdentity, ServedEngine};
use crate::config::ClusterConfig;
use crate::model::Membership;
use crate::store::{Change, Integrity, OpenError, Store, StoreError};

/// How long to wait before an engine that did not answer, or another node, is asked again.
const RETRY: Duration = Duration::from_secs(1);
const PROGRESS_EVERY: Duration = Duration::from_secs(2);

/// Why a node did not join.
#[derive(Debug, thiserror::Error)]
pub enum JoinError {
    #[error(
        "the engine holds no cluster named {0:?}: make the first node with `oddsbox cluster init`, then start the others on empty \
         directories"
    )]
    NoCluster(Box<str>),
    #[error(
        "the cluster was begun anew from another node while this one was away: move {} to a safe place and start again, and \
         this node takes a copy from another one",
        .0.display()
    )]
    Superseded(PathBuf),
    #[error("the copy of another node's data is broken ({0}): run `oddsbox check` there")]
    Broken(String),
    #[error(transparent)]
    Connect(#[from] ConnectError),
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error("the copy of another node's data cannot be used: {0}")]
    Unusable(#[from] LocalError),
    #[error("the copy of another node's data cannot be used: {0}")]
    Write(#[from] StoreError),
    #[error("the copy of another node's data cannot be put in place: {0}")]
    File(#[from] io::Error),
}

/// Takes a copy from another node if this one has no data, or none from which it could catch up.
pub async fn join_cluster(data: &DataDir, setup: &Setup, config: &ClusterConfig) -> Result<(), JoinError> {
    let stored = match Store::stored_membership(&data.file(), setup.store) {
        Err(OpenError::Empty { .. }) => None,
        stored => stored?,
    };
    let engine = connect(config)?;
    let is_needed = match stored {
        None => true,
        // What to do is said when it is opened.
        Some(None) => return Ok(()),
        Some(Some(membership)) => has_fallen_behind(&engine, membership, data).await?,
    };
    if !is_needed {
        return Ok(());
    }
    let Some(log) = answered(|| engine.identity()).await? else {
        return Err(JoinError::NoCluster(config.name.clone()));
    };
    DirBuilder::new().recursive(true).mode(0o700).create(data.path())?;
    let copy = data.path().join("oddsbox.redb.joining");
    remove_leftovers(&copy);
    take_copy(&engine, &copy).await?;
    let (setup, target) = (setup.clone(), data.file());
    let put = move || {
        let put = adopt(&copy, setup, log).and_then(|()| put_in_place(&copy, &target));
        remove_leftovers(&copy);
        put
    };
    tokio::task::spawn_blocking(put).await.map_err(io::Error::other)?
}

/// Whether the log does not reach back to where the file is.
async fn has_fallen_behind(engine: &ServedEngine, membership: Membership, data: &DataDir) -> Result<bool, JoinError> {
    let log = LogIdentity { cluster: membership.cluster, epoch: membership.epoch };
    match answered(|| engine.look(log)).await {
        Ok(view) => Ok(membership.applied < view.trimmed),
        Err(EngineError::Lost) => {
            let held = answered(|| engine.identity()).await?;
            if held.is_some_and(|held| held.cluster == log.cluster && held.epoch > log.epoch) {
                return Err(JoinError::Superseded(data.file()));
            }
            // What to do is said when it is started.
            Ok(false)
        }
        Err(error) => Err(error.into()),
    }
}

/// Asks until the engine answers.
async fn answered<T, F>(mut ask: impl FnMut() -> F) -> Result<T, EngineError>
where
    F: Future<Output = Result<T, EngineError>>,
{
    let mut has_warned = false;
    loop {
        match ask().await {
            Err(EngineError::Unreachable(reason)) => {
                if !has_warned {
                    tracing::warn!(%reason, "the engine of the cluster does not answer; waiting for it");
                    has_warned = true;
                }
                tokio::time::sleep(RETRY).await;
            }
            answer => return answer,
        }
    }
}

async fn take_copy(engine: &ServedEngine, path: &Path) -> Result<(), JoinError> {
    tracing::info!("waiting for another node to send a copy of its data");
    loop {
        let mut shown = Instant::now();
        let progress = |received: Received| {
            if shown.elapsed() >= PROGRESS_EVERY {
                shown = Instant::now();
                let what = if received.bytes == 0 { "another node makes a copy" } else { "receiving it" };
                tracing::info!(bytes = received.bytes, "{what}");
            }
        };
        let name = format!("{:016x}", super::cluster::random()?);
        match copies::receive(engine, &name, path, progress).await {
            Ok(()) => return Ok(()),
            Err(CopyError::File(error)) => return Err(error.into()),
            Err(CopyError::Engine(error @ EngineError::Refused(_))) => return Err(error.into()),
            Err(error) => tracing::warn!(%error, "no copy of the data yet; asking again"),
        }
        tokio::time::sleep(RETRY).await;
    }
}

/// Reads every record of a copy, and makes it the file of this node.
fn adopt(copy: &Path, setup: Setup, log: LogIdentity) -> Result<(), JoinError> {
    let Setup { catalogue, store, .. } = setup.for_file(copy)?;
    let mut store = Store::open(copy, catalogue, store)?;
    let report = store.check()?;
    if let Integrity::Broken(detail) = report.integrity {
        return Err(JoinError::Broken(detail));
    }
    if let Some(problem) = report.problems.listed().first() {
        return Err(JoinError::Broken(problem.to_string()));
    }
    let membership = store.load()?.membership.filter(|own| own.cluster == log.cluster && own.epoch == log.epoch);
    let membership = membership.ok_or_else(|| JoinError::Broken("it is not of this cluster".to_owned()))?;
    let membership = Membership { file: super::cluster::random()?, ..membership };
    Ok(store.commit(&[Change::SetMembership(Some(membership))])?)
}

fn put_in_place(copy: &Path, target: &Path) -> Result<(), JoinError> {
    File::open(copy)?.sync_all()?;
    fs::rename(copy, target)?;
    if let Some(parent) = target.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        File::open(parent)?.sync_all()?;
    }
    tracing::info!("the copy is in place");
    Ok(())
}
