//! One side of `history.py`: changes of many records in a file of oddsbox, and what it takes to read them again.
//!
//! `history.py` runs it. The first argument is a directory, the second how often every record changes. The changes are
//! written to `changes.csv` there, and the measurements to standard output as one JSON document.

// A bench reports to the terminal, and cannot return an error.
#![allow(clippy::expect_used, clippy::print_stdout, clippy::cast_precision_loss)]

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use oddsbox::clock::Clock;
use oddsbox::config::catalogue;
use oddsbox::model::{
    Contest, EventId, EventNews, EventStatus, Market, News, OddsNews, Outcome, Point, Price, SportId, Timestamp, World,
};
use oddsbox::store::{HistoryReader, Store, StoreOptions};
use oddsbox::writer::{Writer, WriterOptions};

/// The allocator of the binary.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const START_MS: i64 = 1_794_657_600_000;
const EVENTS: u32 = 1_500;
const BOOKS: [&str; 10] = [
    "betmgm",
    "draftkings",
    "fanduel",
    "betrivers",
    "bovada",
    "unibet_uk",
    "williamhill",
    "pinnacle",
    "skybet",
    "paddypower",
];
const MARKETS: [Market; 2] = [Market::MONEYLINE, Market::TOTAL_POINTS];
/// How many lines and boards are read.
const LINES: u32 = 2_000;
const BOARDS: u32 = 20;

fn main() {
    let mut arguments = std::env::args().skip(1).filter(|argument| !argument.starts_with("--"));
    let directory = arguments.next().expect("a directory");
    let rounds = arguments.next().and_then(|rounds| rounds.parse().ok()).expect("how often every record changes");
    let directory = Path::new(&directory);
    let path = directory.join("history.redb");
    let clock = Clock::manual(START_MS);
    let catalogue = Arc::new(catalogue::builtin());
    let store = Store::open(&path, Arc::clone(&catalogue), StoreOptions::default()).expect("a new file");
    let tennis = catalogue.find("tennis").expect("tennis");
    let mut writer = Writer::open(store, catalogue, clock.clone(), WriterOptions::default()).expect("a writer").writer;
    let changes = File::create(directory.join("changes.csv")).expect("a file");
    let seconds = write(&mut writer, tennis, &clock, rounds, BufWriter::new(changes));
    let history = writer.history();
    let head = history.head(World::Live).expect("a log");
    let lines = history.line_bytes(World::Live).expect("lines");
    let bytes = head.bytes() + lines.total();
    let line = line(&history, tennis, rounds);
    let hundred = hundred(&history, tennis);
    let (first, again) = boards(&history, tennis, clock.now().timestamp());
    println!(
        r#"{{"changes":{},"bytes":{bytes},"write_s":{seconds:.1},"line_us":{line:.1},"hundred_ms":{hundred:.3},"board_first_ms":{first:.2},"board_again_ms":{again:.4}}}"#,
        head.changes - u64::from(EVENTS),
    );
}

/// Every record changes, some seconds apart, and upkeep goes on in between. Returns the seconds that it took.
fn write(writer: &mut Writer, sport: SportId, clock: &Clock, rounds: u32, mut changes: impl Write) -> f64 {
    let began = Instant::now();
    let news: Vec<News> = (0..EVENTS).map(|event| announce(sport, event, clock.now().timestamp())).collect();
    writer.ingest(World::Live, news, true).expect("a commit");
    for round in 0..rounds {
        clock.advance(Duration::from_secs(30));
        let now = clock.now().timestamp();
        let records = (0..EVENTS)
            .flat_map(|event| BOOKS.iter().flat_map(move |book| MARKETS.map(|market| (event, *book, market))));
        let news = records.map(|record| price(sport, record, round, now)).collect();
        let report = writer.ingest(World::Live, news, false).expect("a commit");
        assert_eq!(report.rejected(), 0, "{report:?}");
        for event in 0..EVENTS {
            for (book, key) in BOOKS.iter().enumerate() {
                let step = walk(event, key, round);
                for (market, point) in [(0, 0), (1, 22_500)] {
                    writeln!(changes, "{event},{book},{market},{},{},{},{point}", now.unix(), -110 - step, 100 + step)
                        .expect("a line");
                }
            }
        }
        for _ in 0..40 {
            clock.advance(Duration::from_secs(1));
            writer.tick();
        }
    }
    began.elapsed().as_secs_f64()
}

