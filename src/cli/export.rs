//! `oddsbox export`: a world as feed lines.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use indicatif::HumanBytes;
use serde::Serialize;

use super::flags;
use super::output::Closed;
use super::session::{Session, block_on};
use crate::admin::{Access, Source};
use crate::model::World;

/// Write a whole world as feed lines that `ingest` takes back unchanged
///
/// Safe on a running server: it writes the world as it is at that moment, as fast as it is taken, and holds up nobody.
/// Taken into an empty data directory, the lines give the same world again.
#[derive(Debug, Args)]
pub(super) struct Export {
    /// The world to write: live or sandbox
    #[arg(long, default_value = "live", value_parser = flags::world())]
    world: World,
    /// The file to write, in place of standard output; it appears when it is complete
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// What was written to a file.
#[derive(Debug, Serialize)]
struct Written<'a> {
    world: &'static str,
    file: &'a Path,
    lines: u64,
    bytes: u64,
}

impl Export {
    pub(super) fn run(self, session: &Session) -> anyhow::Result<ExitCode> {
        if session.output.json && self.output.is_none() {
            anyhow::bail!("export writes feed lines, not one document: leave out --json, or name a file with --output");
        }
        block_on(async {
            let door = session.door(Access::Existing).await?;
            let source = door.export(self.world).await;
            let written = match source {
                Ok(source) => self.write(session, source).await,
                Err(error) => Err(error.into()),
            };
            door.close().await?;
            written
        })?;
        Ok(ExitCode::SUCCESS)
    }

    async fn write(&self, session: &Session, source: Source) -> anyhow::Result<()> {
        let Some(path) = &self.output else {
            return match copy(source, &mut io::stdout().lock()).await {
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(Closed.into()),
                copied => copied.map(|_| ()).map_err(broken_off),
            };
        };
        let (lines, bytes) = write_file(path, source).await.map_err(|error| {
            anyhow::anyhow!("{} cannot be written ({error}): nothing was left there", path.display())
        })?;
        let written = Written { world: self.world.name(), file: path, lines, bytes };
        session.output.answer(&written, |_| {
            format!("Wrote {lines} lines ({}) of the {} world to {}.\n", HumanBytes(bytes), self.world, path.display())
        })
    }
}

fn broken_off(error: io::Error) -> anyhow::Error {
    anyhow::anyhow!("the export broke off and is not complete ({error}): try again")
}

/// Writes beside the file and puts it in its place when it is complete and on disk.
async fn write_file(path: &Path, source: Source) -> io::Result<(u64, u64)> {
    let name = path.file_name().ok_or_else(|| io::Error::from(io::ErrorKind::IsADirectory))?;
    let beside = path.with_file_name(format!(".{}.{}.tmp", name.to_string_lossy(), std::process::id()));
    let write = async {
        let mut file = File::options().write(true).create_new(true).open(&beside)?;
        let copied = copy(source, &mut file).await?;
        file.sync_all()?;
        fs::rename(&beside, path)?;
        Ok(copied)
    };
    let written = write.await;
    if written.is_err() {
        // What is there is ours and of no use; if it cannot be removed, the error above says enough.
        let _ = fs::remove_file(&beside);
    }
    written
}

/// Copies every piece; how many lines and bytes they were.
async fn copy(mut source: Source, out: &mut impl Write) -> io::Result<(u64, u64)> {
    let (mut lines, mut bytes) = (0, 0);
    while let Some(piece) = source.recv().await {
        let piece = piece?;
        out.write_all(&piece)?;
        lines += piece.split(|byte| *byte == b'\n').count().saturating_sub(1) as u64;
        bytes += piece.len() as u64;
    }
    out.flush()?;
    Ok((lines, bytes))
}
