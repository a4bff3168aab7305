//! Boards of any size for the benchmarks: events of twenty bookmakers with three markets each, or with three hundred.
#![allow(dead_code, unreachable_pub, reason = "each benchmark uses the part that it needs")]
#![allow(clippy::expect_used, reason = "a benchmark may stop")]

pub mod service;

use std::sync::Arc;

use oddsbox::board::{Draft, EventNode, Index, Published, Register, SportBoard};
use oddsbox::model::{
    BookId, Bookmaker, Bookmakers, Contest, Event, EventId, EventStatus, Market, MarketKey, Outcome, Point, Price,
    Record, RecordId, Region, Timestamp,
};

pub const SPORT: &str = "american_football";
pub const BOOKS: u16 = 20;
pub const MARKETS: [Market; 3] = [Market::MONEYLINE, Market::SPREAD, Market::TOTAL_POINTS];
pub const RECORDS_PER_EVENT: usize = BOOKS as usize * MARKETS.len();
const WIDE_MARKETS: usize = 300;
/// A bookmaker that prices one event in a hundred.
pub const RARE: u16 = BOOKS;

const START: u32 = 1_800_000_000;

pub fn bookmakers() -> Bookmakers {
    let mut books = Bookmakers::default();
    for number in 0..=BOOKS {
        let region = Region::ALL[usize::from(number) % 4];
        let key = format!("book{number:02}");
        let book = Bookmaker { title: key.clone().into(), key: key.into(), regions: [region].into_iter().collect() };
        books.put(BookId::from_number(number), Arc::new(book));
    }
    books
}

pub fn event_id(number: usize) -> EventId {
    EventId::new(&format!("{:032x}", number as u128 * 0x9e37_79b9_7f4a_7c15)).expect("a valid id")
}

/// One record; `turn` moves its prices.
pub fn record(
    books: &Bookmakers,
    event: &EventId,
    book: BookId,
    market: Market,
    names: &[Arc<str>; 2],
    turn: u32,
) -> Record {
    let american = |side: u32| -105 - i64::from((turn * 7 + u32::from(book.number()) * 3 + side * 11) % 60);
    let point = market.has_point().unwrap_or_default().then(|| Point::from_milli(-3500).expect("a valid line"));
    let outcome = |side: u32| Outcome {
        name: Arc::clone(&names[side as usize]).into(),
        price: Price::from_american(american(side)).expect("a valid price"),
        point,
    };
    Record {
        id: RecordId::new(SPORT, event, books.key(book), market),
        bookmaker: book,
        market,
        last_update: Timestamp::from_unix(START + turn),
        bookmaker_update: None,
        outcomes: [outcome(0), outcome(1)].into(),
    }
}

pub fn event(number: usize) -> Event {
    Event {
        id: event_id(number),
        competition: "National League".into(),
        competition_key: "some_key".into(),
        commence: Timestamp::from_unix(START + u32::try_from(number).expect("few events") * 60),
        contest: Contest::Sides { home: "Harbour City Gulls".into(), away: "North Valley Bisons".into() },
        status: EventStatus::Scheduled,
        changed: Timestamp::from_unix(START),
    }
}

pub fn node(books: &Bookmakers, number: usize, turn: u32) -> EventNode {
    node_of(&MARKETS, books, number, turn)
}

fn node_of(markets: &[Market], books: &Bookmakers, number: usize, turn: u32) -> EventNode {
    let event = Arc::new(event(number));
    let names = [Arc::clone(event.home().expect("two sides")), Arc::clone(event.away().expect("two sides"))];
    let mut pairs: Vec<(u16, Market)> =
        (0..BOOKS).flat_map(|book| markets.iter().map(move |market| (book, *market))).collect();
    if number.is_multiple_of(100) {
        pairs.push((RARE, Market::MONEYLINE));
    }
    let record = |(book, market): (u16, Market)| {
        Arc::new(record(books, &event.id, BookId::from_number(book), market, &names, turn))
    };
    let records = pairs.into_iter().map(record).collect();
    Draft::assemble(Arc::clone(&event), None, records, Vec::new()).finish(books)
}

pub fn index(records: usize) -> Index {
    let books = bookmakers();
    Index::from_sorted((0..records / RECORDS_PER_EVENT).map(|number| Arc::new(node(&books, number, 0))).collect())
}

/// The same with events that have three hundred markets.
pub fn wide_index(records: usize) -> Index {
    let prop = |number: usize| MarketKey::New(format!("player_stat_{number:03}").into());
    let props = (MARKETS.len()..WIDE_MARKETS).map(|number| Market::intern(&prop(number)).expect("room for it"));
    let markets: Vec<Market> = MARKETS.into_iter().chain(props).collect();
    let (books, events) = (bookmakers(), records / (usize::from(BOOKS) * WIDE_MARKETS));
    Index::from_sorted((0..events).map(|number| Arc::new(node_of(&markets, &books, number, 0))).collect())
}

/// A board that has rendered nothing yet.
pub fn fresh_board(index: &Index, books: &Arc<Register>) -> SportBoard {
    let published = Published::new(index.clone(), Arc::clone(books), Box::default(), 1_800_000_000_000);
    SportBoard::new(index.clone(), Arc::new(published), Arc::default())
}
