//! The watched directory: files that scrapers leave there are taken in, and put away with a report. `*.ndjson` holds feed
//! lines; `*.json` holds one payload of The Odds API, whose prices must show their format.
//!
//! - A writer writes under a name that is not taken (one that begins with a dot, or ends otherwise)
//!   and renames the file when it is complete. For those who do not, a file is left alone until its size and its time
//!   stood still from one look to the next.
//! - Files are taken in the order of their names, each once: afterwards it stands in `done`, or in `failed` if nothing
//!   of it could be taken, under the time and its name, with a report beside it. The newest hundred are kept in each.
//! - If the server stops in the middle of a file, it is taken again from its start. That does no harm: what is held
//!   already is no news, and what was overtaken is late.
//! - While the database takes no changes, files wait.
//! - A file that cannot be read safely (a link, a pipe, a file with a second name) is left where it is, logged and
//!   counted as `unsafe_file`.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use tokio::io::AsyncReadExt;
use tokio::time::{MissedTickBehavior, interval};
use tracing::Level;

use super::context::Context;
use super::drop_files::{Directory, Opening, Stamp};
use super::intake::{Feed, Intake};
use super::payload::Gathered;
use super::protocol::{Failure, FailureCode, IngestAnswer, IngestOptions, PayloadOptions};
use crate::log::{LineKind, limited};
use crate::model::{Reason, Regions, World};

const LOOK_EVERY: Duration = Duration::from_secs(1);
const PIECE_BYTES: usize = 64 << 10;
const DONE: &str = "done";
const FAILED: &str = "failed";

/// Why a directory cannot be watched.
#[derive(Debug, thiserror::Error)]
pub enum DropError {
    #[error("the drop directory {path} is not there: make it, or set ingest.drop to another", path = .0.display())]
    Missing(PathBuf),
    #[error("the drop directory {path} cannot be used ({error}): oddsbox must be able to read, write and rename in it", path = path.display())]
    Unusable { path: PathBuf, error: io::Error },
}

/// A directory under watch.
#[derive(Debug)]
pub struct DropDirectory {
    path: PathBuf,
    /// The files at the last look.
    seen: BTreeMap<OsString, Stamp>,
    /// Files that were taken and could not be put away, or that are unsafe: not tried again until they change.
    stuck: BTreeMap<OsString, Stamp>,
    /// The last thing that was complained about, so that it is said once and not every second.
    complaint: String,
}

type Contents = tokio::io::Take<tokio::fs::File>;

/// What became of a file.
#[derive(Debug, Serialize)]
struct Report<'a> {
    file: &'a str,
    at: String,
    /// Why the file as a whole failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    report: Option<IngestAnswer>,
}

impl DropDirectory {
    /// Begins to watch a directory, which must be there. What is put away goes into two directories inside it.
    pub fn open(path: &Path) -> Result<Self, DropError> {
        if !path.is_dir() {
            return Err(DropError::Missing(path.to_owned()));
        }
        let opened = Directory::open(path).and_then(|directory| {
            for inside in [DONE, FAILED] {
                directory.inside(inside)?;
            }
            Ok(())
        });
        opened.map_err(|error| DropError::Unusable { path: path.to_owned(), error })?;
        Ok(DropDirectory {
            path: path.to_owned(),
            seen: BTreeMap::new(),
            stuck: BTreeMap::new(),
            complaint: String::new(),
        })
    }

