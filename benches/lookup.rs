//! What a lookup costs, on boards of ten thousand to a million records.
//!
//! `cached` is answered from a kept body; everything else renders. `hot` asks the same question again and again of
//! fresh boards, `wide` does so where an event has three hundred markets, `roaming` begins each time at another place of
//! the board, so that the records come from main memory.
#![allow(clippy::expect_used, clippy::print_stdout, reason = "a benchmark may stop, and prints what it measures")]

mod support;

use std::hint::black_box;
use std::sync::Arc;

use criterion::{BatchSize, BenchmarkId, Criterion, criterion_group, criterion_main};
use oddsbox::board::{Cursor, Edit, EventIds, EventScope, Index, Limit, OddsQuery, Register};
use oddsbox::model::{BookId, Market, OddsFormat, Region, Regions};

use support::{RARE, RECORDS_PER_EVENT, SPORT, bookmakers, event, event_id, fresh_board, index, node, wide_index};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const SIZES: [usize; 3] = [10_000, 100_000, 1_000_000];

fn limit(value: u64) -> Limit {
    Limit::new(value).expect("a valid limit")
}

/// The named questions of every board size.
fn questions(events: usize) -> Vec<(&'static str, OddsQuery)> {
    let us = OddsQuery { regions: Some(Regions::only(Region::Us)), ..OddsQuery::default() };
    let one = EventIds::new(vec![event_id(events / 2)]);
    let fractional = OddsQuery { format: OddsFormat::Fractional, ..us.clone() };
    vec![
        (
            "one_event",
            OddsQuery { scope: EventScope { events: Some(one), ..EventScope::default() }, ..OddsQuery::default() },
        ),
        ("100_records", us.clone()),
        ("100_fractional", fractional),
        ("100_of_one_market", OddsQuery { markets: Market::SPREAD.into(), ..us.clone() }),
        (
            "rare_bookmaker",
            OddsQuery { bookmakers: Some([BookId::from_number(RARE)].into()), limit: limit(2), ..OddsQuery::default() },
        ),
        ("500_records", OddsQuery { limit: limit(500), ..us }),
    ]
}

fn lookups(c: &mut Criterion) {
    for size in SIZES {
        let (index, books) = (index(size), Arc::new(Register::new(bookmakers())));
        for (name, query) in questions(index.event_count()) {
            c.bench_function(&format!("hot/{name}/{size}"), |b| {
                b.iter_batched_ref(
                    || fresh_board(&index, &books),
                    |board| black_box(board.odds(SPORT, &query)),
                    BatchSize::SmallInput,
                );
            });
        }
        roaming(c, &index, &books, size);
        cached(c, &index, &books, size);
        publish(c, &index, size);
    }
}

/// Events of three hundred markets: those that were not asked for are skipped.
fn wide_lookups(c: &mut Criterion) {
    let size = 1_000_000;
    let (index, books) = (wide_index(size), Arc::new(Register::new(bookmakers())));
    let us = OddsQuery { regions: Some(Regions::only(Region::Us)), ..OddsQuery::default() };
    let spread = OddsQuery { markets: Market::SPREAD.into(), ..us.clone() };
    for (name, query) in [("100_records", us), ("100_of_one_market", spread)] {
        c.bench_function(&format!("wide/{name}/{size}"), |b| {
            b.iter_batched_ref(
                || fresh_board(&index, &books),
                |board| black_box(board.odds(SPORT, &query)),
                BatchSize::SmallInput,
            );
        });
    }
}

fn roaming(c: &mut Criterion, index: &Index, books: &Arc<Register>, size: usize) {
    let events = index.event_count();
    let us = OddsQuery { regions: Some(Regions::only(Region::Us)), ..OddsQuery::default() };
    let mut turn = 0;
    c.bench_function(&format!("roaming/100_records/{size}"), |b| {
        b.iter_batched_ref(
            || {
                turn = (turn + 7919) % events.saturating_sub(10).max(1);
                let from = event(turn);
                let after = Some(Cursor { commence: from.commence, event: from.id, record: None });
                (fresh_board(index, books), OddsQuery { after, ..us.clone() })
            },
            |(board, query)| black_box(board.odds(SPORT, query)),
            BatchSize::SmallInput,
        );
    });
}

fn cached(c: &mut Criterion, index: &Index, books: &Arc<Register>, size: usize) {
    let board = fresh_board(index, books);
    let query = OddsQuery { regions: Some(Regions::only(Region::Us)), ..OddsQuery::default() };
    c.bench_with_input(BenchmarkId::new("cached/100_records", size), &query, |b, query| {
        b.iter(|| black_box(board.odds(SPORT, query)));
    });
}

/// A batch of a thousand changed records: spread over as many events, and packed into as few as hold them.
fn publish(c: &mut Criterion, index: &Index, size: usize) {
    let (register, events) = (bookmakers(), index.event_count());
    for (name, touched) in [("1000_events", 1000), ("17_events", 1000_usize.div_ceil(RECORDS_PER_EVENT))] {
        let touched = touched.min(events);
        let edits: Vec<Edit> = (0..touched)
            .map(|at| {
                let number = at * (events / touched);
                Edit { id: event_id(number), node: Some(Arc::new(node(&register, number, 1))) }
            })
            .collect();
        c.bench_function(&format!("apply_and_publish/{name}/{size}"), |b| {
            b.iter_with_large_drop(|| {
                let drafts = edits.iter().map(|edit| {
                    let stored = index.get(edit.id.as_str()).expect("an event of the board");
                    let mut draft = oddsbox::board::Draft::from(&**stored);
                    let changed = edit.node.as_ref().expect("a change").records();
                    for record in changed.iter().take(1000 / touched) {
                        draft.put(Arc::clone(record));
                    }
                    Edit { id: edit.id.clone(), node: Some(Arc::new(draft.finish(&register))) }
                });
                let next = index.apply(&drafts.collect::<Vec<_>>());
                fresh_board(&next, &Arc::new(Register::new(register.clone())))
            });
        });
    }
}

fn memory(_: &mut Criterion) {
    let before = resident_bytes();
    let index = index(1_000_000);
    let used = resident_bytes().saturating_sub(before);
    println!("memory: {} bytes a record, {} records", used / index.record_count().max(1), index.record_count());
}

/// The process's resident memory, from the kernel; 0 where it does not say.
fn resident_bytes() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.split_whitespace().next()?.parse::<usize>().ok()).unwrap_or(0) * 1024
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(30).measurement_time(std::time::Duration::from_secs(2)).warm_up_time(std::time::Duration::from_millis(500));
    targets = memory, lookups, wide_lookups
}
criterion_main!(benches);
