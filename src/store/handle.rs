//! The store itself: opening, loading, committing, reopening, and reading the audit log.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::{Arc, Weak};
use std::time::Duration;

use redb::{AccessGuard, ReadableDatabase};

use super::care::Progress;
use super::change::{AuditEntry, Change};
use super::encode_batch::BatchEncoder;
use super::error::{DamageList, OpenError, StoreError};
use super::guard::guarded;
use super::history::{
    HistoryReader, ImportTrim, LogHead, Logs, WorldLog, first_logged, fresh_logs, read_logs, write_heads,
};
use super::id_maps::{IdMaps, NamesByNumber};
use super::load::{self, Loaded};
use super::numbers::SportNumbers;
use super::open::{BackendFactory, Location, OpenFile, OpenMode};
use super::row_batch::RowBatch;
use super::table_keys::{LogNumber, world_number};
use super::tables::AUDIT;
use crate::model::{Catalogue, SportId, Timestamp, World};

/// How a file is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreOptions {
    /// Memory for pages of the file. Requests are served from elsewhere, so it need not fit the file.
    pub cache_bytes: usize,
    /// How long to wait for a file that another process has open.
    pub wait_for_lock: Duration,
    /// Entries of the log are packed when there are this many bytes of them.
    pub loose_bytes_max: u64,
    /// A keyframe is not worth its row for less than this.
    pub frame_bytes_min: u64,
}

impl StoreOptions {
    pub const DEFAULT: StoreOptions = StoreOptions {
        cache_bytes: 64 << 20,
        wait_for_lock: Duration::from_secs(5),
        loose_bytes_max: 512 << 10,
        frame_bytes_min: 4 << 10,
    };
}

impl Default for StoreOptions {
    fn default() -> Self {
        StoreOptions::DEFAULT
    }
}

/// One open file.
pub struct Store {
    location: Location,
    options: StoreOptions,
    catalogue: Arc<Catalogue>,
    /// `None` after a reopening that failed.
    file: Option<OpenFile>,
    pub(super) sports: SportNumbers,
    /// Read when first needed, and again after a reopening.
    pub(super) id_maps: Option<IdMaps>,
    /// The same for the logs.
    logs: Option<Logs>,
    /// redb refuses every write after one that failed, until the file is opened again.
    is_writable: bool,
    /// The last commit, if it failed and may be in the file nevertheless.
    uncertain: Option<UncertainCommit>,
    /// Readings of snapshots, which keep the file open.
    pub(super) snapshots: Vec<Weak<Progress>>,
    history: HistoryReader,
    /// By the number of the log.
    pub(super) import_trims: BTreeMap<LogNumber, ImportTrim>,
}

/// A commit that has not returned success.
struct UncertainCommit {
    rows: RowBatch,
    /// Whether the file has the rows, once it was reopened and they were compared.
    is_stored: Option<bool>,
}

impl Store {
    /// Opens the file at `path`, creating it if it is missing, and brings its sports and bookmakers up to date with the
    /// catalogue.
    pub fn open(path: &Path, catalogue: Arc<Catalogue>, options: StoreOptions) -> Result<Store, OpenError> {
        Store::open_at(Location::Path(path.to_owned()), catalogue, options, OpenMode::Create)
    }

    /// The same, but a damaged file is opened for inspection: it never takes a write then.
    pub fn open_or_inspect(path: &Path, catalogue: Arc<Catalogue>, options: StoreOptions) -> Result<Store, OpenError> {
        match Store::open(path, Arc::clone(&catalogue), options) {
            Err(OpenError::Damaged { .. }) => {
                Store::open_at(Location::Path(path.to_owned()), catalogue, options, OpenMode::Inspect)
            }
            opened => opened,
        }
    }

    /// Opens any storage that redb can use, for tests that let it fail. `factory` is called again at each
    /// [`Store::reopen`].
    pub fn open_backend(
        factory: BackendFactory,
        catalogue: Arc<Catalogue>,
        options: StoreOptions,
    ) -> Result<Store, OpenError> {
        Store::open_at(Location::Backend(factory), catalogue, options, OpenMode::Create)
    }

    /// Opens such a storage for inspection, whatever state it is in: see [`Store::open_or_inspect`].
    pub fn inspect_backend(
        factory: BackendFactory,
        catalogue: Arc<Catalogue>,
        options: StoreOptions,
    ) -> Result<Store, OpenError> {
        Store::open_at(Location::Backend(factory), catalogue, options, OpenMode::Inspect)
    }

