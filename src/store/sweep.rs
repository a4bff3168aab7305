//! Deleting names that no row uses any more. Events come and go, and without this their names would stay for ever.

use std::collections::HashSet;
use std::sync::Arc;

use redb::{ReadTransaction, ReadableDatabase};

use super::batch::begin;
use super::error::{DamageList, StoreError};
use super::handle::Store;
use super::scan::scan;
use super::tables::{EVENTS, NAMES, ODDS, SCORES};

impl Store {
    /// Deletes the names that nothing uses, and says how many those were. Reads every row of the file (once in a
    /// while is enough), unless all names are still held by what was loaded or committed. Nothing is deleted from a
    /// file that has damage.
    pub fn sweep_names(&mut self) -> Result<usize, StoreError> {
        self.writing(|store| {
            let mut mirror = store.take_mirror()?;
            // Whatever still shares its text with someone is in use; of the others only the file knows.
            let held_by_nobody = mirror.names.iter().filter(|(text, _)| Arc::strong_count(text) == 1);
            let mut unused: HashSet<u32> = held_by_nobody.map(|(_, number)| *number).collect();
            if !unused.is_empty() {
                store.reading(|_, file| keep_unused(&file.db.begin_read()?, &mut unused))?;
                store.write_without_names(unused.iter())?;
                mirror.names.retain(|_, number| !unused.contains(number));
            }
            store.mirror = Some(mirror);
            Ok(unused.len())
        })
    }

    pub(super) fn delete_names(&mut self, numbers: &[u32]) -> Result<(), StoreError> {
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

/// Takes out of `unused` whatever a row uses, and everything if a row cannot be read.
fn keep_unused(txn: &ReadTransaction, unused: &mut HashSet<u32>) -> Result<(), StoreError> {
    let mut damage = DamageList::default();
    scan(&EVENTS, txn, .., &mut damage, |_, row| {
        for number in row.name_numbers() {
            unused.remove(&number);
        }
        Ok(())
    })?;
    scan(&SCORES, txn, .., &mut damage, |_, row| {
        if let Some(number) = row.winner {
            unused.remove(&number);
        }
        Ok(())
    })?;
    scan(&ODDS, txn, .., &mut damage, |_, row| {
        for outcome in &row.outcomes {
            unused.remove(&outcome.name);
        }
        Ok(())
    })?;
    if !damage.is_empty() {
        unused.clear();
    }
    Ok(())
}
