//! Feeds in the shape of version 4 of The Odds API: what its payloads say, as news.
//!
//! [`read()`] takes a whole payload: odds as a list, of one event, or of an archive (`{"timestamp":…,"data":…}`), scores,
//! or bare events. What cannot be taken is counted by its reason and the rest stands: an outcome without its record, a
//! record without its event. Lay prices are left out. Reading knows nothing of what a world holds, of the clock or of any
//! upstream; [`read_sports`] reads the list of sport keys. [`Client`] is who asks an upstream, [`Pace`] decides when.

mod book;
mod client;
mod credits;
mod event;
mod format;
mod pace;
mod payload;
mod score;
mod sports;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use super::wire::Rejection;
use crate::model::{Bookmaker, Bookmakers, Catalogue, News, OddsFormat, Reason, Regions, SportId, Timestamp};

pub use client::{Answer, Client, ClientError, Quota, Trouble};
pub use pace::{Pace, Plan, REFUSED_WAIT_MS};
pub use payload::read;
pub use sports::{SportEntry, read as read_sports};

/// As long as a payload may be.
pub const PAYLOAD_BYTES_MAX: usize = 64 << 20;

/// As many rejections as are told one by one.
const EXAMPLES_MAX: usize = 10;

/// What a payload is to be read with.
#[derive(Clone, Copy, Debug)]
pub struct Ask<'a> {
    pub catalogue: &'a Catalogue,
    /// The sport that it must be of; without it, each event says so itself.
    pub sport: Option<SportId>,
    /// How its prices are quoted; without it, they must show that.
    pub odds_format: Option<OddsFormat>,
    /// When it is read: what has begun by then is live.
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

/// What a payload said.
#[derive(Clone, Debug, Default)]
pub struct Payload {
    /// Events in its list, readable or not.
    pub events: u64,
    pub messages: Vec<Message>,
    /// The bookmakers that stand in it, by key, with their titles where it gives them.
    pub bookmakers: BTreeMap<Box<str>, Option<Box<str>>>,
    /// What was not taken, by [`Reason`].
    pub rejected: [u64; Reason::COUNT],
    /// Outcomes left out of records that were taken without them, by [`Reason`].
    pub dropped: [u64; Reason::COUNT],
    /// The first rejections, those for the same cause once: the number of the event, and why.
    pub examples: Vec<(u64, Rejection)>,
}

impl Payload {
    /// Whether it lists events of which not one can be read: then it is not what it should be.
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
        self.rejected[rejection.reason as usize] += 1;
        let is_shown = |(_, shown): &(u64, Rejection)| *shown == rejection;
        if self.examples.len() < EXAMPLES_MAX && !self.examples.iter().any(is_shown) {
            self.examples.push((event, rejection));
        }
    }
}