    fn open_at(
        location: Location,
        catalogue: Arc<Catalogue>,
        options: StoreOptions,
        mode: OpenMode,
    ) -> Result<Store, OpenError> {
        let file = Some(location.open(&options, mode)?);
        let is_writable = mode != OpenMode::Inspect;
        let sports = SportNumbers::default();
        let mut store = Store {
            location,
            options,
            catalogue,
            file,
            sports,
            id_maps: None,
            logs: None,
            is_writable,
            uncertain: None,
            snapshots: Vec::new(),
            history: HistoryReader::default(),
            import_trims: BTreeMap::new(),
        };
        store.sync_catalogue(true)?;
        store.open_history();
        Ok(store)
    }

    /// Closes the file and opens it again, which is the only way to write after a write failed. The file then has what
    /// the last successful commit left, or the failed one if it reached the disk after all: returns whether it did.
    pub fn reopen(&mut self) -> Result<bool, OpenError> {
        let mut uncertain = self.uncertain.take();
        let reopened = self.try_reopen(uncertain.as_mut());
        if reopened.is_err() {
            // The reopening that succeeds returns the answer.
            self.uncertain = uncertain;
        }
        reopened
    }

    fn try_reopen(&mut self, uncertain: Option<&mut UncertainCommit>) -> Result<bool, OpenError> {
        if self.is_inspected() {
            let detail = "it was opened for inspection".to_owned();
            return Err(OpenError::Damaged { place: self.location.to_string(), detail });
        }
        self.is_writable = false;
        self.id_maps = None;
        self.logs = None;
        self.close();
        self.file = Some(self.location.open(&self.options, OpenMode::Existing)?);
        let is_stored = match uncertain {
            None => false,
            Some(UncertainCommit { is_stored: Some(is_stored), .. }) => *is_stored,
            Some(uncertain) => {
                let sports: Vec<u16> = self.sports.all().collect();
                let compared = self.reading(|_, file| uncertain.rows.is_stored(&file.db.begin_read()?, &sports));
                let is_stored = compared.map_err(|error| OpenError::from_store(&self.location.to_string(), error))?;
                // Syncing the catalogue may write, after which the rows cannot be compared again.
                *uncertain.is_stored.insert(is_stored)
            }
        };
        self.is_writable = true;
        self.sync_catalogue(false)?;
        self.open_history();
        Ok(is_stored)
    }

    fn close(&mut self) {
        self.cancel_snapshots();
        self.close_history();
        if let Some(file) = self.file.take() {
            file.close();
        }
    }

    /// Read access to the log for other threads, also after the file is reopened.
    pub fn history(&self) -> HistoryReader {
        self.history.clone()
    }

    pub(super) fn open_history(&self) {
        if let Some(file) = &self.file {
            self.history.open(&file.db, self.sports.served());
        }
    }

    pub(super) fn close_history(&self) {
        self.history.close();
    }

    /// Whether the file is damaged and was opened for inspection only.
    pub fn is_inspected(&self) -> bool {
        self.file.as_ref().is_some_and(OpenFile::is_inspected)
    }

    /// Brings a file that was just opened up to date with the catalogue; `is_new` if nothing has been loaded from it yet.
    fn sync_catalogue(&mut self, is_new: bool) -> Result<(), OpenError> {
        let place = self.location.to_string();
        let synced = guarded(|| {
            self.clear_probe()?;
            self.number_sports()?;
            self.number_bookmakers(is_new)?;
            self.name_competitions()
        });
        synced.map_err(|error| {
            self.is_writable = false;
            error.into_open_error(&place)
        })
    }

    /// Everything that the file holds. Deletes names that nothing uses any more.
    pub fn load(&mut self) -> Result<Loaded, StoreError> {
        let (mut loading, logs) = self.reading(|store, file| {
            let mut damage = DamageList::default();
            let txn = file.db.begin_read()?;
            SportNumbers::read(&txn, &store.catalogue, &mut damage)?;
            let logs = read_logs(&txn, &store.sports, &mut damage)?;
            Ok((load::read(&txn, &store.catalogue, &store.sports, damage)?, logs))
        })?;
        loading.loaded.log_heads = self.begin_logs(logs)?;
        match self.delete_names(&loading.unused_names) {
            Ok(()) => loading.names.remove(&loading.unused_names),
            Err(error) => tracing::warn!(%error, "failed to delete unused names"),
        }
        let names = loading.names;
        self.id_maps = Some(self.reading(|store, file| IdMaps::read(&file.db.begin_read()?, &store.sports, names))?);
        Ok(loading.loaded)
    }

