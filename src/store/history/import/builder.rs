//! Writing an imported history, in the order of time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::list::ImportedLog;
use crate::model::{
    Event, EventId, HistoryChange, HistoryPrice, LoggedPrice, Market, Observation, ObservedEvent, Record, RecordId,
    Score, SportId, Timestamp,
};
use crate::store::codec::Flaw;
use crate::store::error::StoreError;
use crate::store::history::encode::{KnownEvent, SectionEncoder};
use crate::store::history::entry::{EventChange, RecordChange, SportChanges, TickChanges};
use crate::store::history::fold::{FoldedEvent, SportFold};
use crate::store::history::frames::is_outgrown;
use crate::store::history::pack::{PACKED_BYTES_MAX, pack};
use crate::store::history::read::pass_sport;
use crate::store::history::row::{EntryBytes, Frame, KeyframeRow};
use crate::store::history::state::{LastFrame, LogHead, SportLog, new_epoch};
use crate::store::history::write::{refused, seal_frame};
use crate::store::row_batch::RowBatch;
use crate::store::tables::LOG;

/// So many bytes are written at a time.
const BATCH_BYTES: usize = 1 << 20;
/// Old history is removed up to a keyframe, so there is one in every piece of this length.
const FRAME_EVERY_S: u32 = 7 * 86_400;
/// An event that a list of its competition lacks so long after its start is over.
const OVER_AFTER_S: u32 = 6 * 3_600;
/// An event is over so long after its start, whatever is observed.
const GONE_AFTER_S: u32 = 7 * 86_400;

/// Why a change cannot be imported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImportProblem {
    /// It is of a time before the change before it.
    OutOfOrder,
    /// The history does not have its event.
    UnknownEvent,
}

/// Rows that only have to be committed: see [`Store::write_import`].
///
/// [`Store::write_import`]: crate::store::Store::write_import
#[derive(Debug)]
pub struct PreparedImport(pub(super) Box<RowBatch>);

/// An imported history on its way into the file.
#[derive(Debug)]
pub struct ImportBuilder {
    log: ImportedLog,
    sport: SportId,
    sport_key: Box<str>,
    head: LogHead,
    state: SportLog,
    fold: SportFold,
    stale: BTreeSet<Arc<str>>,
    /// What is not in an entry yet, and its time.
    second: Second,
    at: Timestamp,
    /// Entries that are not in a pack yet.
    loose: Vec<EntryBytes>,
    loose_bytes: usize,
    batch: RowBatch,
    batch_bytes: usize,
    frame_bytes_min: u64,
    /// How many changes it has.
    changes: u64,
}

/// What happens in one second: events and scores change, then prices are published, and then events change again.
#[derive(Debug, Default)]
struct Second {
    events: Vec<EventChange>,
    prices: BTreeMap<(EventId, Arc<str>, Market), Option<LoggedPrice>>,
    has_tick: bool,
    /// Whether it is a publication, also if no price changes.
    is_other_tick: bool,
    after: Vec<EventChange>,
    /// The events that it changes, as they are now.
    known: BTreeMap<EventId, Option<Arc<Event>>>,
}

impl Second {
    fn push(&mut self, change: EventChange) {
        if self.has_tick { self.after.push(change) } else { self.events.push(change) }
    }

    /// Prices that come after changes of events, after other prices: all events change before all prices.
    fn go_on(&mut self) {
        if !self.after.is_empty() {
            self.events.append(&mut self.after);
            self.prices.retain(|(event, ..), _| !matches!(self.known.get(event), Some(None)));
        }
    }
}

impl ImportBuilder {
    pub(in crate::store) fn new(
        log: ImportedLog,
        (sport, sport_key): (SportId, &str),
        frame_bytes_min: u64,
    ) -> Result<Self, StoreError> {
        Ok(ImportBuilder {
            log,
            sport,
            sport_key: sport_key.into(),
            head: LogHead { epoch: new_epoch()?, start: 1, next: 1, ..LogHead::default() },
            state: SportLog::empty(0, Timestamp::default()),
            fold: SportFold::default(),
            stale: BTreeSet::new(),
            second: Second::default(),
            at: Timestamp::default(),
            loose: Vec::new(),
            loose_bytes: 0,
            batch: RowBatch::default(),
            batch_bytes: 0,
            frame_bytes_min,
            changes: 0,
        })
    }

    pub fn log(&self) -> ImportedLog {
        self.log
    }

