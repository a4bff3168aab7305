//! The failure that this prevents: one disk error stops reads, or stops writes permanently, or leaves file and memory
//! inconsistent.
//!
//! The n-th disk operation fails, for each n until none is left: once, or from there on until the disk is repaired.
//! Failures are reported, acknowledged operations are present after a restart, and failed ones are not.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

use oddsbox::clock::Clock;
use oddsbox::keys::{BURST_MAX, IssueError, KeyChange, KeyId, KeyKind, Limits, NewKey, Usage};
use oddsbox::model::{
    Bookmaker, Contest, EventId, EventNews, EventStatus, FeedBudget, Maintenance, Market, News, OddsNews, Outcome,
    Price, Region, Regions, SportId, Timestamp, World,
};
use oddsbox::store::Change;
use oddsbox::writer::{FeedCharge, FeederError, Issued, KeyError, Poll, PollScope, Sender, WriteError, Writer};

use super::disk::{Disk, Trouble};
use super::writer_run::{NOON_MS, news, open_writer, the_catalogue};
use crate::process::seed::{Random, short_or_long};

/// A disk with a few events, prices and a key.
fn filled(clock: &Clock) -> (Vec<u8>, String, String) {
    let mut random = Random::with_seed(7);
    let disk = Disk::new(Vec::new());
    let mut writer = open_writer(disk.open().expect("a disk that opens"), clock);
    for world in World::ALL {
        writer.ingest(world, some_news(&mut random, clock), true).expect("a commit");
    }
    poll(&mut writer, clock, &["betmgm", "unibet"], 300).expect("a poll");
    let issued = issue(&mut writer).expect("a key");
    let issued = writer.rotate_key(issued.key.id().as_str(), 3_600, "test").expect("a rotation");
    writer.issue_token("old", World::Live, "test").expect("a token");
    push(&mut writer, "first", &["before"], &[]).expect("a push");
    writer.flush().expect("a flush");
    drop(writer);
    (disk.bytes(), issued.key.id().as_str().to_owned(), issued.secret.expose().to_owned())
}

fn some_news(random: &mut Random, clock: &Clock) -> Vec<News> {
    let now = clock.now().timestamp();
    (0..30).map(|_| news(random, now)).collect()
}

fn issue(writer: &mut Writer) -> Result<Issued, KeyError> {
    let limits = Limits { burst_per_minute: BURST_MAX, per_day: Some(500), per_month: None, streams: 10 };
    let name = "errors".into();
    let new = NewKey {
        kind: KeyKind::Sandbox,
        name,
        groups: Vec::new(),
        limits,
        expires: None,
        approved_by: None,
        self_service: false,
    };
    writer.issue_key(new, "test")
}

fn announcement(sport: SportId, id: EventId) -> EventNews {
    EventNews {
        sport,
        id,
        competition: "cup".into(),
        competition_key: None,
        competition_title: None,
        commence: Timestamp::from_unix_ms(NOON_MS).plus_seconds(24 * 3600),
        contest: Contest::Sides { home: "home".into(), away: "away".into() },
        status: EventStatus::Scheduled,
    }
}

/// A complete poll of one event, with a price of each bookmaker.
fn poll(writer: &mut Writer, clock: &Clock, books: &[&str], stale_after_s: u32) -> Result<(), WriteError> {
    let sport = the_catalogue().find("tennis").expect("tennis");
    let event = EventId::new("polled").expect("an id");
    let mut news = vec![News::Event(announcement(sport, event.clone()))];
    news.extend(books.iter().map(|book| {
        let outcome =
            |name: &str| Outcome { name: name.into(), price: Price::from_american(150).expect("a price"), point: None };
        News::Odds(OddsNews {
            sport,
            event: event.clone(),
            bookmaker: (*book).into(),
            market: Market::MONEYLINE.into(),
            last_update: Timestamp::from_unix_ms(NOON_MS),
            bookmaker_update: None,
            outcomes: [outcome("home"), outcome("away")].into(),
        })
    }));
    let scope = PollScope { world: World::Live, feed: "feed".into(), key: "tennis".into() };
    let (at, has_more, budget) = (clock.now().timestamp(), false, None);
    let poll = Poll { scope, part: None, sport, news, at, latency_ms: 0, stale_after_s, has_more, budget };
    writer.poll(poll).map(|report| assert_eq!(report.news.rejected(), 0))
}