    /// Applies the changes in their order, durably, all or none of them.
    pub fn commit(&mut self, changes: &[Change]) -> Result<(), StoreError> {
        if changes.is_empty() {
            return Ok(());
        }
        self.writing(|store| {
            let mut maps = store.take_id_maps()?;
            // Put back only if all goes well: an entry that is not written must leave no trace in them.
            let mut logs = if changes.iter().any(Change::is_of_log) { Some(store.take_logs()?) } else { None };
            let mut encoder = BatchEncoder::new(&maps, &store.sports, logs.as_mut());
            let encoded = changes.iter().try_for_each(|change| encoder.add(change)).and_then(|()| encoder.finish());
            let written = encoded.and_then(|(batch, updates)| {
                let sports: Vec<u16> = store.sports.all().collect();
                // Remembered before it is tried: redb may also panic.
                let uncertain = store.uncertain.insert(UncertainCommit { rows: batch, is_stored: None });
                let done = match &store.file {
                    Some(file) => uncertain.rows.commit(&file.db, &sports),
                    None => Err(StoreError::NeedsReopen),
                };
                if !done.as_ref().is_err_and(StoreError::needs_reopen) {
                    store.uncertain = None;
                }
                done.map(|()| updates)
            });
            let result = written.map(|updates| maps.apply(updates));
            store.id_maps = Some(maps);
            let is_reverted = changes.iter().any(|change| matches!(change, Change::RevertLog { .. }));
            if result.is_ok() && !is_reverted && logs.is_some() {
                store.logs = logs;
            }
            if is_reverted {
                store.history.note_rewrite();
            }
            result
        })
    }

    /// The size of the file in bytes.
    pub fn file_bytes(&self) -> Result<u64, StoreError> {
        Ok(self.file()?.backend.file_bytes()?)
    }

    /// Whether the next commit can succeed without a [`Store::reopen`]: neither writing nor reading has failed since the last one.
    pub fn is_writable(&self) -> bool {
        self.is_writable && !self.history.has_failed()
    }

    /// Whether the next commit is tried at all: no write has failed since the last [`Store::reopen`].
    pub const fn has_no_failed_write(&self) -> bool {
        self.is_writable
    }

    pub(super) const fn options(&self) -> StoreOptions {
        self.options
    }

    pub(super) const fn stop_writing(&mut self) {
        self.is_writable = false;
    }

    pub(super) fn catalogue(&self) -> &Arc<Catalogue> {
        &self.catalogue
    }

    pub(super) fn file(&self) -> Result<&OpenFile, StoreError> {
        self.file.as_ref().ok_or(StoreError::NeedsReopen)
    }

    pub(super) fn file_mut(&mut self) -> Result<&mut OpenFile, StoreError> {
        self.file.as_mut().ok_or(StoreError::NeedsReopen)
    }

    /// Runs `work`, which only reads.
    pub(super) fn reading<T>(
        &self,
        work: impl FnOnce(&Self, &OpenFile) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let result = guarded(|| work(self, self.file()?));
        if result.as_ref().is_err_and(StoreError::is_of_disk) {
            self.history.note_failure();
        }
        result
    }

    /// Runs `work`, which writes. After a failure of the file, nothing more is written before a reopening.
    pub(super) fn writing<T>(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        if !self.is_writable {
            return Err(StoreError::NeedsReopen);
        }
        let result = guarded(|| work(self));
        if result.as_ref().is_err_and(StoreError::needs_reopen) {
            self.is_writable = false;
            self.id_maps = None;
            self.logs = None;
        }
        result
    }

    /// The second of the first entry of a world's log.
    pub fn first_logged(&self, world: World) -> Result<Option<Timestamp>, StoreError> {
        self.reading(|_, file| first_logged(&file.db.begin_read()?, world_number(world)))
    }

    /// The free bytes of the disk that the file is on, if that is known.
    pub fn disk_free(&self) -> Option<u64> {
        let Location::Path(path) = &self.location else { return None };
        let disk = rustix::fs::statvfs(path).ok()?;
        Some(disk.f_bavail.saturating_mul(disk.f_frsize))
    }

