//! What derived prices cost the first time after a publication: pages of best and fair prices of 100 events with 40 bookmakers
//! and 4 markets, and edges over a million records.
#![allow(clippy::expect_used, clippy::print_stdout, reason = "a benchmark may stop, and prints what it measures")]

use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use oddsbox::board::{
    BestOrder, Derived, DerivedFilter, DerivedQuery, Draft, EdgeKind, EventNode, FairQuery, Index, Limit, Published,
    Register,
};
use oddsbox::config::catalogue::builtin;
use oddsbox::model::derived::{FairMethod, Millionths};
use oddsbox::model::{
    BookId, Bookmaker, Bookmakers, Contest, Event, EventId, EventStatus, Market, MarketFilter, MarketKey, OddsFormat,
    Outcome, OutcomeName, Point, Price, Record, RecordId, Region, Timestamp,
};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const SPORT: &str = "soccer";
const BOOKS: u16 = 40;
const MARKETS: usize = 4;
const START: u32 = 1_800_000_000;

fn bookmakers() -> Bookmakers {
    let mut books = Bookmakers::default();
    for number in 0..BOOKS {
        let key = format!("book{number:02}");
        let regions = [Region::Us].into_iter().collect();
        let book = Bookmaker { title: key.clone().into(), key: key.into(), regions };
        books.put(BookId::from_number(number), Arc::new(book));
    }
    books
}

/// Names as a feed gives them: one text for all bookmakers of an event.
struct Names {
    home: OutcomeName,
    away: OutcomeName,
    draw: OutcomeName,
    over: OutcomeName,
    under: OutcomeName,
}

/// A price near even that differs from bookmaker to bookmaker.
fn price(base: u64, number: usize, book: u16, side: u64) -> Price {
    let noise = (number as u64 * 31 + u64::from(book) * 17 + side * 7) % 60;
    Price::from_decimal_milli(base + noise).expect("a price")
}

fn node(books: &Bookmakers, markets: [Market; MARKETS], number: usize) -> EventNode {
    let (home, away): (Arc<str>, Arc<str>) = ("Harbour City Gulls".into(), "North Valley Bisons".into());
    let event = Arc::new(Event {
        id: EventId::new(&format!("{number:032x}")).expect("an id"),
        competition: "League".into(),
        competition_key: "soccer_league".into(),
        commence: Timestamp::from_unix(START + u32::try_from(number).expect("few") * 60),
        contest: Contest::Sides { home: Arc::clone(&home), away: Arc::clone(&away) },
        status: EventStatus::Scheduled,
        changed: Timestamp::from_unix(START),
    });
    let [draw, over, under] = ["Draw", "Over", "Under"].map(OutcomeName::from);
    let names = Names { home: home.into(), away: away.into(), draw, over, under };
    let mut records = Vec::with_capacity(usize::from(BOOKS) * MARKETS);
    for book in 0..BOOKS {
        for (at, market) in markets.iter().enumerate() {
            let outcome = |name: &OutcomeName, base, side, milli: Option<i32>| Outcome {
                name: name.clone(),
                price: price(base, number, book, side),
                point: milli.and_then(Point::from_milli),
            };
            let outcomes: Vec<Outcome> = match at {
                0 | 3 => vec![
                    outcome(&names.home, 2400, 0, None),
                    outcome(&names.draw, 3200, 1, None),
                    outcome(&names.away, 2800, 2, None),
                ],
                1 => vec![outcome(&names.home, 1850, 0, Some(-500)), outcome(&names.away, 1880, 1, Some(500))],
                _ => vec![outcome(&names.over, 1850, 0, Some(2500)), outcome(&names.under, 1880, 1, Some(2500))],
            };
            let bookmaker = BookId::from_number(book);
            records.push(Arc::new(Record {
                id: RecordId::new(SPORT, &event.id, books.key(bookmaker), *market),
                bookmaker,
                market: *market,
                last_update: Timestamp::from_unix(START),
                bookmaker_update: None,
                outcomes: outcomes.into(),
            }));
        }
    }
    Draft::assemble(event, None, records, Vec::new()).finish(books)
}

fn index(events: usize) -> Index {
    let three_way = Market::intern(&MarketKey::New("moneyline_3_way".into())).expect("room for it");
    let markets = [Market::MONEYLINE, Market::SPREAD, Market::TOTAL_POINTS, three_way];
    let books = bookmakers();
    Index::from_sorted((0..events).map(|number| Arc::new(node(&books, markets, number))).collect())
}

fn query(what: Derived) -> DerivedQuery {
    DerivedQuery {
        filter: DerivedFilter { markets: MarketFilter::All, ..DerivedFilter::default() },
        what,
        format: OddsFormat::American,
        limit: Limit::new(500).expect("a limit"),
        after: None,
        with_event: false,
    }
}

fn fair(method: FairMethod) -> Derived {
    Derived::Fair(FairQuery { method, ..FairQuery::default() })
}

fn edges(kind: EdgeKind) -> Derived {
    Derived::Edges { kind, min: Millionths::from_count(10_000) }
}

fn derived(c: &mut Criterion) {
    let (catalogue, register) = (builtin(), Arc::new(Register::new(bookmakers())));
    let run = |c: &mut Criterion, name: &str, index: &Index, what: Derived| {
        let query = query(what);
        c.bench_function(name, |b| {
            b.iter_batched_ref(
                || Published::new(index.clone(), Arc::clone(&register), Box::default(), i64::from(START) * 1000),
                |published| black_box(published.derived(SPORT, catalogue.markets(), &query)),
                BatchSize::PerIteration,
            );
        });
    };
    let small = index(100);
    run(c, "16000_records/best", &small, Derived::Best(BestOrder::Schedule));
    run(c, "16000_records/best_by_hold", &small, Derived::Best(BestOrder::Hold));
    for method in FairMethod::ALL {
        run(c, &format!("16000_records/fair_{method}"), &small, fair(method));
    }
    let large = index(1_000_000 / (usize::from(BOOKS) * MARKETS));
    run(c, "1000000_records/edges_ev", &large, edges(EdgeKind::Value(FairQuery::default())));
    run(c, "1000000_records/edges_arbitrage", &large, edges(EdgeKind::Arbitrage));
}

fn settings() -> Criterion {
    Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(5))
}

criterion_group! {
    name = benches;
    config = settings();
    targets = derived
}
criterion_main!(benches);
