//! Loading one sport of one world.

use std::collections::hash_map::Entry;
use std::ops::RangeInclusive;
use std::sync::Arc;

use redb::ReadTransaction;

use super::loaded::{LoadedEvent, LoadedSport};
use super::{WorldContext, market_of};
use crate::model::{BookId, Closed, Market, Record, RecordId};
use crate::store::care::RowNames;
use crate::store::codec::{Flaw, OddsRow};
use crate::store::error::{DamageList, StoreError};
use crate::store::id_maps::{FastMap, NamesByNumber};
use crate::store::scan::scan;
use crate::store::table_keys::{
    EventKey, ScheduleKey, events_of, odds_of_sport, schedule_of, sources_of, world_number,
};
use crate::store::tables::{EVENTS, ODDS, SCHEDULE, SCORES, SOURCES};

pub(super) struct SportLoader<'a> {
    txn: &'a ReadTransaction,
    names: &'a NamesByNumber,
    context: &'a WorldContext,
    number: u16,
    /// By the numbers of their names.
    markets: FastMap<u32, Market>,
    damage: DamageList,
    counts: RowCounts,
}

/// A loaded sport, its damage, and how many rows were read.
pub(super) struct SportPart {
    pub(super) sport: LoadedSport,
    /// The numbers of the names that its prices refer to markets by.
    pub(super) market_names: Vec<u32>,
    pub(super) damage: DamageList,
    pub(super) counts: RowCounts,
}

/// How many rows were read, to detect those whose sport is unknown.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RowCounts {
    pub(super) events: u64,
    pub(super) scores: u64,
    pub(super) odds: u64,
}

impl RowCounts {
    pub(super) const fn add(&mut self, other: RowCounts) {
        self.events += other.events;
        self.scores += other.scores;
        self.odds += other.odds;
    }
}

/// Positions in the sport's list of events, by event number.
type Positions = FastMap<u32, usize>;

impl<'a> SportLoader<'a> {
    pub(super) fn new(
        txn: &'a ReadTransaction,
        names: &'a NamesByNumber,
        context: &'a WorldContext,
        number: u16,
    ) -> Self {
        let (markets, damage) = (FastMap::default(), DamageList::default());
        SportLoader { txn, names, context, number, markets, damage, counts: RowCounts::default() }
    }

    pub(super) fn load(mut self, sport_key: &str) -> Result<SportPart, StoreError> {
        let (mut events, positions) = self.events()?;
        self.scores(&mut events, &positions)?;
        self.odds(&mut events, &positions, sport_key)?;
        for event in &mut events {
            event.records.sort_unstable_by(|one, other| {
                let rank = |record: &Record| self.context.book_ranks[record.bookmaker.index()];
                rank(one).cmp(&rank(other)).then_with(|| one.market.cmp_in_records(other.market))
            });
            // Not by the numbers of names, which depend on what was stored first.
            event.closed.sort_unstable_by(|one, other| {
                one.bookmaker.cmp(&other.bookmaker).then_with(|| one.market.cmp_in_records(other.market))
            });
        }
        let sport = LoadedSport { events, sources: self.sources()? };
        let market_names = self.markets.into_keys().collect();
        Ok(SportPart { sport, market_names, damage: self.damage, counts: self.counts })
    }

    fn world(&self) -> u8 {
        world_number(self.context.world)
    }

    fn event_range(&self) -> RangeInclusive<EventKey> {
        events_of(self.world(), self.number)
    }

    fn events(&mut self) -> Result<(Vec<LoadedEvent>, Positions), StoreError> {
        let mut found: FastMap<u32, LoadedEvent> = FastMap::default();
        self.counts.events += scan(&EVENTS, self.txn, self.event_range(), &mut self.damage, |key, row| {
            let (owner, event) = (row.owner(self.names)?, Arc::new(row.event(self.names)?));
            let (score, records, closed) = (None, Vec::new(), Vec::new());
            found.insert(key.2, LoadedEvent { event, owner, score, records, closed });
            Ok(())
        })?;
        let mut numbered = Vec::with_capacity(found.len());
        for row in
            self.txn.open_table(SCHEDULE.definition)?.range::<ScheduleKey>(schedule_of(self.world(), self.number))?
        {
            let key = row?.0.value();
            match found.get(&key.3) {
                Some(loaded) if loaded.event.commence.unix() == key.2 => numbered.extend(found.remove_entry(&key.3)),
                _ => {
                    let (world, sport, commence, number) = key;
                    let entry = format!("{} at {commence}", describe((world, sport, number)));
                    self.damage.add(SCHEDULE.name, entry, "it points to no event");
                }
            }
        }
        // Sound, only missing in the index: they are served nevertheless.
        for (number, event) in found {
            let key = (self.world(), self.number, number);
            self.damage.add(EVENTS.name, describe(key), "it is not in the schedule");
            numbered.push((number, event));
        }
        numbered.sort_by(|(_, a), (_, b)| (a.event.commence, &a.event.id).cmp(&(b.event.commence, &b.event.id)));
        self.keep_one_of_each(&mut numbered);
        let positions = numbered.iter().enumerate().map(|(at, (number, _))| (*number, at)).collect();
        Ok((numbered.into_iter().map(|(_, loaded)| loaded).collect(), positions))
    }

