//! Operations with news, and on what feeds poll and spend.

use serde::{Deserialize, Serialize};

use super::EntryError;
use super::fields::{BudgetFields, read_event, read_sport, read_world};
use super::lines::NewsLines;
use crate::model::{Catalogue, EventId, News, Timestamp};
use crate::writer::operation::{EndPoll, EndRound, Ingest, IngestWhole, NewsReader, PutFeedBudget, RetainPolled};
use crate::writer::{FeedCharge, Poll, PollPart, PollScope, Sender, SharedOperation, Whole};

#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum NewsFields {
    Ingest {
        world: String,
        is_end: bool,
        charge: Option<ChargeFields>,
        sender: Option<SenderFields>,
    },
    /// All of the news or nothing.
    IngestWhole {
        world: String,
        sender: Option<SenderFields>,
    },
    Poll(Box<PollFields>),
    EndRound {
        world: String,
        sport: String,
    },
    RetainPolled {
        scope: ScopeFields,
        events: Vec<String>,
        markets: Vec<Box<str>>,
    },
    EndPoll {
        world: String,
        scope: Box<str>,
    },
    PutBudget(ChargeFields),
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ChargeFields {
    feed: Box<str>,
    budget: BudgetFields,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SenderFields {
    name: String,
    removes_any: bool,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ScopeFields {
    world: String,
    feed: Box<str>,
    key: Box<str>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PartFields {
    event: String,
    markets: Vec<Box<str>>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct PollFields {
    scope: ScopeFields,
    part: Option<PartFields>,
    sport: String,
    at: u32,
    latency_ms: u32,
    stale_after_s: u32,
    has_more: bool,
    budget: Option<BudgetFields>,
}

/// News from a list.
fn reader(news: Vec<News>) -> NewsReader {
    NewsReader(Box::new(news.into_iter().map(Ok)))
}

impl NewsFields {
    pub(super) fn of_ingest(operation: Ingest) -> (Self, NewsReader) {
        let Ingest { world, news, is_end, charge, sender } = operation;
        let (charge, sender) = (charge.map(Into::into), sender.map(SenderFields::of));
        (NewsFields::Ingest { world: world.to_string(), is_end, charge, sender }, reader(news))
    }

    pub(super) fn of_whole(operation: IngestWhole) -> (Self, NewsReader) {
        let IngestWhole { world, news, whole: _, sender } = operation;
        (NewsFields::IngestWhole { world: world.to_string(), sender: sender.map(SenderFields::of) }, news)
    }

    pub(super) fn of_poll(poll: Poll, catalogue: &Catalogue) -> (Self, NewsReader) {
        let Poll { scope, part, sport, news, at, latency_ms, stale_after_s, has_more, budget } = poll;
        let part = part.map(|PollPart { event, markets }| PartFields { event: event.as_str().to_owned(), markets });
        let fields = PollFields {
            scope: scope.into(),
            part,
            sport: catalogue[sport].key.to_string(),
            at: at.unix(),
            latency_ms,
            stale_after_s,
            has_more,
            budget: budget.map(Into::into),
        };
        (NewsFields::Poll(Box::new(fields)), reader(news))
    }

    pub(super) fn of_round(operation: &EndRound, catalogue: &Catalogue) -> Self {
        NewsFields::EndRound { world: operation.world.to_string(), sport: catalogue[operation.sport].key.to_string() }
    }

    pub(super) fn operation(self, news: NewsLines, catalogue: &Catalogue) -> Result<SharedOperation, EntryError> {
        Ok(match self {
            NewsFields::Ingest { world, is_end, charge, sender } => Ingest {
                world: read_world(&world)?,
                news: news.list()?,
                is_end,
                charge: charge.map(Into::into),
                sender: sender.map(Into::into),
            }
            .into(),
            NewsFields::IngestWhole { world, sender } => IngestWhole {
                world: read_world(&world)?,
                news: NewsReader(Box::new(news)),
                whole: Whole::Taken,
                sender: sender.map(Into::into),
            }
            .into(),
            NewsFields::Poll(fields) => fields.poll(news.list()?, catalogue)?.into(),
            NewsFields::EndRound { world, sport } => {
                EndRound { world: read_world(&world)?, sport: read_sport(&sport, catalogue)? }.into()
            }
            NewsFields::RetainPolled { scope, events, markets } => {
                let events = events.iter().map(|event| read_event(event)).collect::<Result<_, _>>()?;
                RetainPolled { scope: scope.scope()?, events, markets }.into()
            }
            NewsFields::EndPoll { world, scope } => EndPoll { world: read_world(&world)?, scope }.into(),
            NewsFields::PutBudget(charge) => PutFeedBudget(charge.into()).into(),
        })
    }
}

impl PollFields {
    fn poll(self, news: Vec<News>, catalogue: &Catalogue) -> Result<Poll, EntryError> {
        let part = |PartFields { event, markets }: PartFields| -> Result<PollPart, EntryError> {
            Ok(PollPart { event: read_event(&event)?, markets })
        };
        Ok(Poll {
            scope: self.scope.scope()?,
            part: self.part.map(part).transpose()?,
            sport: read_sport(&self.sport, catalogue)?,
            news,
            at: Timestamp::from_unix(self.at),
            latency_ms: self.latency_ms,
            stale_after_s: self.stale_after_s,
            has_more: self.has_more,
            budget: self.budget.map(Into::into),
        })
    }
}

impl From<FeedCharge> for ChargeFields {
    fn from(FeedCharge { feed, budget }: FeedCharge) -> Self {
        ChargeFields { feed, budget: budget.into() }
    }
}

impl From<ChargeFields> for FeedCharge {
    fn from(ChargeFields { feed, budget }: ChargeFields) -> Self {
        FeedCharge { feed, budget: budget.into() }
    }
}

impl SenderFields {
    fn of(sender: Sender) -> Self {
        SenderFields { name: sender.name.to_string(), removes_any: sender.removes_any }
    }
}

impl From<SenderFields> for Sender {
    fn from(SenderFields { name, removes_any }: SenderFields) -> Self {
        Sender { name: name.into(), removes_any }
    }
}

impl From<PollScope> for ScopeFields {
    fn from(PollScope { world, feed, key }: PollScope) -> Self {
        ScopeFields { world: world.to_string(), feed, key }
    }
}

impl ScopeFields {
    fn scope(self) -> Result<PollScope, EntryError> {
        Ok(PollScope { world: read_world(&self.world)?, feed: self.feed, key: self.key })
    }
}

impl From<RetainPolled> for NewsFields {
    fn from(RetainPolled { scope, events, markets }: RetainPolled) -> Self {
        let events = events.iter().map(EventId::as_str).map(str::to_owned).collect();
        NewsFields::RetainPolled { scope: scope.into(), events, markets }
    }
}

impl From<EndPoll> for NewsFields {
    fn from(EndPoll { world, scope }: EndPoll) -> Self {
        NewsFields::EndPoll { world: world.to_string(), scope }
    }
}

impl From<PutFeedBudget> for NewsFields {
    fn from(PutFeedBudget(charge): PutFeedBudget) -> Self {
        NewsFields::PutBudget(charge.into())
    }
}