    /// Where the log of a world ends.
    pub fn log_head(&mut self, world: World) -> Result<LogHead, StoreError> {
        let logs = self.take_logs()?;
        let head = logs[world.index()].head;
        self.logs = Some(logs);
        Ok(head)
    }

    /// The last tick of a sport in the log of a world.
    pub fn last_tick(&self, world: World, sport: SportId) -> Option<Timestamp> {
        let log = self.logs.as_ref()?[world.index()].sports.get(&self.sports.number(sport)?)?;
        log.dictionary.last_tick()
    }

    /// The logs, to be put back when nothing failed.
    pub(super) fn take_logs(&mut self) -> Result<Logs, StoreError> {
        match self.logs.take() {
            Some(logs) => Ok(logs),
            None => self.reading(|store, file| {
                let txn = file.db.begin_read()?;
                let logs = read_logs(&txn, &store.sports, &mut DamageList::default())?;
                fresh_logs(&txn, logs)
            }),
        }
    }

    pub(super) fn put_logs(&mut self, logs: Logs) {
        self.logs = Some(logs);
    }

    /// The file has other logs now.
    pub(super) fn forget_logs(&mut self) {
        self.logs = None;
    }

    /// Begins a new epoch for each log that has none, or that is damaged.
    fn begin_logs(
        &mut self,
        logs: [Option<WorldLog>; World::ALL.len()],
    ) -> Result<[LogHead; World::ALL.len()], StoreError> {
        let is_new = logs.iter().any(Option::is_none);
        let logs = self.reading(|_, file| fresh_logs(&file.db.begin_read()?, logs))?;
        let heads = logs.each_ref().map(|log| log.head);
        self.logs = Some(logs);
        if is_new && self.is_writable {
            // If it fails, the next entry of the log writes it.
            if let Err(error) = self.writing(|store| write_heads(&store.file()?.db, heads)) {
                tracing::warn!(%error, "failed to store the epoch of the log");
            }
        }
        Ok(heads)
    }

    /// The id maps, to be put back when the work is done: a panic in between loses them, as it should.
    pub(super) fn take_id_maps(&mut self) -> Result<IdMaps, StoreError> {
        match self.id_maps.take() {
            Some(maps) => Ok(maps),
            None => self.reading(|store, file| {
                let txn = file.db.begin_read()?;
                let names = NamesByNumber::read(&txn, &mut DamageList::default())?;
                IdMaps::read(&txn, &store.sports, names)
            }),
        }
    }
}

impl Store {
    /// Up to `limit` entries in their order, from the first after `after` on. A damaged entry is left out, which
    /// shows as a gap in the sequence.
    pub fn audit(&self, after: Option<u64>, limit: usize) -> Result<Vec<AuditEntry>, StoreError> {
        let Some(first) = after.map_or(Some(0), |after| after.checked_add(1)) else { return Ok(Vec::new()) };
        self.reading(|_, file| {
            let table = file.db.begin_read()?.open_table(AUDIT.definition)?;
            let rows = table.range::<u64>(first..)?.take(limit);
            rows.filter_map(|row| row.map_err(StoreError::from).map(audit_entry).transpose()).collect()
        })
    }

    /// The last `limit` entries in their order.
    pub fn audit_tail(&self, limit: usize) -> Result<Vec<AuditEntry>, StoreError> {
        self.reading(|_, file| {
            let table = file.db.begin_read()?.open_table(AUDIT.definition)?;
            let rows = table.range::<u64>(..)?.rev().take(limit);
            let newest_first = rows.filter_map(|row| row.map_err(StoreError::from).map(audit_entry).transpose());
            let mut entries = newest_first.collect::<Result<Vec<_>, _>>()?;
            entries.reverse();
            Ok(entries)
        })
    }
}

fn audit_entry((key, row): (AccessGuard<'_, u64>, AccessGuard<'_, &'static [u8]>)) -> Option<AuditEntry> {
    let sequence = key.value();
    match AUDIT.unseal(&sequence, row.value()) {
        Ok(row) => Some(AuditEntry { sequence, note: row.note() }),
        Err(flaw) => {
            tracing::warn!(sequence, %flaw, "skipped a damaged audit entry");
            None
        }
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        self.close();
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let location = self.location.to_string();
        f.debug_struct("Store")
            .field("location", &location)
            .field("is_writable", &self.is_writable)
            .finish_non_exhaustive()
    }
}
