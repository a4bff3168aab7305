//! What changed of a world, for clients that follow it: the last entries of its log in memory, and who waits for the next.
//!
//! The writer adds an entry once it is in the log and before the board shows it. Entries are kept within a bound of bytes, and only
//! while somebody follows; whoever is further behind reads the log. A beat marks every tick, also one that changed
//! nothing.
//!
//! - `entry` an entry as a numbered list of events; `filter` which of them a client follows
//! - `frames` events as bytes, rendered once for all clients with the same filter; `merge` many entries as one
//! - `weight` how much memory entries take

mod entry;
mod filter;
mod frames;
mod merge;
#[cfg(test)]
mod tests;
mod weight;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

pub use entry::{ChangeEntry, ChangedRecord, ListChange, MovedEvent, SportEntry, TickEntry};
pub use filter::{ChangeFilter, FilterSpec};
pub use frames::LineCounts;
pub use merge::MergedChanges;

use crate::board::register::Register;
use crate::board::render::json;
use crate::model::{Position, SportId, Timestamp};
use crate::wake::{WakeList, WakeSlot};
use frames::{FrameCache, FrameWriter};

/// About the most bytes of entries in memory and of their rendered records, for each world.
const WINDOW_BYTES_MAX: usize = 32 << 20;
/// Of how many entries the bytes for many filters are kept.
const RENDERED_ENTRIES: usize = 16;
/// For how long entries are kept after somebody asked for changes.
const FOLLOWED_S: u32 = 900;

/// The last changes of a world.
#[derive(Debug, Default)]
pub struct Feed {
    window: Mutex<Window>,
    waiting: WakeList,
    /// Until which second entries are kept.
    followed_until: AtomicU32,
}

#[derive(Debug, Default)]
struct Window {
    /// Without gaps.
    entries: VecDeque<Arc<ChangeEntry>>,
    /// Before anything of them is rendered.
    bytes: usize,
    /// What had been rendered of their records at the last beat.
    rendered: usize,
    beat: Option<Arc<Beat>>,
}

/// What a follower gets next.
#[derive(Debug)]
pub enum NextChange {
    /// An entry, and the beat after it.
    Entry(Arc<ChangeEntry>, Option<Arc<Beat>>),
    Beat(Arc<Beat>),
    /// It is not in memory.
    NotKept,
}

impl Feed {
    /// Whether entries are of use to anybody.
    pub fn is_followed(&self, now: Timestamp) -> bool {
        self.waiting.len() > 0 || now.unix() < self.followed_until.load(Ordering::Relaxed)
    }

    /// Somebody follows the changes by asking again and again.
    pub fn is_asked_for(&self, now: Timestamp) {
        self.followed_until.fetch_max(now.unix().saturating_add(FOLLOWED_S), Ordering::Relaxed);
    }

    /// Adds an entry that is in the log.
    pub fn push(&self, entry: ChangeEntry) {
        let mut window = self.window();
        if window.entries.back().is_some_and(|last| last.sequence + 1 != entry.sequence) {
            window.clear();
        }
        window.bytes += entry.weight();
        window.entries.push_back(Arc::new(entry));
        window.retire(1);
        window.shrink();
    }

    /// Forgets the entries: nobody follows, or they are those of a log that was replaced.
    pub fn clear(&self) {
        self.window().clear();
    }

    /// Marks a tick.
    pub fn beat(&self, beat: Beat) {
        let mut window = self.window();
        window.beat = Some(Arc::new(beat));
        window.retire(usize::MAX);
        window.rendered = window.entries.iter().map(|entry| entry.weight_of_forms()).sum();
        window.shrink();
    }

    /// The number of the last beat.
    pub fn last_beat(&self) -> u64 {
        self.window().beat.as_ref().map_or(0, |beat| beat.number)
    }

    /// What follows a position, for a follower that has seen the beats up to one. Beats come in their place between entries.
    pub fn next(&self, position: Position, seen_beat: u64) -> NextChange {
        let window = self.window();
        // A beat that was passed by is left out: its position must not follow a later one.
        let beat_at = |position: Position| {
            window.beat.as_ref().filter(|beat| beat.number > seen_beat && beat.position == position).map(Arc::clone)
        };
        if let Some(beat) = beat_at(position) {
            return NextChange::Beat(beat);
        }
        let Some(entry) = window.get(position.sequence) else { return NextChange::NotKept };
        // Most entries are published on a tick: both then are one write to the client.
        let beat = beat_at(Position::before(position.epoch, entry.sequence + 1));
        NextChange::Entry(entry, beat)
    }

    /// How many entries there are from one on, if it is in memory.
    pub fn entries_from(&self, sequence: u64) -> Option<Vec<Arc<ChangeEntry>>> {
        let window = self.window();
        let first = window.entries.front()?.sequence;
        let at = usize::try_from(sequence.checked_sub(first)?).ok().filter(|at| *at < window.entries.len())?;
        Some(window.entries.range(at..).cloned().collect())
    }

