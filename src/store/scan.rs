//! Reading ranges of rows: each is unsealed and handed on, or noted as damage and left out.

use std::ops::RangeBounds;
use std::panic::{AssertUnwindSafe, catch_unwind};

use redb::{Key, ReadTransaction};

use super::codec::{Flaw, Row};
use super::error::{DamageList, StoreError};
use super::tables::Table;

/// Calls `each` with every row of `range` that is sound, and says how many rows there were, sound or not. What `each`
/// finds wrong with a row is damage as well.
pub(super) fn scan<'r, K, R>(
    table: &Table<K, R>,
    txn: &ReadTransaction,
    range: impl RangeBounds<K::SelfType<'r>>,
    damage: &mut DamageList,
    mut each: impl FnMut(K::SelfType<'_>, R) -> Result<(), Flaw>,
) -> Result<u64, StoreError>
where
    K: Key + 'static,
    R: Row,
{
    scan_telling(
        table,
        txn,
        range,
        |key, row| each(key, row),
        |key, flaw| {
            damage.add(table.name, (table.describe)(key), flaw);
            Ok(())
        },
    )
}

/// The same, with whatever is to be done about a row that cannot be trusted.
pub(super) fn scan_telling<'r, K, R>(
    table: &Table<K, R>,
    txn: &ReadTransaction,
    range: impl RangeBounds<K::SelfType<'r>>,
    mut each: impl FnMut(K::SelfType<'_>, R) -> Result<(), Flaw>,
    mut tell: impl FnMut(&K::SelfType<'_>, Flaw) -> Result<(), StoreError>,
) -> Result<u64, StoreError>
where
    K: Key + 'static,
    R: Row,
{
    let mut count = 0;
    for entry in txn.open_table(table.definition)?.range::<K::SelfType<'r>>(range)? {
        let (key, value) = entry?;
        count += 1;
        let outcome = table.unseal(&key.value(), value.value()).and_then(|row| each(key.value(), row));
        if let Err(flaw) = outcome {
            tell(&key.value(), flaw)?;
        }
    }
    Ok(count)
}

/// Runs `work` and turns a panic into damage: redb checks its own pages with assertions when it meets a ruined one.
/// Whatever `work` was changing must not be used after that.
pub(super) fn guarded<T, E: From<StoreError>>(work: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let told = panic.downcast_ref::<String>().map(String::as_str);
        let told = told.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no reason given");
        Err(StoreError::Damaged(format!("reading it stopped at: {}", first_line(told))).into())
    })
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}
