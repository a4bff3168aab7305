//! A storage backend that defers redb's writes until the file is known to be good.
//!
//! redb writes to a file while it opens it: it marks it as in use, and repairs what looks like a crash, which a truncated
//! file also does. Until [`DeferredBackend::release`] such writes are kept in memory, so that only a file that turned out
//! to be sound and ours is touched; any other stays byte for byte what it was. The deferred writes are then replayed in
//! the same order, with the same syncs, so that a crash in between is one that redb recovers from.
//!
//! This module reads redb's file header, whose layout is not part of redb's API: the dependency is pinned to one version,
//! and `store/tests/redb_layout.rs` fails if a version lays it out differently.

use std::fmt;
use std::io;
use std::ops::Bound;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use redb::{BackendError, StorageBackend};

/// Written into the unused part of the first page before anything else. A file that has it but not redb's magic
/// number is one whose creation was interrupted: it holds nothing, and is created again.
const MARK: &[u8] = b"oddsbox began this file";
const MARK_OFFSET: u64 = 512;

/// The head of redb's file format: magic number, flags, and the sizes that make up the layout.
const HEAD_BYTES: usize = 320;
pub(super) const MAGIC: [u8; 9] = [b'r', b'e', b'd', b'b', 0x1A, 0x0A, 0xA9, 0x0D, 0x0A];

/// The content of a file whose creation has begun and not finished.
pub(super) fn unfinished_file() -> Vec<u8> {
    let blank = usize::try_from(MARK_OFFSET).unwrap_or_default();
    [vec![0; blank].as_slice(), MARK].concat()
}

/// Shared: redb has one clone, the store the other.
#[derive(Clone)]
pub(super) struct DeferredBackend(Arc<Inner>);

struct Inner {
    backend: Box<dyn StorageBackend>,
    phase: AtomicU8,
    /// Made at the first access, which comes after redb has locked the file.
    deferred: Mutex<Option<Deferred>>,
}

const DEFERRING: u8 = 0;
const RELEASED: u8 = 1;
/// Every access fails.
const REVOKED: u8 = 2;

struct Deferred {
    /// Whether there was no file, or an unfinished one.
    is_new: bool,
    base_len: u64,
    len: u64,
    ops: Vec<DeferredOp>,
}

enum DeferredOp {
    Write(u64, Vec<u8>),
    SetLen(u64),
    Sync,
}

impl DeferredBackend {
    pub(super) fn new(backend: Box<dyn StorageBackend>) -> Self {
        DeferredBackend(Arc::new(Inner { backend, phase: AtomicU8::new(DEFERRING), deferred: Mutex::new(None) }))
    }

    /// Replays the deferred writes, and from now on passes every write through.
    pub(super) fn release(&self) -> io::Result<()> {
        let backend = &self.0.backend;
        let deferred = self.0.lock().take();
        if deferred.as_ref().is_some_and(|deferred| deferred.is_new) {
            let unfinished = unfinished_file();
            if backend.len()? == 0 {
                backend.write(MARK_OFFSET, MARK)?;
            } else {
                // The mark is there already, and stays there: an empty file would be refused at the next start.
                backend.set_len(unfinished.len() as u64)?;
                backend.write(0, &unfinished)?;
            }
            backend.sync_data()?;
        }
        for op in deferred.into_iter().flat_map(|deferred| deferred.ops) {
            match op {
                DeferredOp::Write(offset, bytes) => backend.write(offset, &bytes)?,
                DeferredOp::SetLen(len) => backend.set_len(len)?,
                DeferredOp::Sync => backend.sync_data()?,
            }
        }
        self.0.phase.store(RELEASED, Ordering::Release);
        Ok(())
    }

    /// Lets every further read and write fail; the lock and its release still work.
    pub(super) fn revoke(&self) {
        self.0.phase.store(REVOKED, Ordering::Release);
    }