    /// How many changes it has so far.
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// Adds a change.
    pub fn push(&mut self, at: Timestamp, change: HistoryChange) -> Result<Result<(), ImportProblem>, StoreError> {
        if at < self.at {
            return Ok(Err(ImportProblem::OutOfOrder));
        }
        if at > self.at {
            self.flush()?;
            self.at = at;
        }
        Ok(match change {
            HistoryChange::Event(event) => {
                self.event(&event);
                Ok(())
            }
            HistoryChange::Score(id, score) => self.score(id, score),
            HistoryChange::Removed(id) => self.remove(id),
            HistoryChange::Price(price) => self.price(price),
            HistoryChange::Source(bookmaker, is_stale) => self.source(bookmaker, is_stale),
            HistoryChange::Tick => self.tick(),
            HistoryChange::Observed(observation) => self.observe(observation),
        })
    }

    /// Rows to commit, if there are enough.
    pub fn take_rows(&mut self) -> Option<PreparedImport> {
        (self.batch_bytes >= BATCH_BYTES).then(|| {
            self.batch_bytes = 0;
            PreparedImport(Box::new(std::mem::take(&mut self.batch)))
        })
    }

    /// The last rows. The history is complete, but for its lines.
    pub fn finish(&mut self) -> Result<PreparedImport, StoreError> {
        self.flush()?;
        // Lines are written up to a keyframe.
        if self.state.frame.sequence + 1 < self.head.next {
            self.put_frame()?;
        }
        while !self.loose.is_empty() {
            self.put_pack()?;
        }
        let (key, row) = self.head.seal(self.log.number)?;
        self.batch.rows.meta.insert(key, Some(row));
        Ok(PreparedImport(Box::new(std::mem::take(&mut self.batch))))
    }

    fn known(&self, id: &EventId) -> Option<&KnownEvent> {
        self.state.dictionary.events.get(id)
    }

    /// An event as it is now.
    fn event_of(&self, id: &EventId) -> Option<&Arc<Event>> {
        match self.second.known.get(id) {
            Some(event) => event.as_ref(),
            None => self.known(id).map(|known| &known.event),
        }
    }

    fn folded(&self, id: &EventId) -> Option<&FoldedEvent> {
        self.fold.events.get(&self.known(id)?.number)
    }

    /// The price of a record as the log has it.
    fn logged(&self, id: &EventId, bookmaker: &Arc<str>, market: Market) -> Option<&LoggedPrice> {
        let dictionary = &self.state.dictionary;
        let record = (*dictionary.books.get(bookmaker)?, *dictionary.markets.get(&market)?);
        self.folded(id)?.records.get(&record)
    }

    fn event(&mut self, event: &Event) {
        let event = Arc::new(Event { changed: self.at, ..event.clone() });
        let is_known = |known: &Arc<Event>| Event { changed: event.changed, ..(**known).clone() } == *event;
        if !self.event_of(&event.id).is_some_and(is_known) {
            self.second.known.insert(event.id.clone(), Some(Arc::clone(&event)));
            self.second.push(EventChange::Put(event));
        }
    }

    fn score(&mut self, id: EventId, score: Arc<Score>) -> Result<(), ImportProblem> {
        if self.event_of(&id).is_none() {
            return Err(ImportProblem::UnknownEvent);
        }
        let in_second = self.second.events.iter().chain(&self.second.after).rev().find_map(|change| match change {
            EventChange::Score(of, score) if *of == id => Some(Some(score)),
            EventChange::Removed(of) if *of == id => Some(None),
            _ => None,
        });
        let known = in_second.unwrap_or_else(|| self.folded(&id)?.score.as_ref());
        if known != Some(&score) {
            self.second.push(EventChange::Score(id, score));
        }
        Ok(())
    }

    fn remove(&mut self, id: EventId) -> Result<(), ImportProblem> {
        if self.event_of(&id).is_none() {
            return Err(ImportProblem::UnknownEvent);
        }
        self.second.known.insert(id.clone(), None);
        self.second.push(EventChange::Removed(id));
        Ok(())
    }

    fn price(&mut self, new: HistoryPrice) -> Result<(), ImportProblem> {
        let HistoryPrice { event, bookmaker, market, price } = new;
        if self.event_of(&event).is_none() {
            return Err(ImportProblem::UnknownEvent);
        }
        self.begin_tick()?;
        self.second.prices.insert((event, bookmaker, market), price);
        Ok(())
    }

    fn source(&mut self, bookmaker: Arc<str>, is_stale: bool) -> Result<(), ImportProblem> {
        self.begin_tick()?;
        if is_stale {
            self.stale.insert(bookmaker);
        } else {
            self.stale.remove(&bookmaker);
        }
        Ok(())
    }

    fn tick(&mut self) -> Result<(), ImportProblem> {
        self.begin_tick()?;
        self.second.is_other_tick = true;
        Ok(())
    }

    /// Prices of one second belong together.
    fn begin_tick(&mut self) -> Result<(), ImportProblem> {
        if !self.second.has_tick && self.state.dictionary.last_tick.is_some_and(|last| last >= self.at) {
            return Err(ImportProblem::OutOfOrder);
        }
        self.second.has_tick = true;
        self.second.go_on();
        Ok(())
    }

