//! Parses payloads of version 4 of The Odds API into news.
//!
//! [`read()`] parses a whole payload: odds as a list, of one event, or of an archive (`{"timestamp":…,"data":…}`),
//! scores, or bare events. What is invalid is rejected and counted by its reason, and the rest is kept: a record without
//! a bad outcome, an event without a bad record. Parsing knows nothing of what is stored, of the clock or of any
//! upstream. [`read_sports`] parses the list of sport keys.

mod book;
mod event;
mod format;
mod payload;
mod score;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde::Deserialize;

use super::report::ReasonCounts;
use super::wire::Rejection;
use crate::model::{Bookmaker, Bookmakers, Catalogue, News, OddsFormat, Regions, SportId, Timestamp};

pub use payload::{archive_time, read};

/// As long as a payload may be.
pub const PAYLOAD_BYTES_MAX: usize = 64 << 20;

/// As many rejections as are listed one by one.
const EXAMPLES_MAX: usize = 10;

/// What a payload is parsed with.
#[derive(Clone, Copy, Debug)]
pub struct PayloadTerms<'a> {
    pub catalogue: &'a Catalogue,
    /// The sport that it must be of; without it, each event has to name its own.
    pub sport: Option<SportId>,
    /// How its prices are quoted; without it, the prices must show it.
    pub odds_format: Option<OddsFormat>,
    /// When it is parsed: an event that has begun by then is live.
    pub now: Timestamp,
}

/// Why nothing of a payload can be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PayloadError {
    #[error("it has {0} bytes; {PAYLOAD_BYTES_MAX} are taken at most")]
    TooLong(usize),
    #[error("it is no JSON: {0}")]
    BadJson(Box<str>),
    #[error("it is neither a list of events, nor one event, nor an archive with a timestamp and data")]
    OtherShape,
    #[error("it has no timestamp: history is what /v4/historical answers, with timestamp and data")]
    NoTimestamp,
    #[error("no price in it shows whether they are american or decimal: say which with --odds-format")]
    FormatUnknown,
    #[error("some prices in it are negative and others are no whole numbers: say with --odds-format what they are")]
    FormatMixed,
}

/// A message, and which event of the payload it is of, counted from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    pub event: u64,
    pub news: News,
}

/// What a payload contains.
#[derive(Clone, Debug, Default)]
pub struct Payload {
    /// Events in its list, readable or not.
    pub events: u64,
    /// Whether it is a list of events, and not one event.
    pub is_list: bool,
    pub messages: Vec<Message>,
    /// The bookmakers in it, by key, with their titles where it has them.
    pub bookmakers: BTreeMap<Box<str>, Option<Box<str>>>,
    pub rejected: ReasonCounts,
    /// Outcomes left out of records that were accepted without them.
    pub dropped: ReasonCounts,
    /// The first rejections, those for the same cause once: the number of the event, and why.
    pub examples: Vec<(u64, Rejection)>,
}

impl Payload {
    /// Whether it lists events of which not one is valid: then it is something else.
    pub fn is_unreadable(&self) -> bool {
        self.events > 0 && self.messages.is_empty()
    }

    /// News of the bookmakers in it that are unknown or go by another title. An unknown one is added with the regions
    /// that were asked for; without any it stays unknown.
    pub fn listed(&self, known: &Bookmakers, regions: Regions) -> Vec<News> {
        let mut listed = Vec::new();
        for (key, title) in &self.bookmakers {
            let is_news = match known.find(key).and_then(|id| known.get(id)) {
                Some(known) => title.as_ref().is_some_and(|title| *title != known.title),
                None => !regions.is_empty(),
            };
            if is_news {
                let title = title.clone().unwrap_or_else(|| key.clone());
                listed.push(News::Listed(Bookmaker { key: key.clone(), title, regions }));
            }
        }
        listed
    }

    fn reject(&mut self, event: u64, rejection: Rejection) {
        self.rejected.add(rejection.reason, 1);
        let is_shown = |(_, shown): &(u64, Rejection)| *shown == rejection;
        if self.examples.len() < EXAMPLES_MAX && !self.examples.iter().any(is_shown) {
            self.examples.push((event, rejection));
        }
    }
}

/// A sport key of an upstream, and whether it is in season.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct SportEntry {
    pub key: Box<str>,
    #[serde(default)]
    pub active: bool,
    /// Whether its events have a field; `None` if the upstream does not say.
    #[serde(default)]
    pub has_outrights: Option<bool>,
}

/// Parses an upstream's list of sport keys.
pub fn read_sports(bytes: &[u8]) -> Result<Vec<SportEntry>, PayloadError> {
    serde_json::from_slice(bytes).map_err(|error| PayloadError::BadJson(error.to_string().into()))
}
