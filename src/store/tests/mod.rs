//! Shared by the tests of the store: a small catalogue, records to store, and storage in memory that can fail.

// A store and a score are not easily taken for each other.
#![allow(clippy::similar_names)]

mod commit_check;
mod copy;
mod damage;
mod encoding;
mod failure;
mod forget;
mod import;
mod lines;
mod lost_books;
mod lost_usage;
mod open;
mod own_decoder;
mod property;
mod redb_layout;
mod round_trip;
mod sweep;
mod sync_catalogue;
mod tables;
mod upgrade;

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use redb::StorageBackend;

use super::{
    AuditNote, Change, EventChange, Loaded, LogEntry, RecordChange, SportChanges, Store, StoreOptions, TickChanges,
};
use crate::keys::{Feeder, KeyId, KeyKind, KeyRecord, Limits, Retired, SecretHash};
use crate::model::{
    BookId, Bookmaker, Catalogue, Contest, Event, EventId, EventOwner, EventStatus, Market, MarketKey, OddsFormat,
    Outcome, Point, Price, Record, RecordId, Region, Regions, SeenCompetition, Sport, SportId, SportKind, Timestamp,
    World,
};

const OPTIONS: StoreOptions =
    StoreOptions { cache_bytes: 4 << 20, wait_for_lock: Duration::ZERO, ..StoreOptions::DEFAULT };
/// More writes than any operation here needs.
const WRITES_MAX: u64 = 1_000;
const PAGE_BYTES: usize = 4096;
const BOOKS: [&str; 3] = ["unibet", "betmgm", "coral"];

fn sport(key: &str, kind: SportKind) -> Sport {
    Sport { key: key.into(), title: key.into(), group: key.into(), kind, hides_fields: false, v4: None }
}

fn book(key: &str) -> Bookmaker {
    Bookmaker { key: key.into(), title: key.to_uppercase().into(), regions: Regions::only(Region::Uk) }
}

fn catalogue_of(sports: &[&str], books: &[&str]) -> Arc<Catalogue> {
    let sports = sports.iter().map(|key| sport(key, SportKind::HeadToHead)).collect();
    Arc::new(Catalogue::new(sports, books.iter().map(|key| book(key)).collect()).unwrap())
}

fn catalogue() -> Arc<Catalogue> {
    catalogue_of(&["mma", "tennis"], &BOOKS)
}

/// Where the pages begin that were ever written. Nothing is read from the others.
fn written_pages(file: &[u8]) -> impl Iterator<Item = usize> + '_ {
    (0..file.len()).step_by(PAGE_BYTES).filter(|at| file[*at..].iter().take(PAGE_BYTES).any(|byte| *byte != 0))
}

fn sport_id(index: usize) -> SportId {
    catalogue().sport_ids().nth(index).unwrap()
}

fn at(seconds: u32) -> Timestamp {
    Timestamp::from_unix(1_790_000_000 + seconds)
}

fn event_id(text: &str) -> EventId {
    EventId::new(text).unwrap()
}

/// An entry of the log: an event, and a publication of its first price.
fn log_tick(world: World) -> Change {
    let Change::PutOdds { sport, event: id, record, .. } = put_odds(world, "a", 0, Market::MONEYLINE) else {
        panic!("a price")
    };
    let (market, bookmaker) = (record.market, "fanduel".into());
    let records = vec![RecordChange { event: id, bookmaker, market, before: None, after: Some(record) }];
    let tick = Some(TickChanges { at: at(10), stale: Vec::new(), records });
    let sports = vec![SportChanges { sport, events: vec![EventChange::Put(event("a", 1))], tick }];
    Change::Log { world, entry: Arc::new(LogEntry { at: at(9), sports }) }
}

fn event(id: &str, commence: u32) -> Arc<Event> {
    Arc::new(Event {
        id: event_id(id),
        competition: "Open".into(),
        competition_key: "mma".into(),
        commence: at(commence),
        contest: Contest::Sides { home: format!("{id} home").into(), away: format!("{id} away").into() },
        status: EventStatus::Scheduled,
        changed: at(0),
    })
}

fn outcome(name: &str, price: &str, point: Option<i32>) -> Outcome {
    let format = if price.contains('/') { OddsFormat::Fractional } else { OddsFormat::American };
    let point = point.map(|milli| Point::from_milli(milli).unwrap());
    Outcome { name: name.into(), price: Price::parse(price, format).unwrap(), point }
}

/// A market that is not one of the featured ones.
fn prop(key: &str) -> Market {
    Market::intern(&MarketKey::New(key.into())).unwrap()
}

/// A record of one of [`BOOKS`], whose numbers in the file are their positions.
fn record(sport: &str, event: &str, book: u16, market: Market, update: u32) -> Arc<Record> {
    let point = market.has_point().unwrap_or_default().then_some(-3500);
    Arc::new(Record {
        id: RecordId::new(sport, &event_id(event), BOOKS[usize::from(book)], market),
        bookmaker: BookId::from_number(book),
        market,
        last_update: at(update),
        bookmaker_update: None,
        outcomes: [outcome(&format!("{event} home"), "-110", point), outcome(&format!("{event} away"), "120", point)]
            .into(),
    })
}

fn put_event(world: World, id: &str, commence: u32) -> Change {
    Change::PutEvent { world, sport: sport_id(0), event: event(id, commence), owner: EventOwner::Unknown }
}