/// A feeder declares a bookmaker, announces events and removes others. Events removed before stay removed.
fn push(writer: &mut Writer, book: &str, announced: &[&str], removed: &[&str]) -> Result<(), WriteError> {
    let sport = the_catalogue().find("tennis").expect("tennis");
    let id = |id: &str| EventId::new(id).expect("an id");
    let book = Bookmaker { key: book.into(), title: "Fed".into(), regions: Regions::only(Region::Uk) };
    let mut news = vec![News::Bookmaker(book)];
    news.extend(announced.iter().map(|event| News::Event(announcement(sport, id(event)))));
    news.extend(removed.iter().map(|event| News::Remove { sport, event: id(event) }));
    let sender = Sender { name: "token/old".into(), removes_any: false };
    writer.ingest_charged(World::Live, news, true, None, Some(sender)).map(|_| ())
}

/// The operations of a writer to try while the disk fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Asked {
    Ingest,
    /// A feeder adds events, and removes some that it announced before.
    Push,
    /// Closes a price.
    Poll,
    /// Writes nothing but the scope.
    PollAgain,
    EndPolls,
    Issue,
    Rotate,
    UndoRotation,
    Revoke,
    /// With its usage reset.
    Set,
    Lease,
    IssueToken,
    RevokeToken,
    Maintain,
    Simulate,
    /// Stores the credits that a feed has spent.
    Spend,
    Audit,
    Flush,
}

const ASKED: [Asked; 18] = [
    Asked::Ingest,
    Asked::Push,
    Asked::Poll,
    Asked::PollAgain,
    Asked::EndPolls,
    Asked::Issue,
    Asked::Rotate,
    Asked::UndoRotation,
    Asked::Revoke,
    Asked::Set,
    Asked::Lease,
    Asked::IssueToken,
    Asked::RevokeToken,
    Asked::Maintain,
    Asked::Simulate,
    Asked::Spend,
    Asked::Audit,
    Asked::Flush,
];

/// The operation here that makes a change; `None` if no operation does: then the unit tests of the store and the
/// writer, which have a batch of every change, cover it. A new change does not compile until it is listed.
const fn made_by(change: &Change) -> Option<Asked> {
    match change {
        Change::PutBookmaker { .. }
        | Change::PutEvent { .. }
        | Change::RemoveEvent { .. }
        | Change::PutScore { .. }
        | Change::PutOdds { .. }
        | Change::PutCompetition { .. }
        | Change::PutMarket { .. }
        | Change::Log { .. } => Some(Asked::Ingest),
        Change::PutSource { .. } => Some(Asked::Flush),
        Change::CloseOdds { .. } | Change::PutPolled { .. } => Some(Asked::Poll),
        Change::PutPoll { .. } => Some(Asked::PollAgain),
        Change::RemovePoll { .. } => Some(Asked::EndPolls),
        Change::PutKey(_) => Some(Asked::Issue),
        Change::PutUsage { .. } => Some(Asked::Lease),
        Change::PutFeeder(_) => Some(Asked::IssueToken),
        Change::SetMaintenance(_) => Some(Asked::Maintain),
        Change::SetSimulated(_) => Some(Asked::Simulate),
        Change::PutFeederUse { .. } => Some(Asked::Push),
        Change::PutFeedBudget { .. } => Some(Asked::Spend),
        Change::Audit(_) => Some(Asked::Audit),
        // When a file is opened; when a source is retired; in upkeep; to undo what was never in force.
        Change::RemoveBookmaker { .. }
        | Change::SetMembership(_)
        | Change::PutRecentUse { .. }
        | Change::RemoveSource { .. }
        | Change::RemoveCompetition { .. }
        | Change::RemoveMarket { .. }
        | Change::RemoveKey(_)
        | Change::RemoveFeedBudget { .. }
        | Change::RevertLog { .. }
        | Change::ClearLog { .. }
        | Change::RenewEpochs(_) => None,
    }
}

