//! Putting a backup in the place of the file. A restore, in order:
//!
//! 1. no server may run, and no other process may have the file open: it is locked until the end,
//! 2. the backup is copied beside the file, opened, brought to the present format, and every record of it is read,
//! 3. what must not be undone by going back is carried over from the file that is replaced,
//! 4. the file that is replaced gets a second name, everybody is signed out of the console, and the copy takes its place
//!    in one step.
//!
//! Carried over are revocations, rotations and earlier expiries, so that no secret that was taken out of service works
//! again, tokens of feeders included, and what keys and feeders have used, so that no quota is handed out twice. If the file in place cannot be read, nothing
//! is restored unless `--exact` was given. If it is empty, there is nothing left to carry over: the
//! backup is restored, and the answer says so.

mod carry;

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::access::{AdminAccess, AdminError};
use super::console::SessionFile;
use super::data_dir::DataDir;
use super::local::{LocalError, Setup};
use super::who::own_name;
use crate::model::Timestamp;
use crate::store::{AuditNote, Change, DamageList, Loaded, OpenError, Store, StoreError, new_epoch};

pub use carry::Carried;

use carry::carry_over;

/// What is to be restored, and how.
#[derive(Clone, Debug)]
pub struct RestoreOrder {
    pub file: PathBuf,
    /// Carry nothing over.
    pub exact: bool,
    /// Restore a backup that has damaged records; they are left out.
    pub force: bool,
}

