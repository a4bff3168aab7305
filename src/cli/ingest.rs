//! `oddsbox ingest`: feed lines from a file or a pipe.

mod hint;
mod interrupt;
mod report;

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use bytes::Bytes;
use clap::{Args, ValueEnum};
use indicatif::{HumanCount, ProgressBar, ProgressStyle};
use tokio::sync::mpsc;

use self::hint::{GivenCommand, START_BYTES_MAX, hint};
use self::interrupt::{IngestEnd, Interrupts, send_until_interrupted};
use self::report::{Words, none_accepted, report, some_rejected};
use super::flags;
use super::invocation::{Invocation, block_on};
use crate::admin::{Access, AdminAccess, AdminError, PieceSource};
use crate::ingest::{IngestOptions, IngestSummary, PayloadOptions};
use crate::model::{OddsFormat, Regions, World};

const PIECE_BYTES: usize = 64 << 10;
/// Pieces that may be queued for the writer.
const PIECES_WAITING: usize = 4;
/// The exit code after Ctrl-C, as shells have it: 128 and the number of the signal.
const INTERRUPTED: u8 = 130;

/// Ingest events, prices and scores: feed lines, or a saved payload of The Odds API
///
/// Safe on a running server: lines are written in batches while requests continue, and prices are published when the
/// input ends. Rejected lines are counted by reason and reported with the first example of each; the others are kept.
/// The exit code is 1 if there were lines and none was accepted. A missing data directory is created.
///
/// With --strict the whole input is read and validated first and then written at once, so that it is kept completely or
/// not at all: with one rejected line the exit code is 1 and nothing is written. Other changes wait meanwhile, and the
/// input may have at most 1 GiB. An outcome with an invalid price does not reject its line.
///
/// Ctrl-C ends the input after the last whole line that was read: what was accepted is kept and reported, and the exit
/// code is 130. A strict input or a payload is then not written.
///
/// With --format the-odds-api the input is one saved response of version 4 of The Odds API: odds, scores or events,
/// also historical ones. Each market of each bookmaker is one message; markets that the sport does not have
/// are rejected.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  oddsbox ingest prices.ndjson
  oddsbox ingest - --strict < prices.ndjson
  oddsbox ingest --world sandbox prices.ndjson --json
  oddsbox ingest --format the-odds-api --sport mma odds.json")]
pub(super) struct IngestArgs {
    /// File to read, or - for standard input
    #[arg(value_hint = clap::ValueHint::FilePath)]
    file: PathBuf,
    /// World that the lines belong to
    #[arg(long, default_value = "live", value_parser = flags::world())]
    world: World,
    /// Write all of the input or nothing
    #[arg(long)]
    strict: bool,
    /// Format of the input
    #[arg(long, value_enum, default_value_t = InputFormat::Lines)]
    format: InputFormat,
    /// Sport of a payload that does not name it, by oddsbox's key or that of The Odds API
    #[arg(long, value_name = "KEY", value_parser = flags::sport, requires = "format")]
    sport: Option<String>,
    /// Price format of a payload, if it cannot be detected: american, decimal or fractional
    #[arg(long, value_name = "FORMAT", value_parser = flags::odds_format, requires = "format")]
    odds_format: Option<OddsFormat>,
    /// Regions of a payload's undeclared bookmakers, separated by commas, such as us or uk,eu
    #[arg(long, value_name = "LIST", value_parser = flags::regions, requires = "format")]
    regions: Option<Regions>,
}

/// The format of the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum InputFormat {
    /// Feed lines: one JSON object per line
    Lines,
    /// A response of version 4 of The Odds API
    TheOddsApi,
}

impl IngestArgs {
    pub(super) fn run(self, invocation: &Invocation) -> anyhow::Result<ExitCode> {
        let input = Input::open(&self.file)?;
        let (end, start) = block_on(async {
            let backend = invocation.backend(Access::Create).await?;
            let interrupts = Interrupts::listen()?;
            let (source, seen) = input.start()?;
            let send = |source| self.send(&backend, source);
            let end = send_until_interrupted(source, self.is_whole(), interrupts, invocation.output, send).await;
            backend.close().await?;
            let InputState { start, error } = std::mem::take(&mut *seen.lock().unwrap_or_else(PoisonError::into_inner));
            if let Some(error) = error {
                anyhow::bail!("cannot read {}: {error}; fix that and ingest it again", self.file.display());
            }
            Ok((end, start))
        })?;
        match end {
            IngestEnd::Answered(answer) => self.finish(answer, &start, invocation),
            IngestEnd::Interrupted(answer) => {
                let answer = answer?;
                let words = self.words();
                invocation.output.answer(&answer, |_| report(&answer, words))?;
                let (kept, read) = (HumanCount(answer.accepted), HumanCount(answer.lines));
                let many = words.many;
                let advice = "ingest the input again to add the rest";
                Ok(interrupted(invocation, &format!("kept {kept} of the {read} {many} read so far: {advice}")))
            }
            IngestEnd::Discarded => Ok(interrupted(invocation, "nothing was written")),
            IngestEnd::Abandoned => {
                Ok(interrupted(invocation, "the last part of the input may have been written or not"))
            }
        }
    }

