//! Prepares the directory of a demo for `oddsbox serve`: the simulated live world is deleted and the mark taken off the file,
//! in one transaction, and everybody is signed out of the console. Keys, quotas and the audit log stay. A live world that
//! was not simulated is never touched.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::access::{AdminAccess, AdminError};
use super::console::SessionFile;
use super::data_dir::DataDir;
use super::local::{LocalError, Setup};
use super::who::own_name;
use crate::model::{Catalogue, World};
use crate::store::{AuditNote, Change, Loaded, LoadedWorld, Store, StoreError, new_epoch};

/// Why nothing was cleared.
#[derive(Debug, thiserror::Error)]
pub enum ClearError {
    #[error("a server runs on {}: stop it, and clear then", .0.display())]
    ServerRuns(PathBuf),
    #[error("there is no demo in {}: name its directory with --data", .0.display())]
    NoData(PathBuf),
    #[error("the live world in {} was not simulated, so nothing was deleted: `oddsbox serve` serves it as it is", .0.display())]
    NotSimulated(PathBuf),
    #[error(
        "the file has events of sports that the catalogue does not list ({}), so not all of them can be deleted: \
         name the catalogue of the demo with the setting catalogue",
        .0.join(", ")
    )]
    Unlisted(Vec<String>),
    #[error(transparent)]
    Open(#[from] LocalError),
    #[error("the live world cannot be deleted: {0}")]
    Write(#[from] StoreError),
    #[error("the live world is deleted, but not the secrets of the demo's keys: delete {} yourself ({error})", path.display())]
    Keys { path: PathBuf, error: io::Error },
    #[error(transparent)]
    System(#[from] io::Error),
    #[error(transparent)]
    AdminAccess(#[from] AdminError),
}

/// What was deleted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClearAnswer {
    pub data: PathBuf,
    /// False when there was nothing to clear: the file had no mark, and nothing in its live world.
    pub cleared: bool,
    pub events: u64,
    pub records: u64,
    pub sources: u64,
}

/// Deletes the simulated live world. Blocks the thread while it reads and writes.
pub async fn clear_demo(data: &DataDir, setup: Setup) -> Result<ClearAnswer, ClearError> {
    if AdminAccess::server(data).await?.is_some() {
        return Err(ClearError::ServerRuns(data.path().to_owned()));
    }
    if !data.file().exists() {
        return Err(ClearError::NoData(data.path().to_owned()));
    }
    let who = own_name()?;
    let data = data.clone();
    tokio::task::spawn_blocking(move || clear(&data, setup, &who)).await.map_err(io::Error::other)?
}

fn clear(data: &DataDir, mut setup: Setup, who: &str) -> Result<ClearAnswer, ClearError> {
    setup.store.wait_for_lock = Duration::ZERO;
    let Setup { catalogue, store, clock, .. } = setup.for_file(&data.file())?;
    let mut store = Store::open(&data.file(), Arc::clone(&catalogue), store).map_err(LocalError::from)?;
    let loaded = store.load()?;
    let live = loaded.world(World::Live);
    let records = live.sports.iter().flat_map(|sport| &sport.events).map(|event| event.records.len() as u64);
    let mut answer = ClearAnswer {
        data: data.path().to_owned(),
        cleared: loaded.simulated_live,
        events: live.sports.iter().map(|sport| sport.events.len() as u64).sum(),
        records: records.sum(),
        sources: live.sports.iter().map(|sport| sport.sources.len() as u64).sum(),
    };
    check(&loaded, &answer)?;
    if answer.cleared {
        // A demo prints its sign-in link, so its sessions must not reach a console that serves production keys.
        SessionFile::of(data).remove()?;
        let detail = format!("{} events, {} records, {} sources", answer.events, answer.records, answer.sources);
        let mut changes = deletions(live, &catalogue);
        // Simulated prices must not be anybody's history.
        changes.push(Change::ClearLog { world: World::Live, epoch: new_epoch()? });
        changes.push(Change::SetSimulated(false));
        changes.push(Change::Audit(AuditNote {
            at: clock.now().timestamp(),
            who: who.into(),
            action: "clear demo".into(),
            subject: "live world".into(),
            detail: detail.into(),
        }));
        store.commit(&changes)?;
        // What serves production keys keeps no secret in plain text.
        remove_keys(data)?;
    } else {
        answer = ClearAnswer { events: 0, records: 0, sources: 0, ..answer };
    }
    Ok(answer)
}

fn check(loaded: &Loaded, found: &ClearAnswer) -> Result<(), ClearError> {
    if !loaded.simulated_live && found.events + found.sources > 0 {
        return Err(ClearError::NotSimulated(found.data.clone()));
    }
    let unlisted: Vec<String> =
        loaded.unserved.iter().filter(|sport| sport.events > 0).map(|sport| sport.key.to_string()).collect();
    if loaded.simulated_live && !unlisted.is_empty() {
        return Err(ClearError::Unlisted(unlisted));
    }
    Ok(())
}

/// Everything of the live world but its bookmakers. An event takes its score, its prices and its closed marks along.
fn deletions(live: &LoadedWorld, catalogue: &Catalogue) -> Vec<Change> {
    let world = World::Live;
    let mut changes = Vec::new();
    for poll in &live.polls {
        let scope = &poll.scope;
        let polled = poll.events.iter().map(|(event, _)| (scope.clone(), event.clone()));
        changes.extend(polled.map(|(scope, event)| Change::PutPolled { world, scope, event, records: Box::default() }));
        changes.push(Change::RemovePoll { world, scope: scope.clone() });
    }
    for (sport, stored) in catalogue.sport_ids().zip(&live.sports) {
        let events = stored.events.iter().map(|stored| stored.event.id.clone());
        changes.extend(events.map(|event| Change::RemoveEvent { world, sport, event }));
        let sources = stored.sources.iter().map(|(bookmaker, _)| *bookmaker);
        changes.extend(sources.map(|bookmaker| Change::RemoveSource { world, sport, bookmaker }));
    }
    changes
}

fn remove_keys(data: &DataDir) -> Result<(), ClearError> {
    let path = data.demo_keys();
    match fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(ClearError::Keys { path, error }),
        _ => Ok(()),
    }
}
