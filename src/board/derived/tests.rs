//! Derived prices of any board, against a plain computation of the same.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use serde_json::Value;

use super::{BestOrder, Derived, DerivedFilter, DerivedQuery, EdgeKind, FairQuery};
use crate::board::query::Limit;
use crate::board::{Draft, Encoding, Index, Published, PublishedSource, Register};
use crate::config::catalogue::builtin;
use crate::model::derived::Millionths;
use crate::model::{
    BookId, Bookmaker, Bookmakers, Contest, Event, EventId, EventStatus, Market, OddsFormat, Outcome, Point, Price,
    Record, RecordId, Region, Timestamp,
};

const BOOKS: u16 = 5;
const NOW: u32 = 1_800_000_000;
/// Over and under at each of these points.
const POINTS: [i32; 2] = [2500, 3500];
const SIDES: usize = 2 * POINTS.len();

/// The decimal prices of each bookmaker for each side, in thousandths, where there is one.
type Board = Vec<[Option<u64>; SIDES]>;

fn key(book: u16) -> String {
    format!("book{book}")
}

fn name(side: usize) -> &'static str {
    if side.is_multiple_of(2) { "Over" } else { "Under" }
}

fn published(board: &Board, stale: u16) -> Published {
    let mut books = Bookmakers::default();
    for book in 0..BOOKS {
        let title = key(book).into();
        let listed = Bookmaker { key: key(book).into(), title, regions: [Region::Us].into_iter().collect() };
        books.put(BookId::from_number(book), Arc::new(listed));
    }
    let event = Arc::new(Event {
        id: EventId::new("e1").unwrap(),
        competition: "Cup".into(),
        competition_key: "soccer_cup".into(),
        commence: Timestamp::from_unix(NOW),
        contest: Contest::Sides { home: "Home".into(), away: "Away".into() },
        status: EventStatus::Scheduled,
        changed: Timestamp::from_unix(NOW),
    });
    let record = |(book, prices): (u16, &[Option<u64>; SIDES])| {
        let outcome = |(side, milli): (usize, &Option<u64>)| {
            let price = Price::from_decimal_milli((*milli)?).unwrap();
            Some(Outcome { name: name(side).into(), price, point: Point::from_milli(POINTS[side / 2]) })
        };
        let outcomes: Box<[Outcome]> = prices.iter().enumerate().filter_map(outcome).collect();
        let (bookmaker, market) = (BookId::from_number(book), Market::TOTAL_POINTS);
        let id = RecordId::new("soccer", &event.id, &key(book), market);
        let last_update = Timestamp::from_unix(NOW - u32::from(book));
        let record = Record { id, bookmaker, market, last_update, bookmaker_update: None, outcomes };
        (!record.outcomes.is_empty()).then(|| Arc::new(record))
    };
    let records = (0..).zip(board).filter_map(record).collect();
    let node = Draft::assemble(Arc::clone(&event), None, records, Vec::new()).finish(&books);
    let source = |book| PublishedSource {
        bookmaker: BookId::from_number(book),
        last_read: Timestamp::from_unix(NOW),
        stale: book == stale,
        latency_ms: 0,
    };
    let index = Index::from_sorted(vec![Arc::new(node)]);
    Published::new(index, Arc::new(Register::new(books)), (0..BOOKS).map(source).collect(), i64::from(NOW) * 1000)
}

fn rows(published: &Published, what: Derived) -> Vec<Value> {
    let query = DerivedQuery {
        filter: DerivedFilter::default(),
        what,
        format: OddsFormat::Decimal,
        limit: Limit::new(500).unwrap(),
        after: None,
        with_event: false,
    };
    let body = published.derived("soccer", builtin().markets(), &query);
    assert_eq!(published.kept_derived(&query).map(|kept| kept.len()), Some(body.len()), "it is kept");
    serde_json::from_slice(body.bytes(Encoding::Identity)).unwrap()
}

fn boards() -> impl Strategy<Value = Board> {
    let price = prop::option::weighted(0.7, 1_050..8_000_u64);
    prop::collection::vec(prop::array::uniform4(price), usize::from(BOOKS))
}

