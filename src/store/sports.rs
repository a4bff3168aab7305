//! The numbers of the sports: the catalogue's order may change from start to start, a sport's number never does.

use std::collections::BTreeMap;

use redb::ReadTransaction;

use super::codec::{Flaw, SportRow, TooLong};
use super::error::{DamageList, StoreError};
use super::scan::scan;
use super::tables::SPORTS;
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
        let last = txn.open_table(SPORTS.definition)?.range::<u16>(..)?.next_back().transpose()?;
        let mut next = last.map_or(0, |(number, _)| number.value().saturating_add(1));

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
