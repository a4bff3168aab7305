//! `oddsbox ingest`: feed lines from a file or a pipe.

mod hint;

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use bytes::Bytes;
use clap::{Args, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};
use tokio::sync::mpsc;

use self::hint::{Given, START_BYTES_MAX, hint};
use super::flags;
use super::output::pairs;
use super::session::{Session, block_on};
use crate::admin::{Access, AdminAccess, AdminError, IngestAnswer, IngestOptions, PayloadOptions, Source};
use crate::model::{OddsFormat, Regions, World};

const PIECE_BYTES: usize = 64 << 10;
/// Pieces that may wait for the writer; more would only fill the memory.
const PIECES_WAITING: usize = 4;

/// Take in events, prices and scores: feed lines, or a saved payload of The Odds API
///
/// Safe on a running server: lines are written in batches while requests go on, and prices are published when the
/// input ends. Rejected lines are counted by reason and the first of each kind shown; the others are kept. It is exit
/// code 1 if lines came and none was accepted. A data directory that is missing is made.
///
/// With --strict the whole input is read and checked before anything is written, and is then written at once, so that
/// it is kept whole or not at all: one rejected line is exit code 1 with nothing written. Other changes wait for that
/// long, and it takes 1 GiB at most. An outcome that is no price does not reject its line.
///
/// With --format the-odds-api the input is one answer of version 4 of The Odds API, as it was saved: odds, scores or
/// events, also from its archive. Every bookmaker's market is a message of its own; what the sport does not have, lay
/// markets among it, is rejected.
#[derive(Debug, Args)]
pub(super) struct Ingest {
    /// The file to read, or - for standard input
    #[arg(value_hint = clap::ValueHint::FilePath)]
    file: PathBuf,
    /// The world that the lines belong to
    #[arg(long, default_value = "live", value_parser = flags::world())]
    world: World,
    /// Keep all of it or nothing
    #[arg(long)]
    strict: bool,
    /// What the input is
    #[arg(long, value_enum, default_value_t = Format::Lines)]
    format: Format,
    /// The sport of a payload, where it does not say so itself: our key, or one of The Odds API
    #[arg(long, value_name = "KEY", value_parser = flags::sport, requires = "format")]
    sport: Option<String>,
    /// How a payload's prices are quoted, where they do not show it: american, decimal or fractional
    #[arg(long, value_name = "FORMAT", value_parser = flags::odds_format, requires = "format")]
    odds_format: Option<OddsFormat>,
    /// Where a payload's bookmakers are offered that nobody has declared: us, uk, eu, au
    #[arg(long, value_name = "LIST", value_parser = flags::regions, requires = "format")]
    regions: Option<Regions>,
}

/// What an input is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Feed lines: one JSON object a line
    Lines,
    /// An answer of version 4 of The Odds API
    TheOddsApi,
}

impl Ingest {
    pub(super) fn run(self, session: &Session) -> anyhow::Result<ExitCode> {
        let input = Input::open(&self.file)?;
        let (answer, start) = block_on(async {
            let door = session.door(Access::Create).await?;
            let (source, seen) = input.start()?;
            let answer = self.send(&door, source).await;
            door.close().await?;
            let Seen { start, broken } = std::mem::take(&mut *seen.lock().unwrap_or_else(PoisonError::into_inner));
            if let Some(error) = broken {
                anyhow::bail!(
                    "{} cannot be read to its end ({error}): mend that and send it again",
                    self.file.display()
                );
            }
            Ok((answer, start))
        })?;
        let hint = || hint(&start, self.given(), session);
        let answer = answer.map_err(|error| match (&error, hint()) {
            (AdminError::Refused(_), Some(hint)) => anyhow::anyhow!("{error}; {hint}"),
            _ => error.into(),
        })?;
        let (many, one) = self.words();
        session.output.answer(&answer, |_| report(&answer, many, one))?;
        let IngestAnswer { lines, accepted, rejected, .. } = answer;
        let advice = if accepted == 0 { hint() } else { None };
        if !answer.written {
            let advice = advice.unwrap_or_else(|| "mend them and send it again".to_owned());
            anyhow::bail!("{rejected} of {lines} {many} were rejected, so nothing was written: {advice}");
        }
        if lines > 0 && accepted == 0 {
            let advice = advice.unwrap_or_else(|| "the report says why".to_owned());
            anyhow::bail!("none of {lines} {many} was accepted: {advice}");
        }
        Ok(ExitCode::SUCCESS)
    }

