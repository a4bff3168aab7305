//! The writer, the file and the board together behave like a plain map: after every batch, and after reopening the
//! file, for each filter and all filters combined.

mod plain;

use std::sync::Arc;
use std::time::Duration;

use oddsbox::board::{
    CompetitionKeys, Cursor, EventIds, EventScope, EventsQuery, Limit, OddsQuery, ScoresQuery, WorldBoard,
};
use oddsbox::clock::Clock;
use oddsbox::config::catalogue;
use oddsbox::model::{
    Catalogue, Contest, EventId, EventNews, EventStatus, Market, MarketFilter, News, OddsFormat, OddsNews, Outcome,
    Point, Price, Region, Regions, Score, ScoreNews, ScoreStatus, SportId, SportKind, Timestamp, World,
};
use oddsbox::store::{Store, StoreOptions};
use oddsbox::writer::{Poll, PollScope, Writer, WriterOptions};
use proptest::prelude::*;
use proptest::sample::select;

use crate::process::seed::short_or_long;
use plain::{Asked, MarketsAsked, Plain};

const START_MS: i64 = 1_800_000_000_000;
const EVENTS: [&str; 5] = ["a", "b", "c", "d", "e"];
const BOOKS: [&str; 4] = ["betmgm", "draftkings", "ladbrokes_uk", "unibet"];
/// Featured ones, further ones and lay prices.
const MARKETS: [&str; 7] =
    ["moneyline", "spread", "total_points", "player_points", "alternate_spread", "moneyline_s1", "moneyline_lay"];

fn at(seconds: u32) -> Timestamp {
    Timestamp::from_unix(1_799_000_000 + seconds)
}

fn event_id() -> impl Strategy<Value = EventId> {
    select(EVENTS.as_slice()).prop_map(|id| EventId::new(id).unwrap())
}

fn event(sport: SportId) -> impl Strategy<Value = News> {
    (event_id(), 0..4_u32, select(EventStatus::ALL.as_slice())).prop_map(move |(id, hour, status)| {
        let contest = Contest::Sides { home: format!("home {id}").into(), away: format!("away {id}").into() };
        // Each event has one competition; two of them share one.
        let number = id.as_str().as_bytes()[0] % 4;
        News::Event(EventNews {
            sport,
            id,
            competition: format!("Cup {number}").into(),
            competition_key: Some(format!("tennis_cup_{number}").into()),
            competition_title: None,
            commence: at(hour * 3600),
            contest,
            status,
        })
    })
}

fn odds(sport: SportId) -> impl Strategy<Value = News> {
    let book = select(BOOKS.as_slice());
    let market = select(MARKETS.as_slice())
        .prop_map(|key| catalogue::builtin().markets().read(key, SportKind::HeadToHead).unwrap());
    (event_id(), book, market, 0..6_u32, prop::collection::vec(100..105_i64, 0..4)).prop_map(
        move |(event, bookmaker, market, time, prices)| {
            let has_point = market == Market::SPREAD || market == Market::TOTAL_POINTS;
            let point = has_point.then(|| Point::from_milli(2500).unwrap());
            let outcome = |(side, price): (usize, i64)| Outcome {
                name: format!("side {side}").as_str().into(),
                price: Price::from_american(price).unwrap(),
                point,
            };
            let outcomes = prices.into_iter().enumerate().map(outcome).collect();
            News::Odds(OddsNews {
                sport,
                event,
                bookmaker: bookmaker.into(),
                market,
                last_update: at(time),
                bookmaker_update: None,
                outcomes,
            })
        },
    )
}

fn score(sport: SportId) -> impl Strategy<Value = News> {
    (event_id(), select(ScoreStatus::ALL.as_slice()), 0..3_i32, 0..6_u32).prop_map(
        move |(event, status, home, time)| {
            let score =
                Score { status, points: Some((home, 0)), periods: Box::default(), winner: None, updated: at(time) };
            News::Score(ScoreNews { sport, event, score })
        },
    )
}

