//! Bookmakers that a feed declared and that nothing names any more, deleted where the numbers run out.
//!
//! A world has a fixed number of numbers, and a feeder can declare bookmakers that never get a price. When few numbers
//! are left, these are deleted as the file is opened, and only then: while a server runs, published boards, the ring of
//! recent price changes and requests in flight hold numbers, and nothing counts who holds which, so a number that was
//! given to another bookmaker could show prices under the wrong name. A number that anything names stays what it is, and a
//! file with a damaged row keeps all of them, since that row may name any.

use redb::{ReadTransaction, ReadableDatabase};

use super::batch::begin;
use super::books::{highest_numbers, scan_books};
use super::codec::{PollRow, Standing};
use super::error::{DamageList, StoreError};
use super::handle::Store;
use super::scan::scan;
use super::tables::{BOOKS, BookKey, COVERAGE, CoverageKey, ODDS, POLLS, SOURCES, world_number, world_of};
use crate::model::{Bookmakers, World};

/// As many numbers are to be left for the catalogue and for feeders.
const RESERVE: u16 = 512;

/// The numbers of each world that nothing has or names.
pub(super) type Spare = [Vec<u16>; World::ALL.len()];

/// The numbers that something names, in each world.
struct Named([Vec<bool>; World::ALL.len()]);

impl Named {
    fn note(&mut self, world: u8, number: u16) {
        let is_named = world_of(world).and_then(|world| self.0[world.index()].get_mut(usize::from(number)));
        if let Some(is_named) = is_named {
            *is_named = true;
        }
    }
}

impl Store {
    /// Deletes the bookmakers that nothing names in a world that is running out of numbers; the numbers that such a
    /// world then has left below its highest.
    pub(super) fn free_unused_bookmakers(&mut self) -> Result<Spare, StoreError> {
        let is_short = self.reading(|_, file| {
            let highest = highest_numbers(&file.db.begin_read()?)?;
            Ok(highest.map(|highest| highest.is_some_and(|number| usize::from(number + RESERVE) >= Bookmakers::MAX)))
        })?;
        if !is_short.contains(&true) {
            return Ok(Spare::default());
        }
        let (unused, spare) = self.reading(|store, file| store.find_unused(&file.db.begin_read()?, is_short))?;
        if !unused.is_empty() {
            self.writing(|store| store.delete_bookmakers(&unused))?;
            tracing::warn!(count = unused.len(), "deleted declared bookmakers without prices: few numbers were left");
        }
        Ok(spare)
    }

    fn find_unused(&self, txn: &ReadTransaction, is_short: [bool; 2]) -> Result<(Vec<BookKey>, Spare), StoreError> {
        let mut damage = DamageList::default();
        let mut named = named_numbers(txn, &mut damage)?;
        let mut unused = Vec::new();
        scan_books(txn, &mut damage, |world, id, row| {
            let was_declared = matches!(row.standing, Standing::Declared | Standing::Gone);
            let book = row.bookmaker()?;
            let is_listed = self.catalogue().bookmakers().iter().any(|listed| listed.key == book.key);
            let is_named = named.0[world.index()].get(id.index()).copied().unwrap_or(true);
            if was_declared && !is_listed && !is_named && is_short[world.index()] {
                unused.push((world_number(world), id.number()));
            } else {
                named.note(world_number(world), id.number());
            }
            Ok(())
        })?;
        if !damage.is_empty() {
            return Ok((Vec::new(), Spare::default()));
        }
        let spare =
            |is_named: Vec<bool>| (0..).zip(is_named).filter(|(_, is_named)| !is_named).map(|(n, _)| n).collect();
        Ok((unused, named.0.map(spare)))
    }

    fn delete_bookmakers(&mut self, unused: &[BookKey]) -> Result<(), StoreError> {
        let txn = begin(&self.file()?.db)?;
        {
            let mut table = txn.open_table(BOOKS.definition)?;
            for key in unused {
                table.remove(key)?;
            }
        }
        Ok(txn.commit()?)
    }
}

fn named_numbers(txn: &ReadTransaction, damage: &mut DamageList) -> Result<Named, StoreError> {
    let mut named = Named([const { Vec::new() }; 2].map(|_: Vec<bool>| vec![false; Bookmakers::MAX]));
    scan(&ODDS, txn, .., damage, |(world, _, _, number, _), _| {
        named.note(world, number);
        Ok(())
    })?;
    scan(&SOURCES, txn, .., damage, |(world, _, number), _| {
        named.note(world, number);
        Ok(())
    })?;
    scan(&POLLS, txn, .., damage, |(world, _, _), row| {
        match row {
            PollRow::Scope { books, .. } => books.into_iter().for_each(|number| named.note(world, number)),
            PollRow::Event { records } => records.into_iter().for_each(|(number, _)| named.note(world, number)),
        }
        Ok(())
    })?;
    for row in txn.open_table(COVERAGE)?.range::<CoverageKey>(..)? {
        let (world, _, number, ..) = row?.0.value();
        named.note(world, number);
    }
    Ok(named)
}