fn ask(asked: Asked, writer: &mut Writer, clock: &Clock, id: &str) -> Result<(), WriteError> {
    let mended = |error: KeyError| match error {
        KeyError::Write(error) => error,
        other => panic!("{other}"),
    };
    let fed = |error: FeederError| match error {
        FeederError::Write(error) => error,
        other => panic!("{other}"),
    };
    match asked {
        Asked::Ingest => {
            let mut random = Random::with_seed(8);
            let regions = Regions::only(Region::Uk);
            let declared = Bookmaker { key: "declared".into(), title: "Declared".into(), regions };
            let news = [vec![News::Bookmaker(declared)], some_news(&mut random, clock)].concat();
            writer.ingest(World::Live, news, true).map(|_| ())
        }
        Asked::Push => push(writer, "fed", &["after"], &["before"]),
        Asked::Poll => poll(writer, clock, &["betmgm"], 300),
        Asked::PollAgain => poll(writer, clock, &["betmgm", "unibet"], 999),
        Asked::EndPolls => writer.end_polls(World::Live, "feed", &[]).map(|_| ()),
        Asked::Set => {
            let change = KeyChange { reset_usage: true, ..KeyChange::default() };
            writer.set_key(id, change, "test").map(|_| ()).map_err(mended)
        }
        Asked::Lease => {
            let key = KeyId::new(id).expect("an id");
            let usage = Usage { day_used: 100, ..Usage::fresh(clock.now()) };
            writer.take_leases(&[(key, usage)])
        }
        // A retry after the token was stored fails because it exists.
        Asked::IssueToken => match writer.issue_token("new", World::Live, "test") {
            Err(FeederError::HasToken(_)) => Ok(()),
            other => other.map(|_| ()).map_err(fed),
        },
        Asked::RevokeToken => writer.revoke_token("old", "test").map(|_| ()).map_err(fed),
        Asked::Audit => writer.audit("test", "note", "subject", String::new()),
        Asked::Issue => issue(writer).map(|_| ()).map_err(mended),
        Asked::Rotate => writer.rotate_key(id, 0, "test").map(|_| ()).map_err(mended),
        // A retry after it was undone finds nothing to undo.
        Asked::UndoRotation => match writer.undo_rotation(id, "test") {
            Err(KeyError::Refused(IssueError::NothingToUndo(_))) => Ok(()),
            other => other.map(|_| ()).map_err(mended),
        },
        Asked::Revoke => writer.revoke_key(id, "test").map(|_| ()).map_err(mended),
        Asked::Maintain => {
            let since = clock.now().timestamp();
            writer.set_maintenance(Some(Maintenance { since, until: None }), "test")
        }
        Asked::Simulate => writer.mark_simulated("test"),
        Asked::Spend => {
            let budget = FeedBudget { day: 1, spent: 7, ..FeedBudget::default() };
            writer.put_feed_budget(FeedCharge { feed: "feed".into(), budget })
        }
        Asked::Flush => writer.flush(),
    }
}

/// What readers can see of a writer, as text for comparison.
fn served(writer: &Writer, clock: &Clock) -> String {
    let now = clock.now();
    let worlds = World::ALL.map(|world| {
        let board = writer.boards().load_full(world);
        let sports = the_catalogue().sport_ids().map(|sport| {
            let current = board.sport(sport).current();
            let nodes: Vec<_> = current
                .iter()
                .map(|node| {
                    (node.event().clone(), node.score().cloned(), node.records().to_vec(), node.closed().to_vec())
                })
                .collect();
            format!("{nodes:?}")
        });
        sports.collect::<Vec<_>>()
    });
    let keys: Vec<_> = writer.keyring().list().iter().map(|key| (key.record().clone(), key.record().hash.0)).collect();
    format!("{worlds:?} {keys:?} {:?}", writer.boards().condition().maintenance(now.timestamp()))
}

