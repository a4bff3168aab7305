//! The gate between redb and the file: until it is opened, whatever redb writes is held back in memory.
//!
//! redb writes to a file while it opens it: it marks it as in use, and repairs what looks like a crash, which a file
//! that was cut short also does. Behind the gate it can do all that, and only a file that turned out to be sound and
//! ours is touched; any other stays byte for byte what it was. What was held back is then written in the same order,
//! with the same syncs, so that a crash in between is one that redb recovers from.

use std::fmt;
use std::io;
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use redb::{BackendError, StorageBackend};

/// Written into the unused part of the first page before anything else. A file that has it but not redb's magic
/// number is one that we began and never finished: it holds nothing, and is begun again.
const MARK: &[u8] = b"oddsbox began this file";
const MARK_OFFSET: u64 = 512;

/// The head of redb's file format, which is fixed: magic number, flags, and the sizes that make up the layout.
const HEAD_BYTES: usize = 320;
const MAGIC: [u8; 9] = [b'r', b'e', b'd', b'b', 0x1A, 0x0A, 0xA9, 0x0D, 0x0A];

/// What a file holds that was begun and not finished.
pub(super) fn begun_file() -> Vec<u8> {
    let blank = usize::try_from(MARK_OFFSET).unwrap_or_default();
    [vec![0; blank].as_slice(), MARK].concat()
}

/// A storage backend that can be shared: redb has one clone, the store the other.
#[derive(Clone)]
pub(super) struct Gate(Arc<Inner>);

struct Inner {
    backend: Box<dyn StorageBackend>,
    is_open: AtomicBool,
    /// What is held back; made at the first access, which comes after redb has locked the file.
    held: Mutex<Option<Held>>,
}

struct Held {
    /// Begun from nothing: there was no file, or one that we never finished.
    is_new: bool,
    base_len: u64,
    len: u64,
    steps: Vec<Step>,
}

enum Step {
    Write(u64, Vec<u8>),
    SetLen(u64),
    Sync,
}

impl Gate {
    pub(super) fn new(backend: Box<dyn StorageBackend>) -> Self {
        Gate(Arc::new(Inner { backend, is_open: AtomicBool::new(false), held: Mutex::new(None) }))
    }

    /// Lets everything through that was held back, and from now on whatever comes.
    pub(super) fn open(&self) -> io::Result<()> {
        let backend = &self.0.backend;
        let held = self.0.lock().take();
        if held.as_ref().is_some_and(|held| held.is_new) {
            let begun = begun_file();
            if backend.len()? == 0 {
                backend.write(MARK_OFFSET, MARK)?;
            } else {
                // The mark is there already, and stays there: an empty file would be refused at the next start.
                backend.set_len(begun.len() as u64)?;
                backend.write(0, &begun)?;
            }
            backend.sync_data()?;
        }
        for step in held.into_iter().flat_map(|held| held.steps) {
            match step {
                Step::Write(offset, bytes) => backend.write(offset, &bytes)?,
                Step::SetLen(len) => backend.set_len(len)?,
                Step::Sync => backend.sync_data()?,
            }
        }
        self.0.is_open.store(true, Ordering::Release);
        Ok(())
    }

    /// Whether the gate is closed and there was nothing behind it.
    pub(super) fn is_new(&self) -> bool {
        self.0.lock().as_ref().is_some_and(|held| held.is_new)
    }

    pub(super) fn file_bytes(&self) -> io::Result<u64> {
        self.0.backend.len()
    }

    /// Whether the file begins as a redb file does, as far as it goes.
    pub(super) fn looks_like_redb(&self) -> io::Result<bool> {
        let len = self.0.backend.len()?;
        let mut start = MAGIC;
        let start = &mut start[..bytes_before(len, 0, MAGIC.len())];
        self.0.backend.read(0, start)?;
        Ok(MAGIC.starts_with(start))
    }
}

impl Inner {
    fn is_open(&self) -> bool {
        self.is_open.load(Ordering::Acquire)
    }

    fn lock(&self) -> MutexGuard<'_, Option<Held>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with_held<T>(&self, work: impl FnOnce(&mut Held) -> io::Result<T>) -> io::Result<T> {
        let mut held = self.lock();
        match &mut *held {
            Some(held) => work(held),
            none => work(none.insert(Held::begin(&*self.backend)?)),
        }
    }
}