fn news(sport: SportId) -> impl Strategy<Value = News> {
    prop_oneof![
        3 => event(sport),
        8 => odds(sport),
        1 => score(sport),
        1 => event_id().prop_map(move |event| News::Remove { sport, event }),
    ]
}

/// An input of the writer.
#[derive(Clone, Debug)]
enum Sent {
    News(Vec<News>),
    Poll(&'static str, Vec<News>),
}

fn sent(sport: SportId) -> impl Strategy<Value = Sent> {
    let news = || prop::collection::vec(news(sport), 1..30);
    let polled = prop::collection::vec(prop_oneof![2 => event(sport), 8 => odds(sport), 1 => score(sport)], 0..30);
    prop_oneof![
        1 => news().prop_map(Sent::News),
        1 => (select(["one", "other"].as_slice()), polled).prop_map(|(key, news)| Sent::Poll(key, news)),
    ]
}

fn poll(key: &str, news: Vec<News>) -> Poll {
    let scope = PollScope { world: World::Live, feed: "feed".into(), key: key.into() };
    let (part, at, has_more, budget) = (None, at(0), false, None);
    Poll { scope, part, sport: tennis(), news, at, latency_ms: 1, stale_after_s: 180, has_more, budget }
}

fn asked() -> impl Strategy<Value = Asked> {
    let regions = prop::option::of((0..512_u16).prop_map(|bits| Regions::from_bits(bits).unwrap()));
    let named = prop::collection::vec(select(MARKETS.as_slice()), 1..4).prop_map(MarketsAsked::Named);
    (
        prop_oneof![Just(MarketsAsked::Default), Just(MarketsAsked::All), named],
        prop::option::of(select(BOOKS.as_slice())),
        regions,
        prop::option::of(prop::collection::vec(event_id(), 0..3)),
        prop::option::weighted(
            0.3,
            prop::collection::vec((0..4).prop_map(|number| format!("tennis_cup_{number}")), 0..3),
        ),
        1..8_u64,
    )
        .prop_map(|(markets, bookmaker, regions, events, competitions, limit)| Asked {
            markets,
            bookmaker,
            regions,
            events,
            competitions,
            limit,
        })
}

/// Opens the file and loads its contents.
fn open(path: &std::path::Path, catalogue: &Arc<Catalogue>, clock: &Clock) -> Writer {
    let store = Store::open(path, Arc::clone(catalogue), StoreOptions::default()).unwrap();
    let opened = Writer::open(store, Arc::clone(catalogue), clock.clone(), WriterOptions::default()).unwrap();
    assert!(opened.damage.is_empty(), "{:?}", opened.damage);
    opened.writer
}

/// All pages of the result.
fn records(world: &WorldBoard, sport: SportId, key: &str, asked: &Asked) -> Vec<String> {
    let register = world.register().bookmakers();
    let mut query = OddsQuery {
        markets: match &asked.markets {
            MarketsAsked::Default => MarketFilter::Featured,
            MarketsAsked::All => MarketFilter::All,
            // A market that nothing was ever priced in is not known.
            MarketsAsked::Named(keys) => MarketFilter::only(keys.iter().filter_map(|key| Market::find(key)).collect()),
        },
        bookmakers: asked.bookmaker.map(|key| [register.find(key).unwrap()].into()),
        regions: asked.regions,
        format: OddsFormat::American,
        scope: EventScope {
            events: asked.events.clone().map(EventIds::new),
            competitions: asked
                .competitions
                .as_ref()
                .map(|keys| CompetitionKeys::new(keys.iter().map(|key| key.as_str().into()).collect())),
            ..EventScope::default()
        },
        limit: Limit::new(asked.limit).unwrap(),
        after: None,
        by_bout: false,
        with_event: false,
    };
    let mut all = Vec::new();
    loop {
        let body = world.sport(sport).odds(key, &query);
        let page: Vec<serde_json::Value> =
            serde_json::from_slice(body.bytes(oddsbox::board::Encoding::Identity)).unwrap();
        assert!(page.len() <= query.limit.get());
        all.extend(page.iter().map(|record| {
            let field = |name: &str| record[name].as_str().unwrap_or_default().to_owned();
            let outcomes = record["outcomes"].as_array().unwrap();
            let prices: Vec<String> = outcomes.iter().map(|outcome| outcome["price"].to_string()).collect();
            [field("event_id"), field("bookmaker"), field("market"), field("last_update"), prices.join(",")].join(" ")
        }));
        let Some(next) = body.next() else { return all };
        assert_eq!(page.len(), query.limit.get(), "only a full page has a next one");
        query.after = Cursor::parse(&next.to_text());
        assert!(query.after.is_some(), "the first page would follow again");
    }
}

fn listed(body: &oddsbox::board::Body, fields: &[&str]) -> Vec<String> {
    let page: Vec<serde_json::Value> = serde_json::from_slice(body.bytes(oddsbox::board::Encoding::Identity)).unwrap();
    page.iter().map(|row| fields.iter().map(|name| row[name].to_string()).collect::<Vec<_>>().join(" ")).collect()
}

fn compare(writer: &Writer, plain: &Plain, sport: SportId, key: &str, questions: &[Asked]) {
    let world = writer.boards().load_full(World::Live);
    for asked in questions {
        assert_eq!(records(&world, sport, key, asked), plain.records(asked), "{asked:?}");
    }
    let board = world.sport(sport);
    for status in std::iter::once(None).chain(EventStatus::ALL.map(Some)) {
        let query = EventsQuery { status, scope: EventScope::default(), limit: Limit::DEFAULT, after: None };
        let events = listed(&board.events(key, &query), &["id", "commence_time", "status", "markets"]);
        assert_eq!(events, plain.events(status));
    }
    for status in std::iter::once(None).chain(ScoreStatus::ALL.map(Some)) {
        let query = ScoresQuery { status, scope: EventScope::default(), limit: Limit::DEFAULT, after: None };
        let scores = listed(&board.scores(key, &query), &["event_id", "status", "home_score"]);
        assert_eq!(scores, plain.scores(status));
    }
    for id in EVENTS {
        assert_eq!(board.event(key, id).is_some(), plain.has(id));
    }
    assert_eq!(board.open_event_count(), plain.open_events());
    assert_eq!(board.book_count(), plain.books());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: short_or_long(48, 2_000), ..ProptestConfig::default() })]

    #[test]
    fn the_service_answers_as_a_plain_map_would(
        batches in prop::collection::vec((sent(tennis()), prop::bool::weighted(0.2)), 1..8),
        questions in prop::collection::vec(asked(), 12),
    ) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("oddsbox.redb");
        let (catalogue, clock) = (Arc::new(catalogue::builtin()), Clock::manual(START_MS));
        let mut plain = Plain::new(&catalogue);
        let mut writer = open(&path, &catalogue, &clock);
        for (sent, reopen) in batches {
            match sent {
                Sent::News(batch) => {
                    writer.ingest(World::Live, batch.clone(), false).unwrap();
                    for news in batch {
                        plain.apply(news);
                    }
                }
                Sent::Poll(key, batch) => {
                    writer.poll(poll(key, batch.clone())).unwrap();
                    plain.poll(key, batch);
                }
            }
            if reopen {
                drop(writer);
                writer = open(&path, &catalogue, &clock);
            }
            clock.advance(Duration::from_secs(30));
            writer.tick();
            compare(&writer, &plain, tennis(), "tennis", &questions);
        }
        drop(writer);
        compare(&open(&path, &catalogue, &clock), &plain, tennis(), "tennis", &questions);
    }
}

fn tennis() -> SportId {
    catalogue::builtin().find("tennis").unwrap()
}

/// The default query of a client, so that the region filter is exercised by name too.
#[test]
fn books_of_a_region_are_those_that_the_catalogue_offers_there() {
    let catalogue = catalogue::builtin();
    let us: Vec<_> = catalogue.bookmakers().iter().filter(|book| book.regions.contains(Region::Us)).collect();
    assert!(us.len() >= 8);
}
