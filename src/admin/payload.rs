//! Taking in a saved payload of The Odds API: gathered whole, within a bound, read, and handed to the writer in batches
//! or, if it is strict, at once.

use std::sync::Arc;

use super::context::Context;
use super::intake::Feed;
use super::protocol::{Example, Failure, FailureCode, IngestAnswer, PayloadOptions};
use super::tally::{add_example, named, told};
use crate::ingest::the_odds_api::{self, Ask, PAYLOAD_BYTES_MAX, Payload};
use crate::model::{News, Reason, SportId};
use crate::writer::{IngestReport, NewsReader, Whole};

const BATCH_MESSAGES_MAX: usize = 1000;

/// A payload on its way in.
#[derive(Debug, Default)]
pub(super) struct Gathered(Vec<u8>);

impl Gathered {
    pub(super) fn push(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        if self.0.len() + bytes.len() > PAYLOAD_BYTES_MAX {
            let told = format!("a payload has at most {PAYLOAD_BYTES_MAX} bytes: split it; nothing was written");
            return Err(Failure::new(FailureCode::TooLarge, told));
        }
        self.0.extend_from_slice(bytes);
        Ok(())
    }

    /// Reads what was gathered and takes it in, counted in the feed's account.
    pub(super) async fn finish(
        self,
        options: &PayloadOptions,
        feed: &Feed,
        context: &Context,
    ) -> Result<IngestAnswer, Failure> {
        let bytes = self.0.len() as u64;
        let taken = self.take(options, feed, context).await;
        let (account, now) = (feed.account(options.world), context.clock.now().timestamp());
        match &taken {
            Ok(report) => {
                let reason = |key: &str| Reason::ALL.into_iter().find(|reason| reason.key() == key);
                let rejected = report.rejected_by_reason.iter();
                let rejected = rejected.filter_map(|(key, count)| Some((reason(key)?, *count)));
                let accepted = if report.written { report.accepted } else { 0 };
                context.ledger.count(account, now, accepted, rejected);
                context.ledger.used(account, bytes, None);
            }
            Err(failure) => context.ledger.failed(account, now, &failure.message),
        }
        taken
    }

    async fn take(self, options: &PayloadOptions, feed: &Feed, context: &Context) -> Result<IngestAnswer, Failure> {
        let sport = options.sport.as_deref().map(|key| find_sport(key, context)).transpose()?;
        let payload = read(self.0, sport, options, context).await?;
        let known = context.boards.load_full(options.world);
        let listed = payload.listed(known.books().register(), options.regions);
        let mut tally = Tally::new(payload, listed);
        if options.strict {
            tally.take_whole(options, feed, context).await?;
        } else {
            tally.take(options, feed, context).await?;
        }
        context.ledger.used(feed.account(options.world), 0, tally.report.added);
        Ok(tally.answer(options))
    }
}

/// By our key, or by one of The Odds API.
fn find_sport(key: &str, context: &Context) -> Result<SportId, Failure> {
    let catalogue = context.boards.catalogue();
    let found = catalogue.find(key).or_else(|| catalogue.find_v4(key).map(|(sport, _)| sport));
    found.ok_or_else(|| {
        let keys: Vec<&str> = catalogue.sports().map(|(_, sport)| &*sport.key).collect();
        Failure::bad_request(format!("there is no sport {key:?}: {}, or a key of The Odds API", keys.join(", ")))
    })
}

/// On a thread of its own: a long payload takes a while.
async fn read(
    bytes: Vec<u8>,
    sport: Option<SportId>,
    options: &PayloadOptions,
    context: &Context,
) -> Result<Payload, Failure> {
    let (catalogue, now) = (Arc::clone(context.boards.catalogue()), context.clock.now().timestamp());
    let odds_format = options.odds_format;
    let work = move || the_odds_api::read(&bytes, Ask { catalogue: &catalogue, sport, odds_format, now });
    let read = tokio::task::spawn_blocking(work).await;
    let read = read.map_err(|error| Failure::new(FailureCode::Unavailable, error.to_string()))?;
    read.map_err(|error| Failure::bad_request(format!("the payload cannot be taken: {error}; nothing was written")))
}

