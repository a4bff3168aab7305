//! Bringing a file up to date with the catalogue when it is opened: each sport gets a number, each bookmaker one in both
//! worlds, and what an older catalogue left behind is removed when nothing refers to it. The file also stores the text of
//! the catalogue that it was last served with, for commands that open it without one.
//!
//! A bookmaker's title is the last one given: by a `bookmaker` line, by a payload that was polled or imported, else by the
//! catalogue. So a title that an operator changes in a catalogue file applies to bookmakers that no payload has named
//! otherwise; where one has, its title stays, since the next poll would bring it back. To choose the title of a polled
//! bookmaker, change it upstream. Regions are the catalogue's unless a `bookmaker` line declared others.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use redb::{ReadTransaction, ReadableDatabase, TableError};

use super::care::SpareNumbers;
use super::care::upgrade::{create_tables, has_all_tables};
use super::change::{BookOrigin, Change};
use super::codec::{BookStanding, CatalogueRow};
use super::error::{DamageList, OpenError, StoreError};
use super::guard::guarded;
use super::handle::{Store, StoreOptions};
use super::id_maps::NamesByNumber;
use super::numbers::{SportNumbers, highest_book_numbers, scan_books};
use super::open::{Location, OpenMode};
use super::row_batch::begin;
use super::scan::scan;
use super::table_keys::{CoverageKey, coverage_of, events_of, world_number};
use super::tables::{CATALOGUE, COVERAGE, EVENTS, SPORTS};
use crate::model::{BookId, Bookmaker, Bookmakers, Event, EventOwner, SeenCompetition, SportId, World};

/// Why a file could not be brought up to date with the catalogue.
pub(super) enum SyncError {
    Store(StoreError),
    NumbersSpent { what: String, limit: usize },
}

impl From<StoreError> for SyncError {
    fn from(error: StoreError) -> Self {
        SyncError::Store(error)
    }
}

impl SyncError {
    pub(super) fn into_open_error(self, place: &str) -> OpenError {
        match self {
            SyncError::Store(error) => OpenError::from_store(place, error),
            SyncError::NumbersSpent { what, limit } => OpenError::NumbersSpent { place: place.to_owned(), what, limit },
        }
    }
}

/// A bookmaker as the file has it.
struct StoredBook {
    id: BookId,
    book: Bookmaker,
    standing: BookStanding,
}

