//! The bookmakers of a file, by number.
//!
//! A price names its bookmaker by number alone, so a number must never come to stand for another bookmaker, whatever
//! becomes of a row. That is why the table is read row by row and never searched: a spoilt key stands out of order, and a
//! search would miss its neighbours. And it is why a number stays taken for as long as anything in the file names it,
//! also when the row that says whose it is has been lost.

use redb::ReadTransaction;

use super::codec::{BookRow, Flaw};
use super::error::{DamageList, StoreError};
use super::scan::scan;
use super::tables::{BOOKS, COVERAGE, CoverageKey, SOURCES, world_of};
use crate::model::{BookId, Bookmakers, World};

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

/// The highest number of each world that a bookmaker, a source or a price has. What a damaged row says does not count:
/// a number that only such a row has is named by nothing.
pub(super) fn highest_numbers(txn: &ReadTransaction) -> Result<[Option<u16>; World::ALL.len()], StoreError> {
    let mut highest = [None; World::ALL.len()];
    let mut note = |world: u8, number: u16| {
        if let Some(world) = world_of(world).filter(|_| usize::from(number) < Bookmakers::MAX) {
            let held = &mut highest[world.index()];
            *held = (*held).max(Some(number));
        }
    };
    // Whoever loads the file reports its damage.
    let damage = &mut DamageList::default();
    scan(&BOOKS, txn, .., damage, |(world, number), _| {
        note(world, number);
        Ok(())
    })?;
    scan(&SOURCES, txn, .., damage, |(world, _, number), _| {
        note(world, number);
        Ok(())
    })?;
    // From one bookmaker of a sport to the next: there may be a million prices.
    let coverage = txn.open_table(COVERAGE)?;
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