/// Which of so many, in an order that is not that of the file.
fn scattered(number: u32, of: u32) -> u32 {
    number.wrapping_mul(0x9e37_79b9) % of
}

fn id(event: u32) -> EventId {
    EventId::new(&format!("evt_{event:06}")).expect("an id")
}

/// The microseconds to read all changes of one record.
fn line(history: &HistoryReader, sport: SportId, rounds: u32) -> f64 {
    let read = |number: u32| {
        let (book, market) = (BOOKS[(number % 10) as usize], MARKETS[(number % 2) as usize]);
        let lines = history.lines(World::Live, sport, &id(scattered(number, EVENTS)), |of, in_market| {
            (of, in_market) == (book, market)
        });
        let lines = lines.expect("lines").expect("an event").lines;
        assert_eq!((lines.len(), lines[0].points.len()), (1, rounds as usize));
    };
    read(0);
    let began = Instant::now();
    (0..LINES).for_each(read);
    began.elapsed().as_secs_f64() * 1e6 / f64::from(LINES)
}

/// The milliseconds to read what 100 records of 5 events were at a moment.
fn hundred(history: &HistoryReader, sport: SportId) -> f64 {
    let began = Instant::now();
    let times = LINES / 20;
    for number in 0..times * 5 {
        let event = id(scattered(number, EVENTS));
        let lines = history.lines(World::Live, sport, &event, |_, _| true).expect("lines").expect("an event").lines;
        assert_eq!(lines.len(), BOOKS.len() * MARKETS.len());
    }
    began.elapsed().as_secs_f64() * 1e3 / f64::from(times)
}

/// The milliseconds to read a sport as of a moment for the first time, and to find the entry of one that is kept.
fn boards(history: &HistoryReader, sport: SportId, now: Timestamp) -> (f64, f64) {
    let span = now.unix() - u32::try_from(START_MS / 1000).expect("a time") - 120;
    let moment = |number: u32| Timestamp::from_unix(now.unix() - scattered(number, span));
    let began = Instant::now();
    for number in 0..BOARDS {
        let (_, state) = history.as_of(World::Live, sport, moment(number)).expect("a state");
        assert_eq!(state.events().count(), EVENTS as usize);
    }
    let first = began.elapsed().as_secs_f64() * 1e3 / f64::from(BOARDS);
    let began = Instant::now();
    for number in 0..LINES {
        history
            .entry_at(World::Live, sport, oddsbox::store::Entries::Ticks, moment(number % BOARDS))
            .expect("an entry");
    }
    (first, began.elapsed().as_secs_f64() * 1e3 / f64::from(LINES))
}
/// A price that moves a little, in one direction or the other, each time.
fn walk(event: u32, book: &str, round: u32) -> i64 {
    let book = u32::from(book.as_bytes()[2]);
    (0..=round)
        .map(|round| {
            let mixed = (event.wrapping_mul(0x9e37_79b9) ^ book.wrapping_mul(0x85eb_ca6b))
                .wrapping_add(round)
                .wrapping_mul(0xc2b2_ae35);
            let step = i64::from((mixed >> 13) % 20) - 10;
            // Never none: then nothing would have changed.
            if step >= 0 { step + 1 } else { step }
        })
        .sum::<i64>()
        .rem_euclid(90)
}

fn announce(sport: SportId, event: u32, now: Timestamp) -> News {
    News::Event(EventNews {
        sport,
        id: id(event),
        competition: "Open".into(),
        competition_key: None,
        competition_title: None,
        commence: now.plus_seconds(86_400 + event),
        contest: Contest::Sides { home: format!("Home {event}").into(), away: format!("Away {event}").into() },
        status: EventStatus::Scheduled,
    })
}

fn price(sport: SportId, (event, book, market): (u32, &str, Market), round: u32, now: Timestamp) -> News {
    let step = walk(event, book, round);
    let point = market.has_point().unwrap_or_default().then(|| Point::from_milli(22_500).expect("a point"));
    let outcome = |name: &str, american: i64| Outcome {
        name: name.into(),
        price: Price::from_american(american).expect("a price"),
        point,
    };
    let names = if point.is_some() {
        ["Over".to_owned(), "Under".to_owned()]
    } else {
        [format!("Home {event}"), format!("Away {event}")]
    };
    News::Odds(OddsNews {
        sport,
        event: id(event),
        bookmaker: book.into(),
        market: market.into(),
        last_update: now,
        bookmaker_update: None,
        outcomes: [outcome(&names[0], -110 - step), outcome(&names[1], 100 + step)].into(),
    })
}
