//! How many instructions one request takes from its parts to its answer, for callgrind: one that the HTTP library leads
//! to the service, or one whose head came before.
//!
//! Unlike time, the count does not depend on the machine's mood: `tests/instructions.sh` runs this program twice with
//! different numbers of requests, divides the difference, and fails above a ceiling.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a program of the benchmarks may stop and speaks to them")]

mod support;

use std::hint::black_box;

use oddsbox::http::Head;
use support::service::Bench;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (count, is_again) = match &arguments[..] {
        [way, count] if way == "led" || way == "again" => (count.parse::<u32>().unwrap(), way == "again"),
        _ => {
            // `cargo bench` runs every benchmark: this one is for callgrind.
            println!("usage: instructions led|again REQUESTS");
            return;
        }
    };
    let (bench, mut head) = (Bench::new(), Head::default());
    let request = bench.request(support::service::ODDS, true);
    for _ in 0..count {
        if is_again {
            black_box(bench.answer_again(black_box(&request), &mut head));
        } else {
            black_box(bench.answer(black_box(&request)));
        }
    }
}
