//! Taking in a stream of feed lines.
//!
//! Bytes come in pieces of any size; whole lines are read, gathered into batches and handed to the writer, which is
//! waited for: that is the back-pressure, and no more than one batch and one line are ever in memory. A strict input is
//! spooled instead, and taken whole at its end.

use std::sync::Arc;

use super::context::Context;
use super::lines::{Line, Lines};
use super::protocol::{Example, Failure, IngestAnswer, IngestOptions};
use super::spool::Spool;
use crate::feeds::wire::{self, LINE_BYTES_MAX, Rejection};
use crate::model::{Catalogue, News, Reason};
use crate::writer::{IngestReport, Whole, WriterHandle};

const BATCH_LINES_MAX: usize = 1000;
const BATCH_BYTES_MAX: usize = 1 << 20;
/// As many rejected lines as a report shows.
const EXAMPLES_MAX: usize = 10;

/// A stream of lines on its way in.
#[derive(Debug)]
pub struct Intake {
    options: IngestOptions,
    writer: WriterHandle,
    catalogue: Arc<Catalogue>,
    lines: Lines,
    tally: Tally,
    batch: Batch,
    /// Where a strict input waits.
    spool: Option<Spool>,
}

/// Lines that were read and not yet handed on.
#[derive(Debug, Default)]
struct Batch {
    news: Vec<News>,
    /// The line of each.
    numbers: Vec<u64>,
    bytes: usize,
}

impl Intake {
    pub async fn open(options: IngestOptions, context: &Context) -> Result<Self, Failure> {
        let spool = if options.strict { Some(Spool::open(&context.data).await?) } else { None };
        Ok(Intake {
            options,
            writer: context.writer.clone(),
            catalogue: Arc::clone(context.boards.catalogue()),
            lines: Lines::default(),
            tally: Tally::default(),
            batch: Batch::default(),
            spool,
        })
    }

    /// Takes in the next piece of the stream, and waits for the writer when a batch is full.
    pub async fn push(&mut self, mut bytes: &[u8]) -> Result<(), Failure> {
        if let Some(spool) = &mut self.spool {
            spool.write(bytes).await?;
        }
        while let Some(line) = self.lines.next(&mut bytes) {
            self.tally.line(line, &self.catalogue, &mut self.batch);
            if self.batch.is_full() {
                self.flush(false).await?;
            }
        }
        Ok(())
    }

    /// Hands on the lines that have come so far, for a stream that pauses.
    pub async fn pause(&mut self) -> Result<(), Failure> {
        if self.batch.news.is_empty() { Ok(()) } else { self.flush(false).await }
    }

    /// Ends the stream.
    pub async fn finish(mut self) -> Result<IngestAnswer, Failure> {
        if let Some(line) = self.lines.last() {
            self.tally.line(line, &self.catalogue, &mut self.batch);
        }
        self.flush(true).await?;
        let Some(mut spool) = self.spool.take() else { return Ok(self.tally.answer(self.options, true)) };
        // Lines that cannot be read already forbid writing; what else would be rejected is told all the same.
        let whole = if self.tally.rejected() > 0 { Whole::Checked } else { Whole::Taken };
        let news = spool.news(Arc::clone(&self.catalogue)).await?;
        self.tally.report = self.writer.ingest_whole(self.options.world, news, whole).await?;
        let positions: Vec<_> = self.tally.report.first_rejected().to_vec();
        let numbers = spool.line_numbers(&positions, Arc::clone(&self.catalogue)).await?;
        for (line, (_, reason)) in numbers.into_iter().zip(positions) {
            self.tally.example(line, reason, told(reason));
        }
        let written = self.tally.rejected() == 0;
        Ok(self.tally.answer(self.options, written))
    }

    async fn flush(&mut self, end: bool) -> Result<(), Failure> {
        let Batch { news, numbers, .. } = std::mem::take(&mut self.batch);
        if self.spool.is_some() {
            return Ok(());
        }
        let report = self.writer.ingest(self.options.world, news, end).await?;
        for (position, reason) in report.first_rejected() {
            let number = usize::try_from(*position).ok().and_then(|position| numbers.get(position));
            self.tally.example(number.copied().unwrap_or(0), *reason, told(*reason));
        }
        self.tally.report.add(&report);
        Ok(())
    }
}

