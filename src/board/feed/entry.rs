//! An entry of the log as clients are shown it: a list of events, numbered in a fixed order.
//!
//! The order is that of the sports' keys; of each sport first what changed of its events and scores, one by one, then each
//! source that went stale or came back, then all prices of the publication as one. So a number within an entry means the
//! same to every client, whatever it filters.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use super::frames::{FrameCache, KEPT_FILTER};
use super::weight;
use crate::model::{Event, Market, OddsFormat, Record, RecordId, Score, SportId, Timestamp};

/// What one entry of the log changed.
#[derive(Debug)]
pub struct ChangeEntry {
    pub sequence: u64,
    /// In the order of their keys.
    pub(super) sports: Box<[SportEntry]>,
    pub(super) frames: FrameCache,
    weight: usize,
    /// When it was made.
    made: Instant,
}

/// What an entry changed of one sport.
#[derive(Debug)]
pub struct SportEntry {
    pub sport: SportId,
    pub key: Arc<str>,
    pub lists: Vec<ListChange>,
    pub tick: Option<TickEntry>,
}

/// A change of the lists of events and scores.
#[derive(Clone, Debug)]
pub enum ListChange {
    /// With the markets that have a price.
    Event(Arc<Event>, Box<[Market]>, Option<Arc<MovedEvent>>),
    Score(Arc<Event>, Arc<Score>),
    /// As it was last; its records go with it.
    Removed(Arc<Event>),
}

impl ListChange {
    pub(super) fn event(&self) -> &Arc<Event> {
        match self {
            ListChange::Event(event, ..) | ListChange::Score(event, _) | ListChange::Removed(event) => event,
        }
    }
}

/// An event that went to another competition: who follows one of the two gets or loses its records.
#[derive(Debug)]
pub struct MovedEvent {
    /// As it was before.
    pub(super) from: Arc<Event>,
    /// Its records for who followed where it was, all of them closed, and for who follows where it is.
    pub(super) left: TickEntry,
    pub(super) arrived: TickEntry,
}

impl MovedEvent {
    /// `records` are the open records of the event, by the keys of their bookmakers.
    pub fn new(
        sport_key: &str,
        at: Timestamp,
        (from, to): (&Arc<Event>, &Arc<Event>),
        records: &[(Arc<str>, Arc<Record>)],
    ) -> Self {
        let tick = |event: &Arc<Event>, is_open: bool| {
            let changed = records.iter().map(|(book, record)| {
                (Arc::clone(event), Arc::clone(book), record.market, is_open.then(|| Arc::clone(record)))
            });
            TickEntry::new(sport_key, at, Vec::new(), changed.collect())
        };
        MovedEvent { from: Arc::clone(from), left: tick(from, false), arrived: tick(to, true) }
    }
}

/// A publication of prices.
#[derive(Debug)]
pub struct TickEntry {
    pub(super) at: Timestamp,
    /// The key of a bookmaker, and whether its source is stale now.
    pub(super) sources: Vec<(Arc<str>, bool)>,
    /// The keys of the bookmakers of the records.
    pub(super) books: Vec<Arc<str>>,
    /// In the order of event, bookmaker and market.
    pub(super) records: Vec<PriceChange>,
    /// Each [`PART_RECORDS`] of the records.
    pub(super) rendered: Box<[RenderedPart]>,
}

/// So many records are rendered at a time. A client that waits for more lets others have their turn in between.
pub(super) const PART_RECORDS: usize = 1000;

/// A part of the records in each format without their events, then with them.
pub(super) type RenderedPart = [OnceLock<RenderedRecords>; 2 * OddsFormat::ALL.len()];

/// A record that changed.
#[derive(Debug)]
pub(super) struct PriceChange {
    pub event: Arc<Event>,
    /// The position of its bookmaker among those of the publication.
    pub book: u16,
    pub market: Market,
    pub id: RecordId,
    /// `None` if it closed.
    pub record: Option<Arc<Record>>,
}

/// Records as JSON objects, one after the other.
#[derive(Debug)]
pub(super) struct RenderedRecords {
    pub json: Box<[u8]>,
    /// Where each of them ends.
    pub ends: Box<[usize]>,
}

impl RenderedRecords {
    pub(super) fn get(&self, at: usize) -> &[u8] {
        let from = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.json[from..self.ends[at]]
    }

    fn weight(&self) -> usize {
        self.json.len() + size_of_val(&*self.ends)
    }
}

