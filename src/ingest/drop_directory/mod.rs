//! The drop directory: files that scrapers leave there are read, then moved away with a report. `*.ndjson` holds feed
//! lines; `*.json` holds one payload of The Odds API, whose prices must show their format.
//!
//! - A scraper writes under another name (one that begins with a dot, or has another extension) and renames the file when
//!   it is complete. For those that do not, a file is left alone until its size and modification time are the same in
//!   two scans.
//! - Files are read in the order of their names, each once: afterwards it is in `done`, or in `failed` if nothing of it
//!   was accepted, prefixed with the time, with a report beside it. The newest hundred are kept in each.
//! - If the server stops in the middle of a file, it is read again from its start. That does no harm: what is stored
//!   already is unchanged, and what was superseded is late.
//! - While the database takes no changes, files wait.
//! - A file that cannot be read safely (a link, a pipe, a file with a second name) is left where it is, logged and
//!   counted as `unsafe_file`.

mod files;
#[cfg(test)]
mod tests;

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

use self::files::{Directory, FileStamp, Opening};
use super::error::{IngestError, IngestErrorKind};
use super::feed::{Feed, IngestContext};
use super::options::{IngestOptions, PayloadOptions};
use super::payload::PayloadBuffer;
use super::report::IngestSummary;
use super::stream::LineStream;
use crate::log::{LineKind, limited};
use crate::model::{Reason, Regions, World};

const SCAN_EVERY: Duration = Duration::from_secs(1);
const CHUNK_BYTES: usize = 64 << 10;
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

/// A watched directory.
#[derive(Debug)]
pub struct DropDirectory {
    path: PathBuf,
    /// The files at the last scan.
    seen: BTreeMap<OsString, FileStamp>,
    /// Files that were read and could not be moved away, or that are unsafe: not tried again until they change.
    stuck: BTreeMap<OsString, FileStamp>,
    /// The last warning, so that it is logged once and not every second.
    last_warning: String,
}

type Contents = tokio::io::Take<tokio::fs::File>;

/// What became of a file.
#[derive(Debug, Serialize)]
struct FileReport<'a> {
    file: &'a str,
    at: String,
    /// Why the file as a whole failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    report: Option<IngestSummary>,
}

impl DropDirectory {
    /// Begins to watch a directory, which must exist. Files that were read go into two directories inside it.
    pub fn open(path: &Path) -> Result<Self, DropError> {
        let directory = Self::opened(path)?;
        for inside in [DONE, FAILED] {
            directory.inside(inside).map_err(|error| DropError::Unusable { path: path.to_owned(), error })?;
        }
        Ok(DropDirectory {
            path: path.to_owned(),
            seen: BTreeMap::new(),
            stuck: BTreeMap::new(),
            last_warning: String::new(),
        })
    }

    /// Whether a directory can be watched, as far as that is known without writing to it.
    pub fn validate(path: &Path) -> Result<(), DropError> {
        Self::opened(path).map(|_| ())
    }

    fn opened(path: &Path) -> Result<Directory, DropError> {
        if !path.is_dir() {
            return Err(DropError::Missing(path.to_owned()));
        }
        Directory::open(path).map_err(|error| DropError::Unusable { path: path.to_owned(), error })
    }

