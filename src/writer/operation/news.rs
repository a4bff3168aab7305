//! Operations with news, and on what feeds poll and spend.

use std::fmt;
use std::io;

use super::super::{FeedCharge, IngestReport, Poll, PollReport, PollScope, Sender, Whole, WriteError, Writer};
use super::{Lane, Meanwhile, Operation};
use crate::model::{EventId, News, SportId, World};

/// News that the writer reads itself, one at a time, from a source that does not block.
pub struct NewsReader(pub Box<dyn Iterator<Item = io::Result<News>> + Send>);

impl fmt::Debug for NewsReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NewsReader(…)")
    }
}

#[derive(Debug)]
pub struct Ingest {
    pub world: World,
    pub news: Vec<News>,
    /// Whether no more of the same follows.
    pub is_end: bool,
    pub charge: Option<FeedCharge>,
    pub sender: Option<Sender>,
}

/// All of the news or nothing.
#[derive(Debug)]
pub struct IngestWhole {
    pub world: World,
    pub news: NewsReader,
    pub whole: Whole,
    pub sender: Option<Sender>,
}

#[derive(Debug)]
pub struct EndRound {
    pub world: World,
    pub sport: SportId,
}

#[derive(Debug)]
pub struct RetainPolled {
    pub scope: PollScope,
    pub events: Vec<EventId>,
    pub markets: Vec<Box<str>>,
}

#[derive(Debug)]
pub struct EndPoll {
    pub world: World,
    /// The name of its scope.
    pub scope: Box<str>,
}

#[derive(Debug)]
pub struct PutFeedBudget(pub FeedCharge);

impl Operation for Ingest {
    type Answer = Result<IngestReport, WriteError>;
    const LANE: Lane = Lane::Other;

    fn run(self, writer: &mut Writer, _: Meanwhile<'_>) -> Self::Answer {
        writer.ingest_charged(self.world, self.news, self.is_end, self.charge, self.sender)
    }
}

impl Operation for IngestWhole {
    type Answer = Result<IngestReport, WriteError>;
    const LANE: Lane = Lane::Other;

    fn run(self, writer: &mut Writer, meanwhile: Meanwhile<'_>) -> Self::Answer {
        writer.ingest_whole(self.world, self.news.0, self.whole, self.sender, meanwhile)
    }
}

impl Operation for Poll {
    type Answer = Result<PollReport, WriteError>;
    const LANE: Lane = Lane::Other;

    fn run(self, writer: &mut Writer, _: Meanwhile<'_>) -> Self::Answer {
        writer.poll(self)
    }
}

impl Operation for EndRound {
    type Answer = ();
    const LANE: Lane = Lane::Other;

    fn run(self, writer: &mut Writer, _: Meanwhile<'_>) {
        writer.end_round(self.world, self.sport);
    }
}

impl Operation for RetainPolled {
    type Answer = Result<u64, WriteError>;
    const LANE: Lane = Lane::Other;

    fn run(self, writer: &mut Writer, _: Meanwhile<'_>) -> Self::Answer {
        writer.retain_polled(&self.scope, &self.events, &self.markets)
    }
}

impl Operation for EndPoll {
    type Answer = Result<u64, WriteError>;
    const LANE: Lane = Lane::Other;

    fn run(self, writer: &mut Writer, _: Meanwhile<'_>) -> Self::Answer {
        writer.end_poll(self.world, &self.scope)
    }
}

impl Operation for PutFeedBudget {
    type Answer = Result<(), WriteError>;
    const LANE: Lane = Lane::Fast;

    fn run(self, writer: &mut Writer, _: Meanwhile<'_>) -> Self::Answer {
        writer.put_feed_budget(self.0)
    }
}