impl Held {
    fn begin(backend: &dyn StorageBackend) -> io::Result<Self> {
        let len = backend.len()?;
        if len == 0 || was_never_finished(backend, len)? {
            return Ok(Held { is_new: true, base_len: 0, len: 0, steps: Vec::new() });
        }
        let expected = expected_len(backend, len)?;
        if len < expected {
            let told = format!("it ends at byte {len}, and its header speaks of {expected}");
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, told));
        }
        Ok(Held { is_new: false, base_len: len, len, steps: Vec::new() })
    }

    /// What the file would hold if every step had been done.
    fn read(&self, backend: &dyn StorageBackend, offset: u64, out: &mut [u8]) -> io::Result<()> {
        if bytes_before(self.len, offset, out.len()) < out.len() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let (there, beyond) = out.split_at_mut(bytes_before(self.base_len, offset, out.len()));
        backend.read(offset, there)?;
        beyond.fill(0);
        for step in &self.steps {
            match step {
                Step::Write(at, bytes) => lay_over(out, offset, bytes, *at),
                Step::SetLen(len) => {
                    let kept = bytes_before(*len, offset, out.len());
                    out[kept..].fill(0);
                }
                Step::Sync => {}
            }
        }
        Ok(())
    }
}

/// How many of the `count` bytes from `offset` on lie before `end`.
fn bytes_before(end: u64, offset: u64, count: usize) -> usize {
    usize::try_from(end.saturating_sub(offset)).unwrap_or(usize::MAX).min(count)
}

/// Copies what `bytes`, which stand at `at`, have in common with `out`, which stands at `offset`.
fn lay_over(out: &mut [u8], offset: u64, bytes: &[u8], at: u64) {
    let skipped_out = bytes_before(at, offset, out.len());
    let skipped_bytes = bytes_before(offset, at, bytes.len());
    for (out, byte) in out[skipped_out..].iter_mut().zip(&bytes[skipped_bytes..]) {
        *out = *byte;
    }
}

fn was_never_finished(backend: &dyn StorageBackend, len: u64) -> io::Result<bool> {
    let mut mark = [0; MARK.len()];
    if len < MARK_OFFSET + MARK.len() as u64 {
        return Ok(false);
    }
    backend.read(MARK_OFFSET, &mut mark)?;
    let mut magic = MAGIC;
    backend.read(0, &mut magic)?;
    Ok(mark == *MARK && magic == [0; MAGIC.len()])
}

/// The length that the header speaks of. redb lengthens a file before it says so, and says so before it shortens it:
/// a file that is shorter was cut. redb itself finds that only in a file that was closed properly.
fn expected_len(backend: &dyn StorageBackend, len: u64) -> io::Result<u64> {
    let mut head = [0; HEAD_BYTES];
    let there = bytes_before(len, 0, HEAD_BYTES);
    backend.read(0, &mut head[..there])?;
    if !head.starts_with(&MAGIC) {
        // Not redb's: it will say so itself.
        return Ok(0);
    }
    let number = |at: usize| {
        let bytes = [head[at], head[at + 1], head[at + 2], head[at + 3]];
        u64::from(u32::from_le_bytes(bytes))
    };
    let (page, region_header_pages, region_pages) = (number(12), number(16), number(20));
    let (full_regions, last_region_pages) = (number(24), number(28));
    let last_region = if last_region_pages > 0 { region_header_pages + last_region_pages } else { 0 };
    let pages = full_regions.saturating_mul(region_header_pages + region_pages).saturating_add(1 + last_region);
    Ok(pages.saturating_mul(page).max(HEAD_BYTES as u64))
}

impl StorageBackend for Gate {
    fn len(&self) -> io::Result<u64> {
        if self.0.is_open() { self.0.backend.len() } else { self.0.with_held(|held| Ok(held.len)) }
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        if self.0.is_open() {
            return self.0.backend.read(offset, out);
        }
        self.0.with_held(|held| held.read(&*self.0.backend, offset, out))
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        if self.0.is_open() {
            return self.0.backend.set_len(len);
        }
        self.0.with_held(|held| {
            held.len = len;
            held.steps.push(Step::SetLen(len));
            Ok(())
        })
    }

    fn sync_data(&self) -> io::Result<()> {
        if self.0.is_open() {
            return self.0.backend.sync_data();
        }
        self.0.with_held(|held| {
            held.steps.push(Step::Sync);
            Ok(())
        })
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        if self.0.is_open() {
            return self.0.backend.write(offset, data);
        }
        self.0.with_held(|held| {
            held.len = held.len.max(offset.saturating_add(data.len() as u64));
            held.steps.push(Step::Write(offset, data.to_vec()));
            Ok(())
        })
    }

    fn close(&self) -> io::Result<()> {
        self.0.backend.close()
    }

    fn try_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.0.backend.try_lock_range(start, end)
    }

    fn try_lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.0.backend.try_lock_shared_range(start, end)
    }

    fn lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.0.backend.lock_range(start, end)
    }

    fn lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.0.backend.lock_shared_range(start, end)
    }

    fn unlock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.0.backend.unlock_range(start, end)
    }

    fn query_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.0.backend.query_lock_range(start, end)
    }
}

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Gate").field(&self.0.backend).finish()
    }
}
