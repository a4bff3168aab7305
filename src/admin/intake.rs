//! Taking in a stream of feed lines.
//!
//! Bytes come in pieces of any size; whole lines are read, gathered into batches and handed to the writer, which is
//! waited for: that is the back-pressure, and no more than one batch and one line are ever in memory. A strict input is
//! spooled instead, and taken whole at its end. What has come is counted under the feed's name, batch by batch.

use std::sync::Arc;

use super::context::Context;
use super::lines::Lines;
use super::protocol::{Failure, FailureCode, IngestAnswer, IngestOptions};
use super::spool::Spool;
use super::tally::{Tally, told};
use crate::clock::Clock;
use crate::ingest::{FeedKind, Ledger};
use crate::keys::{Feeder, Feeders};
use crate::model::{Catalogue, News, Reason, World};
use crate::writer::{IngestReport, Sender, Whole, WriterHandle};

const BATCH_LINES_MAX: usize = 1000;
const BATCH_BYTES_MAX: usize = 1 << 20;

/// Whose lines they are.
#[derive(Clone, Debug)]
pub struct Feed {
    name: Arc<str>,
    kind: FeedKind,
    /// A feeder on another machine may send for as long as its token is in force.
    token: Option<(Arc<Feeders>, Arc<Feeder>)>,
}

impl Feed {
    /// The account of the watched directory.
    pub(super) const DROP: &str = "drop";

    /// The account that its news are counted in.
    pub(super) fn account(&self, world: World) -> (&str, FeedKind, World) {
        (&self.name, self.kind, world)
    }

    /// Whoever may use the admin door.
    pub fn push() -> Self {
        Feed { name: "push".into(), kind: FeedKind::Push, token: None }
    }

    pub(super) fn drop_directory() -> Self {
        Feed { name: Self::DROP.into(), kind: FeedKind::Drop, token: None }
    }

    pub(super) fn token(feeders: Arc<Feeders>, feeder: Arc<Feeder>) -> Self {
        let name = format!("token/{}", feeder.name).into();
        Feed { name, kind: FeedKind::Token, token: Some((feeders, feeder)) }
    }

    /// Who sends, for a feed that is held to a quota.
    pub(super) fn sender(&self) -> Option<Sender> {
        let removes_any = match self.kind {
            FeedKind::Token => false,
            FeedKind::Drop => true,
            _ => return None,
        };
        Some(Sender { name: Arc::clone(&self.name), removes_any })
    }

    fn check(&self) -> Result<(), Failure> {
        match &self.token {
            Some((feeders, feeder)) if !feeders.is_in_force(feeder) => {
                Err(Failure::new(FailureCode::Unauthorized, "the token was revoked: ask the operator for a new one"))
            }
            _ => Ok(()),
        }
    }
}

/// A stream of lines on its way in.
#[derive(Debug)]
pub struct Intake {
    options: IngestOptions,
    feed: Feed,
    writer: WriterHandle,
    ledger: Arc<Ledger>,
    clock: Clock,
    catalogue: Arc<Catalogue>,
    lines: Lines,
    tally: Tally,
    batch: Batch,
    taken_lines: u64,
    /// Bytes that the feed's account does not have yet.
    bytes: u64,
    /// Where a strict input waits.
    spool: Option<Spool>,
}

/// Lines that were read and not yet handed on.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) news: Vec<News>,
    /// The line of each.
    pub(super) numbers: Vec<u64>,
    pub(super) bytes: usize,
}

impl Intake {
    pub async fn open(options: IngestOptions, feed: Feed, context: &Context) -> Result<Self, Failure> {
        let spool = if options.strict { Some(Spool::open(&context.data).await?) } else { None };
        context.ledger.open(&feed.name, feed.kind, options.world);
        Ok(Intake {
            options,
            feed,
            writer: context.writer.clone(),
            ledger: Arc::clone(&context.ledger),
            clock: context.clock.clone(),
            catalogue: Arc::clone(context.boards.catalogue()),
            lines: Lines::default(),
            tally: Tally::default(),
            batch: Batch::default(),
            taken_lines: 0,
            bytes: 0,
            spool,
        })
    }

    /// The lines from the start of the stream that are dealt with for good: written, or rejected and counted. They
    /// need not be sent again.
    pub fn taken_lines(&self) -> u64 {
        self.taken_lines
    }

