//! Encodes changes as rows. A batch is turned into numbered, checksummed rows before the file is touched: what cannot be
//! stored is refused here, and a batch that fails to reach the disk uses up no number.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::Arc;

use super::change::{BookOrigin, Change};
use super::codec::{
    AuditRow, BookRow, BookStanding, BudgetRow, CompetitionRow, EventRow, FeederRow, KeyRow, MarketRow, MetaRow,
    NameRow, OddsRow, PollRow, RecentUseRow, ScoreRow, SourceRow, TooLong, UsageRow,
};
use super::error::StoreError;
use super::history::{LogEntry, LogHead, Logs, WorldLog};
use super::id_maps::{EventEntry, FastMap, IdMaps, NextNumbers, NumbersByName};
use super::numbers::SportNumbers;
use super::row_batch::RowBatch;
use super::rows::NumberNames;
use super::table_keys::{BookKey, EventKey, OddsKey, ScheduleKey, world_number};
use super::tables::{
    AUDIT, BOOKS, BUDGETS, COMPETITIONS, EVENTS, FEEDERS, KEYS, MARKETS, META, META_COUNTERS, META_MAINTENANCE,
    META_MEMBERSHIP, META_SIMULATED, NAMES, ODDS, POLLS, RECENT_USE, SCORES, SOURCES, USAGE, meta_lines_key,
    meta_use_key,
};
use crate::model::{BookId, Bookmaker, Bookmakers, Event, EventId, EventOwner, Market, Record, Score, SportId, World};

/// A batch that is being encoded.
pub(super) struct BatchEncoder<'a> {
    maps: &'a IdMaps,
    sports: &'a SportNumbers,
    names: NameNumbering<'a>,
    /// The logs, if the batch has entries for them.
    logs: Option<&'a mut Logs>,
    batch: RowBatch,
    updates: IdUpdates,
}

/// What changes in the id maps once the batch is on disk.
#[derive(Debug, Default)]
pub(super) struct IdUpdates {
    names: FastMap<Arc<str>, u32>,
    events: BTreeMap<(World, SportId, EventId), Option<EventEntry>>,
    books: BTreeMap<(World, BookId), Option<Arc<Bookmaker>>>,
    next: NextNumbers,
}

impl IdMaps {
    /// Follows a batch that is on disk.
    pub(super) fn apply(&mut self, updates: IdUpdates) {
        self.names.extend(updates.names);
        for ((world, sport, event), entry) in updates.events {
            self.events.set(world, sport, event, entry);
        }
        for ((world, id), book) in updates.books {
            match book {
                Some(book) => self.books[world.index()].insert(id, book),
                None => self.books[world.index()].remove(&id),
            };
        }
        self.next = updates.next;
    }
}

/// Numbers names: those of the file keep theirs, others get new ones.
struct NameNumbering<'a> {
    known: &'a NumbersByName,
    new: FastMap<Arc<str>, u32>,
    next: u32,
}

impl NumberNames for NameNumbering<'_> {
    fn number(&mut self, name: &Arc<str>) -> u32 {
        self.find(name).unwrap_or_else(|| self.add(Arc::clone(name)))
    }
}

impl NameNumbering<'_> {
    fn number_of(&mut self, name: &str) -> u32 {
        self.find(name).unwrap_or_else(|| self.add(name.into()))
    }

    fn find(&self, name: &str) -> Option<u32> {
        self.known.get(name).or_else(|| self.new.get(name)).copied()
    }

    fn add(&mut self, name: Arc<str>) -> u32 {
        let number = self.next;
        self.new.insert(name, number);
        self.next = self.next.saturating_add(1);
        number
    }
}

impl<'a> BatchEncoder<'a> {
    pub(super) fn new(maps: &'a IdMaps, sports: &'a SportNumbers, logs: Option<&'a mut Logs>) -> Self {
        BatchEncoder {
            maps,
            sports,
            names: NameNumbering { known: &maps.names, new: FastMap::default(), next: maps.next.name },
            logs,
            batch: RowBatch::default(),
            updates: IdUpdates { next: maps.next, ..IdUpdates::default() },
        }
    }