    /// Reads files as they come, until it is dropped.
    pub async fn run(mut self, context: IngestContext) {
        let mut scans = interval(SCAN_EVERY);
        scans.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            scans.tick().await;
            self.scan(&context).await;
        }
    }

    /// Reads every file that is complete.
    async fn scan(&mut self, context: &IngestContext) {
        match self.list().await {
            Ok((directory, found)) => self.take_listed(&directory, found, context).await,
            Err(error) => self.warn_once(format!("the drop directory cannot be read: {error}")),
        }
    }

    async fn list(&self) -> io::Result<(Arc<Directory>, BTreeMap<OsString, FileStamp>)> {
        let path = self.path.clone();
        blocking(move || {
            let directory = Directory::open(&path)?;
            let found = directory.list()?;
            Ok((Arc::new(directory), found))
        })
        .await
    }

    async fn take_listed(
        &mut self,
        directory: &Arc<Directory>,
        found: BTreeMap<OsString, FileStamp>,
        context: &IngestContext,
    ) {
        self.stuck.retain(|name, stamp| found.get(name) == Some(stamp));
        for (name, stamp) in &found {
            let is_complete = self.seen.get(name) == Some(stamp);
            if is_complete
                && !self.stuck.contains_key(name)
                && let Err(error) = self.take(directory, name, *stamp, context).await
            {
                self.warn_once(error.to_string());
                break;
            }
        }
        self.seen = found;
    }

    /// Reads a file and moves it away. An error means that files have to wait.
    async fn take(
        &mut self,
        directory: &Arc<Directory>,
        name: &OsStr,
        stamp: FileStamp,
        context: &IngestContext,
    ) -> Result<(), IngestError> {
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
            Err(error) => Err(IngestError::File(error)),
        };
        let (report, error) = match taken {
            Ok(report) => (Some(report), None),
            Err(error) if error.kind() == IngestErrorKind::Unavailable => return Err(error),
            Err(error) => (None, Some(error.to_string())),
        };
        let now = context.clock.now().timestamp();
        let is_good = report.as_ref().is_some_and(|report| report.accepted > 0 || report.lines == 0);
        let shown = name.to_string_lossy().into_owned();
        tracing::info!(
            file = shown,
            lines = report.as_ref().map_or(0, |report| report.lines),
            accepted = report.as_ref().map_or(0, |report| report.accepted),
            error,
            "read a file of the drop directory"
        );
        let moved = {
            let (directory, name) = (Arc::clone(directory), name.to_owned());
            blocking(move || {
                let report = FileReport { file: &shown, at: now.to_string(), error, report };
                let place = if is_good { DONE } else { FAILED };
                directory.move_away(&name, place, now, &serde_json::to_vec_pretty(&report)?)
            })
        };
        if let Err(error) = moved.await {
            self.warn_once(format!("{} was read and cannot be moved away: {error}", name.to_string_lossy()));
            self.stuck.insert(name.to_owned(), stamp);
        } else {
            self.last_warning.clear();
        }
        Ok(())
    }

    /// Counts an unsafe file once, and leaves it alone until it changes.
    fn skip_unsafe(&mut self, name: &OsStr, stamp: FileStamp, why: &str, context: &IngestContext) {
        let file = name.to_string_lossy();
        limited!(LineKind::DropFile, Level::WARN, %file, why, "skipped an unsafe file in the drop directory");
        let feed = Feed::drop_directory();
        let now = context.clock.now().timestamp();
        context.ledger.count(feed.account(World::Live), now, 0, [(Reason::UnsafeFile, 1)].into_iter());
        self.stuck.insert(name.to_owned(), stamp);
    }

    fn warn_once(&mut self, warning: String) {
        if self.last_warning != warning {
            tracing::warn!("{warning}");
            self.last_warning = warning;
        }
    }
}

/// Reads a file into the live world, as far as it was written when it was listed.
async fn ingest(name: &OsStr, file: File, bytes: u64, context: &IngestContext) -> Result<IngestSummary, IngestError> {
    let file = tokio::fs::File::from_std(file).take(bytes);
    if Path::new(name).extension() == Some(OsStr::new("json")) {
        ingest_payload(file, context).await
    } else {
        ingest_lines(file, context).await
    }
}

async fn ingest_payload(mut file: Contents, context: &IngestContext) -> Result<IngestSummary, IngestError> {
    let options =
        PayloadOptions { world: World::Live, strict: false, sport: None, odds_format: None, regions: Regions::NONE };
    let (mut payload, mut chunk) = (PayloadBuffer::default(), vec![0; CHUNK_BYTES]);
    loop {
        match file.read(&mut chunk).await.map_err(IngestError::File)? {
            0 => return payload.finish(&options, Feed::drop_directory(), context).await,
            count => payload.push(&chunk[..count])?,
        }
    }
}

async fn ingest_lines(mut file: Contents, context: &IngestContext) -> Result<IngestSummary, IngestError> {
    let options = IngestOptions::lenient(World::Live);
    let mut lines = LineStream::open(options, Feed::drop_directory(), context).await?;
    let read = async {
        let mut chunk = vec![0; CHUNK_BYTES];
        loop {
            match file.read(&mut chunk).await.map_err(IngestError::File)? {
                0 => return lines.finish().await,
                count => lines.push(&chunk[..count]).await?,
            }
        }
    };
    let read = read.await;
    if let Err(error) = &read {
        lines.fail(error).await;
    }
    read
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(io::Error::other).and_then(|done| done)
}
