//! What becomes of the lines of a stream, counted as they come.

use std::collections::BTreeMap;

use super::intake::Batch;
use super::lines::Line;
use super::protocol::{Example, IngestAnswer, IngestOptions};
use crate::ingest::wire::{self, LINE_BYTES_MAX, Rejection};
use crate::model::{Catalogue, Reason};
use crate::writer::IngestReport;

/// As many rejected lines as a report shows.
const EXAMPLES_MAX: usize = 10;

/// Adds a rejected line to those that a report shows, which are in the order of their numbers. Of lines that are
/// rejected for the same cause only the first is shown: the counts tell of the others.
pub(super) fn add_example(examples: &mut Vec<Example>, new: Example) {
    let is_same = |shown: &Example| (&shown.reason, &shown.detail) == (&new.reason, &new.detail);
    if let Some(shown) = examples.iter().position(is_same) {
        if examples[shown].line <= new.line {
            return;
        }
        examples.remove(shown);
    }
    let at = examples.partition_point(|shown| shown.line <= new.line);
    examples.insert(at, new);
    examples.truncate(EXAMPLES_MAX);
}

/// What has become of the lines so far.
#[derive(Debug, Default)]
pub(super) struct Tally {
    /// Every line, as an editor counts.
    pub(super) line_count: u64,
    blank: u64,
    /// Lines that could not be read, by [`Reason`].
    unread: [u64; Reason::COUNT],
    /// Those of them that no feed's account has yet.
    unread_since: [u64; Reason::COUNT],
    /// Outcomes left out of lines that were read, by [`Reason`].
    dropped: [u64; Reason::COUNT],
    /// What the writer says of the others.
    pub(super) report: IngestReport,
    examples: Vec<Example>,
}

impl Tally {
    pub(super) fn line(&mut self, line: Line<'_>, catalogue: &Catalogue, batch: &mut Batch) {
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
        self.unread_since[rejection.reason as usize] += 1;
        self.example(self.line_count, rejection.reason, &rejection.detail);
    }

    /// The writer tells of a batch's lines after later ones were read: the first lines are kept, not the first told.
    pub(super) fn example(&mut self, line: u64, reason: Reason, detail: &str) {
        let example = Example { line, reason: reason.key().to_owned(), detail: detail.to_owned() };
        add_example(&mut self.examples, example);
    }

    /// The lines that could not be read since this was last asked, by reason.
    pub(super) fn take_unread(&mut self) -> impl Iterator<Item = (Reason, u64)> {
        let unread = std::mem::take(&mut self.unread_since);
        Reason::ALL.into_iter().zip(unread).filter(|(_, count)| *count > 0)
    }

    pub(super) fn rejected(&self) -> u64 {
        self.unread.iter().sum::<u64>() + self.report.rejected()
    }

    pub(super) fn answer(self, options: IngestOptions, written: bool) -> IngestAnswer {
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
pub(super) fn named(counts: &[u64; Reason::COUNT]) -> BTreeMap<String, u64> {
    let occurred = Reason::ALL.into_iter().zip(counts).filter(|(_, count)| **count > 0);
    occurred.map(|(reason, count)| (reason.key().to_owned(), *count)).collect()
}

/// Why the writer turns a line away that could be read.
pub(super) fn told(reason: Reason) -> &'static str {
    match reason {
        Reason::UnknownEvent => "no event line has announced this event, or it was removed",
        Reason::UnknownBookmaker => "nobody has declared this bookmaker: send a bookmaker line first",
        Reason::EventOver => "the event is over: it takes no prices",
        Reason::InFuture => "its time is more than 60 seconds ahead of this server's clock: compare both clocks",
        Reason::MarketNotOfSport => "events of this sport do not have the market",
        Reason::Late => "newer news of the same thing is held",
        Reason::TooManyBookmakers => "there is no room for another bookmaker",
        Reason::FeederQuota => {
            "the feeder has added as many bookmakers or events as it may; `oddsbox feeds` shows its quota"
        }
        Reason::NotOwnEvent => "a feeder removes only events that it has announced since the server started",
        Reason::BadField => "the winner is neither of the two sides",
        _ => "it does not fit what is held",
    }
}
