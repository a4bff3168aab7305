//! The one place where validated news goes to the writer, and where an input's rejections are counted.
//!
//! A reader adds what it rejects to a [`Delivery`] and hands over its news in batches, whole, or as a poll. Whatever the
//! writer answers is counted here, once: in the account of the feed as it goes on, and in the report at the end.

use std::ops::Range;
use std::sync::Arc;

use tokio::task::JoinHandle;

use super::error::{IngestError, IngestErrorKind};
use super::feed::{Feed, IngestContext};
use super::ledger::FeedKind;
use super::options::IngestOptions;
use super::rejected::{LINE_PREFIX_BYTES, RejectedMessage, RejectedMessages};
use super::report::{IngestSummary, ReasonCounts, RejectedLine, add_example};
use super::wire::Rejection;
use crate::model::{News, Reason};
use crate::writer::{FeedCharge, IngestReport, NewsReader, Poll, Whole, WriteError};

/// News that was read and not yet handed to the writer.
#[derive(Debug, Default)]
pub(super) struct DeliveryBatch {
    pub(super) news: Vec<News>,
    /// Where each message was read, in the same order. News that no report shows may have none.
    pub(super) origins: Vec<NewsOrigin>,
    /// The beginnings of the lines that they were read from, one after the other.
    pub(super) text: Vec<u8>,
}

/// Where a message was read.
#[derive(Clone, Debug, Default)]
pub(super) struct NewsOrigin {
    /// The number of the line or, in a payload, of the event.
    pub(super) line: u64,
    /// The bookmaker, for a price of a payload: an event there has many.
    pub(super) bookmaker: Option<Arc<str>>,
    /// The line, as a part of the batch's text.
    text: Option<Range<usize>>,
}

impl NewsOrigin {
    /// Of a message in a payload.
    pub(super) fn of_payload(line: u64, bookmaker: Option<Arc<str>>) -> Self {
        NewsOrigin { line, bookmaker, text: None }
    }
}

impl From<Vec<News>> for DeliveryBatch {
    fn from(news: Vec<News>) -> Self {
        DeliveryBatch { news, ..DeliveryBatch::default() }
    }
}

impl DeliveryBatch {
    pub(super) fn push(&mut self, news: News, line: u64, text: &[u8]) {
        self.news.push(news);
        let start = self.text.len();
        self.text.extend_from_slice(&text[..text.len().min(LINE_PREFIX_BYTES)]);
        self.origins.push(NewsOrigin { line, bookmaker: None, text: Some(start..self.text.len()) });
    }

    /// Splits that of a payload into batches of at most `size` messages.
    pub(super) fn chunks(self, size: usize) -> impl Iterator<Item = DeliveryBatch> {
        let (mut news, mut origins) = (self.news.into_iter().peekable(), self.origins.into_iter());
        std::iter::from_fn(move || {
            news.peek()?;
            let news = news.by_ref().take(size).collect();
            Some(DeliveryBatch { news, origins: origins.by_ref().take(size).collect(), text: Vec::new() })
        })
    }
}

/// A batch that the writer has been handed.
#[derive(Debug)]
pub(super) struct SentBatch {
    report: JoinHandle<Result<IngestReport, WriteError>>,
    origins: Vec<NewsOrigin>,
    text: Vec<u8>,
}

/// An input on its way to the writer.
#[derive(Debug)]
pub(super) struct Delivery {
    context: IngestContext,
    feed: Feed,
    options: IngestOptions,
    /// Messages that were rejected by their reader, before the writer saw them.
    invalid: ReasonCounts,
    /// Outcomes left out of messages that were read.
    dropped: ReasonCounts,
    /// Rejections and bytes that the feed's account does not have yet.
    uncounted: ReasonCounts,
    uncounted_bytes: u64,
    /// What the writer says of the others.
    report: IngestReport,
    examples: Vec<RejectedLine>,
    /// Rejected messages that the feed's account does not have yet.
    rejected: RejectedMessages,
    is_written: bool,
}

impl Delivery {
    pub(super) fn new(options: IngestOptions, feed: Feed, context: &IngestContext) -> Self {
        let (name, kind, world) = feed.account(options.world);
        context.ledger.open(name, kind, world);
        Delivery {
            context: context.clone(),
            feed,
            options,
            invalid: ReasonCounts::default(),
            dropped: ReasonCounts::default(),
            uncounted: ReasonCounts::default(),
            uncounted_bytes: 0,
            report: IngestReport::default(),
            examples: Vec::new(),
            rejected: RejectedMessages::default(),
            is_written: true,
        }
    }