/// What a file contains that readers do not see, as text for comparison. A feeder that was never in force may remain in
/// it as revoked.
fn stored(bytes: Vec<u8>, id: &str) -> String {
    let loaded = Disk::new(bytes).open().expect("a disk that opens").load().expect("a file that loads");
    let worlds = World::ALL.map(|world| {
        let world = loaded.world(world);
        let books: Vec<_> = world.bookmakers.iter().map(|(id, book)| (id, Arc::clone(book))).collect();
        let events = world.sports.iter().flat_map(|sport| &sport.events);
        let owners: Vec<_> = events.map(|stored| (&stored.event.id, &stored.owner)).collect();
        format!("{books:?} {:?} {owners:?} {:?}", world.polls, world.feeder_uses)
    });
    let feeders: Vec<_> = loaded.feeders.iter().filter(|feeder| feeder.revoked.is_none()).map(|it| &it.name).collect();
    let usage: Vec<_> = loaded.keys.iter().filter(|(key, _)| key.id.as_str() == id).map(|(_, usage)| usage).collect();
    let (is_simulated, budgets) = (loaded.simulated_live, &loaded.feed_budgets);
    format!("{worlds:?} {feeders:?} {usage:?} {is_simulated} {budgets:?}")
}

#[derive(Default)]
struct Count {
    failed: u64,
    refused: u64,
}

/// The contents of the file before an operation, and after one without failures.
fn expected(base: &(Vec<u8>, String, String), asked: Asked) -> [String; 2] {
    let (bytes, id, _) = base;
    let clock = Clock::manual(NOON_MS + 5_000);
    let disk = Disk::new(bytes.clone());
    let mut writer = open_writer(disk.open().expect("a disk that opens"), &clock);
    ask(asked, &mut writer, &clock, id).expect("a sound disk takes it");
    drop(writer);
    [stored(bytes.clone(), id), stored(disk.bytes(), id)]
}

/// One operation on a failing disk, then a repaired disk, then a restart. Returns whether a failure occurred.
fn suffer(
    base: &(Vec<u8>, String, String),
    asked: Asked,
    expected: &[String; 2],
    (trouble, kind): (Trouble, ErrorKind),
    count: &mut Count,
) -> bool {
    let (bytes, id, secret) = base;
    let clock = Clock::manual(NOON_MS + 5_000);
    let disk = Disk::new(bytes.clone());
    let mut writer = open_writer(disk.open().expect("a disk that opens"), &clock);
    let before = served(&writer, &clock);
    disk.trouble(trouble, kind);
    let asked_again = format!("{asked:?} {trouble:?} {kind:?}");
    let result = ask(asked, &mut writer, &clock, id);
    let has_come = match trouble {
        Trouble::Once(at) | Trouble::From(at) => disk.operations() > at,
        Trouble::None => false,
    };
    count.failed += u64::from(has_come);
    // Reads continue in any case, and are unchanged if the operation failed.
    let during = served(&writer, &clock);
    if let Err(error) = &result {
        count.refused += 1;
        assert!(error.to_string().contains("nothing was changed"), "{asked_again}: {error}");
        assert!(writer.boards().condition().is_unwritable(), "{asked_again}: the condition is not reported");
        assert_eq!(during, before, "{asked_again}");
        assert!(writer.keyring().load().authenticate(Some(secret), clock.now()).is_ok(), "{asked_again}");
    }
    // The disk fails once more before it is repaired: a failed attempt to recover must lose nothing.
    for at in [3, 9, 14, 20] {
        disk.trouble(Trouble::Once(at), kind);
        clock.advance(Duration::from_secs(2));
        writer.tick();
        assert_eq!(served(&writer, &clock), during, "{asked_again}: a failed try to heal");
    }
    disk.trouble(Trouble::None, kind);
    // Without any request, the writer finds out by itself that the disk is repaired.
    clock.advance(Duration::from_secs(2));
    writer.tick();
    assert!(!writer.boards().condition().is_unwritable(), "{asked_again}: it does not heal");
    assert_eq!(served(&writer, &clock), during, "{asked_again}: healing changes nothing");
    drop(writer);
    // A crash instead of a graceful stop: only the file's contents remain.
    let mut again = open_writer(Disk::new(disk.bytes()).open().expect("a disk that opens"), &clock);
    assert_eq!(served(&again, &clock), during, "{asked_again}: file and memory tell different stories");
    let expected = &expected[usize::from(result.is_ok())];
    assert_eq!(stored(disk.bytes(), id), *expected, "{asked_again}: it was {result:?}");
    ask(asked, &mut again, &clock, id).expect("a mended disk takes it");
    let report = again.check(&Arc::default()).expect("a check");
    assert!(report.is_clean(), "{asked_again}: {report:?}");
    has_come
}