/// Why nothing was restored.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    #[error("a server runs on {}: stop it, restore, and start it again", .0.display())]
    ServerRuns(PathBuf),
    #[error("{} is in use: wait for the command that has it open, or stop the server that is starting", .0.display())]
    InUse(PathBuf),
    #[error("cannot read {}: {error}; name a file that `oddsbox backup` wrote", path.display())]
    Unreadable { path: PathBuf, error: io::Error },
    #[error("{} is the file in place itself: name a backup", .0.display())]
    Same(PathBuf),
    #[error("{} is empty: name another backup", .0.display())]
    EmptyBackup(PathBuf),
    #[error("{} cannot be restored: {error}", path.display())]
    NotABackup { path: PathBuf, error: LocalError },
    #[error(
        "{} has {count} damaged records (the first: {first}): use another backup, or restore it without them with --force",
        path.display()
    )]
    Damaged { path: PathBuf, count: u64, first: String },
    #[error("{} is broken ({detail}): use another backup", path.display())]
    Broken { path: PathBuf, detail: String },
    #[error(
        "the file in place cannot be read ({0}), so keys revoked and quotas used since the backup cannot be carried \
         over: restore with --exact, then revoke again whatever must not come back"
    )]
    PlaceUnreadable(String),
    #[error("the restored file cannot be put in place: {0}")]
    Put(#[from] io::Error),
    #[error("the restored file cannot be written: {0}")]
    Write(#[from] StoreError),
    #[error(transparent)]
    AdminAccess(#[from] AdminError),
}

/// What was restored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestoreAnswer {
    /// The backup.
    pub restored: PathBuf,
    pub file: PathBuf,
    /// The file that was replaced; `null` if there was none, or an empty one.
    pub kept_as: Option<PathBuf>,
    /// The file that was replaced was empty, so that nothing could be carried over from it.
    pub replaced_empty: bool,
    pub records: u64,
    /// Records of the backup that are damaged and left out.
    pub damaged: u64,
    pub exact: bool,
    pub carried: Carried,
}

/// Puts a backup in the place of the file. Blocks the thread while it reads and writes.
pub async fn restore(data: &DataDir, order: RestoreOrder, setup: Setup) -> Result<RestoreAnswer, RestoreError> {
    if AdminAccess::server(data).await?.is_some() {
        return Err(RestoreError::ServerRuns(data.path().to_owned()));
    }
    let who = own_name()?;
    let data = data.clone();
    let work = move || Restore { target: data.file(), sessions: SessionFile::of(&data), order, setup, who }.run();
    tokio::task::spawn_blocking(work).await.map_err(io::Error::other)?
}

struct Restore {
    target: PathBuf,
    /// Of the console, which belong to the file that is replaced.
    sessions: SessionFile,
    order: RestoreOrder,
    setup: Setup,
    who: String,
}

/// What is in the place of the file.
enum InPlace {
    Nothing,
    /// A file of no bytes: what was in it is lost.
    Empty,
    /// It cannot be read, and nothing is to be carried over.
    Unreadable,
    /// Locked until it is dropped.
    Open {
        _store: Box<Store>,
        loaded: Box<Loaded>,
    },
}

impl InPlace {
    fn loaded(&self) -> Option<&Loaded> {
        match self {
            InPlace::Open { loaded, .. } => Some(loaded),
            InPlace::Nothing | InPlace::Empty | InPlace::Unreadable => None,
        }
    }
}

impl Restore {
    fn run(mut self) -> Result<RestoreAnswer, RestoreError> {
        self.setup.store.wait_for_lock = std::time::Duration::ZERO;
        if let (Ok(backup), Ok(target)) = (fs::canonicalize(&self.order.file), fs::canonicalize(&self.target))
            && backup == target
        {
            return Err(RestoreError::Same(self.order.file));
        }
        let in_place = self.lock_in_place()?;
        let copy = beside(&self.target, ".restoring");
        let answer = self.prepare(&copy, &in_place);
        let answer = answer.and_then(|answer| self.put(&copy, answer));
        // What an older format was copied to on the way is the backup itself, and after a failure nothing stays.
        remove_leftovers(&copy);
        answer
    }

    /// Opens the file in place, which locks it.
    fn lock_in_place(&self) -> Result<InPlace, RestoreError> {
        if !self.target.exists() {
            return Ok(InPlace::Nothing);
        }
        let opened = self.setup.clone().for_file(&self.target).and_then(|setup| {
            let mut store = Store::open_or_inspect(&self.target, setup.catalogue, setup.store)?;
            let loaded = store.load()?;
            Ok(InPlace::Open { _store: Box::new(store), loaded: Box::new(loaded) })
        });
        match opened {
            Ok(in_place) => Ok(in_place),
            Err(LocalError::Open(OpenError::InUse { .. })) => Err(RestoreError::InUse(self.target.clone())),
            Err(LocalError::Open(OpenError::Empty { .. })) => Ok(InPlace::Empty),
            Err(_) if self.order.exact => Ok(InPlace::Unreadable),
            Err(error) => Err(RestoreError::PlaceUnreadable(error.to_string())),
        }
    }

    /// Makes the copy, checks it, and writes into it what is carried over.
    fn prepare(&self, copy: &Path, in_place: &InPlace) -> Result<RestoreAnswer, RestoreError> {
        self.copy_backup(copy)?;
        let refused = |error| RestoreError::NotABackup { path: self.order.file.clone(), error };
        let setup = self.setup.clone().for_file(copy).map_err(refused)?;
        let mut store = Store::open(copy, setup.catalogue, setup.store).map_err(|error| refused(error.into()))?;
        let records = self.check(&mut store)?;
        let loaded = store.load()?;
        let now = self.setup.clock.now();
        let replaced_empty = matches!(in_place, InPlace::Empty);
        let (mut changes, carried) = match in_place.loaded() {
            Some(current) if !self.order.exact => carry_over(current, &loaded, now),
            _ => Default::default(),
        };
        // Clients of the file in place must not go on in the log of another one.
        // It is not what the other nodes of a cluster go on from.
        changes.push(Change::SetMembership(None));
        changes.push(Change::RenewEpochs([new_epoch()?, new_epoch()?]));
        changes.push(Change::Audit(self.note(&carried, replaced_empty, now.timestamp())));
        store.commit(&changes)?;
        Ok(RestoreAnswer {
            restored: self.order.file.clone(),
            file: self.target.clone(),
            kept_as: None,
            replaced_empty,
            records,
            damaged: loaded.damage.count(),
            exact: self.order.exact,
            carried,
        })
    }

    fn copy_backup(&self, copy: &Path) -> Result<(), RestoreError> {
        let unreadable = |error| RestoreError::Unreadable { path: self.order.file.clone(), error };
        let mut backup = File::open(&self.order.file).map_err(unreadable)?;
        let metadata = backup.metadata().map_err(unreadable)?;
        if !metadata.is_file() {
            return Err(unreadable(io::ErrorKind::InvalidInput.into()));
        }
        if metadata.len() == 0 {
            return Err(RestoreError::EmptyBackup(self.order.file.clone()));
        }
        if let Some(parent) = self.target.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            DirBuilder::new().recursive(true).mode(0o700).create(parent)?;
        }
        remove_leftovers(copy);
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(copy)?;
        io::copy(&mut backup, &mut file)?;
        Ok(file.sync_all()?)
    }

    /// Reads every record; how many there are.
    fn check(&self, store: &mut Store) -> Result<u64, RestoreError> {
        let path = || self.order.file.clone();
        let report = store.check()?;
        if let crate::store::Integrity::Broken(detail) = report.integrity {
            return Err(RestoreError::Broken { path: path(), detail });
        }
        if let Some(first) = first_of(&report.problems)
            && !self.order.force
        {
            return Err(RestoreError::Damaged { path: path(), count: report.problems.count(), first });
        }
        Ok(report.rows.iter().map(|(_, rows)| rows).sum())
    }

    /// The file in place gets its second name first: there is a file in place at every moment.
    fn put(&self, copy: &Path, mut answer: RestoreAnswer) -> Result<RestoreAnswer, RestoreError> {
        File::open(copy)?.sync_all()?;
        if self.target.exists() && !answer.replaced_empty {
            let kept = self.kept_name();
            fs::hard_link(&self.target, &kept)?;
            answer.kept_as = Some(kept);
        }
        self.sessions.remove()?;
        fs::rename(copy, &self.target)?;
        let parent = self.target.parent().filter(|parent| !parent.as_os_str().is_empty());
        File::open(parent.unwrap_or(Path::new(".")))?.sync_all()?;
        Ok(answer)
    }

    fn kept_name(&self) -> PathBuf {
        let time = self.setup.clock.now().timestamp().to_string().replace([':', '-'], "");
        let name = beside(&self.target, &format!(".before-restore-{time}"));
        let again = (2_u32..).map(|number| beside(&name, &format!("-{number}")));
        std::iter::once(name.clone()).chain(again).find(|name| !name.exists()).unwrap_or(name)
    }

    fn note(&self, carried: &Carried, replaced_empty: bool, at: Timestamp) -> AuditNote {
        let count = |what: &str, ids: &[String]| (!ids.is_empty()).then(|| format!("{} {what}", ids.len()));
        let parts = [
            count("revoked", &carried.revoked),
            count("unreadable and revoked", &carried.unreadable),
            count("rotated", &carried.rotated),
            count("with an earlier expiry", &carried.expiries),
            count("with newer usage", &carried.usage),
            count("feed tokens", &carried.tokens),
            count("feeders with newer usage", &carried.feeders),
        ];
        let carried: Vec<String> = parts.into_iter().flatten().collect();
        let detail = match (self.order.exact, carried.is_empty()) {
            (true, _) => "exactly as it is".to_owned(),
            (false, true) if replaced_empty => {
                "the file that it replaces was empty: no revocation and no quota could be carried over".to_owned()
            }
            (false, true) => "no key had to be carried over".to_owned(),
            (false, false) => format!("carried over: {}", carried.join(", ")),
        };
        AuditNote {
            at,
            who: self.who.as_str().into(),
            action: "restore".into(),
            subject: self.order.file.display().to_string().into(),
            detail: detail.into(),
        }
    }
}

fn first_of(problems: &DamageList) -> Option<String> {
    problems.listed().first().map(ToString::to_string)
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    PathBuf::from(name)
}

/// The copy, if it is still there, and what opening one of an older format kept of it.
pub(super) fn remove_leftovers(copy: &Path) {
    let _ = fs::remove_file(copy);
    let (Some(parent), Some(name)) = (copy.parent(), copy.file_name()) else { return };
    let begins = format!("{}.v", name.to_string_lossy());
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(&begins) {
            let _ = fs::remove_file(entry.path());
        }
    }
}