    pub(super) fn context(&self) -> &IngestContext {
        &self.context
    }

    /// Counts bytes of the input, as inflated.
    pub(super) fn add_bytes(&mut self, bytes: usize) {
        self.uncounted_bytes += bytes as u64;
    }

    /// Counts a message that its reader rejected, with the text of its line if that was kept.
    pub(super) fn reject(&mut self, line: u64, rejection: &Rejection, text: Option<&[u8]>) {
        self.add_invalid([(rejection.reason, 1)].into_iter());
        self.show(line, rejection.reason, rejection.detail.to_string(), text);
    }

    /// Counts messages that their reader rejected and that no report shows one by one.
    pub(super) fn add_invalid(&mut self, counts: impl Iterator<Item = (Reason, u64)>) {
        for (reason, count) in counts {
            self.invalid.add(reason, count);
            self.uncounted.add(reason, count);
        }
    }

    /// Adds a rejected message to those that the report and the feed's account show.
    pub(super) fn show(&mut self, line: u64, reason: Reason, detail: String, text: Option<&[u8]>) {
        let now = self.context.clock.now().timestamp();
        self.rejected.push(reason, RejectedMessage::new(now, line, &detail, text));
        add_example(&mut self.examples, RejectedLine { line, reason: reason.key().to_owned(), detail });
    }

    /// Counts outcomes left out of messages that were read. A poll has no report, so they go to its feed's account.
    pub(super) fn drop_outcomes(&mut self, counts: impl Iterator<Item = (Reason, u64)>) {
        for (reason, count) in counts {
            self.dropped.add(reason, count);
            if self.feed.kind() == FeedKind::TheOddsApi {
                self.uncounted.add(reason, count);
            }
        }
    }

    /// Hands a batch to the writer and waits for it, which is the back-pressure. `is_end` publishes what has come.
    pub(super) async fn send(&mut self, batch: DeliveryBatch, is_end: bool) -> Result<(), IngestError> {
        self.feed.check(&self.context)?;
        Ok(self.write(batch, is_end).await?)
    }

    /// Hands a batch to the writer, to be waited for with [`Delivery::complete`].
    pub(super) async fn begin(&mut self, batch: DeliveryBatch, is_end: bool) -> Result<SentBatch, IngestError> {
        self.feed.check(&self.context)?;
        let DeliveryBatch { news, origins, text } = batch;
        let (writer, world, sender) = (self.context.writer.clone(), self.options.world, self.feed.sender());
        let report = tokio::spawn(async move { writer.ingest_sent(world, news, is_end, sender).await });
        // It is on its way before the next lines are read.
        tokio::task::yield_now().await;
        Ok(SentBatch { report, origins, text })
    }

    /// Waits for a batch, and counts what has become of it.
    pub(super) async fn complete(&mut self, sent: SentBatch) -> Result<(), IngestError> {
        let report = sent.report.await.map_err(|_| WriteError::Stopped)??;
        self.record(&report, &sent.origins, &sent.text);
        Ok(())
    }

    /// The same for a feed whose right to send cannot be revoked.
    pub(super) async fn write(&mut self, batch: DeliveryBatch, is_end: bool) -> Result<(), WriteError> {
        let DeliveryBatch { news, origins, text } = batch;
        let sent = self.context.writer.ingest_sent(self.options.world, news, is_end, self.feed.sender());
        let report = sent.await?;
        self.record(&report, &origins, &text);
        Ok(())
    }

    /// Hands a strict input to the writer, which takes all of it or nothing. Returns the first messages that the writer
    /// rejected, by their positions, for a reader that finds their lines itself.
    pub(super) async fn send_whole(
        &mut self,
        news: NewsReader,
        origins: &[NewsOrigin],
    ) -> Result<Vec<(u64, Reason)>, IngestError> {
        self.feed.check(&self.context)?;
        // Rejected lines already forbid writing; what else would be rejected is reported all the same.
        let whole = if self.invalid.total() > 0 { Whole::Checked } else { Whole::Taken };
        let sent = self.context.writer.ingest_whole_sent(self.options.world, news, whole, self.feed.sender());
        let report = sent.await?;
        self.is_written = whole == Whole::Taken && report.rejected() == 0;
        self.record(&report, origins, &[]);
        Ok(report.first_rejected().to_vec())
    }