    /// Takes in the next piece of the stream, and waits for the writer when a batch is full.
    pub async fn push(&mut self, mut bytes: &[u8]) -> Result<(), Failure> {
        if let Some(spool) = &mut self.spool {
            spool.write(bytes).await?;
        }
        self.bytes += bytes.len() as u64;
        while let Some(line) = self.lines.next(&mut bytes) {
            self.tally.line(line, &self.catalogue, &mut self.batch);
            if self.batch.is_full() {
                self.flush(false).await?;
            } else if self.tally.line_count.is_multiple_of(BATCH_LINES_MAX as u64) {
                // Blank and rejected lines fill no batch, and are work all the same.
                tokio::task::yield_now().await;
            }
        }
        Ok(())
    }

    /// Hands on the lines that have come so far, for a stream that pauses.
    pub async fn pause(&mut self) -> Result<(), Failure> {
        if self.taken_lines == self.tally.line_count { Ok(()) } else { self.flush(false).await }
    }

    /// Ends the stream.
    pub async fn finish(&mut self) -> Result<IngestAnswer, Failure> {
        if let Some(line) = self.lines.last() {
            self.tally.line(line, &self.catalogue, &mut self.batch);
        }
        self.flush(true).await?;
        let written = match self.spool.take() {
            None => true,
            Some(spool) => self.finish_spooled(spool).await?,
        };
        Ok(std::mem::take(&mut self.tally).answer(self.options, written))
    }

    /// Takes a strict input whole, or says why not.
    async fn finish_spooled(&mut self, mut spool: Spool) -> Result<bool, Failure> {
        self.feed.check()?;
        // Lines that cannot be read already forbid writing; what else would be rejected is told all the same.
        let whole = if self.tally.rejected() > 0 { Whole::Checked } else { Whole::Taken };
        let news = spool.news(Arc::clone(&self.catalogue)).await?;
        self.tally.report = self.writer.ingest_whole_sent(self.options.world, news, whole, self.feed.sender()).await?;
        let positions: Vec<_> = self.tally.report.first_rejected().to_vec();
        let numbers = spool.line_numbers(&positions, Arc::clone(&self.catalogue)).await?;
        for (line, (_, reason)) in numbers.into_iter().zip(positions) {
            self.tally.example(line, reason, told(reason));
        }
        let written = self.tally.rejected() == 0;
        let report = self.tally.report.clone();
        self.count(&report, if written { report.accepted() } else { 0 });
        Ok(written)
    }

    async fn flush(&mut self, end: bool) -> Result<(), Failure> {
        if self.spool.is_some() {
            self.batch = Batch::default();
            return Ok(());
        }
        self.feed.check()?;
        let Batch { news, numbers, .. } = std::mem::take(&mut self.batch);
        let report = self.writer.ingest_sent(self.options.world, news, end, self.feed.sender()).await?;
        for (position, reason) in report.first_rejected() {
            let number = usize::try_from(*position).ok().and_then(|position| numbers.get(position));
            self.tally.example(number.copied().unwrap_or(0), *reason, told(*reason));
        }
        self.tally.report.add(&report);
        self.taken_lines = self.tally.line_count;
        self.count(&report, report.accepted());
        Ok(())
    }

    /// Notes in the feed's account what has become of a batch, and of the lines that could not be read.
    fn count(&mut self, report: &IngestReport, accepted: u64) {
        let rejected: Vec<_> = report.reasons().chain(self.tally.take_unread()).collect();
        let feed = self.feed.account(self.options.world);
        self.ledger.count(feed, self.clock.now().timestamp(), accepted, rejected.into_iter());
        self.ledger.used(feed, std::mem::take(&mut self.bytes), report.added);
    }

    /// Notes in the feed's account that the stream failed.
    pub(super) fn failed(&self, failure: &Failure) {
        let feed = self.feed.account(self.options.world);
        let now = self.clock.now().timestamp();
        self.ledger.failed(feed, now, &failure.message);
        if failure.code == FailureCode::TooLarge {
            self.ledger.count(feed, now, 0, [(Reason::StreamTooLarge, 1)].into_iter());
        }
        self.ledger.used(feed, self.bytes, None);
    }
}

impl Batch {
    fn is_full(&self) -> bool {
        self.news.len() >= BATCH_LINES_MAX || self.bytes >= BATCH_BYTES_MAX
    }
}
