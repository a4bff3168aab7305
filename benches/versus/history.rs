//! One side of `history.py`: changes of many records in a file of oddsbox, and what it takes to read them again.
//!
//! `history.py` runs it. The first argument is a directory, the second how often every record changes. The changes are
//! written to `changes.csv` there, and the measurements to standard output as one JSON document.

// A bench reports to the terminal, and cannot return an error.
#![allow(
    clippy::expect_used,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap
)]

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
/// A record changes in every fourth publication.
const SHARES: u32 = 4;
/// How many lines and boards are read.
const LINES: u32 = 2_000;
const BOARDS: u32 = 20;

/// A record: the numbers of its event, bookmaker and market.
type Record = (u32, usize, usize);

fn main() {
    let mut arguments = std::env::args().skip(1).filter(|argument| !argument.starts_with("--"));
    let directory = arguments.next().expect("a directory");
    let rounds: u32 = arguments.next().and_then(|rounds| rounds.parse().ok()).expect("how often every record changes");
    let directory = Path::new(&directory);
    let path = directory.join("history.redb");
    let is_written = path.exists();
    let clock = Clock::manual(START_MS);
    let catalogue = Arc::new(catalogue::builtin());
    let store = Store::open(&path, Arc::clone(&catalogue), StoreOptions::default()).expect("a new file");
    let tennis = catalogue.find("tennis").expect("tennis");
    let mut writer = Writer::open(store, catalogue, clock.clone(), WriterOptions::default()).expect("a writer").writer;
    let seconds = if is_written {
        clock.advance(Duration::from_secs((rounds * SHARES * 70).into()));
        0.0
    } else {
        let changes = File::create(directory.join("changes.csv")).expect("a file");
        write(&mut writer, tennis, &clock, rounds, BufWriter::new(changes))
    };
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

/// Every record changes so often, a part of them in each publication, and upkeep goes on in between. Returns the seconds
/// that it took.
fn write(writer: &mut Writer, sport: SportId, clock: &Clock, rounds: u32, mut changes: impl Write) -> f64 {
    let began = Instant::now();
    let news: Vec<News> = (0..EVENTS).map(|event| announce(sport, event, clock.now().timestamp())).collect();
    writer.ingest(World::Live, news, true).expect("a commit");
    let mut quotes: Vec<Quote> = (0..EVENTS)
        .flat_map(|event| (0..BOOKS.len()).flat_map(move |book| (0..MARKETS.len()).map(move |market| (event, book, market))))
        .map(Quote::new)
        .collect();
    for publication in 0..rounds * SHARES {
        clock.advance(Duration::from_secs(30));
        let now = clock.now().timestamp();
        let mut news = Vec::new();
        for quote in quotes.iter_mut().filter(|quote| quote.share == publication % SHARES) {
            quote.step();
            news.push(quote.news(sport, now));
            writeln!(changes, "{}", quote.row(now)).expect("a line");
        }
        let report = writer.ingest(World::Live, news, false).expect("a commit");
        assert_eq!(report.rejected(), 0, "{report:?}");
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
/// The prices of a record: both sides, and the point of a total.
struct Quote {
    record: Record,
    share: u32,
    random: u64,
    /// The American odds of the first side are this far from even money.
    from_even: i64,
    /// What the bookmaker keeps, in the same unit.
    hold: i64,
    point_milli: i32,
}

impl Quote {
    fn new(record: Record) -> Self {
        let (event, book, market) = record;
        let seed = (u64::from(event) << 16 | (book as u64) << 8 | market as u64).wrapping_add(1);
        let mut quote = Quote { record, share: 0, random: seed, from_even: 0, hold: 0, point_milli: 0 };
        quote.share = quote.below(SHARES.into()) as u32;
        quote.from_even = quote.below(300) as i64 - 150;
        quote.hold = quote.below(25) as i64 + 5;
        quote.point_milli = 18_500 + 500 * quote.below(12) as i32;
        quote
    }

    /// A number below another (splitmix64).
    fn below(&mut self, limit: u64) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.random;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ mixed >> 31) % limit
    }

    /// Moves a little, in one direction or the other, never not at all; one in eight totals moves its point too.
    fn step(&mut self) {
        let by = self.below(10) as i64 + 1;
        let is_up = self.below(2) == 1 || self.from_even < -250;
        self.from_even += if is_up && self.from_even < 250 { by } else { -by };
        if self.below(4) == 0 {
            self.hold = self.below(25) as i64 + 5;
        }
        if self.below(8) == 0 {
            self.point_milli = 18_500 + 500 * self.below(12) as i32;
        }
    }

    /// The American odds of both sides.
    fn prices(&self) -> [i64; 2] {
        [self.from_even - self.hold, -self.from_even - self.hold]
            .map(|from_even| if from_even >= 0 { from_even + 100 } else { from_even - 100 })
    }

    fn point(&self) -> Option<Point> {
        let has_point = MARKETS[self.record.2].has_point().unwrap_or_default();
        has_point.then(|| Point::from_milli(self.point_milli).expect("a point"))
    }

    /// A row of the other's table.
    fn row(&self, now: Timestamp) -> String {
        let ((event, book, market), [home, away]) = (self.record, self.prices());
        format!("{event},{book},{market},{},{home},{away},{}", now.unix(), self.point().map_or(0, Point::milli))
    }

    fn news(&self, sport: SportId, now: Timestamp) -> News {
        let (event, book, market) = self.record;
        let point = self.point();
        let names = if point.is_some() {
            ["Over".to_owned(), "Under".to_owned()]
        } else {
            [format!("Home {event}"), format!("Away {event}")]
        };
        let [home, away] = self.prices();
        let outcome = |name: &str, american: i64| Outcome {
            name: name.into(),
            price: Price::from_american(american).expect("a price"),
            point,
        };
        News::Odds(OddsNews {
            sport,
            event: id(event),
            bookmaker: BOOKS[book].into(),
            market: MARKETS[market].into(),
            last_update: now,
            bookmaker_update: None,
            outcomes: [outcome(&names[0], home), outcome(&names[1], away)].into(),
        })
    }
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
