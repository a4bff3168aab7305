//! What a commit must know of the file to number its rows: names, events, bookmakers, and the numbers that come next.
//! It always says what the last successful commit left in the file, and is thrown away whenever that is in doubt.

use std::collections::BTreeMap;
use std::sync::Arc;

use redb::ReadTransaction;

use super::books::scan_books;
use super::codec::{Flaw, MetaRow, Standing};
use super::error::{DamageList, StoreError};
use super::names::{FastMap, NamesByNumber, NumbersByName};
use super::scan::scan;
use super::sports::SportNumbers;
use super::tables::{AUDIT, EVENTS, META, META_COUNTERS, NAMES, events_of, world_number};
use crate::model::{BookId, Bookmaker, EventId, SportId, Timestamp, World};

#[derive(Debug)]
pub(super) struct Mirror {
    pub(super) names: NumbersByName,
    pub(super) events: EventNumbers,
    pub(super) books: [BTreeMap<BookId, Arc<Bookmaker>>; 2],
    pub(super) counters: Counters,
}

/// The numbers that come next. They are stored, as the highest number in use may have been swept away.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counters {
    pub(super) name: u32,
    pub(super) event: u32,
    pub(super) audit: u64,
}

/// Where an event stands in the file.
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

impl Mirror {
    /// Reads the file, which the given names come from.
    pub(super) fn read(txn: &ReadTransaction, sports: &SportNumbers, names: NamesByNumber) -> Result<Self, StoreError> {
        // Whoever loads the file reports its damage; here it only matters that a damaged row is not relied on.
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
            if row.standing != Standing::Gone {
                books[world.index()].insert(id, Arc::new(row.bookmaker()?));
            }
            Ok(())
        })?;
        Ok(Mirror { counters: Counters::read(txn)?, names: names.by_name(), events, books })
    }
}

impl Counters {
    /// The stored counters, but never a number that is in use, should their row be damaged.
    fn read(txn: &ReadTransaction) -> Result<Self, StoreError> {
        let mut counters = Counters { audit: 1, ..Counters::default() };
        scan(&META, txn, META_COUNTERS..=META_COUNTERS, &mut DamageList::default(), |_, row| match row {
            MetaRow::Counters { next_name, next_event, next_audit } => {
                counters = Counters { name: next_name, event: next_event, audit: next_audit };
                Ok(())
            }
            _ => Err(Flaw::Malformed),
        })?;
        if let Some(last) = txn.open_table(NAMES.definition)?.range::<u32>(..)?.next_back() {
            counters.name = counters.name.max(last?.0.value().saturating_add(1));
        }
        for event in txn.open_table(EVENTS.definition)?.range::<super::tables::EventKey>(..)? {
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
