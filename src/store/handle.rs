//! The store itself: opening, loading, committing, reopening.

use std::fmt;
use std::path::Path;
use std::sync::{Arc, Weak};
use std::time::Duration;

use redb::ReadableDatabase;

use super::batch::Batch;
use super::change::Change;
use super::error::{DamageList, OpenError, StoreError};
use super::load;
use super::loaded::Loaded;
use super::mirror::Mirror;
use super::names::NamesByNumber;
use super::place::{BackendFactory, OpenFile, Place, Purpose};
use super::progress::Progress;
use super::scan::guarded;
use super::sports::SportNumbers;
use super::stage::Staging;
use crate::model::Catalogue;

/// How a file is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreOptions {
    /// Memory for pages of the file. Reads are served from elsewhere, so it need not hold the file.
    pub cache_bytes: usize,
    /// How long to wait for a file that another process has open.
    pub wait_for_lock: Duration,
}

impl Default for StoreOptions {
    fn default() -> Self {
        StoreOptions { cache_bytes: 64 << 20, wait_for_lock: Duration::from_secs(5) }
    }
}

/// One open file.
pub struct Store {
    place: Place,
    options: StoreOptions,
    catalogue: Arc<Catalogue>,
    /// `None` after a reopening that failed.
    file: Option<OpenFile>,
    pub(super) sports: SportNumbers,
    /// Read when it is first needed, and again after a reopening.
    pub(super) mirror: Option<Mirror>,
    /// redb refuses every write after one that failed, until the file is opened again.
    is_writable: bool,
    /// The last commit, if it failed and may be in the file all the same.
    unsure: Option<Unsure>,
    /// Readings beside the writer that keep the file open.
    pub(super) readings: Vec<Weak<Progress>>,
}

/// A commit that has not returned success.
struct Unsure {
    rows: Batch,
    /// Whether the file has the rows, once it was opened again and they were compared.
    was_kept: Option<bool>,
}

impl Store {
    /// Opens the file at `path`, which is made if it is missing, and brings its sports and bookmakers up to the
    /// catalogue.
    pub fn open(path: &Path, catalogue: Arc<Catalogue>, options: StoreOptions) -> Result<Store, OpenError> {
        Store::open_place(Place::Path(path.to_owned()), catalogue, options, Purpose::Create)
    }

