//! The bytes of one row of each kind, as they must stay while the version byte does. A failure here means that files
//! already written could no longer be read. `own_decoder` has golden bytes of every case of every version.

use std::fmt::Write;

use super::*;
use crate::keys::{RECENT_DAYS, RECENT_HOURS, RecentUse, Usage};
use crate::model::{
    Closed, EntryId, FeedBudget, FeederUse, Maintenance, Membership, Period, ReportedCredits, Score, ScoreStatus,
    Source,
};
use crate::store::AuditNote;
use crate::store::codec::{
    AuditRow, BookRow, BookStanding, BudgetRow, EventRow, FeederRow, KeyRow, MetaRow, NameRow, OddsRow, PollRow,
    RecentUseRow, ScoreRow, SourceRow, SportRow, UsageRow,
};
use crate::store::id_maps::NamesByNumber;
use crate::store::rows::NumberNames;
use crate::store::tables::{
    AUDIT, BOOKS, BUDGETS, EVENTS, FEEDERS, KEYS, META, NAMES, ODDS, POLLS, RECENT_USE, SCORES, SOURCES, SPORTS, USAGE,
};

/// Numbers as large as those of a file with tens of thousands of names.
struct Counting(u32);

impl NumberNames for Counting {
    fn number(&mut self, _: &Arc<str>) -> u32 {
        self.0 += 1;
        self.0
    }
}

fn names() -> Counting {
    Counting(30_000)
}

fn check(kind: &str, bytes: &[u8], pinned: &str) {
    let hex = bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    });
    println!("{kind:<12} {:>3} bytes  {hex}", bytes.len());
    assert_eq!(hex, pinned, "{kind}");
}