#[test]
fn any_failed_disk_operation_keeps_reads_working_and_writes_recover() {
    let clock = Clock::manual(NOON_MS);
    let base = filled(&clock);
    let mut count = Count::default();
    let mut seen = BTreeSet::new();
    for asked in ASKED {
        let expected = expected(&base, asked);
        // The short form skips some positions of lasting failures, but none of the transient one.
        for (make, kind, first, step) in [
            (Trouble::Once as fn(u64) -> Trouble, ErrorKind::Other, 0, 1),
            (Trouble::From, ErrorKind::StorageFull, 0, short_or_long(8, 1)),
            (Trouble::From, ErrorKind::Other, short_or_long(1, 0), short_or_long(8, 1)),
        ] {
            for at in (first..).step_by(step) {
                if !suffer(&base, asked, &expected, (make(at), kind), &mut count) {
                    break;
                }
                seen.insert(asked);
            }
        }
    }
    assert_eq!(seen.len(), ASKED.len(), "{seen:?}");
    // Lists each change that some operation makes.
    assert_eq!(made_by(&Change::SetMaintenance(None)), Some(Asked::Maintain));
    println!("{} operations of the disk failed, {} operations of the writer were refused", count.failed, count.refused);
}

/// Enough events with a price each to exceed the free space of a small file.
fn many_events(clock: &Clock) -> Vec<News> {
    let now = clock.now().timestamp();
    let sport = the_catalogue().find("tennis").expect("a sport");
    let event = |number: u32| {
        let id = EventId::new(&format!("event-{number:05}-{}", "x".repeat(60))).expect("an id");
        let contest = Contest::Sides { home: format!("Home {number}").into(), away: format!("Away {number}").into() };
        let (competition, status) = ("Open".into(), EventStatus::Scheduled);
        News::Event(EventNews {
            sport,
            id,
            competition,
            competition_key: None,
            competition_title: None,
            commence: now,
            contest,
            status,
        })
    };
    (0..20_000).map(event).collect()
}

/// The failure that this prevents: a probe of a few bytes fits into a file on a full disk, so the status alternated
/// between `ok` and `degraded` while every feed's write failed.
#[test]
fn full_disk_stays_unwritable_until_a_write_as_large_as_the_refused_one_fits() {
    let clock = Clock::manual(NOON_MS);
    let (bytes, id, _) = filled(&clock);
    let disk = Disk::new(bytes);
    let mut writer = open_writer(disk.open().expect("a disk that opens"), &clock);
    let is_unwritable = |writer: &Writer| writer.boards().condition().is_unwritable();
    disk.limit(Some(disk.bytes().len() as u64));
    for _ in 0..4 {
        writer.ingest(World::Live, many_events(&clock), true).expect_err("no room");
        for _ in 0..3 {
            assert!(is_unwritable(&writer));
            clock.advance(Duration::from_secs(2));
            writer.tick();
        }
        // A write that fits succeeds, and says nothing about those that do not.
        writer.rotate_key(&id, 0, "test").expect("a small write");
        assert!(is_unwritable(&writer));
    }
    disk.limit(None);
    clock.advance(Duration::from_secs(2));
    writer.tick();
    assert!(!is_unwritable(&writer), "it recovers without a write");
    writer.ingest(World::Live, many_events(&clock), true).expect("there is room");
    drop(writer);
    let mut again = open_writer(Disk::new(disk.bytes()).open().expect("a disk that opens"), &clock);
    let report = again.check(&Arc::default()).expect("a check");
    assert!(report.is_clean(), "{report:?}");
}

#[test]
fn write_as_large_as_the_refused_one_ends_the_unwritable_condition_at_once() {
    let clock = Clock::manual(NOON_MS);
    let disk = Disk::new(filled(&clock).0);
    let mut writer = open_writer(disk.open().expect("a disk that opens"), &clock);
    disk.limit(Some(disk.bytes().len() as u64));
    writer.ingest(World::Live, many_events(&clock), true).expect_err("no room");
    disk.limit(None);
    writer.ingest(World::Live, many_events(&clock), true).expect("there is room");
    assert!(!writer.boards().condition().is_unwritable());
}
