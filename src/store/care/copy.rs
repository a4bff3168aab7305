//! A copy of the whole file, made while the writer goes on.
//!
//! The rows of one snapshot are loaded into a new file in the order of their keys. Holding the writer back while the
//! file's bytes are copied would make revocations and leases wait for the disk of the copy; this way nothing waits and
//! the copy is compact, at the price that the file grows by what is written meanwhile, which is bounded here. Damaged
//! rows are copied as they are, and counted.
//!
//! The copy is made under a temporary name in its target directory, read back and compared, and only then given its
//! name. After a failure nothing is left. It holds hashes of keys and never a secret, and still only its owner may read
//! it.

use std::fs::{self, OpenOptions};
use std::io;
use std::ops::Bound;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process;

use redb::{
    CursorError, Database, Key, ReadTransaction, ReadableDatabase, ReadableTableMetadata, TableDefinition, Value,
    WriteTransaction,
};

use super::snapshot::{Progress, Snapshot};
use crate::durable::sync_parent;
use crate::store::error::StoreError;
use crate::store::guard::guarded;
use crate::store::row_batch::begin;
use crate::store::rows::StoredRow;
use crate::store::table_keys::TableKey;
use crate::store::tables::{FORMATS, IndexTable, Table, TableVisitor, for_each_table};

const CACHE_BYTES: usize = 32 << 20;
/// The file may grow by its own size while it is copied, and by at least this much.
const GROWTH_MIN: u64 = 1 << 30;
/// The growth is checked every so many rows.
const GROWTH_CHECK_ROWS: u64 = 4096;

/// What to do about a file that exists already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    Refuse,
    Replace,
}

/// A copy that was made, read back and compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyReport {
    pub bytes: u64,
    pub rows: u64,
    /// Rows that were damaged before, and are in the copy unchanged.
    pub damaged: u64,
}

/// Why no copy was made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CopyError {
    #[error("{} is there already: name another file, or replace it with --force", .0.display())]
    Exists(PathBuf),
    #[error("the disk of {} is full: free some room on it, or name a file on another disk", .0.display())]
    DiskFull(PathBuf),
    #[error("{} cannot be written ({error}): name a file in a directory that the one who writes it may write to", path.display())]
    Target { path: PathBuf, error: io::Error },
    #[error("{} is not what was written to it ({detail}): do not trust its disk", path.display())]
    Differs { path: PathBuf, detail: String },
    #[error("the file grew to {0} bytes while it was copied, as the copy is too slow: name a file on a faster disk")]
    Growth(u64),
    #[error(transparent)]
    Source(#[from] StoreError),
}

/// The rows of a table, counted, with a checksum over all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sum {
    rows: u64,
    crc: u32,
}

impl Snapshot {
    /// Writes everything to a new file. Paced by the two disks; ends early when its progress is cancelled.
    pub fn copy_to(self, path: &Path, existing: Existing) -> Result<CopyReport, CopyError> {
        if existing == Existing::Refuse && fs::symlink_metadata(path).is_ok() {
            return Err(CopyError::Exists(path.to_owned()));
        }
        let partial = partial_name(path);
        let made = self.fill(&partial).and_then(|report| {
            rename(&partial, path, existing)?;
            Ok(report)
        });
        if made.is_err() {
            let _ = fs::remove_file(&partial);
        }
        made
    }

    fn fill(self, partial: &Path) -> Result<CopyReport, CopyError> {
        let target = |error| target_error(partial, error);
        let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(partial);
        let file = file.map_err(|error| io_error(partial, error))?;
        let bytes_before = self.backend.file_bytes().map_err(StoreError::from)?;
        let growth_max = bytes_before.saturating_add(bytes_before.max(GROWTH_MIN));
        let mut total = RowTotal { txn: &self.txn, rows: 0 };
        for_each_table(&mut total)?;
        self.progress.expect(total.rows * 2);

        let db = Database::builder().set_cache_size(CACHE_BYTES).create_file(file);
        let db = db.map_err(|error| target(error.into()))?;
        let txn = begin(&db).map_err(target)?;
        let mut copying = Copying { snapshot: &self, txn: &txn, partial, growth_max, sums: Vec::new(), damaged: 0 };
        guarded_copy(|| for_each_table(&mut copying))?;
        let (sums, damaged) = (copying.sums, copying.damaged);
        txn.commit().map_err(|error| target(error.into()))?;
        drop(db);

        self.compare(partial, &sums)?;
        let bytes = fs::metadata(partial).map_err(|error| io_error(partial, error))?.len();
        Ok(CopyReport { bytes, rows: total.rows, damaged })
    }

