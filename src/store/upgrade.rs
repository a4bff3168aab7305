//! From an older format to this one.
//!
//! Opening a file of an older format copies it beside itself first (`oddsbox.redb.v1-backup`), then takes every step
//! from there to the present in one transaction, the new format's number included: a crash leaves the old file or the
//! new one. A newer format is refused.
//!
//! To change the format: raise [`FORMAT`] by one, add a step from the number before to [`UPGRADES`], and let the tests
//! write a file as it was. A row that only gains a field needs an empty step and a new version of that row (see
//! `codec`).

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use redb::{Database, ReadableTable, WriteTransaction};

use super::batch::begin;
use super::codec::MetaRow;
use super::error::StoreError;
use super::tables::{
    AUDIT, BUDGETS, CATALOGUE, FORMAT, FORMAT_KEY, FORMATS, KEY_ORDER, KEYS, META, META_SIMULATED, POLLS,
};
use crate::keys::KeyKind;

type Step = fn(&WriteTransaction) -> Result<(), StoreError>;

/// Each format with the step to the one after it.
pub(super) const UPGRADES: &[(u32, Step)] = &[(1, keep_catalogue_and_order_of_keys), (2, mark_simulated_world)];

/// As many copies of one file as are kept beside it.
const COPIES_MAX: u32 = 9;

/// Whether there is a way from a format to the present one.
pub(super) fn is_known(format: u32) -> bool {
    UPGRADES.iter().any(|(from, _)| *from == format)
}

/// Takes every step from `format` on, all or none.
pub(super) fn upgrade(db: &Database, format: u32) -> Result<(), StoreError> {
    let txn = begin(db)?;
    for (_, step) in UPGRADES.iter().filter(|(from, _)| *from >= format) {
        step(&txn)?;
    }
    txn.open_table(FORMATS)?.insert(FORMAT_KEY, FORMAT)?;
    Ok(txn.commit()?)
}

/// Format 2 keeps the catalogue's text, what polls last had, and the order in which keys were issued. Of older keys only their second and
/// their id are known.
fn keep_catalogue_and_order_of_keys(txn: &WriteTransaction) -> Result<(), StoreError> {
    txn.open_table(CATALOGUE.definition)?;
    txn.open_table(POLLS.definition)?;
    let mut keys: Vec<(u32, String)> = Vec::new();
    for row in txn.open_table(KEYS.definition)?.range::<&str>(..)? {
        let (id, row) = row?;
        // A damaged row stays where it is; should it come back, it comes first.
        let created = KEYS.unseal(&id.value(), row.value()).map_or(0, |row| row.created);
        keys.push((created, id.value().to_owned()));
    }
    keys.sort_unstable();
    let mut order = txn.open_table(KEY_ORDER)?;
    for (place, (_, id)) in (0_u64..).zip(&keys) {
        order.insert(place, &**id)?;
    }
    Ok(())
}

/// Format 3 keeps the budgets of polled feeds, the owners of events and the used quotas of feeders (in rows that need no
/// step), and marks a live world that the simulator filled. Version 0.1.0 left no
/// mark: its demonstration is known by the production key that it issued on its first run.
fn mark_simulated_world(txn: &WriteTransaction) -> Result<(), StoreError> {
    txn.open_table(BUDGETS.definition)?;
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

/// Copies a file beside itself, to a name that tells its format; the name.
pub(super) fn copy_beside(path: &Path, format: u32) -> io::Result<PathBuf> {
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
    // With it the name under which the copy was made goes, and after a failure the copy itself.
    fs::remove_file(&partial).or_else(|error| if copied.is_ok() { Err(error) } else { Ok(()) })?;
    let copied = copied?;
    super::place::sync_parent(&copied)?;
    Ok(copied)
}

fn copy_durably(from: &Path, to: &Path) -> io::Result<()> {
    let mut source = File::open(from)?;
    let mut copy = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(to)?;
    io::copy(&mut source, &mut copy)?;
    copy.sync_all()
}
