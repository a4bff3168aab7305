//! Reading ranges of rows: each is decoded and handed on, or recorded as damage and left out.

use std::ops::{Bound, RangeBounds};

use redb::{ReadTransaction, ReadableTableMetadata};

use super::care::RowNames;
use super::codec::{Flaw, Row};
use super::error::{DamageList, StoreError};
use super::table_keys::TableKey;
use super::tables::Table;

/// Calls `each` with every sound row of `range`, and returns how many rows there were, sound or not. What `each` finds
/// wrong with a row is damage as well, and so are rows that a whole table counts and no page leads to.
pub(super) fn scan<'r, K, R>(
    table: &Table<K, R>,
    txn: &ReadTransaction,
    range: impl RangeBounds<K::SelfType<'r>>,
    damage: &mut DamageList,
    mut each: impl FnMut(K::SelfType<'_>, R) -> Result<(), Flaw>,
) -> Result<u64, StoreError>
where
    K: TableKey,
    R: Row,
{
    let is_whole = matches!((range.start_bound(), range.end_bound()), (Bound::Unbounded, Bound::Unbounded));
    let rows = txn.open_table(table.definition)?;
    let mut count = 0;
    for entry in rows.range::<K::SelfType<'r>>(range)? {
        let (key, value) = entry?;
        count += 1;
        let outcome = table.unseal(&key.value(), value.value()).and_then(|row| each(key.value(), row));
        if let Err(flaw) = outcome {
            damage.add(table.name, (table.describe)(&key.value(), &RowNames::default()), flaw);
        }
    }
    let expected = if is_whole { rows.len()? } else { count };
    if count != expected {
        damage.add(table.name, format!("{} rows", expected.abs_diff(count)), "they are counted and cannot be found");
    }
    Ok(count)
}