    /// Takes what a response had, and closes or removes what it should have had.
    fn observe(&mut self, observation: Observation) -> Result<(), ImportProblem> {
        let (mut closed, mut over) = (Vec::new(), BTreeSet::new());
        if observation.is_list {
            over = self.over(&observation);
            closed = self.not_offered(&observation);
            closed.retain(|price| !over.contains(&price.event));
        }
        let has_prices = |id: &EventId| self.folded(id).is_some_and(|folded| !folded.records.is_empty());
        let mut has_moved_prices = over.iter().any(has_prices);
        over.into_iter().try_for_each(|id| self.remove(id))?;
        for seen in &observation.events {
            let before = self.event_of(&seen.event.id).cloned();
            self.event(&seen.event);
            let has_changed = before.as_ref() != self.event_of(&seen.event.id);
            has_moved_prices |=
                has_changed && self.folded(&seen.event.id).is_some_and(|folded| !folded.records.is_empty());
        }
        if has_moved_prices {
            self.tick()?;
        }
        let opened = observation.events.into_iter().flat_map(|ObservedEvent { event, records }| {
            records.into_iter().map(move |(bookmaker, market, price)| {
                let (event, price) = (event.id.clone(), Some(price));
                HistoryPrice { event, bookmaker, market, price }
            })
        });
        closed.into_iter().chain(opened).try_for_each(|price| self.price(price))
    }

    /// The open records that a list should have had: of its competition, and of markets and bookmakers that it has elsewhere.
    /// Which ones were asked for, it does not say.
    fn not_offered(&self, list: &Observation) -> Vec<HistoryPrice> {
        let records = || list.events.iter().flat_map(|seen| &seen.records);
        let books: BTreeSet<&str> = records().map(|(bookmaker, ..)| &**bookmaker).collect();
        let markets: BTreeSet<&str> = records().map(|(_, market, _)| market.key()).collect();
        let offered: BTreeSet<(&EventId, &str, &str)> = list
            .events
            .iter()
            .flat_map(|seen| seen.records.iter().map(|(book, market, _)| (&seen.event.id, &**book, market.key())))
            .collect();
        let Some(competition) = list.events.first().map(|seen| &seen.event.competition_key) else { return Vec::new() };
        let of_competition = self.fold.events().filter(|folded| folded.event.competition_key == *competition);
        let open = of_competition
            .flat_map(|folded| self.fold.records(folded).map(|(book, market, _)| (&folded.event.id, book, market)));
        open.filter(|(event, book, market)| {
            let is_covered = books.contains(&***book) && markets.contains(market.key());
            is_covered && !offered.contains(&(*event, &***book, market.key()))
        })
        .map(|(event, book, market)| HistoryPrice {
            event: event.clone(),
            bookmaker: Arc::clone(book),
            market,
            price: None,
        })
        .collect()
    }

    /// The events that are over, as a list does not have them.
    fn over(&self, list: &Observation) -> BTreeSet<EventId> {
        let listed: BTreeSet<&EventId> = list.events.iter().map(|seen| &seen.event.id).collect();
        let competition = list.events.first().map(|seen| &seen.event.competition_key);
        let is_over = |event: &Event| {
            let age = if self.at > event.commence { self.at.seconds_since(event.commence) } else { 0 };
            age >= GONE_AFTER_S || (Some(&event.competition_key) == competition && age >= OVER_AFTER_S)
        };
        // What is removed in this second is so already.
        let events = self.fold.events().map(|folded| &folded.event).filter(|event| self.event_of(&event.id).is_some());
        events.filter(|event| !listed.contains(&event.id) && is_over(event)).map(|event| event.id.clone()).collect()
    }

    /// Writes what happens in the second, if that is anything.
    fn flush(&mut self) -> Result<(), StoreError> {
        let Second { events, prices, has_tick, is_other_tick, after, known: _ } = std::mem::take(&mut self.second);
        // Those that are removed after the prices are published still have theirs.
        let removed: BTreeSet<&EventId> = events
            .iter()
            .filter_map(|change| match change {
                EventChange::Removed(id) => Some(id),
                _ => None,
            })
            .collect();
        let records: Vec<RecordChange> =
            prices.into_iter().filter_map(|(record, price)| self.record_change(record, price, &removed)).collect();
        let was_stale: BTreeSet<&Arc<str>> = self.fold.stale().collect();
        let is_stale_new = has_tick && !was_stale.into_iter().eq(&self.stale);
        let tick = (!records.is_empty() || is_stale_new || is_other_tick).then(|| TickChanges {
            at: self.at,
            stale: self.stale.iter().cloned().collect(),
            records,
        });
        for (events, tick) in [(events, tick), (after, None)] {
            if !events.is_empty() || tick.is_some() {
                self.append(&SportChanges { sport: self.sport, events, tick })?;
            }
        }
        self.put_frame_if_due()?;
        if self.loose_bytes >= PACKED_BYTES_MAX {
            self.put_pack()?;
        }
        Ok(())
    }