fn put_odds(world: World, id: &str, book: u16, market: Market) -> Change {
    let record = record("mma", id, book, market, 5);
    Change::PutOdds { world, sport: sport_id(0), event: event_id(id), record }
}

fn put_competition(key: &str) -> Change {
    let competition = SeenCompetition { sport: sport_id(0), title: "Open".into() };
    Change::PutCompetition { world: World::Live, key: key.into(), competition }
}

fn put_poll(scope: &str) -> Change {
    let books = [BookId::from_number(0), BookId::from_number(1)].into();
    Change::PutPoll { world: World::Live, scope: scope.into(), sport: sport_id(0), stale_after_s: 120, books }
}

fn put_polled(scope: &str, event: &str, records: &[(u16, Market)]) -> Change {
    let records = records.iter().map(|(book, market)| (BookId::from_number(*book), *market)).collect();
    Change::PutPolled { world: World::Live, scope: scope.into(), event: event_id(event), records }
}

fn note(action: &str) -> AuditNote {
    AuditNote { at: at(1), who: "w".into(), action: action.into(), subject: "s".into(), detail: "".into() }
}

fn key(name: &str) -> Arc<KeyRecord> {
    Arc::new(KeyRecord {
        id: KeyId::new(&format!("key_{name:0>12}")).unwrap(),
        kind: KeyKind::Production,
        name: name.into(),
        groups: ["combat".into()].into(),
        limits: Limits::default_of(KeyKind::Production),
        created: at(1),
        expires: Some(at(9)),
        approved_by: Some("ada".into()),
        revoked: None,
        hash: SecretHash([7; 32]),
        last_four: "wxyz".into(),
        retired: [].into(),
        replaced_last_four: "stuv".into(),
        self_service: true,
        self_rotated: Some(at(4)),
        last_used: None,
    })
}

fn feeder() -> Feeder {
    Feeder {
        name: "scraper".into(),
        world: World::Live,
        created: at(1),
        revoked: Some(at(2)),
        hash: SecretHash([7; 32]),
        last_four: "wxyz".into(),
        retired: [Retired { hash: SecretHash([9; 32]), until: at(3) }].into(),
    }
}

/// Everything that was loaded, as text that two loads can be compared by.
fn picture(loaded: &Loaded) -> String {
    format!("{loaded:#?}")
}

/// Storage in memory. It can fail after a number of writes, and lose what was not synced.
#[derive(Clone, Debug)]
struct Memory(Arc<Disk>);

#[derive(Debug)]
struct Disk {
    now: Mutex<Vec<u8>>,
    synced: Mutex<Vec<u8>>,
    writes_left: AtomicU64,
}

impl Memory {
    fn new(bytes: Vec<u8>) -> Self {
        let synced = Mutex::new(bytes.clone());
        Memory(Arc::new(Disk { now: Mutex::new(bytes), synced, writes_left: AtomicU64::new(u64::MAX) }))
    }

    fn bytes(&self) -> Vec<u8> {
        self.0.now.lock().unwrap().clone()
    }

    fn fail_after(&self, writes: u64) {
        self.0.writes_left.store(writes, Ordering::SeqCst);
    }

    fn lose_unsynced(&self) {
        let synced = self.0.synced.lock().unwrap().clone();
        *self.0.now.lock().unwrap() = synced;
    }

    fn open_with(&self, catalogue: &Arc<Catalogue>) -> Result<Store, super::OpenError> {
        Store::open_backend(self.factory(), Arc::clone(catalogue), OPTIONS)
    }

    /// Opens it for inspection, whatever state it is in.
    fn inspect(&self) -> Result<Store, super::OpenError> {
        Store::inspect_backend(self.factory(), catalogue(), OPTIONS)
    }

    fn factory(&self) -> super::BackendFactory {
        let memory = self.clone();
        Box::new(move || Ok(Box::new(memory.clone()) as Box<dyn StorageBackend>))
    }

    fn open(&self) -> Store {
        self.open_with(&catalogue()).unwrap()
    }

    /// A plain redb handle, for changes that the store never makes.
    fn raw(&self) -> redb::Database {
        redb::Database::builder().create_with_backend(self.clone()).unwrap()
    }

    fn spend(&self) -> io::Result<()> {
        let spent = self.0.writes_left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| match left {
            u64::MAX => Some(u64::MAX),
            left => left.checked_sub(1),
        });
        spent.map(|_| ()).map_err(|_| io::ErrorKind::StorageFull.into())
    }
}

impl StorageBackend for Memory {
    fn len(&self) -> io::Result<u64> {
        Ok(self.0.now.lock().unwrap().len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let offset = usize::try_from(offset).unwrap();
        let bytes = self.0.now.lock().unwrap();
        let found = bytes.get(offset..offset + out.len()).ok_or(io::ErrorKind::UnexpectedEof)?;
        out.copy_from_slice(found);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.spend()?;
        self.0.now.lock().unwrap().resize(usize::try_from(len).unwrap(), 0);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        self.spend()?;
        let now = self.bytes();
        *self.0.synced.lock().unwrap() = now;
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.spend()?;
        let offset = usize::try_from(offset).unwrap();
        let mut bytes = self.0.now.lock().unwrap();
        let end = bytes.len().max(offset + data.len());
        bytes.resize(end, 0);
        bytes[offset..offset + data.len()].copy_from_slice(data);
        Ok(())
    }
}