    pub(super) fn add(&mut self, change: &Change) -> Result<(), StoreError> {
        match change {
            Change::PutBookmaker { world, id, bookmaker, origin } => {
                self.put_bookmaker(*world, *id, bookmaker, *origin)
            }
            Change::RemoveBookmaker { world, id } => self.remove_bookmaker(*world, *id),
            Change::PutCompetition { world, key, competition } => {
                let (number, key) = (world_number(*world), &**key);
                let row = CompetitionRow::of(self.sport(competition.sport)?, competition);
                let row = sealed(COMPETITIONS.seal(&(number, key), &row), key)?;
                self.batch.rows.competitions.insert((number, key.to_owned()), Some(row));
                Ok(())
            }
            Change::RemoveCompetition { world, key } => {
                self.batch.rows.competitions.insert((world_number(*world), key.to_string()), None);
                Ok(())
            }
            Change::PutMarket { world, market } => {
                let key = (world_number(*world), market.key());
                let row = sealed(MARKETS.seal(&key, &MarketRow), market)?;
                self.batch.rows.markets.insert((key.0, key.1.to_owned()), Some(row));
                Ok(())
            }
            Change::RemoveMarket { world, market } => {
                self.batch.rows.markets.insert((world_number(*world), market.key().to_owned()), None);
                Ok(())
            }
            Change::PutEvent { world, sport, event, owner } => self.put_event(*world, *sport, event, owner),
            Change::RemoveEvent { world, sport, event } => self.remove_event(*world, *sport, event),
            Change::PutScore { world, sport, event, score } => self.put_score(*world, *sport, event, score),
            Change::PutOdds { world, sport, event, record } => self.put_odds(*world, *sport, event, record),
            Change::CloseOdds { world, sport, event, closed } => {
                let key = self.odds_key(*world, *sport, event, closed.bookmaker, closed.market)?;
                self.put_odds_row(key, &OddsRow::closed(*closed), event)
            }
            Change::PutSource { world, sport, bookmaker, source } => {
                let book = self.known_book(*world, *bookmaker)?;
                let key = (world_number(*world), self.sport(*sport)?, book);
                let row = sealed(SOURCES.seal(&key, &SourceRow::of(source)), "source")?;
                self.batch.rows.sources.insert(key, Some(row));
                Ok(())
            }
            Change::RemoveSource { world, sport, bookmaker } => {
                self.batch.rows.sources.insert((world_number(*world), self.sport(*sport)?, bookmaker.number()), None);
                Ok(())
            }
            other => self.add_poll(other),
        }
    }

    fn add_poll(&mut self, change: &Change) -> Result<(), StoreError> {
        let (world, scope, event, row) = match change {
            Change::PutPoll { world, scope, sport, stale_after_s, books } => {
                let books = books.iter().map(|book| book.number()).collect();
                let row = PollRow::Scope { sport: self.sport(*sport)?, stale_after_s: *stale_after_s, books };
                (*world, scope, "", Some(row))
            }
            Change::RemovePoll { world, scope } => (*world, scope, "", None),
            Change::PutPolled { world, scope, event, records } => {
                let records: Vec<_> =
                    records.iter().map(|(book, market)| (book.number(), self.names.number_of(market.key()))).collect();
                (*world, scope, event.as_str(), (!records.is_empty()).then_some(PollRow::Event { records }))
            }
            other => return self.add_log(other),
        };
        let key = (world_number(world), &**scope, event);
        let row = sealed(row.map(|row| POLLS.seal(&key, &row)).transpose(), scope)?;
        self.batch.rows.polls.insert((key.0, key.1.to_owned(), key.2.to_owned()), row);
        Ok(())
    }

    fn add_log(&mut self, change: &Change) -> Result<(), StoreError> {
        match change {
            Change::Log { world, entry } => self.put_log(*world, entry),
            Change::RevertLog { world, head } => {
                self.batch.reverts.insert(world_number(*world), head.next);
                self.put_log_head(*world, *head)
            }
            Change::ClearLog { world, epoch } => {
                let Some(logs) = self.logs.as_deref_mut() else { return Ok(()) };
                let log = &mut logs[world.index()];
                let next = log.head.next;
                let head = LogHead { epoch: *epoch, start: next, packed: next - 1, next, ..LogHead::default() };
                *log = WorldLog { head, ..WorldLog::default() };
                self.batch.cleared_logs.insert(world_number(*world));
                self.batch.rows.meta.insert(meta_lines_key(world_number(*world)), None);
                self.put_log_head(*world, head)
            }
            Change::RenewEpochs(epochs) => World::ALL.into_iter().zip(epochs).try_for_each(|(world, epoch)| {
                let Some(logs) = self.logs.as_deref_mut() else { return Ok(()) };
                let head = &mut logs[world.index()].head;
                head.epoch = *epoch;
                let head = *head;
                self.put_log_head(world, head)
            }),
            other => self.add_administrative(other),
        }
    }

