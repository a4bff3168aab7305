//! The failure that this prevents: an upstream with a wrong clock sent a price dated 2030, an older version stored it,
//! and every correct price since is late. And the opposite: a machine whose own clock is wrong mistakes correct times
//! for future ones and destroys them.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use oddsbox::clock::Clock;
use oddsbox::config::catalogue;
use oddsbox::ingest::wire;
use oddsbox::model::{
    BookId, Closed, Contest, Event, EventId, EventOwner, EventStatus, Market, Outcome, Price, Record, RecordId, Score,
    ScoreStatus, Source, SportId, Timestamp, World,
};
use oddsbox::store::{AuditNote, Change, LoadedSport, Store, StoreOptions};
use oddsbox::writer::{Writer, WriterOptions};

use crate::api::fixture::{moneyline_at, read, score};
use crate::harness::START_MS;

const OPTIONS: StoreOptions =
    StoreOptions { cache_bytes: 1 << 20, wait_for_lock: Duration::from_secs(5), ..StoreOptions::DEFAULT };
const HOUR_MS: i64 = 3_600_000;

fn start() -> Timestamp {
    Timestamp::from_unix_ms(START_MS)
}

fn far() -> Timestamp {
    Timestamp::from_unix_ms(START_MS + 4 * 365 * 24 * HOUR_MS)
}

fn tennis() -> SportId {
    catalogue::builtin().find("tennis").expect("a sport")
}

fn event(id: &str, changed: Timestamp) -> Event {
    Event {
        id: EventId::new(id).expect("an id"),
        competition: "Cup".into(),
        competition_key: "tennis_cup".into(),
        commence: start().plus_seconds(7200),
        contest: Contest::Sides { home: format!("Home {id}").into(), away: format!("Away {id}").into() },
        status: EventStatus::Live,
        changed,
    }
}

/// An event with a price, a closed market and a score, all of the same time.
fn whole_event(id: &str, books: [BookId; 2], at: Timestamp) -> Vec<Change> {
    let (world, sport) = (World::Live, tennis());
    let event = event(id, at);
    let id = event.id.clone();
    let outcome =
        |name: &str| Outcome { name: name.into(), price: Price::from_american(-110).expect("a price"), point: None };
    let record = Record {
        id: RecordId::new("tennis", &id, "betmgm", Market::MONEYLINE),
        bookmaker: books[0],
        market: Market::MONEYLINE,
        last_update: at,
        bookmaker_update: None,
        outcomes: [outcome("a"), outcome("b")].into(),
    };
    let closed = Closed { bookmaker: books[1], market: Market::MONEYLINE, at };
    let score =
        Score { status: ScoreStatus::Live, points: Some((1, 0)), periods: Box::default(), winner: None, updated: at };
    vec![
        Change::PutEvent { world, sport, event: Arc::new(event), owner: EventOwner::Unknown },
        Change::PutOdds { world, sport, event: id.clone(), record: Arc::new(record) },
        Change::CloseOdds { world, sport, event: id.clone(), closed },
        Change::PutScore { world, sport, event: id, score: Arc::new(score) },
    ]
}

fn open(path: &Path) -> Store {
    Store::open(path, Arc::new(catalogue::builtin()), OPTIONS).expect("a store")
}

/// A file as written by a version without the check: one event of 2030, one of an hour ago.
fn write(path: &Path) {
    let mut store = open(path);
    let books = ["betmgm", "fanduel"];
    let register = store.load().expect("a file").world(World::Live).bookmakers.clone();
    let books = books.map(|key| register.find(key).expect("a bookmaker"));
    let past = Timestamp::from_unix_ms(START_MS - HOUR_MS);
    let mut changes = [whole_event("ahead", books, far()), whole_event("past", books, past)].concat();
    let source = |last_read, empty_since| Source { last_read, latency_ms: 5, empty_since };
    let put = |bookmaker, source| Change::PutSource { world: World::Live, sport: tennis(), bookmaker, source };
    changes.push(put(books[0], source(far(), None)));
    changes.push(put(books[1], source(past, Some(far()))));
    let text = |text: &str| text.into();
    changes.push(Change::Audit(AuditNote {
        at: start(),
        who: text("test"),
        action: text("start"),
        subject: text("service"),
        detail: text(""),
    }));
    store.commit(&changes).expect("a commit");
}

/// The stored data of the sport.
fn stored(path: &Path) -> LoadedSport {
    let loaded = open(path).load().expect("a file");
    assert!(loaded.damage.is_empty());
    loaded.world(World::Live).sports[tennis().index()].clone()
}

