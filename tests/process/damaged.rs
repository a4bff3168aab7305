//! The failure that this prevents: a check reports a problem without naming it, or reports intact records.
//!
//! A file with every kind of record is created by commands, then some records are altered behind the store's back.
//! `check --json` must report exactly those.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use redb::{Key, ReadableDatabase, ReadableTable, TableDefinition};

use super::backup::{alter, event, ingest_offline};
use super::command::Directory;
use super::seed::Random;

pub(super) type Rows<K> = TableDefinition<'static, K, &'static [u8]>;

pub(super) const SPORTS: Rows<u16> = TableDefinition::new("sports");
pub(super) const BOOKS: Rows<(u8, u16)> = TableDefinition::new("books");
pub(super) const EVENTS: Rows<(u8, u16, u32)> = TableDefinition::new("events");
pub(super) const SCORES: Rows<(u8, u16, u32)> = TableDefinition::new("scores");
pub(super) const ODDS: Rows<(u8, u16, u32, u16, u32)> = TableDefinition::new("odds");
pub(super) const SOURCES: Rows<(u8, u16, u16)> = TableDefinition::new("sources");
pub(super) const KEYS: Rows<&str> = TableDefinition::new("keys");
pub(super) const USAGE: Rows<&str> = TableDefinition::new("usage");
pub(super) const FEEDERS: Rows<&str> = TableDefinition::new("feeders");
pub(super) const AUDIT: Rows<u64> = TableDefinition::new("audit");

const LIVE: u8 = 1;
const EVENTS_COUNT: usize = 12;

/// Table and name of a record, as a check reports them.
type Named = BTreeSet<(String, String)>;

/// A file with every kind of record that commands can create.
fn filled() -> Directory {
    let directory = Directory::new();
    let score = |number: usize| {
        format!(
            r#"{{"type":"score","sport":"mma","event":"e{number}","status":"live","home_score":0,"away_score":0,"periods":[],"updated_at":"2026-01-01T00:00:00Z"}}"#
        ) + "\n"
    };
    let lines: String = (0..EVENTS_COUNT).map(|number| event(number) + &score(number)).collect();
    for name in ["one", "two", "three", "four"] {
        directory.json(&format!("keys issue --sandbox --name {name}"));
        directory.json(&format!("feeds token {name}"));
    }
    let report = ingest_offline(&directory, &lines);
    assert_eq!(report["rejected"], 0, "{report}");
    assert_eq!(directory.json("check")["clean"], true);
    directory
}

/// What is read of every row.
pub(super) fn rows_of<K: Key + 'static, T>(
    path: &Path,
    table: Rows<K>,
    read: impl Fn(K::SelfType<'_>, &[u8]) -> T,
) -> Vec<T> {
    let db = redb::Database::open(path).expect("a file");
    let table = db.begin_read().expect("a transaction").open_table(table).expect("a table");
    let rows = table.range::<K::SelfType<'_>>(..).expect("rows").map(|row| row.expect("a row"));
    rows.map(|(key, row)| read(key.value(), row.value())).collect()
}

fn holds(row: &[u8], text: &str) -> bool {
    row.windows(text.len()).any(|part| part == text.as_bytes())
}

/// Flips a bit in some rows; returns the names of their keys.
fn spoil<K: Key + 'static>(
    path: &Path,
    table: Rows<K>,
    random: &mut Random,
    name: impl Fn(K::SelfType<'_>) -> Option<String>,
) -> BTreeSet<String> {
    let mut spoiled = BTreeSet::new();
    alter(path, |txn| {
        let mut table = txn.open_table(table).expect("a table");
        let rows: Vec<(Vec<u8>, Vec<u8>)> = table
            .range::<K::SelfType<'_>>(..)
            .expect("rows")
            .map(|row| row.expect("a row"))
            .map(|(key, row)| (K::as_bytes(&key.value()).as_ref().to_vec(), row.value().to_vec()))
            .collect();
        for (key, mut row) in rows {
            let Some(name) = name(K::from_bytes(&key)).filter(|_| random.below(3) == 0) else { continue };
            let at = usize::try_from(random.below(row.len() as u64)).expect("a short row");
            row[at] ^= 1 << random.below(8);
            table.insert(K::from_bytes(&key), &*row).expect("a row");
            spoiled.insert(name);
        }
    });
    spoiled
}