fn unhex(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

#[test]
fn bytes_of_odds_rows_are_pinned_and_few() {
    let key = (1, 4, 16_000, 12, 0);
    let row = |market, outcomes: &[Outcome]| {
        let mut record = (*record("mma", "a", 0, market, 5)).clone();
        record.outcomes = outcomes.into();
        ODDS.seal(&key, &OddsRow::of(&record, &mut names())).unwrap()
    };
    let two = [outcome("home", "-110", None), outcome("away", "150", None)];
    check("moneyline", &row(Market::MONEYLINE, &two), "0202fb31750a0bfb32750302853bb16a000000b2a3916a");
    let three = [two[0].clone(), two[1].clone(), outcome("Draw", "1200", None)];
    check("three-way", &row(Market::MONEYLINE, &three), "0203fb31750a0bfb32750302fb33750c01853bb16a0000008040db23");
    let spread = [outcome("home", "-110", Some(-3500)), outcome("away", "-115", Some(3500))];
    check("spread", &row(Market::SPREAD, &spread), "0202fb31750a0bfb32751417853bb16a000102fb571bfb581b00aadaaace");
    let mixed = [outcome("home", "-110", Some(44_500)), outcome("away", "10/11", None)];
    check(
        "mixed",
        &row(Market::TOTAL_POINTS, &mixed),
        "0202fb31750a0bfb32750a0b853bb16a03020002020201fca85b01000000bed62397",
    );
    let closed = Closed { bookmaker: BookId::from_number(12), market: Market::MONEYLINE, at: at(5) };
    check("closed", &ODDS.seal(&key, &OddsRow::closed(closed)).unwrap(), "0200853bb16a000000f07a8dfb");
}

#[test]
fn odds_row_of_version_1_is_read_and_the_bookmakers_own_time_takes_one_byte() {
    let key = (1, 4, 16_000, 12, 0);
    let first = ODDS.unseal(&key, &unhex("0102fb31750a0bfb32750302853bb16a000055ed6fc4")).unwrap();
    assert_eq!((first.outcomes.len(), first.last_update(), first.bookmaker_update()), (2, at(5), Ok(None)));
    let closed = ODDS.unseal(&key, &unhex("0100853bb16a00009ae2d3d8")).unwrap();
    assert_eq!((closed.outcomes.len(), closed.last_update(), closed.bookmaker_update()), (0, at(5), Ok(None)));

    let mut record = (*record("mma", "a", 0, Market::MONEYLINE, 5)).clone();
    record.outcomes = [outcome("home", "-110", None), outcome("away", "150", None)].into();
    record.bookmaker_update = Some(at(6));
    let row = ODDS.seal(&key, &OddsRow::of(&record, &mut names())).unwrap();
    check("later", &row, "0202fb31750a0bfb32750302853bb16a0000029ec29f84");
    assert_eq!(ODDS.unseal(&key, &row).unwrap().bookmaker_update(), Ok(Some(at(6))));
    let wrong = OddsRow { bookmaker_later_s: i64::MIN, ..OddsRow::of(&record, &mut names()) };
    assert!(wrong.bookmaker_update().is_err());
}

#[test]
fn event_row_of_version_1_belongs_to_nobody() {
    let names = NamesByNumber::default();
    let first = unhex("01026531fb3175fcbc3bb16a00fb3275fb337500fc803bb16a0670d054");
    let row = EVENTS.unseal(&(1, 2, 3), &first).unwrap();
    assert_eq!((&*row.id, row.commence, row.owner(&names)), ("e1", at(60).unix(), Ok(EventOwner::Unknown)));
    let written = EventRow::of(&event("e1", 60), &EventOwner::Feeder("token/a".into()), &mut self::names());
    assert_eq!(written.name_numbers().len(), 5, "the owner's name stays in the file with the event");
    assert!(written.owner(&names).is_err(), "an owner whose name is missing is damage");
}

#[test]
fn bytes_of_world_rows_are_pinned() {
    check("sport", &SPORTS.seal(&3, &SportRow { key: "mma".to_owned() }).unwrap(), "01036d6d61ea5fb829");
    check(
        "book",
        &BOOKS.seal(&(1, 3), &BookRow::of(&book("coral"), BookStanding::Declared)).unwrap(),
        "0105636f72616c05434f52414c0201f2788fb3",
    );
    let titled = BOOKS.seal(&(1, 3), &BookRow::of(&book("coral"), BookStanding::Titled)).unwrap();
    assert_eq!(titled[titled.len() - 5], 3, "the fourth standing");
    check("name", &NAMES.seal(&70_000, &NameRow("Zoë".to_owned())).unwrap(), "01045a6fc3ab1153e61a");
    check(
        "event",
        &EVENTS.seal(&(1, 2, 3), &EventRow::of(&event("e1", 60), &EventOwner::Operator, &mut names())).unwrap(),
        "03026531fb317501fb3275fcbc3bb16a00fb3375fb347500fc803bb16a01732bfbc0",
    );
    let tournament = Event {
        contest: Contest::Tournament { title: "The Open".into() },
        status: EventStatus::Cancelled,
        ..(*event("e2", 60)).clone()
    };
    let owner = EventOwner::Feeder("token/a".into());
    check(
        "tournament",
        &EVENTS.seal(&(1, 2, 3), &EventRow::of(&tournament, &owner, &mut names())).unwrap(),
        "03026532fb317501fb3275fcbc3bb16a01fb337503fc803bb16a02fb347573ddd7a1",
    );
    let score = Score {
        status: ScoreStatus::Final,
        points: Some((2, -1)),
        periods: [Period { number: 1, home: 10, away: 9 }, Period { number: 2, home: 9, away: 300 }].into(),
        winner: Some("home".into()),
        updated: at(7),
    };
    check(
        "score",
        &SCORES.seal(&(1, 2, 3), &ScoreRow::of(&score, &mut names())).unwrap(),
        "0102010401020114120212fb580201fb3175fc873bb16a5b046705",
    );
    let source = Source { last_read: at(5), latency_ms: 320, empty_since: Some(at(6)) };
    check(
        "source",
        &SOURCES.seal(&(1, 2, 3), &SourceRow::of(&source)).unwrap(),
        "01fc853bb16afb400101fc863bb16ae6d4d45a",
    );
    let scope = PollRow::Scope { sport: 3, stale_after_s: 180, books: vec![0, 300] };
    check("poll", &POLLS.seal(&(1, "pull/mma", ""), &scope).unwrap(), "020003b40200fb2c01328027c8");
    let polled = PollRow::Event { records: vec![(0, 1), (300, 2)] };
    check("polled event", &POLLS.seal(&(1, "pull/mma", "e1"), &polled).unwrap(), "0201020001fb2c0102b6e72548");
}

#[test]
fn bytes_of_administrative_rows_are_pinned() {
    let mut record = (*key("k")).clone();
    record.retired = [Retired { hash: SecretHash([9; 32]), until: at(3) }].into();
    record.limits.per_month = Some(5_000_000_000);
    check(
        "key",
        &KEYS.seal(&record.id.as_str(), &KeyRow::of(&record)).unwrap(),
        "0301016b0106636f6d626174fb580201fc40420f0001fd00f2052a01000000fc813bb16a01fc893bb16a0103616461000707070707070707070707070707070707070707070707070707070707070707047778797a010909090909090909090909090909090909090909090909090909090909090909fc833bb16a00010a04737475760101fc843bb16a98ab538d",
    );
    let usage = Usage { day: 20_717, day_used: 999, month: 680, month_used: 70_000 };
    check(
        "usage",
        &USAGE.seal(&record.id.as_str(), &UsageRow::of(usage, Some(at(2)))).unwrap(),
        "01fbed50fbe703fba802fc7011010001fc823bb16a4e79708d",
    );
    let recent = RecentUse { last_hour: 497_229, hours: [300; RECENT_HOURS], days: [70_000; RECENT_DAYS] };
    check(
        "recent use",
        &RECENT_USE.seal(&record.id.as_str(), &RecentUseRow::of(&recent)).unwrap(),
        "01fc4d96070018fb2c01fb2c01fb2c01fb2c01fb2c01fb2c01fb2c01fb2c01fb2c01fb2c01fb2c01fb2c01fb2c01fb2c01fb2c01fb2c01fb2c01fb2c01fb2c01fb2c01fb2c01fb2c01fb2c01fb2c011ffc70110100fc70110100fc70110100fc70110100fc70110100fc70110100fc70110100fc70110100fc70110100fc70110100fc70110100fc70110100fc70110100fc70110100fc70110100fc70110100fc70110100fc70110100fc70110100fc70110100fc70110100fc70110100fc70110100fc70110100fc70110100fc70110100fc70110100fc70110100fc70110100fc70110100fc70110100ee559be4",
    );
    check(
        "feeder",
        &FEEDERS.seal(&"scraper", &FeederRow::of(&feeder())).unwrap(),
        "0201fc813bb16a01fc823bb16a0707070707070707070707070707070707070707070707070707070707070707047778797a010909090909090909090909090909090909090909090909090909090909090909fc833bb16ad070729b",
    );
    let reported = ReportedCredits { left: 480, at: at(4) };
    let (reported, polled) = (Some(reported), Some(at(5)));
    let budget = FeedBudget { day: 20_772, spent: 300, reported, polled, account: 70_000, scope: 80_000 };
    check(
        "budget",
        &BUDGETS.seal(&"us", &BudgetRow::of(budget)).unwrap(),
        "01fb2451fb2c0101fbe001fc843bb16a01fc853bb16afc70110100fc803801003cc3db2b",
    );
    let note = AuditNote {
        at: at(1),
        who: "ada".into(),
        action: "key.revoke".into(),
        subject: record.id.as_str().into(),
        detail: "leaked".into(),
    };
    check(
        "audit",
        &AUDIT.seal(&1, &AuditRow::of(&note)).unwrap(),
        "01fc813bb16a036164610a6b65792e7265766f6b65106b65795f30303030303030303030306b066c65616b6564570c30d4",
    );
    let counters = MetaRow::Counters { next_name: 70_000, next_event: 16_000, next_audit: 5 };
    check("counters", &META.seal(&"counters", &counters).unwrap(), "0100fc70110100fb803e05847b8911");
    let maintenance = MetaRow::of_maintenance(Maintenance { since: at(1), until: Some(at(2)) });
    check("maintenance", &META.seal(&"maintenance", &maintenance).unwrap(), "0101fc813bb16a01fc823bb16aeda10b31");
    let used = FeederUse {
        day: 20_772,
        bookmakers_today: 1,
        bookmakers: 300,
        events_today: 4,
        events: 9,
        ..FeederUse::default()
    };
    check(
        "feeder use",
        &META.seal(&"use/live/token/a", &MetaRow::of_use(used)).unwrap(),
        "0104fb245101fb2c01040000ba44d40b",
    );
    let applied = EntryId { ms: 1_794_657_600_000, number: 3 };
    let membership = MetaRow::of_membership(Membership { cluster: 7, epoch: 1, file: 4, applied, fence: 9 });
    check("membership", &META.seal(&"membership", &membership).unwrap(), "0108070104fd00c2edd9a1010000030907ae0508");
    check("simulated", &META.seal(&"simulated", &MetaRow::Simulated).unwrap(), "010262dbf65f");
}

/// A key as versions 1 and 2 of its row have it.
fn key_before_self_service() -> KeyRecord {
    let mut record = (*key("k")).clone();
    record.retired = [Retired { hash: SecretHash([9; 32]), until: at(3) }].into();
    record.limits.per_month = Some(5_000_000_000);
    KeyRecord { replaced_last_four: Box::default(), self_service: false, self_rotated: None, ..record }
}

#[test]
fn key_row_of_version_2_has_no_self_service() {
    let row = "0201016b0106636f6d626174fb580201fc40420f0001fd00f2052a01000000fc813bb16a01fc893bb16a0103616461000707070707070707070707070707070707070707070707070707070707070707047778797a010909090909090909090909090909090909090909090909090909090909090909fc833bb16a00010af0465539";
    let bytes: Vec<u8> =
        (0..row.len()).step_by(2).map(|at| u8::from_str_radix(&row[at..at + 2], 16).unwrap()).collect();
    let record = key_before_self_service();
    let id = record.id.as_str();
    assert_eq!(KEYS.unseal(&id, &bytes).unwrap().key(id).unwrap(), record);
}

#[test]
fn key_row_of_version_1_has_the_default_limit_of_streams() {
    let row = "0101016b0106636f6d626174fb580201fc40420f0001fd00f2052a01000000fc813bb16a01fc893bb16a0103616461000707070707070707070707070707070707070707070707070707070707070707047778797a010909090909090909090909090909090909090909090909090909090909090909fc833bb16a00e4a71ebf";
    let bytes: Vec<u8> =
        (0..row.len()).step_by(2).map(|at| u8::from_str_radix(&row[at..at + 2], 16).unwrap()).collect();
    let record = key_before_self_service();
    assert_eq!(record.limits.streams, 10);
    let id = record.id.as_str();
    assert_eq!(KEYS.unseal(&id, &bytes).unwrap().key(id).unwrap(), record);
}

#[test]
fn feeder_row_of_version_1_is_read_without_rotated_tokens() {
    let row =
        "0101fc813bb16a01fc823bb16a0707070707070707070707070707070707070707070707070707070707070707047778797a36d25956";
    let bytes: Vec<u8> =
        (0..row.len()).step_by(2).map(|at| u8::from_str_radix(&row[at..at + 2], 16).unwrap()).collect();
    let read = FEEDERS.unseal(&"scraper", &bytes).unwrap().feeder("scraper").unwrap();
    assert_eq!(read, Feeder { retired: Box::default(), ..feeder() });
}
