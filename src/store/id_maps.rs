//! What a commit must know of the file to number its rows: names, events, bookmakers, and the next free numbers. The maps
//! always match what the last successful commit left in the file, and are dropped whenever that is in doubt. Equal names
//! share one `Arc<str>` wherever they are read.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use foldhash::fast::RandomState;
use redb::ReadTransaction;

use super::codec::{BookStanding, Flaw, MetaRow};
use super::error::{DamageList, StoreError};
use super::numbers::{SportNumbers, scan_books};
use super::scan::scan;
use super::table_keys::{EventKey, events_of, world_number};
use super::tables::{AUDIT, EVENTS, META, META_COUNTERS, NAMES};
use crate::model::market::KeyParts;
use crate::model::{BookId, Bookmaker, EventId, SportId, Timestamp, World};

#[derive(Debug)]
pub(super) struct IdMaps {
    pub(super) names: NumbersByName,
    pub(super) events: EventNumbers,
    pub(super) books: [BTreeMap<BookId, Arc<Bookmaker>>; 2],
    pub(super) next: NextNumbers,
}

/// The next free numbers. They are stored, as the row with the highest number may have been deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct NextNumbers {
    pub(super) name: u32,
    pub(super) event: u32,
    pub(super) audit: u64,
}

/// The number of an event in the file, and the time that the schedule lists it under.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EventEntry {
    pub(super) number: u32,
    pub(super) commence: Timestamp,
}

/// The events of each sport in each world.
#[derive(Debug, Default)]
pub(super) struct EventNumbers(FastMap<(World, SportId), FastMap<EventId, EventEntry>>);

impl EventNumbers {
    pub(super) fn get(&self, world: World, sport: SportId, event: &EventId) -> Option<EventEntry> {
        self.0.get(&(world, sport))?.get(event).copied()
    }

    pub(super) fn set(&mut self, world: World, sport: SportId, event: EventId, entry: Option<EventEntry>) {
        let events = self.0.entry((world, sport)).or_default();
        match entry {
            Some(entry) => events.insert(event, entry),
            None => events.remove(&event),
        };
    }
}

impl IdMaps {
    /// Reads the file that `names` were read from.
    pub(super) fn read(txn: &ReadTransaction, sports: &SportNumbers, names: NamesByNumber) -> Result<Self, StoreError> {
        // Loading reports damage; here a damaged row only must not be relied on.
        let damage = &mut DamageList::default();
        let mut events = EventNumbers::default();
        for world in World::ALL {
            for (sport, number) in sports.served() {
                scan(&EVENTS, txn, events_of(world_number(world), number), damage, |key, row| {
                    let event = row.event(&names)?;
                    let entry = EventEntry { number: key.2, commence: event.commence };
                    events.set(world, sport, event.id, Some(entry));
                    Ok(())
                })?;
            }
        }
        let mut books = [BTreeMap::new(), BTreeMap::new()];
        scan_books(txn, damage, |world, id, row| {
            if row.standing != BookStanding::Gone {
                books[world.index()].insert(id, Arc::new(row.bookmaker()?));
            }
            Ok(())
        })?;
        Ok(IdMaps { next: NextNumbers::read(txn)?, names: names.by_name(), events, books })
    }
}

impl NextNumbers {
    /// The stored counters, raised above every number in use in case their row is damaged.
    fn read(txn: &ReadTransaction) -> Result<Self, StoreError> {
        let mut counters = NextNumbers { audit: 1, ..NextNumbers::default() };
        scan(&META, txn, META_COUNTERS..=META_COUNTERS, &mut DamageList::default(), |_, row| match row {
            MetaRow::Counters { next_name, next_event, next_audit } => {
                counters = NextNumbers { name: next_name, event: next_event, audit: next_audit };
                Ok(())
            }
            _ => Err(Flaw::Malformed),
        })?;
        if let Some(last) = txn.open_table(NAMES.definition)?.range::<u32>(..)?.next_back() {
            counters.name = counters.name.max(last?.0.value().saturating_add(1));
        }
        for event in txn.open_table(EVENTS.definition)?.range::<EventKey>(..)? {
            counters.event = counters.event.max(event?.0.value().2.saturating_add(1));
        }
        if let Some(last) = txn.open_table(AUDIT.definition)?.range::<u64>(..)?.next_back() {
            counters.audit = counters.audit.max(last?.0.value().saturating_add(1));
        }
        Ok(counters)
    }

    pub(super) const fn row(self) -> MetaRow {
        MetaRow::Counters { next_name: self.name, next_event: self.event, next_audit: self.audit }
    }
}

pub(super) type FastMap<K, V> = HashMap<K, V, RandomState>;

/// Names by the numbers that rows refer to them with.
#[derive(Debug, Default)]
pub(super) struct NamesByNumber(FastMap<u32, Arc<str>>);

/// Numbers by name, for commits.
pub(super) type NumbersByName = FastMap<Arc<str>, u32>;

impl NamesByNumber {
    pub(super) fn read(txn: &ReadTransaction, damage: &mut DamageList) -> Result<Self, StoreError> {
        let mut names = FastMap::default();
        scan(&NAMES, txn, .., damage, |number, row| {
            names.insert(number, Arc::from(row.0));
            Ok(())
        })?;
        Ok(NamesByNumber(names))
    }

    pub(super) fn insert(&mut self, number: u32, text: String) {
        self.0.insert(number, Arc::from(text));
    }

    pub(super) fn get(&self, number: u32) -> Result<Arc<str>, Flaw> {
        self.0.get(&number).cloned().ok_or(Flaw::Name(number))
    }

    /// The key of a market, as prices refer to it.
    pub(super) fn market_key(&self, number: u32) -> Result<&str, Flaw> {
        let key = self.0.get(&number).ok_or(Flaw::Name(number))?;
        if KeyParts::split(key).is_some() { Ok(key) } else { Err(Flaw::Invalid("its market is unknown")) }
    }

    /// The numbers of the names that nothing but this map shares, but for those of markets.
    pub(super) fn unshared(&self, markets: &BTreeSet<u32>) -> Vec<u32> {
        let alone = self.0.iter().filter(|(_, text)| Arc::strong_count(text) == 1);
        alone.map(|(number, _)| *number).filter(|number| !markets.contains(number)).collect()
    }

    pub(super) fn remove(&mut self, numbers: &[u32]) {
        for number in numbers {
            self.0.remove(number);
        }
    }

    /// The same names by text. Where a text has two numbers, both stay readable and the lower is used for new rows.
    pub(super) fn by_name(self) -> NumbersByName {
        let mut numbers = NumbersByName::default();
        for (number, text) in self.0 {
            match numbers.entry(text) {
                Entry::Vacant(free) => {
                    free.insert(number);
                }
                Entry::Occupied(mut taken) => *taken.get_mut() = number.min(*taken.get()),
            }
        }
        numbers
    }
}
