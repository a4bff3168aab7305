//! `oddsbox export`: a world as feed lines.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use indicatif::HumanBytes;
use serde::Serialize;

use super::flags;
use super::invocation::{Invocation, block_on};
use super::output::StdoutClosed;
use crate::admin::{Access, ExportOptions, HistoryRange, PieceSource};
use crate::clock::Clock;
use crate::durable::sync_parent;
use crate::model::World;

/// Write a whole world as feed lines that `ingest` reads back unchanged
///
/// Safe on a running server: it writes a consistent snapshot of the world without blocking requests or changes.
/// Ingested into an empty data directory, the lines give the same world again.
///
/// With --history it writes what the prices of the world were: every change of an event, a score or a price with its
/// time, sport by sport. `ingest --history` reads that back.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  oddsbox export > live.ndjson
  oddsbox export --world sandbox --output sandbox.ndjson
  oddsbox export | oddsbox --data ./copy ingest -
  oddsbox export --history --from 2026-11-01 --to 2026-11-15 > november.ndjson
  oddsbox export --history | oddsbox --data ./copy ingest --history -")]
pub(super) struct ExportArgs {
    /// World to export: live or sandbox
    #[arg(long, default_value = "live", value_parser = flags::world())]
    world: World,
    /// Write the history of the world, not what it is now
    #[arg(long)]
    history: bool,
    /// Begin with what the prices were at this time: 2026-11-14, 2026-11-14T18:00:00Z, or 2h ago [default: all that is kept]
    #[arg(long, value_name = "TIME", requires = "history", value_parser = flags::since)]
    from: Option<flags::Since>,
    /// End with the changes up to this time
    #[arg(long, value_name = "TIME", requires = "history", value_parser = flags::since)]
    to: Option<flags::Since>,
    /// File to write instead of standard output; it appears only when it is complete
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Replace the file if it exists
    #[arg(long, requires = "output")]
    force: bool,
}

/// The result of an export to a file.
#[derive(Debug, Serialize)]
struct Written<'a> {
    world: &'static str,
    file: &'a Path,
    lines: u64,
    bytes: u64,
}

impl ExportArgs {
    pub(super) fn run(self, invocation: &Invocation) -> anyhow::Result<ExitCode> {
        if invocation.output.json && self.output.is_none() {
            anyhow::bail!("export writes feed lines, not one document: leave out --json, or name a file with --output");
        }
        // Refused before anything is read; a file that is created meanwhile is refused at the end.
        if let Some(path) = &self.output
            && !self.force
            && path.symlink_metadata().is_ok()
        {
            return Err(exists(path));
        }
        block_on(async {
            let backend = invocation.backend(Access::Existing).await?;
            let source = backend.export(self.options()?).await;
            let written = match source {
                Ok(source) => self.write(invocation, source).await,
                Err(error) => Err(error.into()),
            };
            backend.close().await?;
            written
        })?;
        Ok(ExitCode::SUCCESS)
    }

    fn options(&self) -> anyhow::Result<ExportOptions> {
        if !self.history {
            return Ok(ExportOptions::World(self.world));
        }
        let now = Clock::system().now().timestamp();
        let [from, to] = [self.from, self.to].map(|time| time.map(|time| time.timestamp(now)));
        if from.zip(to).is_some_and(|(from, to)| from > to) {
            anyhow::bail!("--from is after --to: swap them");
        }
        Ok(ExportOptions::History(HistoryRange { world: self.world, from, to }))
    }

    async fn write(&self, invocation: &Invocation, source: PieceSource) -> anyhow::Result<()> {
        let Some(path) = &self.output else {
            return match copy(source, &mut io::stdout().lock()).await {
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(StdoutClosed.into()),
                copied => copied.map(|_| ()).map_err(incomplete),
            };
        };
        let (lines, bytes) = write_file(path, source, self.force).await.map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => exists(path),
            _ => anyhow::anyhow!("cannot write {}: {error}; no partial file was left", path.display()),
        })?;
        let written = Written { world: self.world.name(), file: path, lines, bytes };
        invocation.output.answer(&written, |_| {
            format!("Wrote {lines} lines ({}) of the {} world to {}.\n", HumanBytes(bytes), self.world, path.display())
        })
    }
}

fn exists(path: &Path) -> anyhow::Error {
    anyhow::anyhow!("{} exists: name another file, or replace it with --force", path.display())
}

fn incomplete(error: io::Error) -> anyhow::Error {
    anyhow::anyhow!("the export failed and is incomplete ({error}): try again")
}

/// Writes to a temporary file and renames it when it is complete and synced.
async fn write_file(path: &Path, source: PieceSource, force: bool) -> io::Result<(u64, u64)> {
    let name = path.file_name().ok_or_else(|| io::Error::from(io::ErrorKind::IsADirectory))?;
    let temporary = path.with_file_name(format!(".{}.{}.tmp", name.to_string_lossy(), std::process::id()));
    let write = async {
        let mut file = File::options().write(true).create_new(true).open(&temporary)?;
        let copied = copy(source, &mut file).await?;
        file.sync_all()?;
        if force {
            fs::rename(&temporary, path)?;
        } else {
            // Unlike a rename, this fails if the file was created meanwhile.
            fs::hard_link(&temporary, path)?;
            fs::remove_file(&temporary)?;
        }
        sync_parent(path)?;
        Ok(copied)
    };
    let written = write.await;
    if written.is_err() {
        // Best effort: the original error is the one to report.
        let _ = fs::remove_file(&temporary);
    }
    written
}

/// Copies all pieces, and returns the number of lines and bytes.
async fn copy(mut source: PieceSource, out: &mut impl Write) -> io::Result<(u64, u64)> {
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