/// Price and bookmaker of the best price for each side, of bookmakers that are not stale.
fn plain_best(board: &Board, stale: u16) -> BTreeMap<(usize, usize), (u64, u16)> {
    let mut best: BTreeMap<(usize, usize), (u64, u16)> = BTreeMap::new();
    for (book, prices) in (0..).zip(board).filter(|(book, _)| *book != stale) {
        for (side, milli) in prices.iter().enumerate().filter_map(|(side, milli)| Some((side, (*milli)?))) {
            let found = best.entry((side / 2, side % 2)).or_insert((milli, book));
            if milli > found.0 {
                *found = (milli, book);
            }
        }
    }
    best
}

fn milli(value: &Value) -> u64 {
    Price::parse(&value.to_string(), OddsFormat::Decimal).unwrap().decimal_milli().into()
}

proptest! {
    #[test]
    fn best_prices_and_holds_are_those_of_a_plain_search(board in boards(), stale in 0..BOOKS + 1) {
        let found = rows(&published(&board, stale), Derived::Best(BestOrder::Schedule));
        let mut expected = plain_best(&board, stale);
        for row in &found {
            let point = POINTS.iter().position(|point| row["point"] == f64::from(*point) / 1000.0).unwrap();
            let mut sum = 0.0;
            let outcomes = row["outcomes"].as_array().unwrap();
            for outcome in outcomes {
                let side = usize::from(outcome["name"] == "Under");
                let (price, book) = expected.remove(&(point, side)).unwrap();
                prop_assert_eq!((milli(&outcome["price"]), outcome["bookmaker"].as_str()), (price, Some(&*key(book))));
                sum += Price::from_decimal_milli(price).unwrap().chance();
            }
            let hold = (outcomes.len() == 2).then(|| Millionths::of(1.0 - 1.0 / sum).count());
            let shown = row["hold"].as_f64().map(|hold| Millionths::of(hold).count());
            prop_assert_eq!(shown, hold, "none for one side");
        }
        prop_assert!(expected.is_empty(), "{:?} is missing", expected);
    }

    #[test]
    fn fair_prices_need_three_whole_books(board in boards(), stale in 0..BOOKS + 1) {
        let found = rows(&published(&board, stale), Derived::Fair(FairQuery::default()));
        let whole = |point: usize| {
            let fresh = (0..).zip(&board).filter(|(book, _): &(u16, _)| *book != stale);
            fresh.filter(|(_, prices)| prices[2 * point].is_some() && prices[2 * point + 1].is_some()).count()
        };
        let expected: Vec<usize> = (0..POINTS.len()).map(whole).filter(|books| *books >= 3).collect();
        let books: Vec<usize> = found.iter().map(|row| row["bookmakers"].as_array().unwrap().len()).collect();
        prop_assert_eq!(books, expected);
        for row in &found {
            let probabilities = row["outcomes"].as_array().unwrap().iter().map(|o| o["probability"].as_f64().unwrap());
            prop_assert!((probabilities.sum::<f64>() - 1.0).abs() < 2e-6);
        }
    }

    #[test]
    fn an_arbitrage_returns_the_same_on_both_sides(board in boards(), stale in 0..BOOKS + 1) {
        let what = Derived::Edges { kind: EdgeKind::Arbitrage, min: Millionths::default() };
        let found = rows(&published(&board, stale), what);
        let best = plain_best(&board, stale);
        let chance = |point, side| best.get(&(point, side)).map(|(milli, _)| Price::from_decimal_milli(*milli).unwrap().chance());
        let is_edge = |point: &usize| chance(*point, 0).zip(chance(*point, 1)).is_some_and(|(over, under)| {
            Millionths::of(1.0 / (over + under) - 1.0) >= Millionths::default()
        });
        prop_assert_eq!(found.len(), (0..POINTS.len()).filter(is_edge).count());
        for row in &found {
            let legs = row["legs"].as_array().unwrap();
            let number = |value: &Value| value.as_f64().unwrap();
            prop_assert!((legs.iter().map(|leg| number(&leg["stake"])).sum::<f64>() - 1.0).abs() < 1e-12);
            for leg in legs {
                let returned = number(&leg["stake"]) * number(&leg["price"]);
                prop_assert!((returned - 1.0 - number(&row["edge"])).abs() < 1e-4, "{}", row);
            }
        }
    }
}
