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

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, DirBuilder, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde::Serialize;
use tokio::io::AsyncReadExt;
use tokio::time::{MissedTickBehavior, interval};

use super::context::Context;
use super::intake::{Feed, Intake};
use super::payload::Gathered;
use super::protocol::{Failure, FailureCode, IngestAnswer, IngestOptions, PayloadOptions};
use crate::model::{Regions, Timestamp, World};

const LOOK_EVERY: Duration = Duration::from_secs(1);
const PIECE_BYTES: usize = 64 << 10;
const DONE: &str = "done";
const FAILED: &str = "failed";
/// As many files as are kept in each of the two.
const KEPT_MAX: usize = 100;
const REPORT: &str = ".report.json";

/// Why a directory cannot be watched.
#[derive(Debug, thiserror::Error)]
pub enum DropError {
    #[error("the drop directory {path} is not there: make it, or set ingest.drop to another", path = .0.display())]
    Missing(PathBuf),
    #[error("the drop directory {path} cannot be used ({error}): oddsbox must be able to read, write and rename in it", path = path.display())]
    Unusable { path: PathBuf, error: io::Error },
}

/// What tells whether a file is still being written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    bytes: u64,
    modified: Option<SystemTime>,
}

/// A directory under watch.
#[derive(Debug)]
pub struct DropDirectory {
    path: PathBuf,
    /// The files at the last look.
    seen: BTreeMap<OsString, Stamp>,
    /// Files that were taken and could not be put away: not taken again until they change.
    stuck: BTreeMap<OsString, Stamp>,
    /// The last thing that was complained about, so that it is said once and not every second.
    complaint: String,
}

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
        for inside in [DONE, FAILED] {
            let made = DirBuilder::new().recursive(true).create(path.join(inside));
            made.map_err(|error| DropError::Unusable { path: path.to_owned(), error })?;
        }
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
        let path = self.path.clone();
        let found = match blocking(move || list(&path)).await {
            Ok(found) => found,
            Err(error) => return self.complain(format!("the drop directory cannot be read: {error}")),
        };
        self.stuck.retain(|name, stamp| found.get(name) == Some(stamp));
        for (name, stamp) in &found {
            let stood_still = self.seen.get(name) == Some(stamp);
            if stood_still
                && !self.stuck.contains_key(name)
                && let Err(error) = self.take(name, *stamp, context).await
            {
                self.complain(error.message);
                break;
            }
        }
        self.seen = found;
    }

    /// Takes a file and puts it away. An error says that files must wait.
    async fn take(&mut self, name: &OsStr, stamp: Stamp, context: &Context) -> Result<(), Failure> {
        let (report, error) = match ingest(&self.path.join(name), context).await {
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
        let (directory, name) = (self.path.clone(), name.to_owned());
        let put_away = {
            let name = name.clone();
            blocking(move || {
                let report = Report { file: &shown, at: now.to_string(), error, report };
                put_away(&directory, &name, if is_good { DONE } else { FAILED }, now, &report)
            })
        };
        if let Err(error) = put_away.await {
            self.complain(format!("{} was taken and cannot be put away: {error}", name.to_string_lossy()));
            self.stuck.insert(name, stamp);
        } else {
            self.complaint.clear();
        }
        Ok(())
    }

    fn complain(&mut self, told: String) {
        if self.complaint != told {
            tracing::warn!("{told}");
            self.complaint = told;
        }
    }
}

/// Reads a file into the live world.
async fn ingest(path: &Path, context: &Context) -> Result<IngestAnswer, Failure> {
    if path.extension() == Some(OsStr::new("json")) {
        ingest_payload(path, context).await
    } else {
        ingest_lines(path, context).await
    }
}

async fn ingest_payload(path: &Path, context: &Context) -> Result<IngestAnswer, Failure> {
    let options =
        PayloadOptions { world: World::Live, strict: false, sport: None, odds_format: None, regions: Regions::NONE };
    let mut file = tokio::fs::File::open(path).await.map_err(unreadable)?;
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

async fn ingest_lines(path: &Path, context: &Context) -> Result<IngestAnswer, Failure> {
    let options = IngestOptions { world: World::Live, strict: false };
    let mut intake = Intake::open(options, Feed::drop_directory(), context).await?;
    let read = async {
        let mut file = tokio::fs::File::open(path).await.map_err(unreadable)?;
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
        intake.failed(&failure.message);
    }
    read
}

/// The files that may be taken, complete or not.
fn list(directory: &Path) -> io::Result<BTreeMap<OsString, Stamp>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let name = entry.file_name();
        let is_hidden = name.as_encoded_bytes().starts_with(b".");
        let is_ours = Path::new(&name).extension().is_some_and(|ending| ending == "ndjson" || ending == "json");
        if is_hidden || !is_ours {
            continue;
        }
        // A file may be gone again, and a link is not followed: it may lead anywhere.
        let Ok(metadata) = entry.metadata() else { continue };
        if metadata.is_file() {
            found.insert(name, Stamp { bytes: metadata.len(), modified: metadata.modified().ok() });
        }
    }
    Ok(found)
}

/// Moves a file to where it is kept, its report first, so that a file that is put away always has one.
fn put_away(directory: &Path, name: &OsStr, place: &str, now: Timestamp, report: &Report<'_>) -> io::Result<()> {
    let place = directory.join(place);
    let kept = free_name(&place, name, now)?;
    let mut report_name = kept.clone();
    report_name.push(REPORT);
    let beside = place.join(".report.tmp");
    let mut file = File::create(&beside)?;
    file.write_all(&serde_json::to_vec_pretty(report)?)?;
    file.write_all(b"\n")?;
    drop(file);
    fs::rename(&beside, place.join(report_name))?;
    fs::rename(directory.join(name), place.join(kept))?;
    prune(&place)
}

/// The time and the name; with a number where that is taken already.
fn free_name(place: &Path, name: &OsStr, now: Timestamp) -> io::Result<OsString> {
    let time: String = now.to_string().chars().filter(char::is_ascii_alphanumeric).collect();
    for number in 1..=1000 {
        let mut kept = OsString::from(if number == 1 { format!("{time}-") } else { format!("{time}-{number}-") });
        kept.push(name);
        if !place.join(&kept).try_exists()? {
            return Ok(kept);
        }
    }
    Err(io::Error::from(io::ErrorKind::AlreadyExists))
}

/// Deletes the oldest files that were put away, with their reports, where there are too many.
fn prune(place: &Path) -> io::Result<()> {
    let mut kept = Vec::new();
    for entry in fs::read_dir(place)? {
        let name = entry?.file_name();
        let bytes = name.as_encoded_bytes();
        // Only what was put here by us begins with a time.
        let is_ours = bytes.len() > 17 && bytes[..8].iter().all(u8::is_ascii_digit) && bytes[15..17] == *b"Z-";
        if is_ours && !bytes.ends_with(REPORT.as_bytes()) {
            kept.push(name);
        }
    }
    kept.sort_unstable();
    let surplus = kept.len().saturating_sub(KEPT_MAX);
    for name in kept.into_iter().take(surplus) {
        let mut report = name.clone();
        report.push(REPORT);
        fs::remove_file(place.join(&name))?;
        // A report that somebody took away is not missed.
        let _ = fs::remove_file(place.join(report));
        tracing::info!(file = %name.to_string_lossy(), "an old file of the drop directory was deleted");
    }
    Ok(())
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(io::Error::other).and_then(|done| done)
}