/// What becomes of a payload.
struct Tally {
    news: Vec<News>,
    /// The event of each message, and whose price it is; bookmakers have neither.
    origins: Vec<(u64, Option<Arc<str>>)>,
    rejected: [u64; Reason::COUNT],
    dropped: [u64; Reason::COUNT],
    examples: Vec<Example>,
    report: IngestReport,
    written: bool,
}

impl Tally {
    fn new(payload: Payload, listed: Vec<News>) -> Self {
        let example = |(event, rejection): (u64, crate::ingest::wire::Rejection)| Example {
            line: event,
            reason: rejection.reason.key().to_owned(),
            detail: rejection.detail.into(),
        };
        let bookmaker = |news: &News| match news {
            News::Odds(odds) => Some(Arc::clone(&odds.bookmaker)),
            _ => None,
        };
        let mut origins = vec![(0, None); listed.len()];
        origins.extend(payload.messages.iter().map(|message| (message.event, bookmaker(&message.news))));
        let messages = payload.messages.into_iter().map(|message| message.news);
        Tally {
            news: listed.into_iter().chain(messages).collect(),
            origins,
            rejected: payload.rejected,
            dropped: payload.dropped,
            examples: payload.examples.into_iter().map(example).collect(),
            report: IngestReport::default(),
            written: true,
        }
    }

    async fn take(&mut self, options: &PayloadOptions, feed: &Feed, context: &Context) -> Result<(), Failure> {
        let mut news = std::mem::take(&mut self.news).into_iter().peekable();
        while news.peek().is_some() {
            let batch: Vec<News> = news.by_ref().take(BATCH_MESSAGES_MAX).collect();
            let report = context.writer.ingest_sent(options.world, batch, news.peek().is_none(), feed.sender()).await?;
            self.note(&report);
        }
        Ok(())
    }

    async fn take_whole(&mut self, options: &PayloadOptions, feed: &Feed, context: &Context) -> Result<(), Failure> {
        let is_clean = self.rejected.iter().sum::<u64>() == 0;
        let whole = if is_clean { Whole::Taken } else { Whole::Checked };
        let news = std::mem::take(&mut self.news).into_iter().map(Ok);
        let report =
            context.writer.ingest_whole_sent(options.world, NewsReader(Box::new(news)), whole, feed.sender()).await?;
        self.note(&report);
        self.written = is_clean && self.report.rejected() == 0;
        Ok(())
    }

    fn note(&mut self, report: &IngestReport) {
        let before = self.report.messages();
        for (position, reason) in report.first_rejected() {
            let at = usize::try_from(before + position).unwrap_or(usize::MAX);
            let (line, bookmaker) = self.origins.get(at).cloned().unwrap_or_default();
            let told = match reason {
                Reason::UnknownBookmaker => "nobody has declared it: say with --regions where it is offered",
                reason => told(*reason),
            };
            let detail = bookmaker.map_or_else(|| told.to_owned(), |key| format!("{key}: {told}"));
            add_example(&mut self.examples, Example { line, reason: reason.key().to_owned(), detail });
        }
        self.report.add(report);
    }

    fn answer(mut self, options: &PayloadOptions) -> IngestAnswer {
        let unread: u64 = self.rejected.iter().sum();
        let rejected = unread + self.report.rejected();
        let messages = unread + self.report.messages();
        for (reason, count) in self.report.reasons() {
            self.rejected[reason as usize] += count;
        }
        IngestAnswer {
            world: options.world.into(),
            strict: options.strict,
            written: self.written,
            lines: messages,
            accepted: messages - rejected,
            changed: if self.written { self.report.changed } else { 0 },
            unchanged: if self.written { self.report.unchanged } else { 0 },
            rejected,
            rejected_by_reason: named(&self.rejected),
            dropped_outcomes: self.dropped.iter().sum(),
            dropped_outcomes_by_reason: named(&self.dropped),
            examples: self.examples,
        }
    }
}
