//! Golden bytes in `golden.txt`: a line has the row, its version, its bytes in hexadecimal (without version and
//! checksum) and the row that they are, as it was named in that version. Lines are added and never changed, whatever
//! encodes the rows.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use redb::{Key, Value};

use super::sample::{Cases, Tape};
use super::wire::{decode, encode};
use super::*;
use crate::store::codec::{BookStanding, ENCODED_BYTES_MAX};
use crate::store::rows::StoredRow;
use crate::store::table_keys::TableKey;
use crate::store::tables::{IndexTable, Table, TableVisitor, for_each_table};

const GOLDEN: &str = include_str!("golden.txt");

/// The rows that are not in bincode: their own modules read their bytes.
const PLAIN: [&str; 4] = ["LogRow", "KeyframeRow", "EndsRow", "LineRow"];

/// The most bytes of a golden row that is suggested.
const SUGGESTED_BYTES_MAX: usize = 250;
const SUGGESTIONS_MAX: usize = 200;

struct Line {
    name: &'static str,
    version: u8,
    bytes: Vec<u8>,
    text: &'static str,
}

fn lines() -> impl Iterator<Item = Line> {
    GOLDEN.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).map(|line| {
        let [name, version, hex, text] = line.splitn(4, ' ').collect::<Vec<_>>().try_into().unwrap();
        let hex = hex.trim_matches('-');
        let byte = |at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
        Line { name, version: version.parse().unwrap(), bytes: (0..hex.len()).step_by(2).map(byte).collect(), text }
    })
}

fn lines_of(row: &RowVersion) -> impl Iterator<Item = Line> {
    lines().filter(|line| line.name == row.name && line.version == row.version)
}

#[test]
fn golden_bytes_are_the_rows_that_they_were() {
    for line in lines() {
        let row = ROWS.iter().find(|row| row.name == line.name && row.version == line.version).unwrap();
        assert_eq!((row.text)(&line.bytes).as_deref(), Some(line.text), "{} {}", line.name, line.version);
        assert!((row.compare)(row.version, &line.bytes));
    }
}

#[test]
fn golden_bytes_have_every_case_of_every_row() {
    let mut suggested = String::new();
    for row in ROWS {
        let noted: Cases = lines_of(row).flat_map(|line| (row.noted)(&line.bytes)).collect();
        let missing: Cases = (row.expected)().difference(&noted).cloned().collect();
        suggested += &suggest(row, missing);
    }
    assert!(suggested.is_empty(), "these lines have what golden.txt lacks:\n{suggested}");
}

/// Lines with all of these cases: of many random rows always that which has most of them.
fn suggest(row: &RowVersion, mut missing: Cases) -> String {
    let mut runner = TestRunner::deterministic();
    let mut lines = String::new();
    for _ in 0..SUGGESTIONS_MAX {
        if missing.is_empty() {
            break;
        }
        let rows = (0..300).filter_map(|_| {
            let tape = vec(any::<u8>(), 300).new_tree(&mut runner).unwrap().current();
            let bytes = (row.draw)(&mut Tape(&tape));
            let text = (row.text)(&bytes).unwrap();
            // How other characters are shown depends on the compiler's edition of Unicode.
            let is_plain = text.chars().all(|char| char.is_ascii_graphic() || " ë🏈".contains(char));
            let noted = (row.noted)(&bytes).intersection(&missing).count();
            (is_plain && !text.contains('\\') && bytes.len() <= SUGGESTED_BYTES_MAX).then_some((noted, bytes, text))
        });
        let most = rows.max_by_key(|(noted, bytes, _)| (*noted, usize::MAX - bytes.len()));
        let Some((1.., bytes, text)) = most else { continue };
        for noted in (row.noted)(&bytes) {
            missing.remove(&noted);
        }
        write!(lines, "{} {} ", row.name, row.version).unwrap();
        for byte in &bytes {
            write!(lines, "{byte:02x}").unwrap();
        }
        let none = if bytes.is_empty() { "-" } else { "" };
        writeln!(lines, "{none} {text}").unwrap();
    }
    assert!(missing.is_empty(), "{} {}: no row was drawn with {missing:?}", row.name, row.version);
    lines
}

#[test]
fn every_row_has_a_layout_of_every_version_that_is_read() {
    let layouts: Vec<(&str, u8)> = ROWS.iter().map(|row| (row.name, row.version)).collect();
    assert_eq!(layouts, versions_read());

    let listed: BTreeSet<String> = ROWS.iter().map(|row| row.name.to_owned()).collect();
    assert_eq!(implementations(), listed, "of BincodeRow");

    let mut in_tables = RowsOfTables::default();
    for_each_table(&mut in_tables).unwrap();
    let unlisted = in_tables.0.iter().filter(|name| !listed.contains(**name) && !PLAIN.contains(name));
    assert_eq!(unlisted.count(), 0, "{:?}", in_tables.0);
}

