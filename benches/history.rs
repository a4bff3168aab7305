//! The log of changes: how many bytes a change takes, in its tables and in the file, over simulated days of every sport
//! that the simulator has; and what logging a publication costs beside committing the same prices.
//!
//! `cargo bench --bench history -- [DAYS]`; two days take some minutes, a week some more.

// A bench reports to the terminal, and cannot return an error.
#![allow(clippy::expect_used, clippy::print_stdout, clippy::cast_precision_loss)]

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use oddsbox::clock::Clock;
use oddsbox::config::catalogue;
use oddsbox::ingest::Simulator;
use oddsbox::model::{
    Contest, EventId, EventNews, EventStatus, Market, News, OddsNews, Outcome, Price, SportId, Timestamp, World,
};
use oddsbox::store::{Store, StoreOptions};
use oddsbox::writer::{Writer, WriterOptions};

/// The allocator of the binary.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const START_MS: i64 = 1_794_657_600_000;
const TICK: Duration = Duration::from_secs(30);
const TICKS_PER_DAY: u64 = 86_400 / 30;
const DAYS_DEFAULT: u64 = 2;

fn open(path: &Path, clock: &Clock) -> Writer {
    let catalogue = Arc::new(catalogue::builtin());
    let store = Store::open(path, Arc::clone(&catalogue), StoreOptions::default()).expect("a new file");
    Writer::open(store, catalogue, clock.clone(), WriterOptions::default()).expect("a writer").writer
}

fn main() {
    // `cargo bench` passes flags of its own.
    let days = std::env::args().skip(1).find_map(|argument| argument.parse().ok()).unwrap_or(DAYS_DEFAULT);
    let dir = tempfile::tempdir().expect("a directory");
    simulate(&dir.path().join("week.redb"), days);
    lines(&dir.path().join("lines-15.redb"), (2_000, 5, 3));
    lines(&dir.path().join("lines-400.redb"), (500, 20, 20));
    publish(&dir.path().join("publish.redb"));
}

/// Some days of the simulator, tick by tick.
fn simulate(path: &Path, days: u64) {
    let clock = Clock::manual(START_MS);
    let mut writer = open(path, &clock);
    let simulator = Simulator::new(1, &catalogue::builtin());
    let began = Instant::now();
    let mut last = clock.now().timestamp();
    writer.ingest(World::Live, simulator.opening(last), true).expect("a commit");
    let before = (writer.file_bytes().expect("a size"), writer.history().head(World::Live).expect("a log"));
    for tick in 0..days * TICKS_PER_DAY {
        clock.advance(TICK);
        let now = clock.now().timestamp();
        writer.ingest(World::Live, simulator.between(last, now), false).expect("a commit");
        writer.tick();
        last = now;
        if tick % TICKS_PER_DAY == TICKS_PER_DAY - 1 {
            report(&writer, before, tick / TICKS_PER_DAY + 1);
        }
    }
    println!("{:.0} s for {days} days", began.elapsed().as_secs_f64());
    let began = Instant::now();
    let sports: Vec<SportId> = catalogue::builtin().sport_ids().collect();
    let mut reads = 0_u32;
    for hour in 0..(days * 24).min(48) {
        let at = Timestamp::from_unix(last.unix() - u32::try_from(hour).expect("a few hours") * 3600 - 17);
        for sport in &sports {
            reads += u32::from(writer.history().as_of(World::Live, *sport, at).is_ok());
        }
    }
    println!(
        "{:.2} ms to read a sport as of a moment, {reads} of them",
        began.elapsed().as_secs_f64() * 1e3 / f64::from(reads)
    );
    let bytes = writer.file_bytes().expect("a size");
    drop(writer);
    let began = Instant::now();
    let writer = open(path, &clock);
    println!("{:.2} s to start on {} MB", began.elapsed().as_secs_f64(), bytes >> 20);
    drop(writer);
    println!("{} MB of the file are in use", used_bytes(path) >> 20);
}

/// What the pages in use take: redb doubles a file that is full.
fn used_bytes(path: &Path) -> u64 {
    let database = redb::Database::open(path).expect("the file");
    let stats = database.begin_write().expect("a transaction").stats().expect("its pages");
    stats.allocated_pages() * stats.page_size() as u64
}

fn report(writer: &Writer, (file, head): (u64, oddsbox::store::LogHead), day: u64) {
    let now = writer.history().head(World::Live).expect("a log");
    let size = writer.history().line_bytes(World::Live).expect("lines");
    let changes = (now.changes - head.changes) as f64;
    let file_bytes = writer.file_bytes().expect("a size");
    println!(
        "day {day}: {changes} changes in {} entries; bytes a change: {:.1} in the log, {:.1} in keyframes, {:.1} in lines, {:.1} in ends, {:.1} in the file ({} MB)",
        now.next - head.next,
        (now.entry_bytes - head.entry_bytes) as f64 / changes,
        (now.frame_bytes - head.frame_bytes) as f64 / changes,
        size.lines as f64 / changes,
        size.ends as f64 / changes,
        file_bytes.saturating_sub(file) as f64 / changes,
        file_bytes >> 20,
    );
}