    /// Opens the copy as any redb file, has its pages checked, and reads every row back.
    fn compare(&self, partial: &Path, sums: &[Sum]) -> Result<(), CopyError> {
        let differs = |detail: String| CopyError::Differs { path: partial.to_owned(), detail };
        let opened = Database::builder().set_cache_size(CACHE_BYTES).open(partial);
        let mut db = opened.map_err(|error| differs(error.to_string()))?;
        match guarded(|| db.check_integrity().map_err(StoreError::from)) {
            Ok(true) => {}
            Ok(false) => return Err(differs("its pages had to be repaired".to_owned())),
            Err(error) => return Err(differs(error.to_string())),
        }
        let txn = db.begin_read().map_err(|error| differs(error.to_string()))?;
        let mut read_back = ReadBack { txn: &txn, progress: &self.progress, sums: Vec::new() };
        guarded_copy(|| for_each_table(&mut read_back)).map_err(|error| match error {
            CopyError::Source(StoreError::Cancelled) => error,
            other => differs(other.to_string()),
        })?;
        if read_back.sums == sums { Ok(()) } else { Err(differs("its rows differ".to_owned())) }
    }
}

/// In the same directory, so that giving the copy its name is one step.
fn partial_name(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}.partial", process::id()));
    PathBuf::from(name)
}

/// Gives the copy its name, durably. [`Existing::Refuse`] also holds for a file that was created meanwhile.
fn rename(partial: &Path, path: &Path, existing: Existing) -> Result<(), CopyError> {
    let renamed = match existing {
        Existing::Replace => fs::rename(partial, path),
        Existing::Refuse => fs::hard_link(partial, path).and_then(|()| fs::remove_file(partial)),
    };
    renamed.and_then(|()| sync_parent(path)).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => CopyError::Exists(path.to_owned()),
        _ => io_error(path, error),
    })
}

fn io_error(path: &Path, error: io::Error) -> CopyError {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => CopyError::DiskFull(path.to_owned()),
        _ => CopyError::Target { path: path.to_owned(), error },
    }
}

fn target_error(path: &Path, error: StoreError) -> CopyError {
    match error {
        StoreError::DiskFull => CopyError::DiskFull(path.to_owned()),
        StoreError::Io(error) => io_error(path, error),
        other => CopyError::Differs { path: path.to_owned(), detail: other.to_string() },
    }
}

fn guarded_copy(work: impl FnOnce() -> Result<(), CopyError>) -> Result<(), CopyError> {
    guarded(work)
}

struct RowTotal<'a> {
    txn: &'a ReadTransaction,
    rows: u64,
}

impl RowTotal<'_> {
    fn count<K: Key + 'static, V: Value + 'static>(
        &mut self,
        table: TableDefinition<'static, K, V>,
    ) -> Result<(), CopyError> {
        let table = self.txn.open_table(table).map_err(StoreError::from)?;
        self.rows += table.len().map_err(StoreError::from)?;
        Ok(())
    }
}

impl TableVisitor for RowTotal<'_> {
    type Error = CopyError;

    fn table<K: TableKey, R: StoredRow<K>>(&mut self, table: &Table<K, R>) -> Result<(), CopyError> {
        self.count(table.definition)
    }

    fn index<K: Key + 'static, V: Value + 'static>(&mut self, index: &IndexTable<K, V>) -> Result<(), CopyError> {
        self.count(index.definition)
    }

    fn format_number(&mut self) -> Result<(), CopyError> {
        self.count(FORMATS)
    }
}

struct Copying<'a> {
    snapshot: &'a Snapshot,
    txn: &'a WriteTransaction,
    partial: &'a Path,
    growth_max: u64,
    sums: Vec<Sum>,
    damaged: u64,
}

