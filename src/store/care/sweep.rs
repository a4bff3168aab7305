//! Deleting names that no row uses any more. Events come and go, and without this their names would accumulate.

use std::collections::HashSet;
use std::sync::Arc;

use redb::{Key, ReadTransaction, ReadableDatabase, Value};

use crate::store::error::{DamageList, StoreError};
use crate::store::handle::Store;
use crate::store::row_batch::begin;
use crate::store::rows::StoredRow;
use crate::store::scan::scan;
use crate::store::table_keys::TableKey;
use crate::store::tables::{IndexTable, NAMES, ReferenceKind, RowReference, Table, TableVisitor, for_each_table};

impl Store {
    /// Deletes the names that nothing uses, and returns how many there were. Reads every row that can refer to a name
    /// (so call it rarely), unless what was loaded or committed still shares all of them. Nothing is deleted from a file
    /// that has damage.
    pub fn sweep_names(&mut self) -> Result<usize, StoreError> {
        self.writing(|store| {
            let mut maps = store.take_id_maps()?;
            // A text that is shared is in use; for the others the file has to be read.
            let unshared = maps.names.iter().filter(|(text, _)| Arc::strong_count(text) == 1);
            let mut unused: HashSet<u32> = unshared.map(|(_, number)| *number).collect();
            if !unused.is_empty() {
                store.reading(|_, file| keep_unused(&file.db.begin_read()?, &mut unused))?;
                store.write_without_names(unused.iter())?;
                maps.names.retain(|_, number| !unused.contains(number));
            }
            store.id_maps = Some(maps);
            Ok(unused.len())
        })
    }

    pub(in crate::store) fn delete_names(&mut self, numbers: &[u32]) -> Result<(), StoreError> {
        if numbers.is_empty() {
            return Ok(());
        }
        self.writing(|store| store.write_without_names(numbers.iter()))
    }

    fn write_without_names<'n>(&self, numbers: impl Iterator<Item = &'n u32>) -> Result<(), StoreError> {
        let mut numbers: Vec<u32> = numbers.copied().collect();
        if numbers.is_empty() {
            return Ok(());
        }
        numbers.sort_unstable();
        let txn = begin(&self.file()?.db)?;
        {
            let mut table = txn.open_table(NAMES.definition)?;
            for number in numbers {
                table.remove(number)?;
            }
        }
        Ok(txn.commit()?)
    }
}

/// Takes every name that a row uses out of `unused`, and all of them if a row cannot be read.
fn keep_unused(txn: &ReadTransaction, unused: &mut HashSet<u32>) -> Result<(), StoreError> {
    let mut users = NameUsers { txn, unused, damage: DamageList::default() };
    for_each_table(&mut users)?;
    if !users.damage.is_empty() {
        unused.clear();
    }
    Ok(())
}

struct NameUsers<'a> {
    txn: &'a ReadTransaction,
    unused: &'a mut HashSet<u32>,
    damage: DamageList,
}

impl TableVisitor for NameUsers<'_> {
    type Error = StoreError;

    fn table<K: TableKey, R: StoredRow<K>>(&mut self, table: &Table<K, R>) -> Result<(), StoreError> {
        if !table.refers_to.contains(&ReferenceKind::Name) {
            return Ok(());
        }
        scan(table, self.txn, .., &mut self.damage, |key, row| {
            row.references(&key, &mut |reference| {
                if let RowReference::Name(number) = reference {
                    self.unused.remove(&number);
                }
            });
            Ok(())
        })?;
        Ok(())
    }

    fn index<K: Key + 'static, V: Value + 'static>(&mut self, _: &IndexTable<K, V>) -> Result<(), StoreError> {
        Ok(())
    }
}