/// The records that a check of the file reports.
fn named(directory: &Directory) -> Named {
    let report = directory.run("check --json").document();
    let text = |problem: &serde_json::Value, name: &str| problem[name].as_str().expect("a text").to_owned();
    let problems = report["problems"].as_array().expect("a list");
    assert_eq!(
        (report["problem_count"].as_u64(), &report["integrity"]),
        (Some(problems.len() as u64), &"sound".into())
    );
    let named: Named = problems.iter().map(|problem| (text(problem, "table"), text(problem, "key"))).collect();
    assert_eq!(named.len(), problems.len(), "one is named twice: {report}");
    named
}

/// The meaning of the numbers in keys, read from the rows.
struct Numbers {
    mma: u16,
    events: Vec<(u32, String)>,
    books: Vec<(u16, &'static str)>,
}

impl Numbers {
    fn read(path: &Path) -> Numbers {
        let mma = rows_of(path, SPORTS, |number, row| holds(row, "mma").then_some(number)).into_iter().flatten().next();
        let id = |row: &[u8]| (0..EVENTS_COUNT).rev().map(|number| format!("e{number}")).find(|id| holds(row, id));
        let events = rows_of(path, EVENTS, |key, row| (key.2, id(row).expect("an id")));
        let book = |row: &[u8]| ["betmgm", "fanduel"].into_iter().find(|key| holds(row, key));
        let books = rows_of(path, BOOKS, |key, row| (key.0 == LIVE).then(|| Some((key.1, book(row)?)))?);
        Numbers { mma: mma.expect("a sport"), events, books: books.into_iter().flatten().collect() }
    }

    fn event(&self, (world, sport, number): (u8, u16, u32)) -> String {
        assert_eq!((world, sport), (LIVE, self.mma));
        let (_, id) = self.events.iter().find(|(own, _)| *own == number).expect("an event");
        format!("live mma event {id}")
    }

