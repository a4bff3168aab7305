//! Where the file is, and how it is opened: unchanged until it is known to be ours and sound.

use std::fmt;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use redb::backends::FileBackend;
use redb::{Database, DatabaseError, ReadableDatabase, StorageBackend, StorageError, TableError};

use super::care::upgrade;
use super::deferred_backend::{DeferredBackend, unfinished_file};
use super::error::{OpenError, StoreError};
use super::guard::guarded;
use super::handle::StoreOptions;
use super::tables::{FORMAT, FORMAT_KEY, FORMATS};
use crate::durable::sync_parent;

/// How often a file in use is tried again.
const LOCK_RETRY: Duration = Duration::from_millis(50);

/// Opens the same storage each time it is called.
pub type BackendFactory = Box<dyn Fn() -> io::Result<Box<dyn StorageBackend>> + Send + Sync>;

pub(super) enum Location {
    Path(PathBuf),
    Backend(BackendFactory),
}

/// How a file is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OpenMode {
    /// For use; created if it is missing.
    Create,
    /// For use; it must exist.
    Existing,
    /// For reading, whatever state it is in: nothing is verified and nothing is ever written.
    Inspect,
}

/// An open, locked file of ours, of a known format.
pub(super) struct OpenFile {
    /// Shared with readers of history while the store lets them: see [`super::history`].
    pub(super) db: Arc<Database>,
    pub(super) backend: DeferredBackend,
    mode: OpenMode,
}

impl OpenFile {
    pub(super) fn is_inspected(&self) -> bool {
        self.mode == OpenMode::Inspect
    }

    /// redb writes while it closes a file, and may panic at a ruined page: by then nothing depends on it.
    pub(super) fn close(self) {
        let OpenFile { db, backend, mode } = self;
        // Readers have given it back: see `Store::close`.
        let Some(db) = Arc::into_inner(db) else { return };
        if mode == OpenMode::Inspect {
            return abandon(db, &backend);
        }
        let _ = guarded(|| {
            drop(db);
            Ok::<_, StoreError>(())
        });
    }
}

/// Drops a database whose pages cannot be trusted. redb would write while it closes the file, where a ruined page can
/// make it panic, and panic again while it cleans up, which ends the process. It writes nothing after an I/O error, so
/// the backend is made to fail first, and the integrity check meets that error before it looks at any page.
pub(super) fn abandon(mut db: Database, backend: &DeferredBackend) {
    backend.revoke();
    let _ = guarded(|| Ok::<_, StoreError>(db.check_integrity()?));
    let _ = guarded(|| {
        drop(db);
        Ok::<_, StoreError>(())
    });
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Location::Path(path) => path.display().fmt(f),
            Location::Backend(_) => f.write_str("the backend"),
        }
    }
}

impl Location {
    /// Opens the file, waiting while another process has it.
    pub(super) fn open(&self, options: &StoreOptions, mode: OpenMode) -> Result<OpenFile, OpenError> {
        let began = Instant::now();
        loop {
            // redb may panic at a ruined page while it opens the file, and also while it closes it again.
            let tried = guarded(|| Ok::<_, StoreError>(self.try_open(options, mode)));
            match tried.unwrap_or_else(|error| Err(OpenError::from_store(&self.to_string(), error))) {
                Err(OpenError::InUse { place, .. }) => {
                    let waited = began.elapsed();
                    if waited >= options.wait_for_lock {
                        return Err(OpenError::InUse { place, waited: options.wait_for_lock });
                    }
                    thread::sleep(LOCK_RETRY.min(options.wait_for_lock.saturating_sub(waited)));
                }
                other => return other,
            }
        }
    }

