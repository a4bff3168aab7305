//! A strict input while it is read: a file without a name, so that whatever happens nothing is left behind.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::io::AsyncWriteExt;

use super::place::DataDir;
use super::protocol::{Failure, FailureCode};
use crate::ingest::wire::{self, LINE_BYTES_MAX};
use crate::model::{Catalogue, News, Reason};
use crate::writer::NewsReader;

/// A strict input is one transaction, during which nothing else can change: a longer one is to be split.
const SPOOL_BYTES_MAX: u64 = 1 << 30;

/// Tells spools of one process apart.
static NEXT: AtomicU64 = AtomicU64::new(0);

#[derive(Debug)]
pub(super) struct Spool {
    file: tokio::fs::File,
    bytes: u64,
}

impl Spool {
    pub(super) async fn open(data: &DataDir) -> Result<Self, Failure> {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = data.path().join(format!(".ingest-{}-{number}", std::process::id()));
        let file = blocking(move || nameless(path)).await?;
        Ok(Spool { file: tokio::fs::File::from_std(file), bytes: 0 })
    }

    pub(super) async fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.bytes += bytes.len() as u64;
        if self.bytes > SPOOL_BYTES_MAX {
            let told =
                format!("a strict input has at most {SPOOL_BYTES_MAX} bytes: split it, or send it without --strict");
            return Err(Failure::new(FailureCode::TooLarge, told));
        }
        self.file.write_all(bytes).await.map_err(broken)
    }

    /// Everything that was written and can be read, as news for the writer.
    pub(super) async fn news(&mut self, catalogue: Arc<Catalogue>) -> Result<NewsReader, Failure> {
        let readable = self.readable(catalogue).await?;
        Ok(NewsReader(Box::new(readable.map(|line| line.map(|(_, news)| news)))))
    }

    /// The numbers of the lines at some positions, which count the lines that can be read.
    pub(super) async fn line_numbers(
        &mut self,
        positions: &[(u64, Reason)],
        catalogue: Arc<Catalogue>,
    ) -> Result<Vec<u64>, Failure> {
        let Some((last, _)) = positions.last() else { return Ok(Vec::new()) };
        let readable = self.readable(catalogue).await?;
        let wanted: Vec<u64> = positions.iter().map(|(position, _)| *position).collect();
        let last = *last;
        blocking(move || {
            let mut numbers = Vec::with_capacity(wanted.len());
            for (position, line) in (0..=last).zip(readable) {
                let (number, _) = line?;
                if wanted.binary_search(&position).is_ok() {
                    numbers.push(number);
                }
            }
            Ok(numbers)
        })
        .await
    }

    /// The lines that can be read, with their numbers. The others were counted as they came.
    async fn readable(
        &mut self,
        catalogue: Arc<Catalogue>,
    ) -> Result<impl Iterator<Item = io::Result<(u64, News)>> + Send + use<>, Failure> {
        let lines = self.lines().await?;
        Ok(lines.filter_map(move |line| match line {
            Ok((number, line)) => wire::read(&line, &catalogue).ok().map(|reading| Ok((number, reading.news))),
            Err(error) => Some(Err(error)),
        }))
    }

    async fn lines(&mut self) -> Result<FilledLines, Failure> {
        self.file.flush().await.map_err(broken)?;
        let mut file = self.file.try_clone().await.map_err(broken)?.into_std().await;
        file.seek(SeekFrom::Start(0)).map_err(broken)?;
        Ok(FilledLines { reader: BufReader::new(file), number: 0 })
    }
}

/// A file for its owner only, whose name is taken away before anything is in it.
fn nameless(path: PathBuf) -> io::Result<File> {
    let file = File::options().read(true).write(true).create_new(true).mode(0o600).open(&path)?;
    fs::remove_file(path)?;
    Ok(file)
}

/// The lines that are not blank, with their numbers and without their ends. One that is too long is passed over without
/// being kept: it was rejected as it came.
struct FilledLines {
    reader: BufReader<File>,
    number: u64,
}

impl FilledLines {
    /// The next line; `None` for one that is too long.
    fn read_line(&mut self) -> io::Result<Option<Vec<u8>>> {
        let mut line = Vec::new();
        let within = LINE_BYTES_MAX as u64 + 1;
        self.reader.by_ref().take(within).read_until(b'\n', &mut line)?;
        if line.ends_with(b"\n") || line.len() <= LINE_BYTES_MAX {
            return Ok(Some(line));
        }
        self.reader.skip_until(b'\n')?;
        Ok(None)
    }
}

impl Iterator for FilledLines {
    type Item = io::Result<(u64, Vec<u8>)>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let line = match self.read_line() {
                Ok(Some(line)) if line.is_empty() => return None,
                Ok(line) => line,
                Err(error) => return Some(Err(error)),
            };
            self.number += 1;
            let Some(mut line) = line else { continue };
            line.truncate(line.strip_suffix(b"\n").unwrap_or(&line).len());
            if !line.trim_ascii().is_empty() {
                return Some(Ok((self.number, line)));
            }
        }
    }
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> io::Result<T> + Send + 'static) -> Result<T, Failure> {
    tokio::task::spawn_blocking(work).await.map_err(io::Error::other).and_then(|done| done).map_err(broken)
}

fn broken(error: impl fmt::Display) -> Failure {
    let told = format!("the input could not be spooled in the data directory ({error}); nothing was written");
    Failure::new(FailureCode::Unavailable, told)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn lines_that_are_too_long_are_passed_over_without_being_kept() {
        let scratch = tempfile::tempdir().unwrap();
        let mut spool = Spool::open(&DataDir::new(scratch.path())).await.unwrap();
        let longest = "x".repeat(LINE_BYTES_MAX);
        let too_long = "y".repeat(3 * LINE_BYTES_MAX);
        spool.write(format!("{longest}\n\n{too_long}\na\n{longest}z\nb\n{too_long}").as_bytes()).await.unwrap();
        let lines: Vec<(u64, Vec<u8>)> = spool.lines().await.unwrap().map(Result::unwrap).collect();
        assert!(lines.iter().all(|(_, line)| line.capacity() <= 2 * LINE_BYTES_MAX + 2));
        let found: Vec<(u64, usize)> = lines.iter().map(|(number, line)| (*number, line.len())).collect();
        assert_eq!(found, [(1, LINE_BYTES_MAX), (4, 1), (6, 1)]);
    }
}