impl Copying<'_> {
    /// Copies a table, and counts the rows for which `is_damaged` holds.
    fn copy<K: Key + 'static, V: Value + 'static>(
        &mut self,
        table: TableDefinition<'static, K, V>,
        is_damaged: impl Fn(&K::SelfType<'_>, &V::SelfType<'_>) -> bool,
    ) -> Result<(), CopyError> {
        let source = self.snapshot.txn.open_table(table).map_err(StoreError::from)?;
        let mut copy = self.txn.open_table(table).map_err(|error| self.target(error))?;
        let mut cursor =
            copy.upper_bound_mut(Bound::<K::SelfType<'_>>::Unbounded).map_err(|error| self.target(error))?;
        let mut sum = Sum::default();
        let mut damaged = 0;
        for row in source.range::<K::SelfType<'_>>(..).map_err(StoreError::from)? {
            let (key, value) = row.map_err(StoreError::from)?;
            let (key, value) = (key.value(), value.value());
            self.snapshot.progress.step()?;
            if sum.rows.is_multiple_of(GROWTH_CHECK_ROWS) {
                self.check_growth()?;
            }
            sum.add::<K, V>(&key, &value);
            damaged += u64::from(is_damaged(&key, &value));
            cursor.insert_before(&key, &value).map_err(|error| self.out_of_order(error))?;
        }
        cursor.close().map_err(|error| self.target(error))?;
        self.sums.push(sum);
        self.damaged += damaged;
        Ok(())
    }

    fn check_growth(&self) -> Result<(), CopyError> {
        let bytes = self.snapshot.backend.file_bytes().map_err(StoreError::from)?;
        if bytes > self.growth_max { Err(CopyError::Growth(bytes)) } else { Ok(()) }
    }

    fn target(&self, error: impl Into<StoreError>) -> CopyError {
        target_error(self.partial, error.into())
    }

    /// Rows come in key order, unless the pages that lead to them are ruined.
    fn out_of_order(&self, error: CursorError) -> CopyError {
        match error {
            CursorError::Storage(error) => self.target(error),
            other => StoreError::Damaged(other.to_string()).into(),
        }
    }
}

impl TableVisitor for Copying<'_> {
    type Error = CopyError;

    fn table<K: TableKey, R: StoredRow<K>>(&mut self, table: &Table<K, R>) -> Result<(), CopyError> {
        self.copy(table.definition, |key, value| !table.is_sound(key, value))
    }

    fn index<K: Key + 'static, V: Value + 'static>(&mut self, index: &IndexTable<K, V>) -> Result<(), CopyError> {
        self.copy(index.definition, |_, _| false)
    }

    fn format_number(&mut self) -> Result<(), CopyError> {
        self.copy(FORMATS, |_, _| false)
    }
}

/// Reads the copy back.
struct ReadBack<'a> {
    txn: &'a ReadTransaction,
    progress: &'a Progress,
    sums: Vec<Sum>,
}

impl ReadBack<'_> {
    fn read<K: Key + 'static, V: Value + 'static>(
        &mut self,
        table: TableDefinition<'static, K, V>,
    ) -> Result<(), CopyError> {
        let mut sum = Sum::default();
        let table = self.txn.open_table(table).map_err(StoreError::from)?;
        for row in table.range::<K::SelfType<'_>>(..).map_err(StoreError::from)? {
            let (key, value) = row.map_err(StoreError::from)?;
            self.progress.step()?;
            sum.add::<K, V>(&key.value(), &value.value());
        }
        self.sums.push(sum);
        Ok(())
    }
}

impl TableVisitor for ReadBack<'_> {
    type Error = CopyError;

    fn table<K: TableKey, R: StoredRow<K>>(&mut self, table: &Table<K, R>) -> Result<(), CopyError> {
        self.read(table.definition)
    }

    fn index<K: Key + 'static, V: Value + 'static>(&mut self, index: &IndexTable<K, V>) -> Result<(), CopyError> {
        self.read(index.definition)
    }

    fn format_number(&mut self) -> Result<(), CopyError> {
        self.read(FORMATS)
    }
}

impl Sum {
    fn add<K: Key + 'static, V: Value + 'static>(&mut self, key: &K::SelfType<'_>, value: &V::SelfType<'_>) {
        let mut hasher = crc32fast::Hasher::new_with_initial(self.crc);
        hasher.update(K::as_bytes(key).as_ref());
        hasher.update(V::as_bytes(value).as_ref());
        *self = Sum { rows: self.rows + 1, crc: hasher.finalize() };
    }
}