    fn put_log(&mut self, world: World, entry: &LogEntry) -> Result<(), StoreError> {
        let mut sports = Vec::with_capacity(entry.sports.len());
        for sport in &entry.sports {
            sports.push((self.sport(sport.sport)?, sport));
        }
        sports.sort_by_key(|(number, _)| self.sports.key(*number));
        let Some(logs) = self.logs.as_deref_mut() else { return Ok(()) };
        let log = &mut logs[world.index()];
        let write = log.append(world_number(world), entry, &sports)?;
        let head = log.head;
        self.batch.rows.log.insert(write.entry.0, Some(write.entry.1));
        self.batch.ticks.extend(write.ticks);
        self.batch.rows.keyframes.extend(write.keyframes.into_iter().map(|(key, row)| (key, Some(row))));
        self.put_log_head(world, head)
    }

    fn put_log_head(&mut self, world: World, head: LogHead) -> Result<(), StoreError> {
        let (key, row) = head.seal(world_number(world))?;
        self.batch.rows.meta.insert(key, Some(row));
        Ok(())
    }

    fn add_administrative(&mut self, change: &Change) -> Result<(), StoreError> {
        match change {
            Change::PutKey(record) => {
                let row = sealed(KEYS.seal(&record.id.as_str(), &KeyRow::of(record)), &record.id)?;
                let id = record.id.as_str().to_owned();
                // Put again after its removal in the same batch, it keeps its counters.
                if self.batch.rows.usage.get(&id).is_some_and(Option::is_none) {
                    self.batch.rows.usage.remove(&id);
                    self.batch.rows.recent_use.remove(&id);
                }
                if self.batch.rows.keys.insert(id.clone(), Some(row)).flatten().is_none() {
                    self.batch.keys_put.push(id);
                }
            }
            Change::RemoveKey(id) => {
                let id = id.as_str();
                self.batch.keys_put.retain(|put| put != id);
                self.batch.rows.keys.insert(id.to_owned(), None);
                self.batch.rows.usage.insert(id.to_owned(), None);
                self.batch.rows.recent_use.insert(id.to_owned(), None);
            }
            Change::PutUsage { key, usage, last_used } => {
                let row = sealed(USAGE.seal(&key.as_str(), &UsageRow::of(*usage, *last_used)), key)?;
                self.batch.rows.usage.insert(key.as_str().to_owned(), Some(row));
            }
            Change::PutRecentUse { key, recent } => {
                let row = sealed(RECENT_USE.seal(&key.as_str(), &RecentUseRow::of(recent)), key)?;
                self.batch.rows.recent_use.insert(key.as_str().to_owned(), Some(row));
            }
            Change::PutFeeder(feeder) => {
                let row = sealed(FEEDERS.seal(&&*feeder.name, &FeederRow::of(feeder)), &feeder.name)?;
                self.batch.rows.feeders.insert(feeder.name.to_string(), Some(row));
            }
            Change::PutFeederUse { world, feed, used } => {
                let key = meta_use_key(*world, feed);
                let row = (!used.is_unused()).then(|| META.seal(&&*key, &MetaRow::of_use(*used))).transpose();
                let row = sealed(row, feed)?;
                self.batch.rows.meta.insert(key, row);
            }
            Change::SetMaintenance(maintenance) => {
                let seal = |maintenance| META.seal(&META_MAINTENANCE, &MetaRow::of_maintenance(maintenance));
                let row = maintenance.map(seal).transpose();
                self.batch.rows.meta.insert(META_MAINTENANCE.to_owned(), sealed(row, META_MAINTENANCE)?);
            }
            Change::SetSimulated(is_simulated) => {
                let row = is_simulated.then(|| META.seal(&META_SIMULATED, &MetaRow::Simulated)).transpose();
                self.batch.rows.meta.insert(META_SIMULATED.to_owned(), sealed(row, META_SIMULATED)?);
            }
            Change::SetMembership(membership) => {
                let seal = |membership| META.seal(&META_MEMBERSHIP, &MetaRow::of_membership(membership));
                let row = membership.map(seal).transpose();
                self.batch.rows.meta.insert(META_MEMBERSHIP.to_owned(), sealed(row, META_MEMBERSHIP)?);
            }
            Change::PutFeedBudget { feed, budget } => {
                let row = sealed(BUDGETS.seal(&&**feed, &BudgetRow::of(*budget)), feed)?;
                self.batch.rows.budgets.insert(feed.to_string(), Some(row));
            }
            Change::RemoveFeedBudget { feed } => drop(self.batch.rows.budgets.insert(feed.to_string(), None)),
            Change::Audit(note) => {
                let sequence = self.updates.next.audit;
                self.updates.next.audit += 1;
                let row = sealed(AUDIT.seal(&sequence, &AuditRow::of(note)), "audit note")?;
                self.batch.rows.audit.insert(sequence, Some(row));
            }
            _ => {}
        }
        Ok(())
    }