    /// Takes files as they come, until it is dropped.
    pub async fn run(mut self, context: Context) {
        let mut looks = interval(LOOK_EVERY);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            looks.tick().await;
            self.look(&context).await;
        }
    }

    /// Takes every file that is complete.
    pub(super) async fn look(&mut self, context: &Context) {
        match self.list().await {
            Ok((directory, found)) => self.take_listed(&directory, found, context).await,
            Err(error) => self.complain(format!("the drop directory cannot be read: {error}")),
        }
    }

    pub(super) async fn list(&self) -> io::Result<(Arc<Directory>, BTreeMap<OsString, Stamp>)> {
        let path = self.path.clone();
        blocking(move || {
            let directory = Directory::open(&path)?;
            let found = directory.list()?;
            Ok((Arc::new(directory), found))
        })
        .await
    }

    pub(super) async fn take_listed(
        &mut self,
        directory: &Arc<Directory>,
        found: BTreeMap<OsString, Stamp>,
        context: &Context,
    ) {
        self.stuck.retain(|name, stamp| found.get(name) == Some(stamp));
        for (name, stamp) in &found {
            let stood_still = self.seen.get(name) == Some(stamp);
            if stood_still
                && !self.stuck.contains_key(name)
                && let Err(error) = self.take(directory, name, *stamp, context).await
            {
                self.complain(error.message);
                break;
            }
        }
        self.seen = found;
    }

    /// Takes a file and puts it away. An error says that files must wait.
    async fn take(
        &mut self,
        directory: &Arc<Directory>,
        name: &OsStr,
        stamp: Stamp,
        context: &Context,
    ) -> Result<(), Failure> {
        let opened = {
            let (directory, name) = (Arc::clone(directory), name.to_owned());
            blocking(move || directory.open_listed(&name, &stamp)).await
        };
        let taken = match opened {
            Ok(Opening::Changed) => return Ok(()),
            Ok(Opening::Unsafe(why)) => {
                self.skip_unsafe(name, stamp, why, context);
                return Ok(());
            }
            Ok(Opening::Open(file)) => ingest(name, file, stamp.bytes(), context).await,
            Err(error) => Err(unreadable(error)),
        };
        let (report, error) = match taken {
            Ok(report) => (Some(report), None),
            Err(failure) if failure.code == FailureCode::Unavailable => return Err(failure),
            Err(failure) => (None, Some(failure.message)),
        };
        let now = context.clock.now().timestamp();
        let is_good = report.as_ref().is_some_and(|report| report.accepted > 0 || report.lines == 0);
        let shown = name.to_string_lossy().into_owned();
        tracing::info!(
            file = shown,
            lines = report.as_ref().map_or(0, |report| report.lines),
            accepted = report.as_ref().map_or(0, |report| report.accepted),
            error,
            "a file was taken from the drop directory"
        );
        let put_away = {
            let (directory, name) = (Arc::clone(directory), name.to_owned());
            blocking(move || {
                let report = Report { file: &shown, at: now.to_string(), error, report };
                let place = if is_good { DONE } else { FAILED };
                directory.put_away(&name, place, now, &serde_json::to_vec_pretty(&report)?)
            })
        };
        if let Err(error) = put_away.await {
            self.complain(format!("{} was taken and cannot be put away: {error}", name.to_string_lossy()));
            self.stuck.insert(name.to_owned(), stamp);
        } else {
            self.complaint.clear();
        }
        Ok(())
    }

    /// Leaves a file alone until it changes.
    fn skip_unsafe(&mut self, name: &OsStr, stamp: Stamp, why: &str, context: &Context) {
        let file = name.to_string_lossy();
        limited!(LineKind::DropFile, Level::WARN, %file, why, "skipped an unsafe file in the drop directory");
        let feed = Feed::drop_directory();
        let now = context.clock.now().timestamp();
        context.ledger.count(feed.account(World::Live), now, 0, [(Reason::UnsafeFile, 1)].into_iter());
        self.stuck.insert(name.to_owned(), stamp);
    }

    fn complain(&mut self, told: String) {
        if self.complaint != told {
            tracing::warn!("{told}");
            self.complaint = told;
        }
    }
}

/// Reads a file into the live world, as far as it was written when it was listed.
async fn ingest(name: &OsStr, file: File, bytes: u64, context: &Context) -> Result<IngestAnswer, Failure> {
    let file = tokio::fs::File::from_std(file).take(bytes);
    if Path::new(name).extension() == Some(OsStr::new("json")) {
        ingest_payload(file, context).await
    } else {
        ingest_lines(file, context).await
    }
}

async fn ingest_payload(mut file: Contents, context: &Context) -> Result<IngestAnswer, Failure> {
    let options =
        PayloadOptions { world: World::Live, strict: false, sport: None, odds_format: None, regions: Regions::NONE };
    let (mut payload, mut piece) = (Gathered::default(), vec![0; PIECE_BYTES]);
    loop {
        match file.read(&mut piece).await.map_err(unreadable)? {
            0 => return payload.finish(&options, &Feed::drop_directory(), context).await,
            count => payload.push(&piece[..count])?,
        }
    }
}

fn unreadable(error: io::Error) -> Failure {
    Failure::bad_request(format!("the file cannot be read: {error}"))
}

async fn ingest_lines(mut file: Contents, context: &Context) -> Result<IngestAnswer, Failure> {
    let options = IngestOptions { world: World::Live, strict: false };
    let mut intake = Intake::open(options, Feed::drop_directory(), context).await?;
    let read = async {
        let mut piece = vec![0; PIECE_BYTES];
        loop {
            match file.read(&mut piece).await.map_err(unreadable)? {
                0 => return intake.finish().await,
                count => intake.push(&piece[..count]).await?,
            }
        }
    };
    let read = read.await;
    if let Err(failure) = &read {
        intake.failed(failure);
    }
    read
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(io::Error::other).and_then(|done| done)
}