    /// The change of a record, unless it has that price already.
    fn record_change(
        &self,
        (event, bookmaker, market): (EventId, Arc<str>, Market),
        price: Option<LoggedPrice>,
        removed: &BTreeSet<&EventId>,
    ) -> Option<RecordChange> {
        // One that was removed before and is there again has no prices of before.
        let before = self.logged(&event, &bookmaker, market).filter(|_| !removed.contains(&event));
        if before.map(|before| &before.outcomes) == price.as_ref().map(|price| &price.outcomes) {
            return None;
        }
        let record = |price: &LoggedPrice| {
            let id = RecordId::new(&self.sport_key, &event, &bookmaker, market);
            Arc::new(Record::logged(id, market, price.last_update, &price.outcomes))
        };
        let (before, after) = (before.map(record), price.as_ref().map(record));
        Some(RecordChange { event, bookmaker, market, before, after })
    }

    fn append(&mut self, changes: &SportChanges) -> Result<(), StoreError> {
        if self.head.next == 1 {
            self.state = SportLog::empty(0, self.at);
            self.put_frame_at(0)?;
        }
        let count = changes.events.len() as u64 + changes.tick.as_ref().map_or(0, |tick| tick.records.len() as u64);
        let section = SectionEncoder::new(&mut self.state.dictionary, self.at).encode(changes);
        let section = section.map_err(|error| StoreError::Refused(error.to_string()))?;
        let (tick, sport) = (section.tick, self.log.sport);
        self.state.frame.bytes_since += section.bytes.len() as u64;
        let entry = EntryBytes::new(self.at, count, &[(sport, section)]);
        let read = entry.view().and_then(|view| pass_sport(&mut self.fold, sport, &view));
        read.map_err(unreadable)?;
        if let Some(tick) = tick {
            self.batch.ticks.insert((self.log.number, sport, tick.unix()), self.head.next);
        }
        self.loose_bytes += usize::try_from(entry.row_bytes()).unwrap_or(usize::MAX);
        self.loose.push(entry);
        self.head.next += 1;
        self.head.changes += count;
        self.changes += count;
        Ok(())
    }

    fn put_frame_if_due(&mut self) -> Result<(), StoreError> {
        let LastFrame { bytes, bytes_since, at, .. } = self.state.frame;
        let is_old = self.at.seconds_since(at) >= FRAME_EVERY_S;
        if is_old || is_outgrown(bytes_since, bytes, self.frame_bytes_min) { self.put_frame() } else { Ok(()) }
    }

    /// Writes a keyframe after the last entry.
    fn put_frame(&mut self) -> Result<(), StoreError> {
        self.put_frame_at(self.head.next - 1)
    }

    fn put_frame_at(&mut self, sequence: u64) -> Result<(), StoreError> {
        let (at, key) = (self.at, (self.log.number, self.log.sport, sequence));
        let bytes = self.fold.to_keyframe(at).map_err(refused)?;
        let row = seal_frame(key, &KeyframeRow::new(at, Frame::Whole(&bytes)))?;
        let bytes = row.len() as u64;
        self.head.frame_bytes += bytes;
        self.batch_bytes += row.len();
        self.batch.rows.keyframes.insert(key, Some(row));
        let (whole, whole_at) = (sequence, at);
        self.state.frame = LastFrame { sequence, whole, whole_at, at, bytes, bytes_since: 0, log_bytes_since: 0 };
        Ok(())
    }

    /// Writes the oldest entries that fill a row.
    fn put_pack(&mut self) -> Result<(), StoreError> {
        let Some((row, count)) = pack(&self.loose)? else { return Ok(()) };
        let first = self.head.next - self.loose.len() as u64;
        let key = (self.log.number, first);
        let row = LOG.seal(&key, &row).map_err(|error| StoreError::Refused(error.to_string()))?;
        self.loose.drain(..count);
        self.loose_bytes =
            self.loose.iter().map(|entry| usize::try_from(entry.row_bytes()).unwrap_or(usize::MAX)).sum();
        self.head.packed = first + count as u64 - 1;
        self.head.entry_bytes += row.len() as u64;
        self.batch_bytes += row.len();
        self.batch.rows.log.insert(key, Some(row));
        Ok(())
    }
}

fn unreadable(flaw: Flaw) -> StoreError {
    StoreError::Refused(format!("an entry of the imported history cannot be read back: {flaw}"))
}
