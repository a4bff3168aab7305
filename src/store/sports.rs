//! The numbers of the sports: the catalogue's order may change from start to start, a sport's number never does.
//!
//! An event names its sport by number alone. So a number stays taken for as long as anything in the file names it, also
//! when the row that says whose it is has been lost: no event may come to stand in another sport.

use std::collections::BTreeMap;

use redb::ReadTransaction;

use super::codec::{Flaw, SportRow, TooLong};
use super::error::{DamageList, StoreError};
use super::scan::scan;
use super::tables::{EVENTS, EventKey, SOURCES, SPORTS, world_of};
use crate::model::sport::is_key;
use crate::model::{Catalogue, SportId};

#[derive(Debug, Default)]
pub(super) struct SportNumbers {
    /// Every sport in the file, those included that the catalogue no longer lists.
    keys: BTreeMap<u16, Box<str>>,
    /// By the catalogue's order.
    served: Vec<(SportId, u16)>,
}

impl SportNumbers {
    /// Reads the numbers, and hands out new ones to the sports that have none: those are to be written.
    pub(super) fn read(
        txn: &ReadTransaction,
        catalogue: &Catalogue,
        damage: &mut DamageList,
    ) -> Result<(Self, Vec<u16>), StoreError> {
        let mut keys: BTreeMap<u16, Box<str>> = BTreeMap::new();
        scan(&SPORTS, txn, .., damage, |number, row| {
            if !is_key(&row.key) {
                return Err(Flaw::Invalid("its key is not one"));
            }
            keys.insert(number, row.key.into());
            Ok(())
        })?;
        let highest = keys.last_key_value().map(|(number, _)| *number).max(highest_named(txn)?);
        let mut next = highest.map_or(0, |number| number.saturating_add(1));

        let mut served = Vec::new();
        let mut added = Vec::new();
        for (id, sport) in catalogue.sports() {
            let known = keys.iter().find(|(_, key)| **key == sport.key).map(|(number, _)| *number);
            let number = known.unwrap_or_else(|| {
                let number = next;
                next = next.saturating_add(1);
                keys.insert(number, sport.key.clone());
                added.push(number);
                number
            });
            served.push((id, number));
        }
        Ok((SportNumbers { keys, served }, added))
    }

    /// The row of a sport that has a number.
    pub(super) fn seal(&self, number: u16) -> Result<Vec<u8>, TooLong> {
        let key = self.keys.get(&number).map_or_else(String::new, ToString::to_string);
        SPORTS.seal(&number, &SportRow { key })
    }

    pub(super) fn number(&self, sport: SportId) -> Option<u16> {
        self.served.get(sport.index()).map(|(_, number)| *number)
    }

    /// The catalogue's sports in its order.
    pub(super) fn served(&self) -> impl Iterator<Item = (SportId, u16)> {
        self.served.iter().copied()
    }

    /// The sports that the catalogue does not list.
    pub(super) fn unserved(&self) -> impl Iterator<Item = (u16, &str)> {
        let is_served = |number: u16| self.served.iter().any(|(_, served)| *served == number);
        self.keys.iter().filter(move |(number, _)| !is_served(**number)).map(|(number, key)| (*number, &**key))
    }

    pub(super) fn all(&self) -> impl Iterator<Item = u16> {
        self.keys.keys().copied()
    }
}

/// The highest number that an event or a source names.
fn highest_named(txn: &ReadTransaction) -> Result<Option<u16>, StoreError> {
    let mut highest = None;
    // Whoever loads the file reports its damage.
    scan(&SOURCES, txn, .., &mut DamageList::default(), |(_, sport, _), _| {
        highest = highest.max(Some(sport));
        Ok(())
    })?;
    // From one sport to the next: there may be a hundred thousand events.
    let events = txn.open_table(EVENTS.definition)?;
    let mut from: EventKey = (0, 0, 0);
    while let Some(row) = events.range(from..)?.next() {
        let (world, sport, _) = row?.0.value();
        if world_of(world).is_some() {
            highest = highest.max(Some(sport));
        }
        let next =
            sport.checked_add(1).map(|sport| (world, sport, 0)).or(world.checked_add(1).map(|world| (world, 0, 0)));
        match next.filter(|next| *next > from) {
            Some(next) => from = next,
            None => break,
        }
    }
    Ok(highest)
}
