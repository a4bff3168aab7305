//! Bringing a file up to the catalogue when it is opened: each sport has a number, each bookmaker has one in both
//! worlds, and what an older catalogue left behind goes when nothing hangs on it.
//!
//! A bookmaker's title is the last one given: by a `bookmaker` line, by a payload that was polled or imported, else by the
//! catalogue. So a title that an operator changes in a catalogue file counts for bookmakers that no payload has named
//! otherwise; where one has, its title stays, since the next poll would bring it back. To choose the title of a polled
//! bookmaker, change it upstream. Regions are the catalogue's unless a `bookmaker` line declared others.

use std::collections::BTreeMap;
use std::sync::Arc;

use redb::{ReadTransaction, ReadableDatabase};

use super::batch::begin;
use super::books::{highest_numbers, scan_books};
use super::change::{BookOrigin, Change};
use super::codec::Standing;
use super::error::{DamageList, OpenError, StoreError};
use super::handle::Store;
use super::sports::SportNumbers;
use super::tables::{
    AUDIT, BOOKS, BUDGETS, CATALOGUE, COVERAGE, CoverageKey, EVENTS, FEEDERS, FORMAT, FORMAT_KEY, FORMATS, KEY_ORDER,
    KEYS, META, NAMES, ODDS, POLLS, SCHEDULE, SCORES, SOURCES, SPORTS, USAGE, coverage_of, world_number,
};
use super::unused_books::Spare;
use crate::model::{BookId, Bookmaker, Bookmakers, World};

/// Why a file could not be brought up to the catalogue.
pub(super) enum Unsettled {
    Store(StoreError),
    NumbersSpent { what: String, limit: usize },
}

impl From<StoreError> for Unsettled {
    fn from(error: StoreError) -> Self {
        Unsettled::Store(error)
    }
}

impl Unsettled {
    pub(super) fn explain(self, place: &str) -> OpenError {
        match self {
            Unsettled::Store(error) => OpenError::from_store(place, error),
            Unsettled::NumbersSpent { what, limit } => OpenError::NumbersSpent { place: place.to_owned(), what, limit },
        }
    }
}

/// A bookmaker's row as it is found.
struct Found {
    id: BookId,
    book: Bookmaker,
    standing: Standing,
}

impl Store {
    pub(super) fn number_sports(&mut self) -> Result<(), Unsettled> {
        // These tables came later than the others: a file without them gets them.
        let is_missing = self.reading(|_, file| {
            let txn = file.db.begin_read()?;
            let is_missing = txn.open_table(FEEDERS.definition).is_err() || txn.open_table(POLLS.definition).is_err();
            Ok(is_missing || txn.open_table(FORMATS).is_err())
        })?;
        if is_missing {
            self.writing(Self::make_tables)?;
        }
        let (sports, added) = self.reading(|store, file| {
            SportNumbers::read(&file.db.begin_read()?, store.catalogue(), &mut DamageList::default())
        })?;
        if added.contains(&u16::MAX) {
            return Err(Unsettled::NumbersSpent { what: "catalogue's sports".to_owned(), limit: u16::MAX.into() });
        }
        self.sports = sports;
        if !added.is_empty() && !self.is_looked_into() {
            self.writing(|store| store.write_sports(&added))?;
        }
        Ok(())
    }

    fn make_tables(&mut self) -> Result<(), StoreError> {
        let txn = begin(&self.file()?.db)?;
        txn.open_table(META.definition)?;
        txn.open_table(CATALOGUE.definition)?;
        txn.open_table(SPORTS.definition)?;
        txn.open_table(BOOKS.definition)?;
        txn.open_table(NAMES.definition)?;
        txn.open_table(EVENTS.definition)?;
        txn.open_table(SCORES.definition)?;
        txn.open_table(ODDS.definition)?;
        txn.open_table(SOURCES.definition)?;
        txn.open_table(POLLS.definition)?;
        txn.open_table(KEYS.definition)?;
        txn.open_table(USAGE.definition)?;
        txn.open_table(FEEDERS.definition)?;
        txn.open_table(BUDGETS.definition)?;
        txn.open_table(AUDIT.definition)?;
        txn.open_table(SCHEDULE)?;
        txn.open_table(COVERAGE)?;
        txn.open_table(KEY_ORDER)?;
        txn.open_table(FORMATS)?.insert(FORMAT_KEY, FORMAT)?;
        Ok(txn.commit()?)
    }

    fn write_sports(&mut self, numbers: &[u16]) -> Result<(), StoreError> {
        let txn = begin(&self.file()?.db)?;
        {
            let mut table = txn.open_table(SPORTS.definition)?;
            for number in numbers {
                let row = self.sports.seal(*number).map_err(|error| StoreError::Refused(error.to_string()))?;
                table.insert(number, &*row)?;
            }
        }
        Ok(txn.commit()?)
    }

