//! Operations with news, and on what feeds poll and spend.

use std::fmt;
use std::io;

use super::super::{FeedCharge, PollScope, Sender, Whole};
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
