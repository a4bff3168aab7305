//! `oddsbox ingest`: feed lines from a file or a pipe.

mod hint;
mod input;
mod interrupt;
mod report;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::PoisonError;

use clap::{Args, ValueEnum};
use indicatif::HumanCount;

use self::hint::{GivenCommand, hint};
use self::input::{Input, InputState, sort_responses};
use self::interrupt::{IngestEnd, Interrupts, send_until_interrupted};
use self::report::{Words, none_accepted, report, some_rejected};
use super::flags;
use super::invocation::{Invocation, block_on};
use crate::admin::{Access, AdminAccess, AdminError, PieceSource};
use crate::ingest::{HistoryInput, IngestOptions, IngestSummary, PayloadOptions};
use crate::model::{OddsFormat, Regions, World};

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
///
/// With --history the input is what prices were in the past: lines of `export --history`, or with --format the-odds-api
/// saved responses of /v4/historical, as many as there are. It is added to the history of each sport before the first
/// price that this server published itself, as far back as history.keep reaches, and is seen when all of it has been
/// read. Lines of a sport come in the order of time; files of responses are sorted by their timestamps. A response that
/// lists the events of a competition closes the prices that it lacks, of the markets and bookmakers that it has.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  oddsbox ingest prices.ndjson
  oddsbox ingest - --strict < prices.ndjson
  oddsbox ingest --world sandbox prices.ndjson --json
  oddsbox ingest --format the-odds-api --sport mma odds.json
  oddsbox ingest --history history.ndjson
  oddsbox ingest --history --format the-odds-api bought/*.json")]
pub(super) struct IngestArgs {
    /// File to read, or - for standard input; with --history also several files
    #[arg(value_name = "FILE", required = true, value_hint = clap::ValueHint::FilePath)]
    files: Vec<PathBuf>,
    /// World that the lines belong to
    #[arg(long, default_value = "live", value_parser = flags::world())]
    world: World,
    /// Write all of the input or nothing
    #[arg(long)]
    strict: bool,
    /// Import what prices were in the past, not what they are
    #[arg(long)]
    history: bool,
    /// Format of the input
    #[arg(long, value_enum, default_value_t = InputFormat::Lines)]
    format: InputFormat,
    /// Sport of a payload that does not name it, by oddsbox's key or that of The Odds API
    #[arg(long, value_name = "KEY", value_parser = flags::sport, requires = "format")]
    sport: Option<String>,
    /// Price format of a payload, if it cannot be detected: american, decimal or fractional
    #[arg(long, value_name = "FORMAT", value_parser = flags::odds_format, requires = "format")]
    odds_format: Option<OddsFormat>,
    #[arg(
        long,
        value_name = "LIST",
        value_parser = flags::regions,
        requires = "format",
        help = "Regions of a payload's undeclared bookmakers: us, us2, us_dfs, us_ex, uk, eu, fr, se, au"
    )]
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
    pub(super) fn run(mut self, invocation: &Invocation) -> anyhow::Result<ExitCode> {
        if self.files.len() > 1 && !self.history {
            anyhow::bail!("ingest takes one file, or several with --history: run it once for each");
        }
        if self.history && self.format == InputFormat::TheOddsApi {
            sort_responses(&mut self.files);
        }
        let input = Input::open(&self.files)?;
        let (end, start) = block_on(async {
            let backend = invocation.backend(Access::Create).await?;
            let interrupts = Interrupts::listen()?;
            let (source, seen) = input.start()?;
            let send = |source| self.send(&backend, source);
            let end = send_until_interrupted(source, self.is_whole(), interrupts, invocation.output, send).await;
            backend.close().await?;
            let InputState { start, error } = std::mem::take(&mut *seen.lock().unwrap_or_else(PoisonError::into_inner));
            if let Some(error) = error {
                anyhow::bail!("cannot read {}: {error}; fix that and ingest it again", self.name());
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
        self.strict || self.history || self.format == InputFormat::TheOddsApi
    }

    /// What the input is called in messages.
    fn name(&self) -> String {
        match &self.files[..] {
            [file] => file.display().to_string(),
            files => format!("one of the {} files", files.len()),
        }
    }

    fn given(&self) -> GivenCommand<'_> {
        let file = self.files.first().map_or(Path::new("-"), PathBuf::as_path);
        let (format, history, world, strict) = (self.format, self.history, self.world, self.strict);
        GivenCommand { format, history, file, world, strict }
    }

    async fn send(&self, backend: &AdminAccess, source: PieceSource) -> Result<IngestSummary, AdminError> {
        let (world, strict) = (self.world, self.strict);
        let options = IngestOptions { world, strict };
        let payload = match self.format {
            InputFormat::Lines => None,
            InputFormat::TheOddsApi => {
                let (sport, odds_format) = (self.sport.clone(), self.odds_format);
                let regions = self.regions.unwrap_or_default();
                Some(PayloadOptions { world, strict, sport, odds_format, regions })
            }
        };
        match payload {
            payload if self.history => backend.ingest_history(&HistoryInput { options, payload }, source).await,
            Some(payload) => backend.ingest_payload(&payload, source).await,
            None => backend.ingest(options, source).await,
        }
    }

    const fn words(&self) -> Words {
        match self.format {
            InputFormat::Lines => Words { one: "line", many: "lines", example: "line" },
            InputFormat::TheOddsApi if self.history => Words { one: "message", many: "messages", example: "response" },
            InputFormat::TheOddsApi => Words { one: "message", many: "messages", example: "event" },
        }
    }
}

/// Says what became of an interrupted input.
fn interrupted(invocation: &Invocation, kept: &str) -> ExitCode {
    invocation.output.diagnostic("error", &format!("interrupted: {kept}"));
    ExitCode::from(INTERRUPTED)
}