    fn put_bookmaker(
        &mut self,
        world: World,
        id: BookId,
        book: &Arc<Bookmaker>,
        origin: BookOrigin,
    ) -> Result<(), StoreError> {
        if id.index() >= Bookmakers::MAX {
            return Err(StoreError::Refused(format!("bookmaker {} is one too many", book.key)));
        }
        let key: BookKey = (world_number(world), id.number());
        let standing = match origin {
            BookOrigin::Catalogue => BookStanding::Catalogue,
            BookOrigin::Titled => BookStanding::Titled,
            BookOrigin::Declared => BookStanding::Declared,
        };
        let row = sealed(BOOKS.seal(&key, &BookRow::of(book, standing)), &book.key)?;
        self.batch.rows.books.insert(key, Some(row));
        self.updates.books.insert((world, id), Some(Arc::clone(book)));
        Ok(())
    }

    fn remove_bookmaker(&mut self, world: World, id: BookId) -> Result<(), StoreError> {
        let Some(book) = self.book(world, id) else { return Ok(()) };
        let key: BookKey = (world_number(world), id.number());
        let row = sealed(BOOKS.seal(&key, &BookRow::of(&book, BookStanding::Gone)), &book.key)?;
        self.batch.rows.books.insert(key, Some(row));
        self.batch.remove_book(key, self.sports.all());
        self.updates.books.insert((world, id), None);
        Ok(())
    }

    fn put_event(&mut self, world: World, sport: SportId, event: &Event, owner: &EventOwner) -> Result<(), StoreError> {
        let known = self.event(world, sport, &event.id);
        let number = known.map_or(self.updates.next.event, |entry| entry.number);
        let key = (world_number(world), self.sport(sport)?, number);
        let row = EventRow::of(event, owner, &mut self.names);
        self.batch.rows.events.insert(key, Some(sealed(EVENTS.seal(&key, &row), &event.id)?));

        let entry = EventEntry { number, commence: event.commence };
        match known {
            Some(old) if old == entry => return Ok(()),
            Some(old) => {
                self.batch.schedule.insert(schedule_key(key, old), false);
            }
            None => self.updates.next.event = number.saturating_add(1),
        }
        self.batch.schedule.insert(schedule_key(key, entry), true);
        self.updates.events.insert((world, sport, event.id.clone()), Some(entry));
        Ok(())
    }

    fn remove_event(&mut self, world: World, sport: SportId, event: &EventId) -> Result<(), StoreError> {
        let Some(entry) = self.event(world, sport, event) else { return Ok(()) };
        let key = (world_number(world), self.sport(sport)?, entry.number);
        self.batch.remove_event(key);
        self.batch.schedule.insert(schedule_key(key, entry), false);
        self.updates.events.insert((world, sport, event.clone()), None);
        Ok(())
    }