    /// The same, but a damaged file is opened to be looked at. It takes no write then, ever.
    pub fn look_into(path: &Path, catalogue: Arc<Catalogue>, options: StoreOptions) -> Result<Store, OpenError> {
        match Store::open(path, Arc::clone(&catalogue), options) {
            Err(OpenError::Damaged { .. }) => {
                Store::open_place(Place::Path(path.to_owned()), catalogue, options, Purpose::Look)
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
        Store::open_place(Place::Backend(factory), catalogue, options, Purpose::Create)
    }

    /// Opens such a storage to be looked at, whatever state it is in: see [`Store::look_into`].
    pub fn look_into_backend(
        factory: BackendFactory,
        catalogue: Arc<Catalogue>,
        options: StoreOptions,
    ) -> Result<Store, OpenError> {
        Store::open_place(Place::Backend(factory), catalogue, options, Purpose::Look)
    }

    fn open_place(
        place: Place,
        catalogue: Arc<Catalogue>,
        options: StoreOptions,
        purpose: Purpose,
    ) -> Result<Store, OpenError> {
        let file = Some(place.open(&options, purpose)?);
        let is_writable = purpose != Purpose::Look;
        let sports = SportNumbers::default();
        let readings = Vec::new();
        let mut store =
            Store { place, options, catalogue, file, sports, mirror: None, is_writable, unsure: None, readings };
        store.settle(true)?;
        Ok(store)
    }

    /// Closes the file and opens it again, which is the only way to write after a write failed. The file then has what
    /// the last successful commit left, or the failed one if it reached the disk after all: returns whether it did.
    pub fn reopen(&mut self) -> Result<bool, OpenError> {
        let mut unsure = self.unsure.take();
        let reopened = self.try_reopen(unsure.as_mut());
        if reopened.is_err() {
            // The reopening that succeeds returns the answer.
            self.unsure = unsure;
        }
        reopened
    }

    fn try_reopen(&mut self, unsure: Option<&mut Unsure>) -> Result<bool, OpenError> {
        if self.is_looked_into() {
            let detail = "it was opened to be looked at".to_owned();
            return Err(OpenError::Damaged { place: self.place.to_string(), detail });
        }
        self.is_writable = false;
        self.mirror = None;
        self.close();
        self.file = Some(self.place.open(&self.options, Purpose::Use)?);
        let was_kept = match unsure {
            None => false,
            Some(Unsure { was_kept: Some(was_kept), .. }) => *was_kept,
            Some(unsure) => {
                let sports: Vec<u16> = self.sports.all().collect();
                let compared = self.reading(|_, file| unsure.rows.is_stored(&file.db.begin_read()?, &sports));
                let was_kept = compared.map_err(|error| OpenError::from_store(&self.place.to_string(), error))?;
                // Bringing the file up to the catalogue may write, after which the rows cannot be compared again.
                *unsure.was_kept.insert(was_kept)
            }
        };
        self.is_writable = true;
        self.settle(false)?;
        Ok(was_kept)
    }

    fn close(&mut self) {
        self.break_off_readings();
        if let Some(file) = self.file.take() {
            file.close();
        }
    }

    /// Whether the file is damaged and was opened all the same, to be looked at.
    pub fn is_looked_into(&self) -> bool {
        self.file.as_ref().is_some_and(OpenFile::is_looked_into)
    }

    /// Brings a file that was just opened up to the catalogue; `is_new` if nobody has loaded anything from it yet.
    fn settle(&mut self, is_new: bool) -> Result<(), OpenError> {
        let place = self.place.to_string();
        let settled = guarded(|| {
            self.clear_probe()?;
            self.number_sports()?;
            self.number_bookmakers(is_new)
        });
        settled.map_err(|error| {
            self.is_writable = false;
            error.explain(&place)
        })
    }

    /// Everything that the file holds. Names that nothing uses any more are deleted on the way.
    pub fn load(&mut self) -> Result<Loaded, StoreError> {
        let mut reading = self.reading(|store, file| {
            let mut damage = DamageList::default();
            let txn = file.db.begin_read()?;
            SportNumbers::read(&txn, &store.catalogue, &mut damage)?;
            load::read(&txn, &store.catalogue, &store.sports, damage)
        })?;
        match self.delete_names(&reading.unused_names) {
            Ok(()) => reading.names.forget(&reading.unused_names),
            Err(error) => tracing::warn!(%error, "unused names could not be deleted"),
        }
        let names = reading.names;
        self.mirror = Some(self.reading(|store, file| Mirror::read(&file.db.begin_read()?, &store.sports, names))?);
        Ok(reading.loaded)
    }

    /// Applies the changes in their order, durably, all or none of them.
    pub fn commit(&mut self, changes: &[Change]) -> Result<(), StoreError> {
        if changes.is_empty() {
            return Ok(());
        }
        self.writing(|store| {
            let mut mirror = store.take_mirror()?;
            let mut staging = Staging::new(&mirror, &store.sports);
            let staged = changes.iter().try_for_each(|change| staging.add(change)).and_then(|()| staging.finish());
            let written = staged.and_then(|(batch, news)| {
                let sports: Vec<u16> = store.sports.all().collect();
                // Noted before it is tried: redb may also panic.
                let unsure = store.unsure.insert(Unsure { rows: batch, was_kept: None });
                let done = match &store.file {
                    Some(file) => unsure.rows.commit(&file.db, &sports),
                    None => Err(StoreError::NeedsReopen),
                };
                if !done.as_ref().is_err_and(StoreError::needs_reopen) {
                    store.unsure = None;
                }
                done.map(|()| news)
            });
            let result = written.map(|news| mirror.adopt(news));
            store.mirror = Some(mirror);
            result
        })
    }

    /// The size of the file in bytes.
    pub fn file_bytes(&self) -> Result<u64, StoreError> {
        Ok(self.file()?.gate.file_bytes()?)
    }

    /// Whether the next commit can succeed without a [`Store::reopen`].
    pub const fn is_writable(&self) -> bool {
        self.is_writable
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
        guarded(|| work(self, self.file()?))
    }

    /// Runs `work`, which writes. Once it failed on the file, nothing more is written before a reopening.
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
            self.mirror = None;
        }
        result
    }

    /// The mirror, to be put back when the work with it is done: a panic in between loses it, as it should.
    pub(super) fn take_mirror(&mut self) -> Result<Mirror, StoreError> {
        match self.mirror.take() {
            Some(mirror) => Ok(mirror),
            None => self.reading(|store, file| {
                let txn = file.db.begin_read()?;
                let names = NamesByNumber::read(&txn, &mut DamageList::default())?;
                Mirror::read(&txn, &store.sports, names)
            }),
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
        let place = self.place.to_string();
        f.debug_struct("Store").field("place", &place).field("is_writable", &self.is_writable).finish_non_exhaustive()
    }
}
