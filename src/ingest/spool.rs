//! Keeps a strict input on disk while it is read, in an unnamed temporary file: nothing is left behind after a crash.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::PathBuf;
use std::sync::Arc;

use tokio::io::AsyncWriteExt;

use super::error::IngestError;
use super::wire::{self, LINE_BYTES_MAX};
use crate::model::{Catalogue, News, Reason};
use crate::writer::NewsReader;

/// A strict input is one transaction, and other changes wait for it: a longer input has to be split.
pub(super) const SPOOL_BYTES_MAX: u64 = 1 << 30;

#[derive(Debug)]
pub(super) struct Spool {
    file: tokio::fs::File,
    bytes: u64,
}

impl Spool {
    pub(super) async fn open(directory: PathBuf) -> Result<Self, IngestError> {
        let file = blocking(move || tempfile::tempfile_in(directory)).await?;
        Ok(Spool { file: tokio::fs::File::from_std(file), bytes: 0 })
    }

    pub(super) async fn write(&mut self, bytes: &[u8]) -> Result<(), IngestError> {
        self.bytes += bytes.len() as u64;
        if self.bytes > SPOOL_BYTES_MAX {
            return Err(IngestError::SpoolFull);
        }
        self.file.write_all(bytes).await.map_err(IngestError::Spool)
    }

    /// The news of every valid line, for the writer.
    pub(super) async fn news(&mut self, catalogue: Arc<Catalogue>) -> Result<NewsReader, IngestError> {
        let valid = self.valid(catalogue).await?;
        Ok(NewsReader(Box::new(valid.map(|line| line.map(|line| line.news)))))
    }

    /// The numbers and texts of the lines at some positions, which count valid lines only.
    pub(super) async fn lines_at(
        &mut self,
        positions: &[(u64, Reason)],
        catalogue: Arc<Catalogue>,
    ) -> Result<Vec<(u64, Vec<u8>)>, IngestError> {
        let Some((last, _)) = positions.last() else { return Ok(Vec::new()) };
        let valid = self.valid(catalogue).await?;
        let wanted: Vec<u64> = positions.iter().map(|(position, _)| *position).collect();
        let last = *last;
        blocking(move || {
            let mut lines = Vec::with_capacity(wanted.len());
            for (position, line) in (0..=last).zip(valid) {
                let ValidLine { number, text, .. } = line?;
                if wanted.binary_search(&position).is_ok() {
                    lines.push((number, text));
                }
            }
            Ok(lines)
        })
        .await
    }

    /// The valid lines. The others were counted as they came.
    async fn valid(
        &mut self,
        catalogue: Arc<Catalogue>,
    ) -> Result<impl Iterator<Item = io::Result<ValidLine>> + Send + use<>, IngestError> {
        let lines = self.lines().await?;
        Ok(lines.filter_map(move |line| match line {
            Ok((number, text)) => {
                wire::read(&text, &catalogue).ok().map(|read| Ok(ValidLine { number, text, news: read.news }))
            }
            Err(error) => Some(Err(error)),
        }))
    }

    async fn lines(&mut self) -> Result<SpooledLines, IngestError> {
        self.file.flush().await.map_err(IngestError::Spool)?;
        let mut file = self.file.try_clone().await.map_err(IngestError::Spool)?.into_std().await;
        file.seek(SeekFrom::Start(0)).map_err(IngestError::Spool)?;
        Ok(SpooledLines { reader: BufReader::new(file), number: 0 })
    }
}

/// A line that could be read.
struct ValidLine {
    number: u64,
    text: Vec<u8>,
    news: News,
}

/// The lines that are not blank, with their numbers and without their ends. One that is too long is skipped without
/// being kept: it was rejected as it came.
struct SpooledLines {
    reader: BufReader<File>,
    number: u64,
}

impl SpooledLines {
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

impl Iterator for SpooledLines {
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

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> io::Result<T> + Send + 'static) -> Result<T, IngestError> {
    tokio::task::spawn_blocking(work).await.map_err(io::Error::other).and_then(|done| done).map_err(IngestError::Spool)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn lines_that_are_too_long_are_skipped_without_being_kept() {
        let scratch = tempfile::tempdir().unwrap();
        let mut spool = Spool::open(scratch.path().to_owned()).await.unwrap();
        let longest = "x".repeat(LINE_BYTES_MAX);
        let too_long = "y".repeat(3 * LINE_BYTES_MAX);
        spool.write(format!("{longest}\n\n{too_long}\na\n{longest}z\nb\n{too_long}").as_bytes()).await.unwrap();
        let lines: Vec<(u64, Vec<u8>)> = spool.lines().await.unwrap().map(Result::unwrap).collect();
        assert!(lines.iter().all(|(_, line)| line.capacity() <= 2 * LINE_BYTES_MAX + 2));
        let found: Vec<(u64, usize)> = lines.iter().map(|(number, line)| (*number, line.len())).collect();
        assert_eq!(found, [(1, LINE_BYTES_MAX), (4, 1), (6, 1)]);
    }
}