/// All times of one event: changed, score, price, closed market.
fn times(sport: &LoadedSport, id: &str) -> Vec<Timestamp> {
    let event = sport.events.iter().find(|event| event.event.id.as_str() == id).expect("an event");
    let mut times = vec![event.event.changed, event.score.as_ref().expect("a score").updated];
    times.extend(event.records.iter().map(|record| record.last_update));
    times.extend(event.closed.iter().map(|mark| mark.at));
    times
}

fn writer(path: &Path, clock: &Clock) -> Writer {
    let options = WriterOptions::default();
    Writer::open(open(path), Arc::new(catalogue::builtin()), clock.clone(), options).expect("a writer").writer
}

fn rejected(writer: &mut Writer, lines: &str) -> u64 {
    let catalogue = catalogue::builtin();
    let news = lines.lines().map(|line| wire::read(line.as_bytes(), &catalogue).expect("a line").news).collect();
    writer.ingest(World::Live, news, true).expect("a commit").rejected()
}

/// Correct messages of a time: a price of each bookmaker, a score and a read.
fn news(event: &str, at: Timestamp) -> String {
    let at = &at.to_string();
    [
        moneyline_at("tennis", event, "betmgm", at, 120, -140),
        moneyline_at("tennis", event, "fanduel", at, 120, -140),
        score("tennis", event, "live", 2, 0, at),
        read("tennis", "betmgm", at, 5),
        read("tennis", "fanduel", at, 5),
    ]
    .concat()
}

#[test]
fn future_times_in_a_file_are_clamped_when_it_is_opened() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("oddsbox.redb");
    write(&path);
    let before = stored(&path);
    let clock = Clock::manual(START_MS + HOUR_MS);
    let opened = clock.now().timestamp();
    let mended = writer(&path, &clock);
    let board = mended.boards().load_full(World::Live);
    let node = board.sport(tennis()).published().index().get("ahead").expect("an event").clone();
    assert_eq!(node.records()[0].last_update, opened, "readers see it at once");
    drop((board, mended));

    // It is in the file before anything else is written.
    let after = stored(&path);
    assert_eq!(times(&after, "ahead"), [opened; 4]);
    assert_eq!(times(&after, "past"), times(&before, "past"), "good times stay");
    let sources: Vec<_> = after.sources.iter().map(|(_, source)| (source.last_read, source.empty_since)).collect();
    let past = Timestamp::from_unix_ms(START_MS - HOUR_MS);
    assert!(sources.contains(&(opened, None)) && sources.contains(&(past, Some(opened))), "{sources:?}");

    let mut mended = writer(&path, &clock);
    clock.advance(Duration::from_secs(1));
    for event in ["ahead", "past"] {
        assert_eq!(rejected(&mut mended, &news(event, clock.now().timestamp())), 0, "{event}");
    }
}

#[test]
fn clock_behind_the_audit_log_changes_no_stored_time_until_corrected() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("oddsbox.redb");
    write(&path);
    let before = stored(&path);
    // Booted in 1970, and again before the clock is set: each start leaves an entry in the audit log.
    for second in [0, 300] {
        let clock = Clock::manual(second * 1000);
        let mut wrong = writer(&path, &clock);
        wrong.audit("oddsbox", "start", "service", String::new()).expect("an entry");
        clock.advance(Duration::from_secs(2));
        wrong.tick();
        wrong.flush().expect("a flush");
        drop(wrong);
        let after = stored(&path);
        assert_eq!((&after.events, &after.sources), (&before.events, &before.sources), "started at {second}");
    }

    // The clock is corrected while the service runs.
    let clock = Clock::manual(0);
    let mut writer = writer(&path, &clock);
    clock.set_unix_ms(START_MS + HOUR_MS);
    clock.advance(Duration::from_secs(2));
    writer.tick();
    let now = clock.now().timestamp();
    let board = writer.boards().load_full(World::Live);
    let mut reads: Vec<_> = board.sport(tennis()).sources().iter().map(|state| state.source.last_read).collect();
    reads.sort_unstable();
    assert_eq!(reads, [Timestamp::from_unix_ms(START_MS - HOUR_MS), now], "good reads are back");
    assert_eq!(rejected(&mut writer, &news("ahead", now)), 0);
    drop(writer);
    assert_eq!(times(&stored(&path), "past"), times(&before, "past"));
}