    /// Whether writes are deferred, and there was nothing before them.
    pub(super) fn is_new(&self) -> bool {
        self.0.lock().as_ref().is_some_and(|deferred| deferred.is_new)
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
    fn lock(&self) -> MutexGuard<'_, Option<Deferred>> {
        self.deferred.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether writes pass through; an error if nothing may be accessed any more.
    fn is_released(&self) -> io::Result<bool> {
        match self.phase.load(Ordering::Acquire) {
            REVOKED => Err(io::Error::other("the file is no longer accessed")),
            phase => Ok(phase == RELEASED),
        }
    }

    fn with_deferred<T>(&self, work: impl FnOnce(&mut Deferred) -> io::Result<T>) -> io::Result<T> {
        let mut deferred = self.lock();
        match &mut *deferred {
            Some(deferred) => work(deferred),
            none => work(none.insert(Deferred::begin(&*self.backend)?)),
        }
    }
}

impl Deferred {
    fn begin(backend: &dyn StorageBackend) -> io::Result<Self> {
        let len = backend.len()?;
        if len == 0 || is_unfinished(backend, len)? {
            return Ok(Deferred { is_new: true, base_len: 0, len: 0, ops: Vec::new() });
        }
        let expected = expected_len(backend, len)?;
        if len < expected {
            let detail = format!("it ends at byte {len}, and its header says {expected}");
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, detail));
        }
        Ok(Deferred { is_new: false, base_len: len, len, ops: Vec::new() })
    }

    /// Reads what the file would hold if every deferred write had been made.
    fn read(&self, backend: &dyn StorageBackend, offset: u64, out: &mut [u8]) -> io::Result<()> {
        if bytes_before(self.len, offset, out.len()) < out.len() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let (stored, beyond) = out.split_at_mut(bytes_before(self.base_len, offset, out.len()));
        backend.read(offset, stored)?;
        beyond.fill(0);
        for op in &self.ops {
            match op {
                DeferredOp::Write(at, bytes) => overlay(out, offset, bytes, *at),
                DeferredOp::SetLen(len) => {
                    let kept = bytes_before(*len, offset, out.len());
                    out[kept..].fill(0);
                }
                DeferredOp::Sync => {}
            }
        }
        Ok(())
    }
}

/// How many of the `count` bytes from `offset` on lie before `end`.
fn bytes_before(end: u64, offset: u64, count: usize) -> usize {
    usize::try_from(end.saturating_sub(offset)).unwrap_or(usize::MAX).min(count)
}

/// Copies the part of `bytes`, which begin at `at`, that overlaps `out`, which begins at `offset`.
fn overlay(out: &mut [u8], offset: u64, bytes: &[u8], at: u64) {
    let skipped_out = bytes_before(at, offset, out.len());
    let skipped_bytes = bytes_before(offset, at, bytes.len());
    for (out, byte) in out[skipped_out..].iter_mut().zip(&bytes[skipped_bytes..]) {
        *out = *byte;
    }
}

fn is_unfinished(backend: &dyn StorageBackend, len: u64) -> io::Result<bool> {
    let mut mark = [0; MARK.len()];
    if len < MARK_OFFSET + MARK.len() as u64 {
        return Ok(false);
    }
    backend.read(MARK_OFFSET, &mut mark)?;
    let mut magic = MAGIC;
    backend.read(0, &mut magic)?;
    Ok(mark == *MARK && magic == [0; MAGIC.len()])
}

/// The length that the header implies. redb grows a file before it updates the header, and updates the header before it
/// shrinks the file: a shorter file was truncated. redb itself detects that only in a file that was closed properly.
pub(super) fn expected_len(backend: &dyn StorageBackend, len: u64) -> io::Result<u64> {
    let mut head = [0; HEAD_BYTES];
    let present = bytes_before(len, 0, HEAD_BYTES);
    backend.read(0, &mut head[..present])?;
    if !head.starts_with(&MAGIC) {
        // Not a redb file: redb reports that itself.
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

impl StorageBackend for DeferredBackend {
    fn len(&self) -> io::Result<u64> {
        if self.0.is_released()? { self.0.backend.len() } else { self.0.with_deferred(|deferred| Ok(deferred.len)) }
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        if self.0.is_released()? {
            return self.0.backend.read(offset, out);
        }
        self.0.with_deferred(|deferred| deferred.read(&*self.0.backend, offset, out))
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        if self.0.is_released()? {
            return self.0.backend.set_len(len);
        }
        self.0.with_deferred(|deferred| {
            deferred.len = len;
            deferred.ops.push(DeferredOp::SetLen(len));
            Ok(())
        })
    }

    fn sync_data(&self) -> io::Result<()> {
        if self.0.is_released()? {
            return self.0.backend.sync_data();
        }
        self.0.with_deferred(|deferred| {
            deferred.ops.push(DeferredOp::Sync);
            Ok(())
        })
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        if self.0.is_released()? {
            return self.0.backend.write(offset, data);
        }
        self.0.with_deferred(|deferred| {
            deferred.len = deferred.len.max(offset.saturating_add(data.len() as u64));
            deferred.ops.push(DeferredOp::Write(offset, data.to_vec()));
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

impl fmt::Debug for DeferredBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("DeferredBackend").field(&self.0.backend).finish()
    }
}
