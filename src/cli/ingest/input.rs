//! The input of an ingest: one file or more, or standard input.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use bytes::Bytes;
use indicatif::{ProgressBar, ProgressStyle};
use tokio::sync::mpsc;

use super::hint::START_BYTES_MAX;
use crate::admin::PieceSource;
use crate::ingest::the_odds_api;
use crate::model::Timestamp;

const PIECE_BYTES: usize = 64 << 10;
/// Pieces that may be queued for the writer.
const PIECES_WAITING: usize = 4;

/// An open input.
pub(super) struct Input {
    reader: Box<dyn Read + Send>,
    progress: ProgressBar,
}

/// What the reading thread records for the report.
#[derive(Debug, Default)]
pub(super) struct InputState {
    /// The beginning of the input.
    pub(super) start: Vec<u8>,
    /// The error that ended it.
    pub(super) error: Option<io::Error>,
}

impl Input {
    /// Opens the files one after the other.
    pub(super) fn open(paths: &[PathBuf]) -> anyhow::Result<Input> {
        let mut reader: Box<dyn Read + Send> = Box::new(io::empty());
        let mut bytes = Some(0);
        for path in paths {
            let (next, length) = open(path)?;
            // The last line of a file may lack its end.
            reader = Box::new(reader.chain(next).chain(&b"\n"[..]));
            bytes = bytes.zip(length).map(|(bytes, length)| bytes + length);
        }
        Ok(Input { reader, progress: progress(bytes)? })
    }

    /// Reads on a separate thread, since a pipe may block. The channel bounds how far it reads ahead.
    pub(super) fn start(self) -> io::Result<(PieceSource, Arc<Mutex<InputState>>)> {
        let Input { mut reader, progress } = self;
        let (sender, source) = mpsc::channel(PIECES_WAITING);
        let seen = Arc::<Mutex<InputState>>::default();
        let recorded = Arc::clone(&seen);
        thread::Builder::new().name("input".to_owned()).spawn(move || {
            let mut piece = vec![0; PIECE_BYTES];
            loop {
                let sent = match reader.read(&mut piece) {
                    Ok(0) => break,
                    Ok(count) => {
                        progress.inc(count as u64);
                        let mut seen = recorded.lock().unwrap_or_else(PoisonError::into_inner);
                        let room = START_BYTES_MAX - seen.start.len();
                        seen.start.extend_from_slice(&piece[..count.min(room)]);
                        drop(seen);
                        sender.blocking_send(Ok(Bytes::copy_from_slice(&piece[..count])))
                    }
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    Err(error) => {
                        let copy = io::Error::new(error.kind(), error.to_string());
                        recorded.lock().unwrap_or_else(PoisonError::into_inner).error = Some(error);
                        sender.blocking_send(Err(copy))
                    }
                };
                if sent.is_err() {
                    break;
                }
            }
            progress.finish_and_clear();
        })?;
        Ok((source, seen))
    }
}

/// Sorts saved responses of the archive by the times that they are of. Files without a time come first, in their order: they
/// are rejected with the reason.
pub(super) fn sort_responses(paths: &mut [PathBuf]) {
    paths.sort_by_cached_key(|path| time_of(path));
}

fn time_of(path: &Path) -> Option<Timestamp> {
    if path == Path::new("-") {
        return None;
    }
    the_odds_api::archive_time(&std::fs::read(path).ok()?).ok()
}

fn open(path: &Path) -> anyhow::Result<(Box<dyn Read + Send>, Option<u64>)> {
    if path == Path::new("-") {
        return Ok((Box::new(io::stdin()), None));
    }
    let open = || {
        let file = File::open(path)?;
        let metadata = file.metadata()?;
        if metadata.is_dir() { Err(io::Error::from(io::ErrorKind::IsADirectory)) } else { Ok((file, metadata)) }
    };
    let (file, metadata) = open().map_err(|error| {
        anyhow::anyhow!("cannot read {}: {error}; name a file, or - for standard input", path.display())
    })?;
    Ok((Box::new(file), metadata.is_file().then_some(metadata.len())))
}

/// A progress bar on standard error, hidden if that is not a terminal.
fn progress(bytes: Option<u64>) -> anyhow::Result<ProgressBar> {
    let (bar, style) = match bytes {
        Some(bytes) => (ProgressBar::new(bytes), "{bar:40} {bytes}/{total_bytes} {bytes_per_sec} {eta}"),
        None => (ProgressBar::new_spinner(), "{spinner} {bytes} {bytes_per_sec}"),
    };
    Ok(bar.with_style(ProgressStyle::with_template(style)?))
}