    fn given(&self) -> Given<'_> {
        Given { format: self.format, file: &self.file, world: self.world, strict: self.strict }
    }

    async fn send(&self, door: &AdminAccess, source: Source) -> Result<IngestAnswer, AdminError> {
        let (world, strict) = (self.world, self.strict);
        match self.format {
            Format::Lines => door.ingest(IngestOptions { world, strict }, source).await,
            Format::TheOddsApi => {
                let (sport, odds_format) = (self.sport.clone(), self.odds_format);
                let regions = self.regions.unwrap_or_default();
                let options = PayloadOptions { world, strict, sport, odds_format, regions };
                door.ingest_payload(&options, source).await
            }
        }
    }

    /// What is counted, and what an example names.
    const fn words(&self) -> (&'static str, &'static str) {
        match self.format {
            Format::Lines => ("lines", "line"),
            Format::TheOddsApi => ("messages", "event"),
        }
    }
}

/// Something to read lines from.
struct Input {
    reader: Box<dyn Read + Send>,
    progress: ProgressBar,
}

/// What the reading thread leaves for the report.
#[derive(Debug, Default)]
struct Seen {
    /// The beginning of the input.
    start: Vec<u8>,
    /// What broke it off.
    broken: Option<io::Error>,
}

impl Input {
    fn open(path: &Path) -> anyhow::Result<Input> {
        if path == Path::new("-") {
            return Ok(Input { reader: Box::new(io::stdin()), progress: progress(None)? });
        }
        let open = || {
            let file = File::open(path)?;
            let found = file.metadata()?;
            if found.is_dir() { Err(io::Error::from(io::ErrorKind::IsADirectory)) } else { Ok((file, found)) }
        };
        let (file, found) = open().map_err(|error| {
            anyhow::anyhow!("{} cannot be read ({error}): name a file, or - for standard input", path.display())
        })?;
        Ok(Input { reader: Box::new(file), progress: progress(found.is_file().then_some(found.len()))? })
    }

    /// Reads on a thread of its own, since a pipe may keep it waiting; no further ahead than the writer can follow.
    fn start(self) -> io::Result<(Source, Arc<Mutex<Seen>>)> {
        let Input { mut reader, progress } = self;
        let (sender, source) = mpsc::channel(PIECES_WAITING);
        let seen = Arc::<Mutex<Seen>>::default();
        let noted = Arc::clone(&seen);
        thread::Builder::new().name("input".to_owned()).spawn(move || {
            let mut piece = vec![0; PIECE_BYTES];
            loop {
                let sent = match reader.read(&mut piece) {
                    Ok(0) => break,
                    Ok(count) => {
                        progress.inc(count as u64);
                        let mut seen = noted.lock().unwrap_or_else(PoisonError::into_inner);
                        let room = START_BYTES_MAX - seen.start.len();
                        seen.start.extend_from_slice(&piece[..count.min(room)]);
                        drop(seen);
                        sender.blocking_send(Ok(Bytes::copy_from_slice(&piece[..count])))
                    }
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    Err(error) => {
                        let told = io::Error::new(error.kind(), error.to_string());
                        noted.lock().unwrap_or_else(PoisonError::into_inner).broken = Some(error);
                        sender.blocking_send(Err(told))
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

/// A bar on standard error. It hides itself where that is no terminal.
fn progress(bytes: Option<u64>) -> anyhow::Result<ProgressBar> {
    let (bar, style) = match bytes {
        Some(bytes) => (ProgressBar::new(bytes), "{bar:40} {bytes}/{total_bytes} {bytes_per_sec} {eta}"),
        None => (ProgressBar::new_spinner(), "{spinner} {bytes} {bytes_per_sec}"),
    };
    Ok(bar.with_style(ProgressStyle::with_template(style)?))
}

fn report(answer: &IngestAnswer, many: &str, one: &str) -> String {
    let became =
        if answer.written { format!("{} changed something", answer.changed) } else { "not written".to_owned() };
    let mut text = pairs(&[
        (many, answer.lines.to_string()),
        ("accepted", format!("{} ({became})", answer.accepted)),
        ("rejected", counted(answer.rejected, &answer.rejected_by_reason)),
        ("outcomes dropped", counted(answer.dropped_outcomes, &answer.dropped_outcomes_by_reason)),
    ]);
    for example in &answer.examples {
        let _ = writeln!(text, "{one} {}: {}: {}", example.line, example.reason, example.detail);
    }
    text
}

/// `5 (3 late, 2 unknown_event)`.
fn counted(total: u64, reasons: &std::collections::BTreeMap<String, u64>) -> String {
    let reasons: Vec<String> = reasons.iter().map(|(reason, count)| format!("{count} {reason}")).collect();
    if reasons.is_empty() { total.to_string() } else { format!("{total} ({})", reasons.join(", ")) }
}
