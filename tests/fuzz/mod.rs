//! The fuzzer's corpus on stable Rust: each entry unchanged, and mutated at random some thousand times.
//!
//! The fuzzer itself is the crate next to this file: `cargo +nightly fuzz run --fuzz-dir tests/fuzz request`. Its
//! findings are added to the corpus permanently.
#![allow(clippy::expect_used, reason = "a test that cannot go on stops")]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "what was tried, and what broke")]

mod targets;

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;

use crate::process::seed::{Random, short_or_long};

/// Every entry of a target's corpus.
fn corpus(target: &str) -> Vec<Vec<u8>> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz/corpus").join(target);
    let entries = fs::read_dir(&directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    paths.iter().map(|path| fs::read(path).expect("an entry")).collect()
}

fn try_out(target: fn(&[u8]), name: &str, data: &[u8]) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| target(data))) {
        eprintln!("{name} breaks on {:?}", data.escape_ascii().to_string());
        resume_unwind(panic);
    }
}

/// Bytes that are significant to one of the parsers.
const TELLING: &[u8] = b"0123456789-+.eE/\",:{}[]%&=?\0\xff \n";

/// A few random mutations: bytes flipped, removed, inserted or doubled, or parts of another entry spliced in.
fn mutate(data: &[u8], other: &[u8], random: &mut Random) -> Vec<u8> {
    let mut data = data.to_vec();
    for _ in 0..=random.below(4) {
        let at = index(random, data.len() + 1);
        let end = (at + index(random, 9)).min(data.len());
        match random.below(6) {
            0 if at < data.len() => data[at] ^= 1 << random.below(8),
            1 if at < data.len() => data[at] = random.next().to_le_bytes()[0],
            2 => drop(data.drain(at..end)),
            3 => {
                let again = data[at..end].to_vec();
                data.splice(at..at, again);
            }
            4 => {
                let from = index(random, other.len() + 1);
                let to = (from + index(random, 30)).min(other.len());
                data.splice(at..end, other[from..to].iter().copied());
            }
            _ => data.insert(at, TELLING[index(random, TELLING.len())]),
        }
    }
    data.truncate(1 << 16);
    data
}

fn index(random: &mut Random, len: usize) -> usize {
    usize::try_from(random.below(len as u64)).expect("a small number")
}

fn replay(name: &str, short: u64) {
    let (_, target) = targets::TARGETS.into_iter().find(|(known, _)| *known == name).expect("a target");
    let entries = corpus(name);
    assert!(!entries.is_empty(), "{name} has no corpus");
    let mut random = Random::new();
    for entry in &entries {
        try_out(target, name, entry);
    }
    let tries = short_or_long(short, 200 * short);
    for _ in 0..tries {
        let (entry, other) = (&entries[index(&mut random, entries.len())], &entries[index(&mut random, entries.len())]);
        try_out(target, name, &mutate(entry, other, &mut random));
    }
    println!("{name}: {} entries, {tries} changes of them", entries.len());
}

#[test]
fn arbitrary_requests_are_answered() {
    replay("request", 20_000);
}

#[test]
fn arbitrary_payloads_are_parsed_or_rejected() {
    replay("payload", 5_000);
}

#[test]
fn arbitrary_feed_lines_are_parsed_or_rejected() {
    replay("feed_line", 10_000);
}

#[test]
fn arbitrary_rows_are_loaded_or_reported() {
    replay("codec", 500);
}

#[test]
fn arbitrary_keys_are_accepted_only_if_issued() {
    replay("key_text", 20_000);
}

#[test]
fn arbitrary_prices_round_trip() {
    replay("price_text", 20_000);
}

#[test]
fn arbitrary_configurations_are_parsed_or_rejected() {
    replay("config", 3_000);
}

#[test]
fn arbitrary_market_keys_are_read_as_one_market() {
    replay("market_key", 20_000);
}

#[test]
fn arbitrary_filters_of_a_stream_are_read_or_rejected() {
    replay("stream_request", 10_000);
}

#[test]
fn arbitrary_positions_round_trip() {
    replay("position", 20_000);
}

#[test]
fn arbitrary_lines_of_history_are_read_or_rejected() {
    replay("history_line", 10_000);
}

#[test]
fn arbitrary_messages_of_assistants_are_answered() {
    replay("mcp", 2_000);
}

#[test]
fn arbitrary_entries_of_a_cluster_are_read_alike_or_rejected() {
    replay("cluster_entry", 10_000);
}

#[test]
fn every_target_is_replayed_and_fuzzed() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz");
    let read = |path: &str| fs::read_to_string(here.join(path)).expect("a file");
    let (tests, manifest) = (read("mod.rs"), read("Cargo.toml"));
    for (name, _) in targets::TARGETS {
        assert!(tests.contains(&format!("replay(\"{name}\"")), "{name} is not replayed");
        assert!(manifest.contains(&format!("name = \"{name}\"")), "{name} is no program of the fuzzer");
        assert!(read(&format!("fuzz_targets/{name}.rs")).contains(&format!("targets::{name}(data)")), "{name}");
    }
}