    /// Two events of one id can only come from damage; the later number is the one in use.
    fn keep_one_of_each(&mut self, numbered: &mut Vec<(u32, LoadedEvent)>) {
        let mut newest: FastMap<&str, u32> = FastMap::default();
        for (number, loaded) in numbered.iter() {
            let highest = newest.entry(loaded.event.id.as_str()).or_insert(*number);
            *highest = (*highest).max(*number);
        }
        if newest.len() == numbered.len() {
            return;
        }
        let newest: Vec<u32> = newest.into_values().collect();
        let (world, sport) = (self.world(), self.number);
        numbered.retain(|(number, _)| {
            let is_newest = newest.contains(number);
            if !is_newest {
                self.damage.add(EVENTS.name, describe((world, sport, *number)), "its id has a newer event");
            }
            is_newest
        });
    }

    fn scores(&mut self, events: &mut [LoadedEvent], positions: &Positions) -> Result<(), StoreError> {
        self.counts.scores += scan(&SCORES, self.txn, self.event_range(), &mut self.damage, |key, row| {
            let at = *positions.get(&key.2).ok_or(Flaw::Invalid("its event is missing"))?;
            events[at].score = Some(Arc::new(row.score(self.names)?));
            Ok(())
        })?;
        Ok(())
    }

    fn odds(&mut self, events: &mut [LoadedEvent], positions: &Positions, sport_key: &str) -> Result<(), StoreError> {
        let (context, names, mut markets) = (self.context, self.names, std::mem::take(&mut self.markets));
        // The rows of an event follow each other: its position is looked up once.
        let mut last: Option<(u32, Option<usize>)> = None;
        let range = odds_of_sport(self.world(), self.number);
        self.counts.odds += scan(&ODDS, self.txn, range, &mut self.damage, |key, row| {
            let at = match last {
                Some((number, at)) if number == key.2 => at,
                _ => positions.get(&key.2).copied(),
            };
            last = Some((key.2, at));
            let event = &mut events[at.ok_or(Flaw::Invalid("its event is missing"))?];
            let market = match markets.entry(key.4) {
                Entry::Occupied(known) => *known.get(),
                Entry::Vacant(free) => *free.insert(market_of(names, key.4)?),
            };
            context.add_odds(event, sport_key, (key.3, market), &row, names)
        })?;
        self.markets = markets;
        Ok(())
    }

    fn sources(&mut self) -> Result<Vec<(BookId, crate::model::Source)>, StoreError> {
        let bookmakers = &self.context.bookmakers;
        let mut sources = Vec::new();
        scan(&SOURCES, self.txn, sources_of(self.world(), self.number), &mut self.damage, |key, row| {
            let id = BookId::from_number(key.2);
            bookmakers.get(id).ok_or(Flaw::Invalid("its bookmaker is missing"))?;
            sources.push((id, row.source()));
            Ok(())
        })?;
        Ok(sources)
    }
}

fn describe(event: EventKey) -> String {
    (EVENTS.describe)(&event, &RowNames::default())
}

impl WorldContext {
    fn add_odds(
        &self,
        event: &mut LoadedEvent,
        sport_key: &str,
        (book, market): (u16, Market),
        row: &OddsRow,
        names: &NamesByNumber,
    ) -> Result<(), Flaw> {
        let id = BookId::from_number(book);
        if row.outcomes.is_empty() {
            // A closed mark may outlive its bookmaker, whose number is never reused.
            if self.bookmakers.get(id).is_some() {
                event.closed.push(Closed { bookmaker: id, market, at: row.last_update() });
            }
            return Ok(());
        }
        let bookmaker = self.bookmakers.get(id).ok_or(Flaw::Invalid("its bookmaker is missing"))?;
        event.records.push(Arc::new(Record {
            id: RecordId::new(sport_key, &event.event.id, &bookmaker.key, market),
            bookmaker: id,
            market,
            last_update: row.last_update(),
            bookmaker_update: row.bookmaker_update()?,
            outcomes: row.outcomes(names)?,
        }));
        Ok(())
    }
}
