//! Deleting declared bookmakers that nothing refers to, when the numbers run out.
//!
//! A world has a fixed number of bookmaker numbers, and a feeder can declare bookmakers that never get a price. When few
//! numbers are left, these are deleted while the file is opened, and only then: in a running server, published boards, the
//! ring of recent price changes and requests in progress use numbers, and nothing counts which, so a number given to
//! another bookmaker could show prices under the wrong name. A number that anything refers to keeps its meaning, and a
//! file with a damaged row keeps all of them, since that row may refer to any.

use redb::{Key, ReadTransaction, ReadableDatabase, Value};

use crate::model::{Bookmakers, World};
use crate::store::codec::BookStanding;
use crate::store::error::{DamageList, StoreError};
use crate::store::handle::Store;
use crate::store::numbers::{highest_book_numbers, scan_books};
use crate::store::row_batch::begin;
use crate::store::rows::StoredRow;
use crate::store::scan::scan;
use crate::store::table_keys::{BookKey, TableKey, world_number, world_of};
use crate::store::tables::{BOOKS, IndexTable, ReferenceKind, RowReference, Table, TableVisitor, for_each_table};

/// How many numbers are to be left for the catalogue and for feeders.
const RESERVE: u16 = 512;

/// The numbers of each world that no bookmaker has and nothing refers to.
pub(in crate::store) type SpareNumbers = [Vec<u16>; World::ALL.len()];

impl Store {
    /// Deletes the unused bookmakers of each world that is running out of numbers, and returns the numbers that such a
    /// world then has left below its highest.
    pub(in crate::store) fn free_unused_bookmakers(&mut self) -> Result<SpareNumbers, StoreError> {
        let is_short = self.reading(|_, file| {
            let highest = highest_book_numbers(&file.db.begin_read()?)?;
            Ok(highest.map(|highest| highest.is_some_and(|number| usize::from(number + RESERVE) >= Bookmakers::MAX)))
        })?;
        if !is_short.contains(&true) {
            return Ok(SpareNumbers::default());
        }
        let (unused, spare) = self.reading(|store, file| store.find_unused(&file.db.begin_read()?, is_short))?;
        if !unused.is_empty() {
            self.writing(|store| store.delete_bookmakers(&unused))?;
            tracing::warn!(count = unused.len(), "deleted declared bookmakers without prices: few numbers were left");
        }
        Ok(spare)
    }

    fn find_unused(
        &self,
        txn: &ReadTransaction,
        is_short: [bool; 2],
    ) -> Result<(Vec<BookKey>, SpareNumbers), StoreError> {
        let mut used = UsedNumbers::read(txn)?;
        let mut damage = std::mem::take(&mut used.damage);
        let mut unused = Vec::new();
        scan_books(txn, &mut damage, |world, id, row| {
            let was_declared = matches!(row.standing, BookStanding::Declared | BookStanding::Gone);
            let book = row.bookmaker()?;
            let is_listed = self.catalogue().bookmakers().iter().any(|listed| listed.key == book.key);
            let is_used = used.worlds[world.index()].get(id.index()).copied().unwrap_or(true);
            let key = (world_number(world), id.number());
            if was_declared && !is_listed && !is_used && is_short[world.index()] {
                unused.push(key);
            } else {
                used.add(key);
            }
            Ok(())
        })?;
        if !damage.is_empty() {
            return Ok((Vec::new(), SpareNumbers::default()));
        }
        let spare = |is_used: Vec<bool>| (0..).zip(is_used).filter(|(_, is_used)| !is_used).map(|(n, _)| n).collect();
        Ok((unused, used.worlds.map(spare)))
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

/// The bookmaker numbers that any row or index refers to, in each world.
struct UsedNumbers<'t> {
    txn: &'t ReadTransaction,
    worlds: [Vec<bool>; World::ALL.len()],
    damage: DamageList,
}

impl<'t> UsedNumbers<'t> {
    fn read(txn: &'t ReadTransaction) -> Result<Self, StoreError> {
        let worlds = World::ALL.map(|_| vec![false; Bookmakers::MAX]);
        let mut used = UsedNumbers { txn, worlds, damage: DamageList::default() };
        for_each_table(&mut used)?;
        Ok(used)
    }

    fn add(&mut self, key: BookKey) {
        add_number(&mut self.worlds, key);
    }
}

fn add_number(worlds: &mut [Vec<bool>; World::ALL.len()], (world, number): BookKey) {
    let is_used = world_of(world).and_then(|world| worlds[world.index()].get_mut(usize::from(number)));
    if let Some(is_used) = is_used {
        *is_used = true;
    }
}

impl TableVisitor for UsedNumbers<'_> {
    type Error = StoreError;

    fn table<K: TableKey, R: StoredRow<K>>(&mut self, table: &Table<K, R>) -> Result<(), StoreError> {
        if !table.refers_to.contains(&ReferenceKind::Book) {
            return Ok(());
        }
        let UsedNumbers { txn, worlds, damage } = self;
        scan(table, txn, .., damage, |key, row| {
            row.references(&key, &mut |reference| {
                if let RowReference::Book(book) | RowReference::BookIfPresent(book) = reference {
                    add_number(worlds, book);
                }
            });
            Ok(())
        })?;
        Ok(())
    }

    fn index<K: Key + 'static, V: Value + 'static>(&mut self, index: &IndexTable<K, V>) -> Result<(), StoreError> {
        let Some(book_of) = index.book_of else { return Ok(()) };
        for row in self.txn.open_table(index.definition)?.range::<K::SelfType<'_>>(..)? {
            add_number(&mut self.worlds, book_of(&row?.0.value()));
        }
        Ok(())
    }
}