    /// Reports on an input that was read to its end.
    fn finish(
        &self,
        answer: Result<IngestSummary, AdminError>,
        start: &[u8],
        invocation: &Invocation,
    ) -> anyhow::Result<ExitCode> {
        let hint = || hint(start, self.given(), invocation);
        let answer = answer.map_err(|error| match (&error, hint()) {
            (AdminError::Refused(_), Some(hint)) => anyhow::anyhow!("{error}; {hint}"),
            _ => error.into(),
        })?;
        let words = self.words();
        invocation.output.answer(&answer, |_| report(&answer, words))?;
        let IngestSummary { lines, accepted, rejected, .. } = answer;
        let advice = if accepted == 0 { hint() } else { None };
        if !answer.written {
            let advice = advice.unwrap_or_else(|| "fix the input and ingest it again".to_owned());
            anyhow::bail!("{}, so nothing was written: {advice}", some_rejected(rejected, lines, words));
        }
        if lines > 0 && accepted == 0 {
            let advice = advice.unwrap_or_else(|| "the report says why".to_owned());
            anyhow::bail!("{}: {advice}", none_accepted(lines, words));
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Whether nothing is written of an input that was not read to its end.
    fn is_whole(&self) -> bool {
        self.strict || self.format == InputFormat::TheOddsApi
    }

    fn given(&self) -> GivenCommand<'_> {
        GivenCommand { format: self.format, file: &self.file, world: self.world, strict: self.strict }
    }

    async fn send(&self, backend: &AdminAccess, source: PieceSource) -> Result<IngestSummary, AdminError> {
        let (world, strict) = (self.world, self.strict);
        match self.format {
            InputFormat::Lines => backend.ingest(IngestOptions { world, strict }, source).await,
            InputFormat::TheOddsApi => {
                let (sport, odds_format) = (self.sport.clone(), self.odds_format);
                let regions = self.regions.unwrap_or_default();
                let options = PayloadOptions { world, strict, sport, odds_format, regions };
                backend.ingest_payload(&options, source).await
            }
        }
    }

    const fn words(&self) -> Words {
        match self.format {
            InputFormat::Lines => Words { one: "line", many: "lines", example: "line" },
            InputFormat::TheOddsApi => Words { one: "message", many: "messages", example: "event" },
        }
    }
}

/// Says what became of an interrupted input.
fn interrupted(invocation: &Invocation, kept: &str) -> ExitCode {
    invocation.output.diagnostic("error", &format!("interrupted: {kept}"));
    ExitCode::from(INTERRUPTED)
}

/// An open input.
struct Input {
    reader: Box<dyn Read + Send>,
    progress: ProgressBar,
}

/// What the reading thread records for the report.
#[derive(Debug, Default)]
struct InputState {
    /// The beginning of the input.
    start: Vec<u8>,
    /// The error that ended it.
    error: Option<io::Error>,
}

impl Input {
    fn open(path: &Path) -> anyhow::Result<Input> {
        if path == Path::new("-") {
            return Ok(Input { reader: Box::new(io::stdin()), progress: progress(None)? });
        }
        let open = || {
            let file = File::open(path)?;
            let metadata = file.metadata()?;
            if metadata.is_dir() { Err(io::Error::from(io::ErrorKind::IsADirectory)) } else { Ok((file, metadata)) }
        };
        let (file, metadata) = open().map_err(|error| {
            anyhow::anyhow!("cannot read {}: {error}; name a file, or - for standard input", path.display())
        })?;
        Ok(Input { reader: Box::new(file), progress: progress(metadata.is_file().then_some(metadata.len()))? })
    }

    /// Reads on a separate thread, since a pipe may block. The channel bounds how far it reads ahead.
    fn start(self) -> io::Result<(PieceSource, Arc<Mutex<InputState>>)> {
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

/// A progress bar on standard error, hidden if that is not a terminal.
fn progress(bytes: Option<u64>) -> anyhow::Result<ProgressBar> {
    let (bar, style) = match bytes {
        Some(bytes) => (ProgressBar::new(bytes), "{bar:40} {bytes}/{total_bytes} {bytes_per_sec} {eta}"),
        None => (ProgressBar::new_spinner(), "{spinner} {bytes} {bytes_per_sec}"),
    };
    Ok(bar.with_style(ProgressStyle::with_template(style)?))
}
