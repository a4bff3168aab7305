//! What became of a commit that failed: it is in the file as a whole, or nothing of it is.
//!
//! An error of the disk can come after the last byte was written. Then the commit was told to have failed and is there
//! all the same, and whoever goes on without looking has another story in memory than in the file.

use redb::{Key, ReadTransaction, TableDefinition};

use super::batch::Batch;
use super::error::StoreError;
use super::tables::{AUDIT, BOOKS, BUDGETS, EVENTS, KEYS, META, NAMES, ODDS, SCORES, SOURCES, USAGE};

impl Batch {
    /// Whether every row is as this batch leaves it. A commit is whole, so one row that differs says that it was not
    /// kept; where none differs, it makes no difference.
    pub(super) fn is_in(&self, txn: &ReadTransaction) -> Result<bool, StoreError> {
        let gone = self.gone_events.iter().filter(|event| !self.events.contains_key(event)).map(|event| (*event, None));
        Ok(holds(txn, AUDIT.definition, self.audit.iter().map(|(key, row)| (*key, Some(&**row))))?
            && holds(txn, META.definition, self.meta.iter().map(|(key, row)| (*key, row.as_deref())))?
            && holds(txn, BUDGETS.definition, self.budgets.iter().map(|(key, row)| (&**key, row.as_deref())))?
            && holds(txn, KEYS.definition, self.keys.iter().map(|(key, row)| (&**key, Some(&**row))))?
            && holds(txn, KEYS.definition, self.gone_keys.iter().map(|key| (&**key, None)))?
            && holds(txn, USAGE.definition, self.usage.iter().map(|(key, row)| (&**key, Some(&**row))))?
            && holds(txn, NAMES.definition, self.names.iter().map(|(key, row)| (*key, Some(&**row))))?
            && holds(txn, BOOKS.definition, self.books.iter().map(|(key, row)| (*key, Some(&**row))))?
            && holds(txn, EVENTS.definition, gone)?
            && holds(txn, EVENTS.definition, self.events.iter().map(|(key, row)| (*key, Some(&**row))))?
            && holds(txn, SCORES.definition, self.scores.iter().map(|(key, row)| (*key, Some(&**row))))?
            && holds(txn, SOURCES.definition, self.sources.iter().map(|(key, row)| (*key, row.as_deref())))?
            && holds(txn, ODDS.definition, self.odds.iter().map(|(key, row)| (*key, row.as_deref())))?)
    }
}

/// Whether a table has each row as given, or does not have it where none is given.
fn holds<'a, K: Key + 'static>(
    txn: &ReadTransaction,
    table: TableDefinition<'static, K, &'static [u8]>,
    rows: impl Iterator<Item = (K::SelfType<'a>, Option<&'a [u8]>)>,
) -> Result<bool, StoreError> {
    let table = txn.open_table(table)?;
    for (key, row) in rows {
        let found = redb::ReadableTable::get(&table, key)?;
        if found.as_ref().map(redb::AccessGuard::value) != row {
            return Ok(false);
        }
    }
    Ok(true)
}