impl Store {
    pub(super) fn number_sports(&mut self) -> Result<(), SyncError> {
        if !self.reading(|_, file| has_all_tables(&file.db.begin_read()?))? {
            self.writing(|store| {
                let txn = begin(&store.file()?.db)?;
                create_tables(&txn)?;
                Ok(txn.commit()?)
            })?;
        }
        let (sports, added) = self.reading(|store, file| {
            SportNumbers::read(&file.db.begin_read()?, store.catalogue(), &mut DamageList::default())
        })?;
        if added.contains(&u16::MAX) {
            return Err(SyncError::NumbersSpent { what: "catalogue's sports".to_owned(), limit: u16::MAX.into() });
        }
        self.sports = sports;
        if !added.is_empty() && !self.is_inspected() {
            self.writing(|store| store.write_sports(&added))?;
        }
        Ok(())
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

    pub(super) fn number_bookmakers(&mut self, is_new: bool) -> Result<(), SyncError> {
        if self.is_inspected() {
            return Ok(());
        }
        let mut spare = if is_new { self.free_unused_bookmakers()? } else { SpareNumbers::default() };
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

    /// Gives events of an earlier format the keys of their competitions.
    pub(super) fn name_competitions(&mut self) -> Result<(), SyncError> {
        if self.is_inspected() {
            return Ok(());
        }
        let unnamed = self.reading(|store, file| find_unnamed(&file.db.begin_read()?, &store.sports))?;
        let mut changes = Vec::with_capacity(unnamed.len() * 2);
        for Unnamed { world, sport, mut event, owner } in unnamed {
            let catalogue = self.catalogue();
            let key: Arc<str> = (*catalogue.competition_key(sport, &event.competition, &event.contest)).into();
            event.competition_key = Arc::clone(&key);
            let title = catalogue.title_of(sport, &key, &event.competition, &event.contest);
            changes.push(Change::PutCompetition { world, key, competition: SeenCompetition { sport, title } });
            changes.push(Change::PutEvent { world, sport, event: Arc::new(event), owner });
        }
        for batch in changes.chunks(NAMED_AT_ONCE) {
            self.commit(batch)?;
        }
        Ok(())
    }

    /// Gives each bookmaker of the catalogue its number, a new one if it never had one, its title and its regions. A title
    /// or declaration that a feed has sent since takes precedence: what was acknowledged survives a restart.
    fn put_catalogue(
        &self,
        world: World,
        found: &[StoredBook],
        (mut next, spare): (u16, &mut Vec<u16>),
        changes: &mut Vec<Change>,
    ) {
        // Where a removed bookmaker had the same key, the one in use takes precedence.
        let mut by_key: BTreeMap<&str, &StoredBook> = BTreeMap::new();
        for row in found {
            let known = by_key.entry(&row.book.key).or_insert(row);
            if row.standing != BookStanding::Gone {
                *known = row;
            }
        }
        for book in self.catalogue().bookmakers() {
            let (id, title) = match by_key.get(&*book.key) {
                Some(row) if row.standing == BookStanding::Declared => continue,
                Some(row) if row.book == *book && row.standing == BookStanding::Catalogue => continue,
                Some(row) if row.standing == BookStanding::Titled && row.book.regions == book.regions => continue,
                Some(row) => (row.id, (row.standing == BookStanding::Titled).then(|| row.book.title.clone())),
                None if usize::from(next) >= Bookmakers::MAX => {
                    let Some(number) = spare.pop() else {
                        // Bookmakers with prices are still served.
                        let limit = Bookmakers::MAX;
                        tracing::warn!(bookmaker = %book.key, %world, limit, "left out a bookmaker of the catalogue: every number is in use");
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

    /// The bookmakers of an older catalogue that have no price.
    fn leftover<'f>(&self, world: World, found: &'f [StoredBook]) -> Result<Vec<(BookId, &'f Bookmaker)>, StoreError> {
        let is_listed = |book: &Bookmaker| self.catalogue().bookmakers().iter().any(|listed| listed.key == book.key);
        let was_listed = |row: &&StoredBook| matches!(row.standing, BookStanding::Catalogue | BookStanding::Titled);
        let old = found.iter().filter(was_listed).filter(|row| !is_listed(&row.book));
        let mut leftover = Vec::new();
        for row in old {
            if !self.reading(|store, file| has_open_records(&file.db.begin_read()?, &store.sports, world, row.id))? {
                leftover.push((row.id, &row.book));
            }
        }
        Ok(leftover)
    }
}

/// How many changes are committed at once.
const NAMED_AT_ONCE: usize = 10_000;

/// An event whose row does not have the key of its competition.
struct Unnamed {
    world: World,
    sport: SportId,
    event: Event,
    owner: EventOwner,
}

fn find_unnamed(txn: &ReadTransaction, sports: &SportNumbers) -> Result<Vec<Unnamed>, StoreError> {
    // Loading reports damage.
    let damage = &mut DamageList::default();
    let names = NamesByNumber::read(txn, damage)?;
    let mut unnamed = Vec::new();
    for world in World::ALL {
        for (sport, number) in sports.served() {
            scan(&EVENTS, txn, events_of(world_number(world), number), damage, |_, row| {
                if row.competition_key.is_none() {
                    let owner = row.owner(&names)?;
                    unnamed.push(Unnamed { world, sport, event: row.event(&names)?, owner });
                }
                Ok(())
            })?;
        }
    }
    Ok(unnamed)
}

/// The bookmakers of each world, and its next free number.
fn find_bookmakers(txn: &ReadTransaction) -> Result<[(Vec<StoredBook>, u16); 2], StoreError> {
    let next = |highest: Option<u16>| highest.map_or(0, |number| number.saturating_add(1));
    let mut worlds = highest_book_numbers(txn)?.map(|highest| (Vec::new(), next(highest)));
    // Loading reports damage.
    scan_books(txn, &mut DamageList::default(), |world, id, row| {
        let standing = row.standing;
        worlds[world.index()].0.push(StoredBook { id, book: row.bookmaker()?, standing });
        Ok(())
    })?;
    Ok(worlds)
}

fn has_open_records(
    txn: &ReadTransaction,
    sports: &SportNumbers,
    world: World,
    book: BookId,
) -> Result<bool, StoreError> {
    let coverage = txn.open_table(COVERAGE.definition)?;
    for sport in sports.all() {
        let range = coverage_of(world_number(world), sport, book.number());
        if coverage.range::<CoverageKey>(range)?.next().is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// A row takes 64 KiB at most.
const PIECE_BYTES: usize = 32 << 10;

impl Store {
    /// The catalogue text stored in the file at `path`; `None` if there is none, or no file.
    pub fn stored_catalogue(path: &Path, options: StoreOptions) -> Result<Option<String>, OpenError> {
        let location = Location::Path(path.to_owned());
        let file = match location.open(&options, OpenMode::Inspect) {
            Err(OpenError::Gone { .. }) => return Ok(None),
            opened => opened?,
        };
        let text = guarded(|| {
            let txn = file.db.begin_read()?;
            // The first format had no such table.
            match txn.open_table(CATALOGUE.definition) {
                Err(TableError::TableDoesNotExist(_)) => Ok(None),
                _ => read_text(&txn),
            }
        });
        file.close();
        text.map_err(|error| OpenError::from_store(&location.to_string(), error))
    }

    /// Stores the text in place of the one before.
    pub fn store_catalogue(&mut self, text: &str) -> Result<(), StoreError> {
        self.writing(|store| {
            let db = &store.file()?.db;
            if read_text(&db.begin_read()?)?.as_deref() == Some(text) {
                return Ok(());
            }
            let txn = begin(db)?;
            {
                let mut table = txn.open_table(CATALOGUE.definition)?;
                table.retain(|_, _| false)?;
                for (number, piece) in (0_u16..).zip(pieces(text)) {
                    let row = CATALOGUE.seal(&number, &CatalogueRow(piece.to_owned()));
                    let row = row.map_err(|error| StoreError::Refused(format!("the catalogue: {error}")))?;
                    table.insert(number, &*row)?;
                }
            }
            Ok(txn.commit()?)
        })
    }
}

/// A damaged text counts as none: `check` reports it, and the next server start writes it again.
fn read_text(txn: &ReadTransaction) -> Result<Option<String>, StoreError> {
    let (mut text, mut damage) = (String::new(), DamageList::default());
    let count = scan(&CATALOGUE, txn, .., &mut damage, |_, row| {
        text.push_str(&row.0);
        Ok(())
    })?;
    Ok((count > 0 && damage.is_empty()).then_some(text))
}

fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let (piece, after) = rest.split_at(rest.floor_char_boundary(PIECE_BYTES));
        rest = after;
        (!piece.is_empty()).then_some(piece)
    })
}