    /// Hands a complete poll to the writer; how many records it closed because the poll no longer has them. `origins` are
    /// those of its news.
    pub(super) async fn send_poll(&mut self, poll: Poll, origins: &[NewsOrigin]) -> Result<u64, WriteError> {
        let report = self.context.writer.poll(poll).await?;
        self.record(&report.news, origins, &[]);
        Ok(report.closed)
    }

    /// Hands news to the writer together with what its feed has spent on it.
    pub(super) async fn send_charged(
        &mut self,
        news: Vec<News>,
        is_end: bool,
        charge: FeedCharge,
    ) -> Result<(), WriteError> {
        let report = self.context.writer.ingest_charged(self.options.world, news, is_end, Some(charge)).await?;
        self.record(&report, &[], &[]);
        Ok(())
    }

    /// Counts what has become of news, and of what was rejected since the last time.
    fn record(&mut self, report: &IngestReport, origins: &[NewsOrigin], lines: &[u8]) {
        for (position, reason) in report.first_rejected().iter().filter(|_| !origins.is_empty()) {
            let origin = usize::try_from(*position).ok().and_then(|position| origins.get(position));
            let NewsOrigin { line, bookmaker, text } = origin.cloned().unwrap_or_default();
            let text = text.and_then(|range| lines.get(range));
            self.show(line, *reason, describe(*reason, bookmaker.as_deref()), text);
        }
        self.report.add(report);
        let mut rejected = std::mem::take(&mut self.uncounted);
        rejected.add_all(report.reasons());
        let accepted = if self.is_written { report.accepted() } else { 0 };
        let account = self.feed.account(self.options.world);
        let now = self.context.clock.now().timestamp();
        self.context.ledger.count(account, now, accepted, rejected.iter());
        self.context.ledger.keep_rejected(account, std::mem::take(&mut self.rejected));
        self.context.ledger.used(account, std::mem::take(&mut self.uncounted_bytes), report.added);
    }

    /// Notes in the feed's account that the input failed as a whole.
    pub(super) fn fail(&mut self, error: &IngestError) {
        let account = self.feed.account(self.options.world);
        let now = self.context.clock.now().timestamp();
        self.context.ledger.failed(account, now, &error.to_string());
        if error.kind() == IngestErrorKind::TooLarge {
            self.context.ledger.count(account, now, 0, [(Reason::StreamTooLarge, 1)].into_iter());
        }
        self.context.ledger.used(account, std::mem::take(&mut self.uncounted_bytes), None);
    }

    /// Counts what has become of an import.
    pub(super) fn end_import(&mut self, report: &IngestReport, is_written: bool) {
        self.is_written = is_written;
        self.record(report, &[], &[]);
    }

    /// The reasons for which the writer rejected messages so far.
    pub(super) fn rejected_by_writer(&self) -> impl Iterator<Item = (Reason, u64)> {
        self.report.reasons()
    }

    /// The report on the input, at its end.
    pub(super) fn summary(&mut self) -> IngestSummary {
        // An input without a single valid message has sent nothing, and its rejections count all the same.
        self.record(&IngestReport::default(), &[], &[]);
        let mut by_reason = self.invalid;
        by_reason.add_all(self.report.reasons());
        let if_written = |count: u64| if self.is_written { count } else { 0 };
        IngestSummary {
            world: self.options.world,
            strict: self.options.strict,
            written: self.is_written,
            lines: self.invalid.total() + self.report.messages(),
            accepted: self.report.accepted(),
            changed: if_written(self.report.changed),
            unchanged: if_written(self.report.unchanged),
            rejected: by_reason.total(),
            rejected_by_reason: by_reason.by_key(),
            dropped_outcomes: self.dropped.total(),
            dropped_outcomes_by_reason: self.dropped.by_key(),
            examples: std::mem::take(&mut self.examples),
        }
    }
}

/// Why the writer rejected a message, and whose price it was in a payload.
pub(super) fn describe(reason: Reason, bookmaker: Option<&str>) -> String {
    match (bookmaker, reason) {
        (None, reason) => reason.description().to_owned(),
        (Some(key), Reason::UnknownBookmaker) => {
            format!("{key} is not declared: name its regions with --regions")
        }
        (Some(key), reason) => format!("{key}: {}", reason.description()),
    }
}
