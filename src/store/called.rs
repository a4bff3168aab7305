//! What the rows of a file are called by people: sports, events and bookmakers by their keys, where those can be read.

use std::collections::{BTreeMap, HashMap};

use foldhash::fast::RandomState;

use super::tables::{BookKey, EventKey, OddsKey, SourceKey, describe_world};
use crate::model::Market;

/// What things are called, to name a damaged row by.
#[derive(Debug, Default)]
pub(super) struct Known {
    pub(super) sports: BTreeMap<u16, String>,
    pub(super) books: BTreeMap<BookKey, String>,
    pub(super) event_ids: HashMap<EventKey, Box<str>, RandomState>,
}

impl Known {
    pub(super) fn sport(&self, number: u16) -> String {
        self.sports.get(&number).cloned().unwrap_or_else(|| format!("sport number {number}"))
    }

    pub(super) fn book(&self, (world, number): BookKey) -> String {
        let key = self.books.get(&(world, number)).filter(|key| !key.is_empty());
        key.map_or_else(|| format!("bookmaker number {number}"), |key| format!("bookmaker {key}"))
    }

    pub(super) fn event(&self, (world, sport, number): EventKey) -> String {
        let id = self.event_ids.get(&(world, sport, number));
        let id = id.map_or_else(|| format!("event number {number}"), |id| format!("event {id}"));
        format!("{} {} {id}", describe_world(world), self.sport(sport))
    }

    pub(super) fn odds(&self, (world, sport, event, book, market): OddsKey) -> String {
        let market =
            Market::from_index(usize::from(market)).map_or_else(|| format!("market {market}"), |m| m.to_string());
        format!("{} {} {market}", self.event((world, sport, event)), self.book((world, book)))
    }

    pub(super) fn source(&self, (world, sport, book): SourceKey) -> String {
        format!("{} {} {}", describe_world(world), self.sport(sport), self.book((world, book)))
    }
}