/// A changed record as it is handed in: its event, the key of its bookmaker, its market, and `None` if it closed.
pub type ChangedRecord = (Arc<Event>, Arc<str>, Market, Option<Arc<Record>>);

impl TickEntry {
    pub fn new(
        sport_key: &str,
        at: Timestamp,
        mut sources: Vec<(Arc<str>, bool)>,
        mut changed: Vec<ChangedRecord>,
    ) -> Self {
        sources.sort_unstable();
        changed.sort_by(|(event, book, market, _), (other, other_book, other_market, _)| {
            let by_event = (event.commence, &event.id).cmp(&(other.commence, &other.id));
            by_event.then_with(|| book.cmp(other_book)).then_with(|| market.cmp_in_records(*other_market))
        });
        let mut books: BTreeMap<Arc<str>, u16> = BTreeMap::new();
        let records: Vec<PriceChange> = changed
            .into_iter()
            .map(|(event, key, market, record)| {
                let id = RecordId::new(sport_key, &event.id, &key, market);
                // No world has as many bookmakers.
                let next = u16::try_from(books.len()).unwrap_or(u16::MAX);
                PriceChange { event, book: *books.entry(key).or_insert(next), market, id, record }
            })
            .collect();
        let mut keys: Vec<(u16, Arc<str>)> = books.into_iter().map(|(key, at)| (at, key)).collect();
        keys.sort_unstable_by_key(|(at, _)| *at);
        let books = keys.into_iter().map(|(_, key)| key).collect();
        let rendered = records.chunks(PART_RECORDS).map(|_| RenderedPart::default()).collect();
        TickEntry { at, sources, books, records, rendered }
    }

    /// How many events of the stream it is.
    fn event_count(&self) -> usize {
        self.sources.len() + usize::from(!self.records.is_empty())
    }
}

impl SportEntry {
    /// Its prices, and those of events that went to another competition.
    pub(super) fn ticks(&self) -> impl Iterator<Item = &TickEntry> {
        let moved = self.lists.iter().filter_map(|change| match change {
            ListChange::Event(_, _, Some(moved)) => Some([&moved.left, &moved.arrived]),
            _ => None,
        });
        moved.flatten().chain(&self.tick)
    }

    fn event_count(&self) -> usize {
        self.lists.len() + self.tick.as_ref().map_or(0, TickEntry::event_count)
    }
}

impl ChangeEntry {
    /// One that was just logged. The feed retires it when it is old.
    pub fn new(sequence: u64, sports: Vec<SportEntry>) -> Self {
        ChangeEntry::with_frames(sequence, sports, FrameCache::default())
    }

    /// One that was read from the log. As many frames are kept as it has bytes in one form.
    pub fn logged(sequence: u64, sports: Vec<SportEntry>) -> Self {
        let frames = FrameCache::within(weight::of_a_form(&sports));
        ChangeEntry::with_frames(sequence, sports, frames)
    }

    fn with_frames(sequence: u64, mut sports: Vec<SportEntry>, frames: FrameCache) -> Self {
        sports.sort_by(|one, other| one.key.cmp(&other.key));
        let weight = weight::ENTRY + sports.iter().map(weight::of_sport).sum::<usize>();
        ChangeEntry { sequence, sports: sports.into(), frames, weight, made: Instant::now() }
    }

    /// Clients that follow have it. Of what is put together for those that come back, that of the first filter is kept, and of others as
    /// much as takes no more than the entry itself.
    pub(super) fn retire(&self) {
        self.frames.clear_within(self.weight);
    }

    /// How long ago it was made: for one that the writer announced, the time since just before its publication.
    pub fn age(&self) -> Duration {
        self.made.elapsed()
    }

    /// About how many bytes of memory it takes before anything of it is rendered.
    pub fn weight(&self) -> usize {
        self.weight
    }

    /// About how many bytes its rendered records take.
    pub(super) fn weight_of_forms(&self) -> usize {
        let parts = self.sports.iter().flat_map(SportEntry::ticks).flat_map(|tick| &tick.rendered);
        parts.flatten().filter_map(OnceLock::get).map(RenderedRecords::weight).sum()
    }

    /// The most that an entry of the log takes with what clients of one form need of it.
    pub fn weight_rendered(&self) -> usize {
        self.weight + 2 * weight::of_a_form(&self.sports) + KEPT_FILTER
    }

    /// How many events it consists of, before filters.
    pub(super) fn event_count(&self) -> u32 {
        u32::try_from(self.sports.iter().map(SportEntry::event_count).sum::<usize>()).unwrap_or(u32::MAX)
    }
}
