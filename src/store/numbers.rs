//! The numbers of sports and bookmakers in the file.
//!
//! An event refers to its sport, and a price to its bookmaker, by number alone. So a number must never come to stand for
//! another sport or bookmaker: it stays taken for as long as anything in the file refers to it, also when the row that
//! defines it is lost. The tables of definitions are read row by row and never searched: a damaged key stands out of
//! order, and a search would miss its neighbours.

use std::collections::BTreeMap;

use redb::ReadTransaction;

use super::codec::{BookRow, Flaw, SportRow, TooLong};
use super::error::{DamageList, StoreError};
use super::scan::scan;
use super::table_keys::{CoverageKey, EventKey, world_of};
use super::tables::{BOOKS, COVERAGE, EVENTS, SOURCES, SPORTS};
use crate::model::sport::is_key;
use crate::model::{BookId, Bookmakers, Catalogue, SportId, World};

/// The catalogue's order may change from start to start; a sport's number never does.
#[derive(Debug, Default)]
pub(super) struct SportNumbers {
    /// Every sport in the file, those included that the catalogue no longer lists.
    keys: BTreeMap<u16, Box<str>>,
    /// By the catalogue's order.
    served: Vec<(SportId, u16)>,
}

impl SportNumbers {
    /// Reads the numbers, and assigns new ones to the sports that have none: the caller writes those.
    pub(super) fn read(
        txn: &ReadTransaction,
        catalogue: &Catalogue,
        damage: &mut DamageList,
    ) -> Result<(Self, Vec<u16>), StoreError> {
        let mut keys: BTreeMap<u16, Box<str>> = BTreeMap::new();
        scan(&SPORTS, txn, .., damage, |number, row| {
            if !is_key(&row.key) {
                return Err(Flaw::Invalid("its key is invalid"));
            }
            keys.insert(number, row.key.into());
            Ok(())
        })?;
        let highest = keys.last_key_value().map(|(number, _)| *number).max(highest_sport_number(txn)?);
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

    /// The key of a sport in the file.
    pub(super) fn key(&self, number: u16) -> Option<&str> {
        self.keys.get(&number).map(|key| &**key)
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

/// The highest number that an event or a source refers to.
fn highest_sport_number(txn: &ReadTransaction) -> Result<Option<u16>, StoreError> {
    let mut highest = None;
    // Loading reports damage.
    scan(&SOURCES, txn, .., &mut DamageList::default(), |(_, sport, _), _| {
        highest = highest.max(Some(sport));
        Ok(())
    })?;
    // Skips from one sport to the next: there may be a hundred thousand events.
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

/// Reads the bookmakers of both worlds.
pub(super) fn scan_books(
    txn: &ReadTransaction,
    damage: &mut DamageList,
    mut each: impl FnMut(World, BookId, BookRow) -> Result<(), Flaw>,
) -> Result<(), StoreError> {
    scan(&BOOKS, txn, .., damage, |(world, number), row| {
        let world = world_of(world).ok_or(Flaw::Invalid("its world is unknown"))?;
        each(world, BookId::from_number(number), row)
    })?;
    Ok(())
}

/// The highest number of each world that a bookmaker, a source or a price has. Damaged rows do not count: nothing refers
/// to a number that only such a row has.
pub(super) fn highest_book_numbers(txn: &ReadTransaction) -> Result<[Option<u16>; World::ALL.len()], StoreError> {
    let mut highest = [None; World::ALL.len()];
    let mut note = |world: u8, number: u16| {
        if let Some(world) = world_of(world).filter(|_| usize::from(number) < Bookmakers::MAX) {
            let highest = &mut highest[world.index()];
            *highest = (*highest).max(Some(number));
        }
    };
    // Loading reports damage.
    let damage = &mut DamageList::default();
    scan(&BOOKS, txn, .., damage, |(world, number), _| {
        note(world, number);
        Ok(())
    })?;
    scan(&SOURCES, txn, .., damage, |(world, _, number), _| {
        note(world, number);
        Ok(())
    })?;
    // Skips from one bookmaker of a sport to the next: there may be a million prices.
    let coverage = txn.open_table(COVERAGE.definition)?;
    let mut from: CoverageKey = (0, 0, 0, 0, 0);
    while let Some(row) = coverage.range(from..)?.next() {
        let (world, sport, number, ..) = row?.0.value();
        note(world, number);
        let next = following(world, sport, number);
        match next.filter(|next| *next > from) {
            Some(next) => from = next,
            None => break,
        }
    }
    Ok(highest)
}

/// Where the prices of the next bookmaker begin.
fn following(world: u8, sport: u16, number: u16) -> Option<CoverageKey> {
    match (number.checked_add(1), sport.checked_add(1)) {
        (Some(number), _) => Some((world, sport, number, 0, 0)),
        (None, Some(sport)) => Some((world, sport, 0, 0, 0)),
        (None, None) => Some((world.checked_add(1)?, 0, 0, 0, 0)),
    }
}