    pub(super) fn number_bookmakers(&mut self, is_new: bool) -> Result<(), Unsettled> {
        if self.is_looked_into() {
            return Ok(());
        }
        let mut spare = if is_new { self.free_unused_bookmakers()? } else { Spare::default() };
        let mut changes = Vec::new();
        let worlds = self.reading(|_, file| find_bookmakers(&file.db.begin_read()?))?;
        for (world, (found, next)) in World::ALL.into_iter().zip(worlds) {
            self.put_catalogue(world, &found, (next, &mut spare[world.index()]), &mut changes);
            for (id, _) in self.leftover(world, &found)? {
                changes.push(Change::RemoveBookmaker { world, id });
            }
        }
        Ok(self.commit(&changes)?)
    }

    /// Gives each bookmaker of the catalogue its number, a new one if it never had one, its title and its regions. Those
    /// that a feed has told since are the feed's: what was acknowledged outlives a restart.
    fn put_catalogue(
        &self,
        world: World,
        found: &[Found],
        (mut next, spare): (u16, &mut Vec<u16>),
        changes: &mut Vec<Change>,
    ) {
        // Where a number was left behind under the same key, one that is in use comes first.
        let mut by_key: BTreeMap<&str, &Found> = BTreeMap::new();
        for row in found {
            let known = by_key.entry(&row.book.key).or_insert(row);
            if row.standing != Standing::Gone {
                *known = row;
            }
        }
        for book in self.catalogue().bookmakers() {
            let (id, title) = match by_key.get(&*book.key) {
                Some(row) if row.standing == Standing::Declared => continue,
                Some(row) if row.book == *book && row.standing == Standing::Catalogue => continue,
                Some(row) if row.standing == Standing::Titled && row.book.regions == book.regions => continue,
                Some(row) => (row.id, (row.standing == Standing::Titled).then(|| row.book.title.clone())),
                None if usize::from(next) >= Bookmakers::MAX => {
                    let Some(number) = spare.pop() else {
                        // Whoever has prices is served all the same.
                        let limit = Bookmakers::MAX;
                        tracing::warn!(bookmaker = %book.key, %world, limit, "left a bookmaker of the catalogue out: every number is in use");
                        continue;
                    };
                    (BookId::from_number(number), None)
                }
                None => {
                    next += 1;
                    (BookId::from_number(next - 1), None)
                }
            };
            let origin = if title.is_some() { BookOrigin::Titled } else { BookOrigin::Catalogue };
            let mut bookmaker = book.clone();
            bookmaker.title = title.unwrap_or(bookmaker.title);
            changes.push(Change::PutBookmaker { world, id, bookmaker: Arc::new(bookmaker), origin });
        }
    }

    /// The bookmakers of an older catalogue that hold no price.
    fn leftover<'f>(&self, world: World, found: &'f [Found]) -> Result<Vec<(BookId, &'f Bookmaker)>, StoreError> {
        let is_listed = |book: &Bookmaker| self.catalogue().bookmakers().iter().any(|listed| listed.key == book.key);
        let was_listed = |row: &&Found| matches!(row.standing, Standing::Catalogue | Standing::Titled);
        let old = found.iter().filter(was_listed).filter(|row| !is_listed(&row.book));
        let mut leftover = Vec::new();
        for row in old {
            if !self.reading(|store, file| holds_odds(&file.db.begin_read()?, &store.sports, world, row.id))? {
                leftover.push((row.id, &row.book));
            }
        }
        Ok(leftover)
    }
}

/// The bookmakers of each world, and the number that comes next there.
fn find_bookmakers(txn: &ReadTransaction) -> Result<[(Vec<Found>, u16); 2], StoreError> {
    let next = |highest: Option<u16>| highest.map_or(0, |number| number.saturating_add(1));
    let mut worlds = highest_numbers(txn)?.map(|highest| (Vec::new(), next(highest)));
    // Whoever loads the file reports its damage.
    scan_books(txn, &mut DamageList::default(), |world, id, row| {
        let standing = row.standing;
        worlds[world.index()].0.push(Found { id, book: row.bookmaker()?, standing });
        Ok(())
    })?;
    Ok(worlds)
}

fn holds_odds(txn: &ReadTransaction, sports: &SportNumbers, world: World, book: BookId) -> Result<bool, StoreError> {
    let coverage = txn.open_table(COVERAGE)?;
    for sport in sports.all() {
        let range = coverage_of(world_number(world), sport, book.number());
        if coverage.range::<CoverageKey>(range)?.next().is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}
