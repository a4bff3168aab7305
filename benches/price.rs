//! What reading and writing a price costs, in each format.
#![allow(clippy::expect_used, clippy::print_stdout, reason = "a benchmark may stop, and prints what it measures")]

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use oddsbox::model::{OddsFormat, Price};

/// Prices as feeds quote them: on the traditional ladder, off it, long and short.
const QUOTES: [(&str, OddsFormat); 6] = [
    ("1.91", OddsFormat::Decimal),
    ("1.873", OddsFormat::Decimal),
    ("2001", OddsFormat::Decimal),
    ("-110", OddsFormat::American),
    ("+2500", OddsFormat::American),
    ("10/11", OddsFormat::Fractional),
];

fn prices(c: &mut Criterion) {
    for (quote, format) in QUOTES {
        c.bench_function(&format!("read/{format}/{quote}"), |b| b.iter(|| Price::parse(black_box(quote), format)));
        let price = Price::parse(quote, format).expect("a valid quote");
        for written in OddsFormat::ALL {
            let mut out = Vec::with_capacity(64);
            c.bench_function(&format!("write/{format}/{quote}/as_{written}"), |b| {
                b.iter(|| {
                    out.clear();
                    black_box(price).write_json(written, &mut out);
                    out.len()
                });
            });
        }
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(20).measurement_time(std::time::Duration::from_millis(500)).warm_up_time(std::time::Duration::from_millis(100));
    targets = prices
}
criterion_main!(benches);