    fn book(&self, number: u16) -> String {
        let (_, key) = self.books.iter().find(|(own, _)| *own == number).expect("a bookmaker");
        format!("bookmaker {key}")
    }
}

#[test]
fn check_reports_exactly_the_damaged_records() {
    let mut random = Random::new();
    let directory = filled();
    let file = directory.file();
    let whole = fs::read(&file).expect("a file");
    let numbers = Numbers::read(&file);
    for _ in 0..4 {
        fs::write(&file, &whole).expect("a file");
        let mut expected = Named::new();
        let mut add = |table: &str, names: BTreeSet<String>| {
            expected.extend(names.into_iter().map(|name| (table.to_owned(), name)));
        };
        let odds = |key: (u8, u16, u32, u16, u32)| {
            format!("{} {} moneyline", numbers.event((key.0, key.1, key.2)), numbers.book(key.3))
        };
        add("odds", spoil(&file, ODDS, &mut random, |key| Some(odds(key))));
        add("scores", spoil(&file, SCORES, &mut random, |key| Some(numbers.event(key))));
        add("sources", spoil(&file, SOURCES, &mut random, |key| Some(format!("live mma {}", numbers.book(key.2)))));
        add("usage", spoil(&file, USAGE, &mut random, |id| Some(id.to_owned())));
        add("feeders", spoil(&file, FEEDERS, &mut random, |name| Some(name.to_owned())));
        add("audit", spoil(&file, AUDIT, &mut random, |sequence| Some(format!("entry {sequence}"))));
        assert!(!expected.is_empty());
        assert_eq!(named(&directory), expected);
    }
}

/// Records that depend on a damaged one cannot be served either, and are reported with it.
#[test]
fn check_reports_the_dependents_of_a_damaged_record() {
    let mut random = Random::new();
    let directory = filled();
    let file = directory.file();
    let numbers = Numbers::read(&file);
    let has_usage = rows_of(&file, USAGE, |id, _| id.to_owned());
    assert!(!has_usage.is_empty());
    let mut expected = Named::new();
    let mut events = BTreeSet::new();
    for name in spoil(&file, EVENTS, &mut random, |key| Some(key.2.to_string())) {
        // Its id is lost with it.
        events.insert(format!("live mma event number {name}"));
    }
    for event in events {
        expected.insert(("events".to_owned(), event.clone()));
        expected.insert(("scores".to_owned(), event.clone()));
        for (_, book) in &numbers.books {
            expected.insert(("odds".to_owned(), format!("{event} bookmaker {book} moneyline")));
        }
    }
    for id in spoil(&file, KEYS, &mut random, |id| Some(id.to_owned())) {
        expected.extend(has_usage.contains(&id).then(|| ("usage".to_owned(), id.clone())));
        expected.insert(("keys".to_owned(), id));
    }
    assert_eq!(named(&directory), expected);
}

/// Flips a bit wherever `text` occurs in the file, old pages included.
fn rot(path: &Path, text: &[u8]) {
    let mut bytes = fs::read(path).expect("a file");
    let places: Vec<usize> = (0..bytes.len() - text.len()).filter(|at| bytes[*at..].starts_with(text)).collect();
    assert!(!places.is_empty());
    for at in places {
        bytes[at] ^= 1;
    }
    fs::write(path, bytes).expect("a file");
}

/// Wherever a page is ruined, each command says in one line what to do, and leaves the file as it is.
#[test]
fn ruined_page_is_reported_in_one_line() {
    const PAGE: usize = 4096;
    let directory = filled();
    let file = directory.file();
    let sound = fs::read(&file).expect("a file");
    let pages: Vec<usize> = (PAGE..sound.len()).step_by(PAGE).filter(|at| sound[*at] != 0).collect();
    assert!(pages.len() > 20, "{}", pages.len());
    let mut unloaded = 0;
    for at in &pages {
        let mut ruined = sound.clone();
        // No kind of page has this number.
        ruined[*at] = 0;
        fs::write(&file, &ruined).expect("a file");
        let checked = directory.run("check");
        if checked.code == Some(0) {
            // Nothing is in it any more.
            continue;
        }
        let message = checked.complaint();
        assert!(message.contains("restore a backup") && !message.contains("run the check"), "page at {at}: {message}");
        unloaded += u64::from(checked.stdout.is_empty());
        let message = directory.run("keys list").failed();
        assert!(message.contains("restore a backup"), "page at {at}: {message}");
        assert_eq!(fs::read(&file).expect("a file"), ruined, "page at {at}");
    }
    assert!(unloaded > 0, "no page was ruined that everything depends on");
}

/// Damage below the rows is found when the file is opened: nothing of it is served or written, the check still reports
/// the damage, and readable rows are not lost.
#[test]
fn corrupt_file_is_rejected_and_readable_rows_can_be_saved() {
    let directory = filled();
    let file = directory.file();
    directory.json("keys issue --sandbox --name rotting");
    rot(&file, b"rotting");
    let rotten = fs::read(&file).expect("a file");
    for command in ["keys list", "serve --listen 127.0.0.1:0", "keys issue --sandbox --name five", "backup nowhere"] {
        let message = directory.run(command).failed();
        assert!(message.contains("damaged") && message.contains("restore a backup"), "{command}: {message}");
    }
    let done = directory.run("check --json");
    let report = done.document();
    assert_eq!((done.code, report["integrity"].as_str()), (Some(1), Some("broken")), "{done:?}");
    let problems = report["problems"].as_array().expect("a list");
    let is_named = |table: &&str| problems.iter().any(|problem| problem["table"] == **table);
    assert!(["keys", "audit"].iter().all(is_named), "{report}");
    assert!(done.stderr.contains("restore a backup"), "{done:?}");

    let done = directory.run("check --drop-damaged");
    assert_eq!(done.code, Some(1), "{done:?}");
    let saved = done.stderr.split("--force ").nth(1).and_then(|rest| rest.split('`').next());
    let saved = saved.unwrap_or_else(|| panic!("no path: {done:?}")).to_owned();
    assert_eq!(fs::read(&file).expect("a file"), rotten, "it is left as it is");

    let done = directory.run(&format!("restore --force {saved} --json"));
    assert_eq!((done.code, &done.document()["damaged"].as_u64().is_some_and(|count| count > 0)), (Some(0), &true));
    assert_eq!(directory.run("check --drop-damaged").code, Some(0), "its pages are sound again");
    let keys = directory.json("keys list");
    let names = keys.as_array().expect("a list").iter().map(|key| key["name"].as_str().expect("a name"));
    assert_eq!(names.collect::<Vec<_>>(), ["one", "two", "three", "four"]);
    directory.serve().stop();
}
