//! Names for the rows of a file in reports: sports, events and bookmakers by their keys, where those could be read, else
//! by their numbers.

use std::collections::{BTreeMap, HashMap};

use foldhash::fast::RandomState;

use crate::store::id_maps::NamesByNumber;
use crate::store::table_keys::{BookKey, EventKey, KeyframeKey, OddsKey, SourceKey, log_name, world_name};

#[derive(Debug, Default)]
pub(in crate::store) struct RowNames {
    pub(super) sports: BTreeMap<u16, String>,
    pub(super) books: BTreeMap<BookKey, String>,
    pub(super) event_ids: HashMap<EventKey, Box<str>, RandomState>,
    pub(super) texts: NamesByNumber,
}

impl RowNames {
    fn sport(&self, number: u16) -> String {
        self.sports.get(&number).cloned().unwrap_or_else(|| format!("sport number {number}"))
    }

    fn book(&self, (world, number): BookKey) -> String {
        let key = self.books.get(&(world, number)).filter(|key| !key.is_empty());
        key.map_or_else(|| format!("bookmaker number {number}"), |key| format!("bookmaker {key}"))
    }

    pub(in crate::store) fn event(&self, (world, sport, number): EventKey) -> String {
        let id = self.event_ids.get(&(world, sport, number));
        let id = id.map_or_else(|| format!("event number {number}"), |id| format!("event {id}"));
        format!("{} {} {id}", world_name(world), self.sport(sport))
    }

    pub(in crate::store) fn odds(&self, (world, sport, event, book, market): OddsKey) -> String {
        let market =
            self.texts.market_key(market).map_or_else(|_| format!("market number {market}"), ToOwned::to_owned);
        format!("{} {} {market}", self.event((world, sport, event)), self.book((world, book)))
    }

    pub(in crate::store) fn keyframe(&self, (world, sport, sequence): KeyframeKey) -> String {
        format!("{} {} after entry {sequence}", log_name(world), self.sport(sport))
    }

    /// An event in the lines, or one of its rows.
    pub(in crate::store) fn line(&self, (world, sport, event, row): (u8, u16, u32, Option<u32>)) -> String {
        let row = row.map_or_else(String::new, |row| format!(" row {row}"));
        format!("{} {} line of event number {event}{row}", log_name(world), self.sport(sport))
    }

    pub(in crate::store) fn source(&self, (world, sport, book): SourceKey) -> String {
        format!("{} {} {}", world_name(world), self.sport(sport), self.book((world, book)))
    }
}
