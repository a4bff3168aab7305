//! Where the file is, and how it is opened without being changed before it is known to be ours and sound.

use std::fmt;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use redb::backends::FileBackend;
use redb::{Database, DatabaseError, ReadableDatabase, StorageBackend, StorageError, TableError};

use super::error::{OpenError, StoreError};
use super::gate::{Gate, begun_file};
use super::handle::StoreOptions;
use super::scan::guarded;
use super::tables::{FORMAT, FORMAT_KEY, FORMATS};
use super::upgrade;

/// How often a file in use is tried again.
const LOCK_RETRY: Duration = Duration::from_millis(50);

/// Makes the same storage again, each time it is called.
pub type BackendFactory = Box<dyn Fn() -> io::Result<Box<dyn StorageBackend>> + Send + Sync>;

pub(super) enum Place {
    Path(PathBuf),
    Backend(BackendFactory),
}

/// What a file is opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// To be used; it is made if it is missing.
    Create,
    /// To be used; it must be there.
    Use,
    /// To be read, whatever state it is in: nothing is verified and nothing is ever written.
    Look,
}

/// A file that is open, locked, ours and of a known format.
pub(super) struct OpenFile {
    pub(super) db: Database,
    pub(super) gate: Gate,
    purpose: Purpose,
}

impl OpenFile {
    pub(super) fn is_looked_into(&self) -> bool {
        self.purpose == Purpose::Look
    }

    /// Closing writes as well, and a ruined page may stop redb once more: by then nothing depends on it.
    pub(super) fn close(self) {
        let OpenFile { db, purpose, .. } = self;
        if purpose == Purpose::Look {
            return abandon(db);
        }
        let _ = guarded(|| {
            drop(db);
            Ok::<_, StoreError>(())
        });
    }
}

/// Lets go of a database whose pages cannot be trusted. redb writes while it closes a file, and where a ruined page stops
/// it in the middle of that, cleaning up stops it again, which ends the process. While a panic unwinds it writes nothing.
fn abandon(db: Database) {
    let _ = catch_unwind(AssertUnwindSafe(move || {
        let _held = db;
        resume_unwind(Box::new("the file is left as it is"))
    }));
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Path(path) => path.display().fmt(f),
            Place::Backend(_) => f.write_str("the backend"),
        }
    }
}

