//! Removing damaged rows, so that the rest of a file is sound.
//!
//! Other rows may refer to one that is dropped: an event's records go with it. The indexes are then rebuilt from the
//! rows. No copy is made here: the caller makes one first.

use redb::{Key, ReadableDatabase, Value, WriteTransaction};

use super::check::{CheckReport, check_rows};
use super::snapshot::Progress;
use crate::model::World;
use crate::store::error::StoreError;
use crate::store::handle::Store;
use crate::store::history::delete_lines;
use crate::store::row_batch::begin;
use crate::store::rows::StoredRow;
use crate::store::table_keys::{TableKey, world_number};
use crate::store::tables::{
    ENDS, IndexTable, KEYFRAMES, LINE_KEYS, LINES, LOG, META, Table, TableVisitor, for_each_table, meta_log_key,
};

/// Each pass drops the rows that refer to something that the pass before dropped.
const PASSES_MAX: usize = 64;

const LINE_TABLES: [&str; 3] = [LINES.name, ENDS.name, LINE_KEYS.name];

impl Store {
    /// Drops every damaged row, rebuilds the indexes, and returns how many rows were dropped. The caller checks the file
    /// again: see [`Store::check`]. Fails on a page that cannot be read: only a backup helps then.
    pub fn drop_damaged(&mut self) -> Result<u64, StoreError> {
        let mut dropped = 0;
        for _ in 0..PASSES_MAX {
            let progress = Progress::default();
            let found = self.reading(|_, file| check_rows(&file.db.begin_read()?, &progress))?;
            if found.has_ruined_page {
                return Err(StoreError::Damaged("one of its pages cannot be read".to_owned()));
            }
            if found.problems.is_empty() {
                break;
            }
            dropped += found.damaged.len() as u64;
            self.writing(|store| {
                store.id_maps = None;
                store.forget_logs();
                let txn = begin(&store.file()?.db)?;
                for (table, key) in &found.damaged {
                    for_each_table(&mut RemoveRow { txn: &txn, table, key })?;
                }
                if found.damaged.iter().any(|(table, _)| [LOG.name, KEYFRAMES.name].contains(table)) {
                    forget_epochs(&txn)?;
                }
                // Lines repeat the log, and are written again from it.
                if found.problems.listed().iter().any(|problem| LINE_TABLES.contains(&problem.table)) {
                    delete_lines(&txn)?;
                }
                for_each_table(&mut RebuildIndexes { txn: &txn })?;
                Ok(txn.commit()?)
            })?;
            self.history().note_rewrite();
        }
        Ok(dropped)
    }
}

/// Entries were lost: the logs begin new epochs, so that no client goes on as if nothing were missing.
fn forget_epochs(txn: &WriteTransaction) -> Result<(), StoreError> {
    let mut meta = txn.open_table(META.definition)?;
    for world in World::ALL {
        meta.remove(&*meta_log_key(world_number(world)))?;
    }
    Ok(())
}

impl CheckReport {
    /// Whether dropping rows can make the file sound.
    pub fn can_be_mended(&self) -> bool {
        !self.problems.listed().iter().any(|problem| problem.table == "file")
    }
}

/// Removes one row, by the name of its table and the bytes of its key.
struct RemoveRow<'a> {
    txn: &'a WriteTransaction,
    table: &'a str,
    key: &'a [u8],
}

impl TableVisitor for RemoveRow<'_> {
    type Error = StoreError;

    fn table<K: TableKey, R: StoredRow<K>>(&mut self, table: &Table<K, R>) -> Result<(), StoreError> {
        if table.name == self.table {
            self.txn.open_table(table.definition)?.remove(K::from_bytes(self.key))?;
        }
        Ok(())
    }

    fn index<K: Key + 'static, V: Value + 'static>(&mut self, _: &IndexTable<K, V>) -> Result<(), StoreError> {
        Ok(())
    }
}

struct RebuildIndexes<'a> {
    txn: &'a WriteTransaction,
}

impl TableVisitor for RebuildIndexes<'_> {
    type Error = StoreError;

    fn table<K: TableKey, R: StoredRow<K>>(&mut self, _: &Table<K, R>) -> Result<(), StoreError> {
        Ok(())
    }

    fn index<K: Key + 'static, V: Value + 'static>(&mut self, index: &IndexTable<K, V>) -> Result<(), StoreError> {
        (index.rebuild)(self.txn)
    }
}