    fn try_open(&self, options: &StoreOptions, mode: OpenMode) -> Result<OpenFile, OpenError> {
        let io_error = |error| OpenError::from_io(&self.to_string(), error);
        let may_create = mode == OpenMode::Create;
        let backend = DeferredBackend::new(self.backend(may_create)?);
        let opened = Database::builder().set_cache_size(options.cache_bytes).create_with_backend(backend.clone());
        let mut db = opened.map_err(|error| self.explain(error, &backend))?;
        if mode == OpenMode::Inspect {
            return self.inspected(OpenFile { db: Arc::new(db), backend, mode });
        }
        if let Err(error) = verify(&mut db) {
            abandon(db, &backend);
            return Err(OpenError::from_store(&self.to_string(), error));
        }
        let state = examine(&db).map_err(|fault| fault.explain(self))?;
        if state == FileState::Empty && !may_create {
            return Err(OpenError::Gone { place: self.to_string() });
        }
        let copy = match state {
            FileState::Older(format) => self.copy_older(format)?,
            FileState::Empty | FileState::Current => None,
        };
        let is_new = backend.is_new();
        backend.release().map_err(io_error)?;
        if is_new && let Location::Path(path) = self {
            sync_parent(path).map_err(io_error)?;
        }
        if let FileState::Older(format) = state {
            upgrade::upgrade(&db, format).map_err(|error| OpenError::from_store(&self.to_string(), error))?;
            let copy = copy.map(|copy| copy.display().to_string());
            tracing::info!(from = format, to = FORMAT, copy, "upgraded the file; kept a copy of the old format");
        }
        Ok(OpenFile { db: Arc::new(db), backend, mode })
    }

    /// Writes stay deferred: whatever redb did to the file when it opened it is dropped with it.
    fn inspected(&self, file: OpenFile) -> Result<OpenFile, OpenError> {
        let fault = match guarded(|| Ok::<_, StoreError>(examine(&file.db))) {
            Ok(Ok(FileState::Current | FileState::Older(_))) => return Ok(file),
            Ok(Ok(FileState::Empty)) => OpenError::Gone { place: self.to_string() },
            Ok(Err(fault)) => fault.explain(self),
            Err(error) => OpenError::from_store(&self.to_string(), error),
        };
        file.close();
        Err(fault)
    }

    /// Copies a file of an older format before anything is written to it. A storage that is not a file belongs to a
    /// test.
    fn copy_older(&self, format: u32) -> Result<Option<PathBuf>, OpenError> {
        let Location::Path(path) = self else { return Ok(None) };
        let copied = upgrade::copy_beside(path, format);
        copied.map(Some).map_err(|error| match OpenError::from_io(&self.to_string(), error) {
            OpenError::Io { place, error } => OpenError::NoCopy { place, found: format, error },
            other => other,
        })
    }

    fn backend(&self, may_create: bool) -> Result<Box<dyn StorageBackend>, OpenError> {
        let io_error = |error| OpenError::from_io(&self.to_string(), error);
        match self {
            Location::Backend(make) => make().map_err(io_error),
            Location::Path(path) => {
                let file = self.file(path, may_create)?;
                let backend = FileBackend::new(file).map_err(|error| io_error(io::Error::other(error)))?;
                Ok(Box::new(backend))
            }
        }
    }

    fn file(&self, path: &Path, may_create: bool) -> Result<File, OpenError> {
        let place = self.to_string();
        match fs::metadata(path) {
            Ok(found) if found.is_dir() => return Err(OpenError::IsADirectory { place }),
            Ok(found) if !found.is_file() => return Err(OpenError::NotOurs { place }),
            // A file of ours has a mark in it from its creation on: the content of this one is lost.
            Ok(found) if found.len() == 0 => return Err(OpenError::Empty { place }),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound && !may_create => {
                return Err(OpenError::Gone { place });
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let created = make_parent(path).and_then(|()| create_file(path));
                created.map_err(|error| OpenError::from_io(&place, error))?;
            }
            Err(error) => return Err(OpenError::from_io(&place, error)),
        }
        let opened = OpenOptions::new().read(true).write(true).open(path);
        opened.map_err(|error| OpenError::from_io(&place, error))
    }