    fn put_score(&mut self, world: World, sport: SportId, event: &EventId, score: &Score) -> Result<(), StoreError> {
        if score.periods.len() > Score::PERIODS_MAX {
            return Err(StoreError::Refused(format!("the score of event {event} has too many periods")));
        }
        let key = self.event_key(world, sport, event)?;
        let row = ScoreRow::of(score, &mut self.names);
        self.batch.rows.scores.insert(key, Some(sealed(SCORES.seal(&key, &row), event)?));
        Ok(())
    }

    fn put_odds(&mut self, world: World, sport: SportId, event: &EventId, record: &Record) -> Result<(), StoreError> {
        if !(1..=Record::OUTCOMES_MAX).contains(&record.outcomes.len()) {
            return Err(StoreError::Refused(format!(
                "a record of event {event} has {} outcomes",
                record.outcomes.len()
            )));
        }
        let key = self.odds_key(world, sport, event, record.bookmaker, record.market)?;
        let row = OddsRow::of(record, &mut self.names);
        self.put_odds_row(key, &row, event)
    }

    fn put_odds_row(&mut self, key: OddsKey, row: &OddsRow, event: &EventId) -> Result<(), StoreError> {
        self.batch.rows.odds.insert(key, Some(sealed(ODDS.seal(&key, row), event)?));
        Ok(())
    }

    /// The rows, and what changes in the id maps when they are on disk.
    pub(super) fn finish(mut self) -> Result<(RowBatch, IdUpdates), StoreError> {
        self.updates.next.name = self.names.next;
        if self.names.next == u32::MAX || self.updates.next.event == u32::MAX {
            return Err(StoreError::Refused("the file has no number left for a name or an event".to_owned()));
        }
        for (name, number) in &self.names.new {
            let row = sealed(NAMES.seal(number, &NameRow(name.to_string())), "name")?;
            self.batch.rows.names.insert(*number, Some(row));
        }
        if self.updates.next != self.maps.next {
            let row = sealed(META.seal(&META_COUNTERS, &self.updates.next.row()), META_COUNTERS)?;
            self.batch.rows.meta.insert(META_COUNTERS.to_owned(), Some(row));
        }
        self.updates.names = self.names.new;
        Ok((self.batch, self.updates))
    }

    fn sport(&self, sport: SportId) -> Result<u16, StoreError> {
        let refused = || StoreError::Refused("a change is about a sport of another catalogue".to_owned());
        self.sports.number(sport).ok_or_else(refused)
    }

    fn event(&self, world: World, sport: SportId, event: &EventId) -> Option<EventEntry> {
        match self.updates.events.get(&(world, sport, event.clone())) {
            Some(entry) => *entry,
            None => self.maps.events.get(world, sport, event),
        }
    }

    fn event_key(&self, world: World, sport: SportId, event: &EventId) -> Result<EventKey, StoreError> {
        let refused = || StoreError::Refused(format!("event {event} is not in the {world} world"));
        let entry = self.event(world, sport, event).ok_or_else(refused)?;
        Ok((world_number(world), self.sport(sport)?, entry.number))
    }

    fn odds_key(
        &mut self,
        world: World,
        sport: SportId,
        event: &EventId,
        book: BookId,
        market: Market,
    ) -> Result<OddsKey, StoreError> {
        let (world_no, sport_no, event_no) = self.event_key(world, sport, event)?;
        let book = self.known_book(world, book)?;
        Ok((world_no, sport_no, event_no, book, self.names.number_of(market.key())))
    }

    fn book(&self, world: World, id: BookId) -> Option<Arc<Bookmaker>> {
        match self.updates.books.get(&(world, id)) {
            Some(book) => book.clone(),
            None => self.maps.books[world.index()].get(&id).cloned(),
        }
    }

    fn known_book(&self, world: World, id: BookId) -> Result<u16, StoreError> {
        let refused = || StoreError::Refused(format!("bookmaker {} is not in the {world} world", id.number()));
        self.book(world, id).map(|_| id.number()).ok_or_else(refused)
    }
}

fn schedule_key((world, sport, number): EventKey, entry: EventEntry) -> ScheduleKey {
    (world, sport, entry.commence.unix(), number)
}

fn sealed<T>(row: Result<T, TooLong>, what: impl Display) -> Result<T, StoreError> {
    row.map_err(|error| StoreError::Refused(format!("the row of {what} is too long: {error}")))
}