    /// Wakes everybody who waits for changes.
    pub fn wake_all(&self) {
        self.waiting.notify_all();
    }

    /// How many wait for changes.
    pub fn follower_count(&self) -> usize {
        self.waiting.len()
    }

    /// The entry that the follower furthest behind gets next.
    pub fn slowest(&self) -> Option<u64> {
        self.waiting.least_progress()
    }

    /// Adds a follower. The number is for [`Feed::remove_follower`].
    pub(crate) fn add_follower(&self, slot: &Arc<WakeSlot>) -> u64 {
        self.waiting.add(slot)
    }

    pub(crate) fn remove_follower(&self, number: u64) {
        self.waiting.remove(number);
    }

    fn window(&self) -> MutexGuard<'_, Window> {
        self.window.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Window {
    fn get(&self, sequence: u64) -> Option<Arc<ChangeEntry>> {
        let first = self.entries.front()?.sequence;
        self.entries.get(usize::try_from(sequence.checked_sub(first)?).ok()?).cloned()
    }

    /// Retires the newest `count` of the entries beyond [`RENDERED_ENTRIES`]: whoever follows has them, and others rarely have the
    /// same filter.
    fn retire(&self, count: usize) {
        let old = self.entries.len().saturating_sub(RENDERED_ENTRIES);
        self.entries.range(old.saturating_sub(count)..old).for_each(|entry| entry.retire());
    }

    /// Removes the oldest entries, until the others fit with what was rendered of them.
    fn shrink(&mut self) {
        while self.bytes + self.rendered > WINDOW_BYTES_MAX && self.entries.len() > 1 {
            let Some(oldest) = self.entries.pop_front() else { return };
            self.bytes -= oldest.weight();
            // More may have been rendered since.
            self.rendered = self.rendered.saturating_sub(oldest.weight_of_forms());
        }
    }

    fn clear(&mut self) {
        self.entries = VecDeque::new();
        (self.bytes, self.rendered) = (0, 0);
    }
}

/// A tick, whether or not it changed anything: what was read of each source since the one before.
#[derive(Debug)]
pub struct Beat {
    number: u64,
    at: Timestamp,
    position: Position,
    sources: Vec<SourceRead>,
    frames: FrameCache,
    /// The same after the events of the last entry.
    with_entry: FrameCache,
}

/// A source that was read.
#[derive(Debug)]
pub struct SourceRead {
    pub sport: SportId,
    pub sport_key: Arc<str>,
    pub bookmaker: Arc<str>,
    pub last_read: Timestamp,
}

impl Beat {
    pub fn new(at: Timestamp, position: Position, sources: Vec<SourceRead>) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        Beat { number, at, position, sources, frames: FrameCache::default(), with_entry: FrameCache::default() }
    }

    pub fn number(&self) -> u64 {
        self.number
    }

    /// All events of the entry before the beat that pass a filter, and the beat, if that can be shared with others.
    pub fn frame_with(&self, entry: &ChangeEntry, filter: &ChangeFilter, register: &Register) -> Option<Bytes> {
        let from = Position::before(self.position.epoch, entry.sequence);
        self.with_entry.get_or_join(filter, || [entry.frames(filter, register, from), self.frame(filter, register)])
    }

    pub fn frame(&self, filter: &ChangeFilter, register: &Register) -> Bytes {
        self.frames.get_or_render(filter, 0, || {
            let is_wanted = |read: &&SourceRead| {
                filter.spec.sports.contains(read.sport) && filter.accepts_book(&read.bookmaker, register)
            };
            let mut out = FrameWriter::default();
            out.event("beat", Some(self.position), |out| {
                out.extend_from_slice(b"{\"at\":\"");
                self.at.write(out);
                out.extend_from_slice(b"\",\"position\":");
                json::string(&self.position.to_string(), out);
                out.extend_from_slice(b",\"sources\":");
                json::array(self.sources.iter().filter(is_wanted), out, write_read);
                out.push(b'}');
            });
            out.finish()
        })
    }
}

fn write_read(read: &SourceRead, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"sport_key\":");
    json::string(&read.sport_key, out);
    out.extend_from_slice(b",\"bookmaker\":");
    json::string(&read.bookmaker, out);
    out.extend_from_slice(b",\"last_read\":\"");
    read.last_read.write(out);
    out.extend_from_slice(b"\"}");
}

/// An event of a stream that is about the stream itself.
pub fn control_frame(kind: &str, position: Option<Position>, data: impl FnOnce(&mut Vec<u8>)) -> Bytes {
    let mut out = FrameWriter::default();
    out.event(kind, position, data);
    out.finish().bytes
}