impl Batch {
    fn is_full(&self) -> bool {
        self.news.len() >= BATCH_LINES_MAX || self.bytes >= BATCH_BYTES_MAX
    }
}

/// What has become of the lines so far.
#[derive(Debug, Default)]
struct Tally {
    /// Every line, as an editor counts.
    line_count: u64,
    blank: u64,
    /// Lines that could not be read, by [`Reason`].
    unread: [u64; Reason::COUNT],
    /// Outcomes left out of lines that were read, by [`Reason`].
    dropped: [u64; Reason::COUNT],
    /// What the writer says of the others.
    report: IngestReport,
    examples: Vec<Example>,
}

impl Tally {
    fn line(&mut self, line: Line<'_>, catalogue: &Catalogue, batch: &mut Batch) {
        self.line_count += 1;
        let text = match line {
            Line::Text(text) if text.trim_ascii().is_empty() => {
                self.blank += 1;
                return;
            }
            Line::Text(text) => text,
            Line::TooLong => {
                let detail = format!("a line has at most {LINE_BYTES_MAX} bytes");
                return self.reject(&Rejection { reason: Reason::LineTooLong, detail: detail.into() });
            }
        };
        match wire::read(text, catalogue) {
            Err(rejection) => self.reject(&rejection),
            Ok(reading) => {
                for outcome in &reading.dropped {
                    self.dropped[outcome.reason as usize] += 1;
                }
                batch.bytes += text.len();
                batch.numbers.push(self.line_count);
                batch.news.push(reading.news);
            }
        }
    }

    fn reject(&mut self, rejection: &Rejection) {
        self.unread[rejection.reason as usize] += 1;
        self.example(self.line_count, rejection.reason, &rejection.detail);
    }

    /// The writer tells of a batch's lines after later ones were read: the first lines are kept, not the first told.
    fn example(&mut self, line: u64, reason: Reason, detail: &str) {
        let at = self.examples.partition_point(|example| example.line < line);
        if at < EXAMPLES_MAX {
            let example = Example { line, reason: reason.key().to_owned(), detail: detail.to_owned() };
            self.examples.insert(at, example);
            self.examples.truncate(EXAMPLES_MAX);
        }
    }

    fn rejected(&self) -> u64 {
        self.unread.iter().sum::<u64>() + self.report.rejected()
    }

    fn answer(self, options: IngestOptions, written: bool) -> IngestAnswer {
        let lines = self.line_count - self.blank;
        let rejected = self.rejected();
        let mut by_reason = self.unread;
        for (reason, count) in self.report.reasons() {
            by_reason[reason as usize] += count;
        }
        IngestAnswer {
            world: options.world.into(),
            strict: options.strict,
            written,
            lines,
            accepted: lines - rejected,
            changed: if written { self.report.changed } else { 0 },
            unchanged: if written { self.report.unchanged } else { 0 },
            rejected,
            rejected_by_reason: named(&by_reason),
            dropped_outcomes: self.dropped.iter().sum(),
            dropped_outcomes_by_reason: named(&self.dropped),
            examples: self.examples,
        }
    }
}

/// The reasons that occurred, by their keys.
pub(super) fn named(counts: &[u64; Reason::COUNT]) -> std::collections::BTreeMap<String, u64> {
    let occurred = Reason::ALL.into_iter().zip(counts).filter(|(_, count)| **count > 0);
    occurred.map(|(reason, count)| (reason.key().to_owned(), *count)).collect()
}

/// Why the writer turns a line away that could be read.
pub(super) fn told(reason: Reason) -> &'static str {
    match reason {
        Reason::UnknownEvent => "no event line has announced this event, or it was removed",
        Reason::UnknownBookmaker => "nobody has declared this bookmaker: send a bookmaker line first",
        Reason::EventOver => "the event is over: it takes no prices",
        Reason::Late => "newer news of the same thing is held",
        Reason::TooManyBookmakers => "there is no room for another bookmaker",
        Reason::BadField => "the winner is neither of the two sides",
        _ => "it does not fit what is held",
    }
}
