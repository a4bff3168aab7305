//! A test of whether the file takes writes of a given size.
//!
//! On a full disk a few bytes may still fit into pages that are free in the file, while every batch of a feed is refused.
//! So the probe durably writes as many pages as the refused batch needs and deletes them again: the pages stay in the
//! file as free ones, for the write that follows.

use redb::{ReadableDatabase, TableDefinition};

use crate::store::error::StoreError;
use crate::store::handle::Store;
use crate::store::row_batch::begin;

/// Exists only during a probe, or after a crash in the middle of one.
const PROBE: TableDefinition<u32, &[u8]> = TableDefinition::new("write_probe");
/// More than half of redb's page, so that each row takes a page of its own.
const ROW_BYTES: usize = 3_500;

impl Store {
    /// Writes and deletes rows that take this many pages.
    pub fn probe(&mut self, pages: u32) -> Result<(), StoreError> {
        self.writing(|store| {
            let txn = begin(&store.file()?.db)?;
            {
                let mut table = txn.open_table(PROBE)?;
                let row = [0xa5; ROW_BYTES];
                for number in 0..pages {
                    table.insert(number, &row[..])?;
                }
            }
            txn.commit()?;
            store.delete_probe()
        })
    }

    /// Deletes what a crash in the middle of a probe left behind.
    pub(in crate::store) fn clear_probe(&mut self) -> Result<(), StoreError> {
        let is_left = self.reading(|_, file| Ok(file.db.begin_read()?.open_table(PROBE).is_ok()))?;
        if is_left && !self.is_inspected() { self.writing(|store| store.delete_probe()) } else { Ok(()) }
    }

    fn delete_probe(&self) -> Result<(), StoreError> {
        let txn = begin(&self.file()?.db)?;
        txn.delete_table(PROBE)?;
        Ok(txn.commit()?)
    }
}