    /// Turns redb's error into one for the operator.
    fn explain(&self, error: DatabaseError, backend: &DeferredBackend) -> OpenError {
        let place = self.to_string();
        match error {
            DatabaseError::DatabaseAlreadyOpen => OpenError::InUse { place, waited: Duration::ZERO },
            DatabaseError::Storage(StorageError::Io(error)) => match backend.looks_like_redb() {
                Ok(false) => OpenError::NotOurs { place },
                Ok(true) if error.kind() == io::ErrorKind::InvalidData => {
                    OpenError::Damaged { place, detail: "its header is missing".to_owned() }
                }
                _ => OpenError::from_io(&place, error),
            },
            other => OpenError::Damaged { place, detail: other.to_string() },
        }
    }
}

/// What can be wrong with a file that redb could open.
enum FileFault {
    NotOurs,
    Format(u32),
    Store(StoreError),
}

impl From<StoreError> for FileFault {
    fn from(error: StoreError) -> Self {
        FileFault::Store(error)
    }
}

impl FileFault {
    fn explain(self, location: &Location) -> OpenError {
        let place = location.to_string();
        match self {
            FileFault::NotOurs => OpenError::NotOurs { place },
            FileFault::Format(found) => OpenError::NewerFormat { place, found, known: FORMAT },
            FileFault::Store(error) => OpenError::from_store(&place, error),
        }
    }
}

/// The content of a file that can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FileState {
    Empty,
    Current,
    /// An older format that can be upgraded.
    Older(u32),
}

/// Verifies the checksum of every page. Rows have their own, but a damaged pointer can lead to sound rows from before the
/// last commit.
fn verify(db: &mut Database) -> Result<(), StoreError> {
    if !guarded(|| Ok::<_, StoreError>(db.check_integrity()?))? {
        tracing::warn!("redb repaired the file while opening it: check its disk");
    }
    Ok(())
}

/// The state of the file; unless it is empty, it must be ours and of a known format.
fn examine(db: &Database) -> Result<FileState, FileFault> {
    let txn = db.begin_read().map_err(StoreError::from)?;
    if txn.list_tables().map_err(StoreError::from)?.next().is_none() {
        return Ok(FileState::Empty);
    }
    let formats = match txn.open_table(FORMATS) {
        Ok(formats) => formats,
        Err(TableError::Storage(error)) => return Err(StoreError::from(error).into()),
        Err(_) => return Err(FileFault::NotOurs),
    };
    match formats.get(FORMAT_KEY).map_err(StoreError::from)?.map(|format| format.value()) {
        Some(FORMAT) => Ok(FileState::Current),
        Some(newer) if newer > FORMAT => Err(FileFault::Format(newer)),
        Some(older) if upgrade::is_known(older) => Ok(FileState::Older(older)),
        Some(_) | None => Err(FileFault::NotOurs),
    }
}

/// Creates the directory of the file, for its owner only.
fn make_parent(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() && !parent.exists() => {
            DirBuilder::new().recursive(true).mode(0o700).create(parent)
        }
        _ => Ok(()),
    }
}

/// Creates a file that has only the mark of an unfinished one. It is written under another name first: a process that
/// is killed at any moment leaves no file, or one that the next start continues with, and never an empty one.
pub(super) fn create_file(path: &Path) -> io::Result<()> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let mut partial = path.as_os_str().to_owned();
    partial.push(format!(".{}-{}.new", process::id(), COUNT.fetch_add(1, Ordering::Relaxed)));
    let partial = PathBuf::from(partial);
    // Left by a killed process with the same id.
    let _ = fs::remove_file(&partial);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&partial)?;
    let written = file.write_all(&unfinished_file()).and_then(|()| file.sync_all());
    let named = written.and_then(|()| match fs::hard_link(&partial, path) {
        // Another process created it first: its file is used.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        // Not every file system has hard links.
        Err(_) => fs::rename(&partial, path),
        linked => linked,
    });
    let _ = fs::remove_file(&partial);
    named.and_then(|()| sync_parent(path))
}
