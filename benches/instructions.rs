//! How many instructions one request takes from a parsed request to a finished response, for callgrind. Each has another
//! key and another request id than the one before.
//!
//! Unlike time, the count does not depend on the machine's mood: `tests/instructions.sh` runs this program twice with
//! different numbers of requests, divides the difference, and fails above a ceiling.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a program of the benchmarks may stop and speaks to them")]

mod support;

use std::hint::black_box;

use support::service::Bench;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some(count) = arguments.first().and_then(|count| count.parse::<usize>().ok()) else {
        // `cargo bench` runs every benchmark: this one is for callgrind.
        println!("usage: instructions REQUESTS [node]");
        return;
    };
    let bench = if arguments.get(1).is_some_and(|kind| kind == "node") { Bench::of_node() } else { Bench::new() };
    let requests = bench.varied(support::service::ODDS, 64);
    for request in requests.iter().cycle().take(count) {
        black_box(bench.answer(black_box(request)));
    }
}
