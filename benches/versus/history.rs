//! One side of `history.py`: changes of many records in a file of oddsbox, and what it takes to read them again.
//!
//! `history.py` runs it. The first argument is a directory, the second how often every record changes. The data directory
//! is made in there, the changes are written to `changes.csv`, and the measurements to standard output as one JSON
//! document. A directory that an earlier run has filled is only read.

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
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use oddsbox::clock::Clock;
use oddsbox::config::catalogue;
use oddsbox::model::{
    Contest, EventId, EventNews, EventStatus, Market, News, OddsNews, Outcome, Point, Price, SportId, Timestamp, World,
};
use oddsbox::store::{HistoryReader, LineRange, Store, StoreOptions};
use oddsbox::writer::{Writer, WriterOptions};

/// The allocator of the binary.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

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
/// From publication to publication.
const SECONDS_BETWEEN: u32 = 70;
/// The length of a part of a line.
const PART_S: u32 = 900;
/// How many lines and boards are read.
const LINES: u32 = 2_000;
const BOARDS: u32 = 41;

/// A record: the numbers of its event, bookmaker and market.
type Record = (u32, usize, usize);

fn main() {
    let mut arguments = std::env::args().skip(1);
    let directory = PathBuf::from(arguments.next().expect("a directory"));
    let rounds = arguments.next().and_then(|rounds| rounds.parse().ok()).expect("how often every record changes");
    let path = directory.join("data/oddsbox.redb");
    let is_written = path.exists();
    std::fs::create_dir_all(directory.join("data")).expect("a directory");
    // The last change is of now, so that a server that is started on the file goes on from there.
    let start_ms = Clock::system().now().unix_ms - i64::from(rounds * SHARES * SECONDS_BETWEEN) * 1000;
    let clock = if is_written { Clock::system() } else { Clock::manual(start_ms) };
    let catalogue = Arc::new(catalogue::builtin());
    let store = Store::open(&path, Arc::clone(&catalogue), StoreOptions::default()).expect("a file");
    let tennis = catalogue.find("tennis").expect("tennis");
    let mut writer = Writer::open(store, catalogue, clock.clone(), WriterOptions::default()).expect("a writer").writer;
    let mut seconds = 0.0;
    if !is_written {
        let changes = File::create(directory.join("changes.csv")).expect("a file");
        seconds = write(&mut writer, tennis, &clock, rounds, BufWriter::new(changes));
    }
    report(&writer.history(), tennis, rounds, seconds);
}

fn report(history: &HistoryReader, sport: SportId, rounds: u32, seconds: f64) {
    let head = history.head(World::Live).expect("a log");
    let bytes = head.bytes() + history.line_bytes(World::Live).expect("lines").total();
    let first = history.own_since(World::Live, sport).expect("a log").expect("a publication");
    // From then on all records are there.
    let first = first.plus_seconds(SHARES * SECONDS_BETWEEN);
    let last = history.last_state(World::Live, sport).expect("a state").last_tick().expect("a publication");
    let line = line(history, sport, rounds);
    let part = part(history, sport, (first, last));
    let hundred = hundred(history, sport, (first, last));
    let board = boards(history, sport, (first, last));
    println!(
        r#"{{"changes":{},"bytes":{bytes},"write_s":{seconds:.1},"line_us":{line:.1},"part_us":{part:.1},"hundred_ms":{hundred:.3},"board_ms":{board:.2}}}"#,
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
        .flat_map(|event| {
            (0..BOOKS.len()).flat_map(move |book| (0..MARKETS.len()).map(move |market| (event, book, market)))
        })
        .map(Quote::new)
        .collect();
    for publication in 0..rounds * SHARES {
        clock.advance(Duration::from_secs((SECONDS_BETWEEN - 40).into()));
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

/// The microseconds to read the changes of one record in a quarter of an hour.
fn part(history: &HistoryReader, sport: SportId, (first, last): (Timestamp, Timestamp)) -> f64 {
    let span = (last.seconds_since(first)).max(PART_S + 1) - PART_S;
    let read = |number: u32| {
        let (book, market) = (BOOKS[(number % 10) as usize], MARKETS[(number % 2) as usize]);
        let from = first.plus_seconds(scattered(number, span));
        let range = LineRange { from: Some(from), to: Some(from.plus_seconds(PART_S)) };
        let is_wanted = |of: &str, in_market: Market| (of, in_market) == (book, market);
        let event = id(scattered(number, EVENTS));
        let lines = history.lines_between(World::Live, sport, &event, (is_wanted, range));
        assert_eq!(lines.expect("lines").expect("an event").lines.len(), 1);
    };
    read(0);
    let began = Instant::now();
    (0..LINES).for_each(read);
    began.elapsed().as_secs_f64() * 1e6 / f64::from(LINES)
}

/// The milliseconds to read 100 records of 5 events as of moments.
fn hundred(history: &HistoryReader, sport: SportId, (first, last): (Timestamp, Timestamp)) -> f64 {
    let span = last.seconds_since(first).max(1);
    let began = Instant::now();
    let times = LINES / 20;
    for number in 0..times * 5 {
        let event = id(scattered(number, EVENTS));
        let moment = first.plus_seconds(scattered(number, span));
        let range = LineRange { from: Some(moment), to: Some(moment) };
        let lines = history.lines_between(World::Live, sport, &event, (|_: &str, _| true, range));
        assert_eq!(lines.expect("lines").expect("an event").lines.len(), BOOKS.len() * MARKETS.len());
    }
    began.elapsed().as_secs_f64() * 1e3 / f64::from(times)
}

/// The median of the milliseconds to read a sport as of a moment.
fn boards(history: &HistoryReader, sport: SportId, (first, last): (Timestamp, Timestamp)) -> f64 {
    let span = last.seconds_since(first).max(1);
    let mut times: Vec<f64> = (0..BOARDS)
        .map(|number| {
            let began = Instant::now();
            let moment = first.plus_seconds(scattered(number, span));
            let (_, state) = history.as_of(World::Live, sport, moment).expect("a state");
            assert_eq!(state.events().count(), EVENTS as usize);
            drop(state);
            began.elapsed().as_secs_f64() * 1e3
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
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
        commence: now.plus_seconds(7 * 86_400 + event),
        contest: Contest::Sides { home: format!("Home {event}").into(), away: format!("Away {event}").into() },
        status: EventStatus::Scheduled,
    })
}
