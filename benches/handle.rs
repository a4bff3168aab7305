//! What answering costs without a socket: from a parsed request to a finished response.

mod support;

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use http::Request;
use support::service::{Bench, ODDS, ODDS_V4};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn measure(criterion: &mut Criterion, name: &str, status: u16, request: impl Fn(&Bench) -> Request<()>) {
    let bench = Bench::new();
    let request = request(&bench);
    assert_eq!(bench.answer(&request).status().as_u16(), status, "{name}");
    criterion.bench_function(name, |bencher| bencher.iter(|| black_box(bench.answer(black_box(&request)))));
}

fn benches(criterion: &mut Criterion) {
    measure(criterion, "handle/odds_100_records", 200, |bench| bench.request(ODDS, true));
    measure(criterion, "handle/v4_odds_100_events", 200, |bench| bench.request(ODDS_V4, true));
    measure(criterion, "handle/not_modified", 304, |bench| {
        let etag = bench.answer(&bench.request(ODDS, true)).headers()["etag"].clone();
        let mut request = bench.request(ODDS, true);
        request.headers_mut().insert("if-none-match", etag);
        request
    });
    measure(criterion, "handle/one_event", 200, |bench| bench.request("/v1/sports/mma/events/event-00042", true));
    measure(criterion, "handle/status", 200, |bench| bench.request("/v1/status", true));
    measure(criterion, "handle/unauthenticated", 401, |bench| bench.request(ODDS, false));
}

criterion_group!(all, benches);
criterion_main!(all);