impl Place {
    /// Opens the file, waiting for whoever has it.
    pub(super) fn open(&self, options: &StoreOptions, purpose: Purpose) -> Result<OpenFile, OpenError> {
        let began = Instant::now();
        loop {
            // redb may stop at a ruined page while it opens the file, and also while it closes it again.
            let tried = guarded(|| Ok::<_, StoreError>(self.try_open(options, purpose)));
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

    fn try_open(&self, options: &StoreOptions, purpose: Purpose) -> Result<OpenFile, OpenError> {
        let io_error = |error| OpenError::from_io(&self.to_string(), error);
        let may_create = purpose == Purpose::Create;
        let gate = Gate::new(self.backend(may_create)?);
        let opened = Database::builder().set_cache_size(options.cache_bytes).create_with_backend(gate.clone());
        let mut db = opened.map_err(|error| self.explain(error, &gate))?;
        if purpose == Purpose::Look {
            return self.looked_into(OpenFile { db, gate, purpose });
        }
        if let Err(error) = verify(&mut db) {
            abandon(db);
            return Err(OpenError::from_store(&self.to_string(), error));
        }
        let found = examine(&db).map_err(|fault| fault.explain(self))?;
        if found == Found::Nothing && !may_create {
            return Err(OpenError::Gone { place: self.to_string() });
        }
        let copy = match found {
            Found::Older(format) => self.copy_older(format)?,
            Found::Nothing | Found::Present => None,
        };
        let is_new = gate.is_new();
        gate.open().map_err(io_error)?;
        if is_new && let Place::Path(path) = self {
            sync_parent(path).map_err(io_error)?;
        }
        if let Found::Older(format) = found {
            upgrade::upgrade(&db, format).map_err(|error| OpenError::from_store(&self.to_string(), error))?;
            let copy = copy.map(|copy| copy.display().to_string());
            tracing::info!(from = format, to = FORMAT, copy, "the file was upgraded; a copy of it as it was is kept");
        }
        Ok(OpenFile { db, gate, purpose })
    }

    /// The gate stays closed: whatever redb did to the file when it opened it is forgotten with it.
    fn looked_into(&self, file: OpenFile) -> Result<OpenFile, OpenError> {
        let fault = match guarded(|| Ok::<_, StoreError>(examine(&file.db))) {
            Ok(Ok(Found::Present | Found::Older(_))) => return Ok(file),
            Ok(Ok(Found::Nothing)) => OpenError::Gone { place: self.to_string() },
            Ok(Err(fault)) => fault.explain(self),
            Err(error) => OpenError::from_store(&self.to_string(), error),
        };
        file.close();
        Err(fault)
    }

    /// Keeps a file of an older format as it is, before anything is written to it. A storage that is no file is a
    /// test's own.
    fn copy_older(&self, format: u32) -> Result<Option<PathBuf>, OpenError> {
        let Place::Path(path) = self else { return Ok(None) };
        let copied = upgrade::copy_beside(path, format);
        copied.map(Some).map_err(|error| match OpenError::from_io(&self.to_string(), error) {
            OpenError::Io { place, error } => OpenError::NoCopy { place, found: format, error },
            other => other,
        })
    }

    fn backend(&self, may_create: bool) -> Result<Box<dyn StorageBackend>, OpenError> {
        let io_error = |error| OpenError::from_io(&self.to_string(), error);
        match self {
            Place::Backend(make) => make().map_err(io_error),
            Place::Path(path) => {
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
            // A file of ours has a mark in it from its first moment on: what was in this one is lost.
            Ok(found) if found.len() == 0 => return Err(OpenError::Empty { place }),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound && !may_create => {
                return Err(OpenError::Gone { place });
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let begun = make_parent(path).and_then(|()| begin_file(path));
                begun.map_err(|error| OpenError::from_io(&place, error))?;
            }
            Err(error) => return Err(OpenError::from_io(&place, error)),
        }
        let opened = OpenOptions::new().read(true).write(true).open(path);
        opened.map_err(|error| OpenError::from_io(&place, error))
    }

    /// What redb's refusal means for the operator.
    fn explain(&self, error: DatabaseError, gate: &Gate) -> OpenError {
        let place = self.to_string();
        match error {
            DatabaseError::DatabaseAlreadyOpen => OpenError::InUse { place, waited: Duration::ZERO },
            DatabaseError::Storage(StorageError::Io(error)) => match gate.looks_like_redb() {
                Ok(false) => OpenError::NotOurs { place },
                Ok(true) if error.kind() == io::ErrorKind::InvalidData => {
                    OpenError::Damaged { place, detail: "its beginning is missing".to_owned() }
                }
                _ => OpenError::from_io(&place, error),
            },
            other => OpenError::Damaged { place, detail: other.to_string() },
        }
    }
}

/// What can be wrong with a file that redb could open.
enum Fault {
    NotOurs,
    Format(u32),
    Store(StoreError),
}

impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Self {
        Fault::Store(error)
    }
}

impl Fault {
    fn explain(self, place: &Place) -> OpenError {
        let place = place.to_string();
        match self {
            Fault::NotOurs => OpenError::NotOurs { place },
            Fault::Format(found) => OpenError::NewerFormat { place, found, known: FORMAT },
            Fault::Store(error) => OpenError::from_store(&place, error),
        }
    }
}

/// What there is in a file that can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    Nothing,
    Present,
    /// An older format, which there is a way from.
    Older(u32),
}

/// Holds every page against its checksum. The rows have seals of their own, but a pointer that rots can lead to rows from
/// before the last commit, which are sound.
fn verify(db: &mut Database) -> Result<(), StoreError> {
    if !guarded(|| Ok::<_, StoreError>(db.check_integrity()?))? {
        tracing::warn!("redb put the file right when it was opened: look after its disk");
    }
    Ok(())
}

/// What the file holds; if it is not empty, it must be ours and of a format that we know.
fn examine(db: &Database) -> Result<Found, Fault> {
    let txn = db.begin_read().map_err(StoreError::from)?;
    if txn.list_tables().map_err(StoreError::from)?.next().is_none() {
        return Ok(Found::Nothing);
    }
    let formats = match txn.open_table(FORMATS) {
        Ok(formats) => formats,
        Err(TableError::Storage(error)) => return Err(StoreError::from(error).into()),
        Err(_) => return Err(Fault::NotOurs),
    };
    match formats.get(FORMAT_KEY).map_err(StoreError::from)?.map(|format| format.value()) {
        Some(FORMAT) => Ok(Found::Present),
        Some(newer) if newer > FORMAT => Err(Fault::Format(newer)),
        Some(older) if upgrade::is_known(older) => Ok(Found::Older(older)),
        Some(_) | None => Err(Fault::NotOurs),
    }
}

/// Makes the directory that the file is to be in, for its owner only.
fn make_parent(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() && !parent.exists() => {
            DirBuilder::new().recursive(true).mode(0o700).create(parent)
        }
        _ => Ok(()),
    }
}

/// Makes a new file that has only the mark of one that was begun. It is written under another name first: a process that
/// is killed at any moment leaves no file, or one that the next start goes on with, and never an empty one.
pub(super) fn begin_file(path: &Path) -> io::Result<()> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let mut partial = path.as_os_str().to_owned();
    partial.push(format!(".{}-{}.new", process::id(), COUNT.fetch_add(1, Ordering::Relaxed)));
    let partial = PathBuf::from(partial);
    // Left by a process of the same number that was killed.
    let _ = fs::remove_file(&partial);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&partial)?;
    let written = file.write_all(&begun_file()).and_then(|()| file.sync_all());
    let named = written.and_then(|()| match fs::hard_link(&partial, path) {
        // Another process was quicker: its file is the one.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        // Not every file system has links.
        Err(_) => fs::rename(&partial, path),
        linked => linked,
    });
    let _ = fs::remove_file(&partial);
    named.and_then(|()| sync_parent(path))
}

/// A new file is on disk only when the directory that names it is.
pub(super) fn sync_parent(path: &Path) -> io::Result<()> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    File::open(parent.unwrap_or(Path::new(".")))?.sync_all()
}