/// Events of some records, each of which changes some times; what their lines take once the log has them all.
fn lines(path: &Path, (events, records, rounds): (u32, usize, u32)) {
    let clock = Clock::manual(START_MS);
    let mut writer = open(path, &clock);
    let tennis = catalogue::builtin().find("tennis").expect("tennis");
    let news: Vec<News> = (0..events).map(|event| announce(tennis, event, clock.now().timestamp())).collect();
    writer.ingest(World::Live, news, true).expect("a commit");
    for round in 0..rounds {
        // Not all at the same time.
        for part in 0..4 {
            clock.advance(Duration::from_secs(600));
            let now = clock.now().timestamp();
            let news: Vec<News> = (0..events)
                .filter(|event| event % 4 == part)
                .flat_map(|event| {
                    BOOKS.iter().flat_map(move |book| MARKETS.map(|market| (event, *book, market))).take(records)
                })
                .map(|record| price(tennis, record, round, now))
                .collect();
            writer.ingest(World::Live, news, false).expect("a commit");
            writer.tick();
        }
    }
    // A keyframe is due after some hours; lines follow it.
    for _ in 0..200 {
        clock.advance(Duration::from_secs(360));
        let now = clock.now().timestamp();
        // Something has to happen for a keyframe.
        writer
            .ingest(World::Live, vec![price(tennis, (0, BOOKS[0], MARKETS[0]), now.unix() / 360, now)], false)
            .expect("a commit");
        writer.tick();
    }
    let size = writer.history().line_bytes(World::Live).expect("lines");
    let changes = f64::from(events) * records as f64 * f64::from(rounds) + 200.0;
    println!(
        "events of {} changes: {:.1} bytes a change in lines, {:.1} in ends",
        records * rounds as usize,
        size.lines as f64 / changes,
        size.ends as f64 / changes,
    );
    let began = Instant::now();
    for event in 0..1_000 {
        let id = EventId::new(&format!("evt_{:06}", event % events)).expect("an id");
        let lines =
            writer.history().lines(World::Live, tennis, &id, |book, market| (book, market) == (BOOKS[0], MARKETS[0]));
        assert_eq!(lines.expect("lines").expect("an event").lines.len(), 1);
    }
    println!("{:.1} µs to read one line", began.elapsed().as_secs_f64() * 1e3);
}

const EVENTS: u32 = 250;
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
const ROUNDS: u32 = 60;

/// 5,000 prices change: what their commit takes, and what the publication takes that logs them.
fn publish(path: &Path) {
    let clock = Clock::manual(START_MS);
    let mut writer = open(path, &clock);
    let tennis = catalogue::builtin().find("tennis").expect("tennis");
    let news: Vec<News> = (0..EVENTS).map(|event| announce(tennis, event, clock.now().timestamp())).collect();
    writer.ingest(World::Live, news, true).expect("a commit");
    let (mut commits, mut publications, mut log) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        clock.advance(Duration::from_secs(20));
        // Upkeep is not part of a publication: it is done before.
        for _ in 0..9 {
            clock.advance(Duration::from_secs(1));
            writer.tick();
        }
        let now = clock.now().timestamp();
        let news: Vec<News> = (0..EVENTS)
            .flat_map(|event| BOOKS.iter().flat_map(move |book| MARKETS.map(|market| (event, *book, market))))
            .map(|(event, book, market)| price(tennis, (event, book, market), round, now))
            .collect();
        let began = Instant::now();
        let report = writer.ingest(World::Live, news, false).expect("a commit");
        commits.push(began.elapsed().as_secs_f64() * 1e3);
        assert_eq!(report.rejected(), 0, "{report:?}");
        let before = writer.history().head(World::Live).expect("a log");
        clock.advance(Duration::from_secs(1));
        let began = Instant::now();
        writer.tick();
        publications.push(began.elapsed().as_secs_f64() * 1e3);
        let after = writer.history().head(World::Live).expect("a log");
        log.push((after.entry_bytes - before.entry_bytes) as f64 / (after.changes - before.changes).max(1) as f64);
    }
    let median = |values: &mut Vec<f64>| {
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    let (commit, publication) = (median(&mut commits), median(&mut publications));
    println!(
        "5,000 changes: {commit:.1} ms to commit, {publication:.1} ms to log and publish, ratio {:.2}; {:.1} bytes a change",
        publication / commit,
        median(&mut log),
    );
}

/// A price that moves a little, in one direction or the other, each time.
fn walk(event: u32, book: &str, round: u32) -> i64 {
    let book = u32::from(book.as_bytes()[2]);
    (0..=round)
        .map(|round| {
            let mixed = (event.wrapping_mul(0x9e37_79b9) ^ book.wrapping_mul(0x85eb_ca6b))
                .wrapping_add(round)
                .wrapping_mul(0xc2b2_ae35);
            i64::from((mixed >> 13) % 21) - 10
        })
        .sum::<i64>()
        .rem_euclid(90)
}

fn announce(sport: SportId, event: u32, now: Timestamp) -> News {
    News::Event(EventNews {
        sport,
        id: EventId::new(&format!("evt_{event:06}")).expect("an id"),
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
    let point =
        market.has_point().unwrap_or_default().then(|| oddsbox::model::Point::from_milli(22_500).expect("a point"));
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
        event: EventId::new(&format!("evt_{event:06}")).expect("an id"),
        bookmaker: book.into(),
        market: market.into(),
        last_update: now,
        bookmaker_update: None,
        outcomes: [outcome(&names[0], -110 - step), outcome(&names[1], 100 + step)].into(),
    })
}
