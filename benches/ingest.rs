//! The store with a million records in it: how long a batch of changed prices takes to commit, how long a start takes
//! to load, and how much room a record takes.
//!
//! `cargo bench --bench ingest`. The fill is not measured; it takes most of the run.

// A bench reports to the terminal, and cannot return an error.
#![allow(clippy::expect_used, clippy::print_stdout)]

use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use criterion::{Criterion, criterion_group, criterion_main};
use oddsbox::model::{
    BookId, Bookmaker, Catalogue, Contest, Event, EventId, EventOwner, EventStatus, Market, Outcome, Point, Price,
    Record, RecordId, Regions, Sport, SportId, SportKind, Timestamp, World,
};
use oddsbox::store::{Change, Store, StoreOptions};

/// The allocator of the binary.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const EVENTS: u32 = 16_000;
const BOOKS: u16 = 30;
const MARKETS: [Market; 2] = [Market::MONEYLINE, Market::SPREAD];
const RECORDS: u32 = EVENTS * BOOKS as u32 * 2;
const SPORTS: [&str; 4] = ["mma", "boxing", "tennis", "american_football"];

fn catalogue() -> Arc<Catalogue> {
    let sport = |key: &&str| Sport {
        key: (*key).into(),
        title: (*key).into(),
        group: (*key).into(),
        kind: SportKind::HeadToHead,
        hides_fields: false,
        v4: None,
    };
    let book = |number: u16| Bookmaker {
        key: format!("book{number:02}").into(),
        title: format!("Book {number}").into(),
        regions: Regions::ALL,
    };
    let catalogue = Catalogue::new(SPORTS.iter().map(sport).collect(), (0..BOOKS).map(book).collect());
    Arc::new(catalogue.expect("the catalogue is sound"))
}

struct Board {
    catalogue: Arc<Catalogue>,
    sports: Vec<SportId>,
    events: Vec<Arc<Event>>,
}

impl Board {
    fn new() -> Self {
        let catalogue = catalogue();
        let event = |number: u32| {
            let contest = Contest::Sides {
                home: format!("Home Player {number}").into(),
                away: format!("Away Player {number}").into(),
            };
            Arc::new(Event {
                id: EventId::new(&format!("evt_{number:08x}")).expect("it is an id"),
                competition: format!("Competition {}", number % 100).into(),
                competition_key: format!("competition_{}", number % 100).into(),
                commence: Timestamp::from_unix(1_790_000_000 + number % 5000 * 600),
                contest,
                status: EventStatus::Scheduled,
                changed: Timestamp::from_unix(1_789_000_000),
            })
        };
        Board { sports: catalogue.sport_ids().collect(), events: (0..EVENTS).map(event).collect(), catalogue }
    }

    fn sport(&self, event: u32) -> SportId {
        self.sports[event as usize % self.sports.len()]
    }

    fn put_event(&self, number: u32) -> Change {
        let event = Arc::clone(&self.events[number as usize]);
        Change::PutEvent { world: World::Live, sport: self.sport(number), event, owner: EventOwner::Operator }
    }

    fn put_odds(&self, number: u32, book: u16, market: Market, round: u32) -> Change {
        let event = &self.events[number as usize];
        let sport = self.sport(number);
        let price = |shift: u32| {
            let american = 100 + i64::from((number * 7 + u32::from(book) * 13 + round * 5 + shift) % 400);
            Price::from_american(if shift == 0 { -american } else { american }).expect("it is a price")
        };
        let point = |milli: i32| market.has_point().and_then(|has| has.then(|| Point::from_milli(milli)).flatten());
        let outcome = |name: Option<&Arc<str>>, shift, milli| Outcome {
            name: Arc::clone(name.expect("it has sides")).into(),
            price: price(shift),
            point: point(milli),
        };
        let record = Record {
            id: RecordId::new(&self.catalogue[sport].key, &event.id, &format!("book{book:02}"), market),
            bookmaker: BookId::from_number(book),
            market,
            last_update: Timestamp::from_unix(1_789_500_000 + round),
            bookmaker_update: None,
            outcomes: [outcome(event.home(), 0, -3500), outcome(event.away(), 9, 3500)].into(),
        };
        Change::PutOdds { world: World::Live, sport, event: event.id.clone(), record: Arc::new(record) }
    }

    fn all_of(&self, event: u32) -> impl Iterator<Item = Change> {
        let odds = (0..BOOKS).flat_map(move |book| MARKETS.map(|market| self.put_odds(event, book, market, 0)));
        std::iter::once(self.put_event(event)).chain(odds)
    }

    fn fill(&self, path: &Path) -> Store {
        let mut store = self.open(path);
        let began = Instant::now();
        for first in (0..EVENTS).step_by(200) {
            let changes: Vec<Change> = (first..first + 200).flat_map(|event| self.all_of(event)).collect();
            store.commit(&changes).expect("the batch is kept");
        }
        let bytes = store.file_bytes().expect("the file has a size");
        println!("filled with {RECORDS} records in {:.1?}, {bytes} bytes on disk", began.elapsed());
        store
    }

    fn open(&self, path: &Path) -> Store {
        Store::open(path, Arc::clone(&self.catalogue), StoreOptions::default()).expect("the file opens")
    }

    /// A thousand changed prices of a hundred events, as a feed's poll of a competition has them.
    fn poll(&self, round: u32) -> Vec<Change> {
        let first = round * 211 % (EVENTS - 100);
        (first..first + 100)
            .flat_map(|event| {
                (0..5).flat_map(move |book| MARKETS.map(|market| self.put_odds(event, book, market, round)))
            })
            .collect()
    }
}

fn store(criterion: &mut Criterion) {
    let dir = tempfile::tempdir().expect("there is a temporary directory");
    let path = dir.path().join("oddsbox.redb");
    let board = Board::new();
    let mut store = board.fill(&path);
    let mut group = criterion.benchmark_group("store");
    group.sample_size(10).measurement_time(Duration::from_secs(10)).warm_up_time(Duration::from_secs(1));

    let mut round = 1;
    group.bench_function("commit 1,000 changed records onto 960,000", |bencher| {
        bencher.iter_batched(
            || {
                round += 1;
                board.poll(round)
            },
            |changes| store.commit(&changes).expect("the batch is kept"),
            criterion::BatchSize::PerIteration,
        );
    });
    drop(store);
    let bytes = std::fs::metadata(&path).map_or(0, |file| file.len());
    println!("closed: {bytes} bytes, {} a record", bytes / u64::from(RECORDS));

    let began = Instant::now();
    let mut store = board.open(&path);
    println!("opened in {:.1?}", began.elapsed());
    group.bench_function("load 960,000 records", |bencher| {
        bencher.iter_custom(|times| {
            let mut total = Duration::ZERO;
            for _ in 0..times {
                let began = Instant::now();
                let loaded = black_box(store.load().expect("the file loads"));
                total += began.elapsed();
                assert_eq!(loaded.damage.count(), 0);
            }
            total
        });
    });
    let began = Instant::now();
    let swept = store.sweep_names().expect("the sweep runs");
    println!("sweep that found {swept} names: {:.1?}", began.elapsed());
    let began = Instant::now();
    let report = store.check().expect("the check runs");
    println!("check, clean: {}: {:.1?}", report.is_clean(), began.elapsed());
    group.finish();
}

criterion_group!(benches, store);
criterion_main!(benches);