/// The types that implement `BincodeRow` in the source outside tests.
fn implementations() -> BTreeSet<String> {
    let sources = sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src/store"));
    let texts = sources.iter().map(|path| fs::read_to_string(path).unwrap());
    let names = texts.flat_map(|text| {
        let rest = text.split("BincodeRow for ").skip(1);
        rest.map(|rest| rest.split([' ', '{']).next().unwrap().to_owned()).collect::<Vec<_>>()
    });
    names.collect()
}

fn sources(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let entries = entries.filter(|path| path.file_name().is_some_and(|name| name != "tests"));
    entries.flat_map(|path| if path.is_dir() { sources(&path) } else { vec![path] }).collect()
}

/// The names of the types of rows.
#[derive(Default)]
struct RowsOfTables(BTreeSet<&'static str>);

impl TableVisitor for RowsOfTables {
    type Error = Infallible;

    fn table<K: TableKey, R: StoredRow<K>>(&mut self, _: &Table<K, R>) -> Result<(), Infallible> {
        self.0.extend(type_name::<R>().rsplit("::").next());
        Ok(())
    }

    fn index<K: Key + 'static, V: Value + 'static>(&mut self, _: &IndexTable<K, V>) -> Result<(), Infallible> {
        Ok(())
    }
}

/// Each byte replaced by those that say something about what follows, each end cut off, and a byte too many.
#[test]
fn golden_bytes_with_any_byte_changed_are_read_alike_or_refused_by_both() {
    let (mut read, mut refused) = (0, 0);
    for row in ROWS {
        for bytes in lines_of(row).map(|line| line.bytes) {
            let cut = (0..bytes.len()).map(|end| bytes[..end].to_vec());
            let changed = (0..bytes.len()).flat_map(|at| {
                let with = |byte| [&bytes[..at], &[byte], &bytes[at + 1..]].concat();
                [0, 1, 2, 3, 250, 251, 252, 253, 254, 255].map(with)
            });
            for bytes in cut.chain(changed).chain([[&*bytes, &[0]].concat()]) {
                *if (row.compare)(row.version, &bytes) { &mut read } else { &mut refused } += 1;
            }
        }
    }
    assert!(read > 1000 && refused > 1000, "{read} read, {refused} refused");
}

#[test]
fn lengths_at_the_borders_of_their_encoding() {
    for (len, encoded) in [(250, &[250_u8][..]), (251, &[251, 251, 0]), (65_532, &[251, 0xfc, 0xff])] {
        let bytes = [encoded, &vec![b'a'; len]].concat();
        assert_eq!(decode(&bytes), Some(NameRow("a".repeat(len))));
        assert!(compare::<NameRow, NameRow>(1, &bytes));
    }
    for (len, encoded) in [(250_u8, &[250_u8][..]), (251, &[251, 251, 0])] {
        let bytes = [&[7], encoded, &vec![9; len.into()], &[0]].concat();
        let row = RecentUseRow { last_hour: 7, hours: vec![9; len.into()], days: Vec::new() };
        assert_eq!(decode(&bytes), Some(row));
        assert!(compare::<RecentUseRow, RecentUseRow>(1, &bytes));
    }
}

/// They were a byte then, and are a number of variable length today.
#[test]
fn regions_of_format_3_are_read() {
    for regions in 0..16 {
        let (key, title, standing) = ("coral".to_owned(), "CORAL".to_owned(), BookStanding::Declared);
        let bytes = encode(&v1::BookRow { key, title, regions, standing });
        assert_eq!(decode::<BookRow>(&bytes).unwrap().regions, u16::from(regions));
        assert!(compare::<BookRow, v1::BookRow>(1, &bytes));
    }
}

/// An empty text takes most memory for its byte.
#[test]
fn row_of_the_most_memory_is_read() {
    let mut row = KeyRow::draw(&mut Tape(&[]));
    let rest = encode(&row).len();
    // The number of them takes two bytes more than none does.
    row.groups = vec![String::new(); ENCODED_BYTES_MAX - 1 - rest - 2];
    let bytes = encode(&row);
    assert_eq!(bytes.len(), ENCODED_BYTES_MAX - 1, "the longest that is written");
    assert!(compare::<KeyRow, KeyRow>(3, &bytes));
}
