//! Upgrades from an older format to this one.
//!
//! Opening a file of an older format first copies it beside itself (`oddsbox.redb.v1-backup`), then takes every step to
//! the present format in one transaction, the new format's number included: a crash leaves the old file or the new one.
//! A newer format is refused.
//!
//! To change the format: raise [`FORMAT`] by one, add a step from the number before to [`UPGRADES`], and let the tests
//! write a file as it was. Tables that the older format lacks are created first. A row that only gains a field needs an
//! empty step and a new version of that row (see `codec`).

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use redb::{Database, Key, ReadTransaction, ReadableTable, TableHandle, Value, WriteTransaction};

use crate::keys::KeyKind;
use crate::store::codec::MetaRow;
use crate::store::error::StoreError;
use crate::store::open::sync_parent;
use crate::store::row_batch::begin;
use crate::store::rows::StoredRow;
use crate::store::table_keys::TableKey;
use crate::store::tables::{
    AUDIT, FORMAT, FORMAT_KEY, FORMATS, IndexTable, KEY_ORDER, KEYS, META, META_SIMULATED, Table, TableVisitor,
    for_each_table, table_names,
};

type UpgradeStep = fn(&WriteTransaction) -> Result<(), StoreError>;

/// Each format with the step to the one after it.
pub(in crate::store) const UPGRADES: &[(u32, UpgradeStep)] = &[(1, add_key_order), (2, mark_simulated_world)];

/// The most copies of one file that are kept beside it.
const COPIES_MAX: u32 = 9;

/// Whether a format can be upgraded to the present one.
pub(in crate::store) fn is_known(format: u32) -> bool {
    UPGRADES.iter().any(|(from, _)| *from == format)
}

/// Takes every step from `format` on, all or none.
pub(in crate::store) fn upgrade(db: &Database, format: u32) -> Result<(), StoreError> {
    let txn = begin(db)?;
    create_tables(&txn)?;
    for (_, step) in UPGRADES.iter().filter(|(from, _)| *from >= format) {
        step(&txn)?;
    }
    Ok(txn.commit()?)
}

/// Creates the tables that the file lacks, and gives it the present format's number.
pub(in crate::store) fn create_tables(txn: &WriteTransaction) -> Result<(), StoreError> {
    for_each_table(&mut CreateTables { txn })
}

struct CreateTables<'t> {
    txn: &'t WriteTransaction,
}

impl TableVisitor for CreateTables<'_> {
    type Error = StoreError;

    fn table<K: TableKey, R: StoredRow<K>>(&mut self, table: &Table<K, R>) -> Result<(), StoreError> {
        self.txn.open_table(table.definition)?;
        Ok(())
    }

    fn index<K: Key + 'static, V: Value + 'static>(&mut self, index: &IndexTable<K, V>) -> Result<(), StoreError> {
        self.txn.open_table(index.definition)?;
        Ok(())
    }

    fn format_number(&mut self) -> Result<(), StoreError> {
        self.txn.open_table(FORMATS)?.insert(FORMAT_KEY, FORMAT)?;
        Ok(())
    }
}

/// Whether the file has every table: some were added without a change of format.
pub(in crate::store) fn has_all_tables(txn: &ReadTransaction) -> Result<bool, StoreError> {
    let present: BTreeSet<String> = txn.list_tables()?.map(|table| table.name().to_owned()).collect();
    Ok(table_names().all(|name| present.contains(name)))
}

/// Format 2 has the order in which keys were issued. Of older keys only their second and their id are known.
fn add_key_order(txn: &WriteTransaction) -> Result<(), StoreError> {
    let mut keys: Vec<(u32, String)> = Vec::new();
    for row in txn.open_table(KEYS.definition)?.range::<&str>(..)? {
        let (id, row) = row?;
        // A damaged row is left alone; if it is ever restored, its key comes first.
        let created = KEYS.unseal(&id.value(), row.value()).map_or(0, |row| row.created);
        keys.push((created, id.value().to_owned()));
    }
    keys.sort_unstable();
    let mut order = txn.open_table(KEY_ORDER.definition)?;
    for (position, (_, id)) in (0_u64..).zip(&keys) {
        order.insert(position, &**id)?;
    }
    Ok(())
}

/// Format 3 has budgets of polled feeds, owners of events and used quotas of feeders, in tables and rows that need no
/// step, and marks a live world that the simulator filled. Version 0.1.0 left no mark: its demo is recognised by the
/// production key that it issued on its first run.
fn mark_simulated_world(txn: &WriteTransaction) -> Result<(), StoreError> {
    let production = KeyKind::Production.name();
    let mut is_demo = false;
    for row in txn.open_table(AUDIT.definition)?.range::<u64>(..)? {
        let (sequence, row) = row?;
        is_demo |= AUDIT
            .unseal(&sequence.value(), row.value())
            .is_ok_and(|row| row.who == "oddsbox demo" && row.action == "issue" && row.detail.starts_with(production));
    }
    if is_demo {
        let mark = META.seal(&META_SIMULATED, &MetaRow::Simulated);
        let mark = mark.map_err(|error| StoreError::Refused(error.to_string()))?;
        txn.open_table(META.definition)?.insert(META_SIMULATED, &*mark)?;
    }
    Ok(())
}

/// Copies a file beside itself under a name with its format, and returns that name.
pub(in crate::store) fn copy_beside(path: &Path, format: u32) -> io::Result<PathBuf> {
    let beside = |ending: String| {
        let mut name = path.as_os_str().to_owned();
        name.push(ending);
        PathBuf::from(name)
    };
    let partial = beside(format!(".v{format}-backup.partial"));
    let copied = copy_durably(path, &partial).and_then(|()| {
        for number in 1..=COPIES_MAX {
            let ending = if number == 1 { String::new() } else { format!("-{number}") };
            let copy = beside(format!(".v{format}-backup{ending}"));
            match fs::hard_link(&partial, &copy) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                linked => return linked.map(|()| copy),
            }
        }
        Err(io::Error::other("there are too many copies of it beside it: move them away"))
    });
    // Removes the temporary name, and after a failure the copy itself.
    fs::remove_file(&partial).or_else(|error| if copied.is_ok() { Err(error) } else { Ok(()) })?;
    let copied = copied?;
    sync_parent(&copied)?;
    Ok(copied)
}

fn copy_durably(from: &Path, to: &Path) -> io::Result<()> {
    let mut source = File::open(from)?;
    let mut copy = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(to)?;
    io::copy(&mut source, &mut copy)?;
    copy.sync_all()
}
