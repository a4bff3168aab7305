//! What the simulator guarantees: a deterministic world, differences that add up, prices with a margin, and scores by the
//! rules of each sport.

mod coherence;
mod course;
mod independence;
mod parameters;
mod prices;
mod steps;

use std::collections::BTreeMap;
use std::sync::Arc;

use super::*;
use crate::model::{EventId, EventNews, EventStatus, MarketKey, OddsNews, Outcome, Point, Score};
use crate::testing::short_or_long;

const SEED: u64 = 2026;
/// 2026-01-05, a Monday.
const START: u32 = 1_767_571_200;
const DAY: u32 = 86_400;
const YEAR: u32 = 365 * DAY;

fn simulator() -> Simulator {
    Simulator::new(SEED, &catalogue())
}

/// By key: numbers of markets depend on the order in which a process met them.
fn market_of(odds: &OddsNews) -> &'static str {
    let MarketKey::Known(market) = odds.market else { panic!("{odds:?}") };
    market.key()
}

/// In the short form of a test with every fourth bookmaker: prices of one do not depend on the others.
fn smaller_simulator() -> Simulator {
    let mut simulator = simulator();
    simulator.books = std::mem::take(&mut simulator.books).into_iter().step_by(short_or_long(4, 1)).collect();
    simulator
}

fn catalogue() -> Catalogue {
    crate::config::catalogue::builtin()
}

fn at(seconds: u32) -> Timestamp {
    Timestamp::from_unix(seconds)
}

/// Moments spread over a year, the same in every run. In order, so that neighbours share fixtures that are built once.
fn moments(count: i64) -> impl Iterator<Item = u32> {
    let moment = |n| START + u32::try_from(Seed::new(99).nth(n).below(i64::from(YEAR))).unwrap();
    let mut moments: Vec<u32> = (0..count).map(moment).collect();
    moments.sort_unstable();
    moments.into_iter()
}

/// The same in clusters of seven, three quarters of an hour apart: a cluster shares most fixtures.
fn clustered_moments(count: i64) -> impl Iterator<Item = u32> {
    moments(count / 7).flat_map(|first| (0..7).map(move |n| first + n * 2_700))
}

/// Prices, and when they last changed.
#[derive(Clone, Debug, PartialEq)]
struct Quote {
    last_update: Timestamp,
    outcomes: Box<[Outcome]>,
}

/// The result of applying news.
#[derive(Clone, Debug, Default, PartialEq)]
struct World {
    events: BTreeMap<EventId, EventNews>,
    scores: BTreeMap<EventId, Score>,
    prices: BTreeMap<(EventId, Arc<str>, &'static str), Quote>,
    /// When each event and each score changed, by its news.
    dates: BTreeMap<(EventId, &'static str), Timestamp>,
    removed: Vec<EventId>,
}

impl World {
    fn of(news: Vec<News>) -> Self {
        let mut world = World::default();
        world.apply(news);
        world
    }

    fn apply(&mut self, news: Vec<News>) {
        for news in news {
            let news = match news {
                News::AsOf(at, news) => self.date(at, *news),
                news => news,
            };
            match news {
                News::Event(event) => self.event(event),
                News::Odds(odds) => self.odds(odds),
                News::Score(score) => drop(self.scores.insert(score.event, score.score)),
                News::Remove { event, .. } => self.remove(event),
                News::Read(_) => {}
                other => panic!("unexpected {other:?}"),
            }
        }
    }

    fn date(&mut self, at: Timestamp, news: News) -> News {
        let key = match &news {
            News::Event(event) => (event.id.clone(), "event"),
            News::Score(score) => (score.event.clone(), "score"),
            other => panic!("a date for {other:?}"),
        };
        let before = self.dates.insert(key, at);
        assert!(before.is_none_or(|before| before <= at), "{news:?} went back from {before:?} to {at}");
        news
    }

    fn event(&mut self, event: EventNews) {
        assert!(!self.removed.contains(&event.id), "a removed event came back");
        if let Some(known) = self.events.get(&event.id) {
            assert_eq!((&known.contest, known.commence), (&event.contest, event.commence));
            assert!(known.status <= event.status && !known.status.is_over(), "{known:?} became {event:?}");
        }
        if event.status.is_over() {
            self.prices.retain(|(id, ..), _| *id != event.id);
        }
        self.events.insert(event.id.clone(), event);
    }

    fn odds(&mut self, odds: OddsNews) {
        let status = self.events.get(&odds.event).map(|event| event.status);
        assert!(status.is_some_and(|status| !status.is_over()), "a price for an event that is {status:?}");
        let market = market_of(&odds);
        let key = (odds.event, odds.bookmaker, market);
        if odds.outcomes.is_empty() {
            assert!(self.prices.remove(&key).is_some(), "a market closed twice");
        } else {
            let quote = Quote { last_update: odds.last_update, outcomes: odds.outcomes };
            let before = self.prices.insert(key, quote.clone());
            assert!(before.is_none_or(|before| before.last_update < quote.last_update), "{quote:?} is no change");
        }
    }

    fn remove(&mut self, event: EventId) {
        assert!(self.events.remove(&event).is_some());
        self.scores.remove(&event);
        self.dates.retain(|(id, _), _| *id != event);
        self.prices.retain(|(id, ..), _| *id != event);
        self.removed.push(event);
    }
}

#[test]
fn world_is_a_function_of_seed_and_second() {
    let (one, other) = (simulator(), simulator());
    let now = at(START + 3 * DAY + 1_234);
    other.opening(at(START + YEAR));
    other.between(at(START), at(START + 7));
    assert_eq!(one.opening(now), other.opening(now));
    assert_ne!(World::of(one.opening(now)), World::of(Simulator::new(SEED + 1, &catalogue()).opening(now)));
}

#[test]
fn every_timestamp_is_supported() {
    let simulator = simulator();
    for unix in [0, 1, 500_000, u32::MAX / 2, u32::MAX - 1, u32::MAX] {
        simulator.opening(at(unix));
        simulator.between(at(unix.saturating_sub(60)), at(unix));
    }
    simulator.between(at(0), at(u32::MAX));
}

#[test]
fn sport_missing_from_the_catalogue_is_left_out() {
    let text = "replace = true\n\
                sports = [{ key = \"golf\", title = \"Golf\", group = \"golf\", kind = \"tournament\" }]\n\
                bookmakers = [{ key = \"one\", title = \"One\", regions = [\"au\"] }]";
    let catalogue = crate::config::catalogue::parse(text).unwrap();
    let world = World::of(Simulator::new(1, &catalogue).opening(at(START)));
    assert!(world.events.len() >= 2 && world.events.len() < 6);
    assert!(world.prices.keys().all(|(_, book, _)| &**book == "one"));
}

#[test]
fn news_round_trips_through_the_feed_format() {
    let catalogue = catalogue();
    let mut line = Vec::new();
    for news in simulator().opening(at(START + 12 * DAY)) {
        line.clear();
        crate::ingest::wire::write(&news, &catalogue, &mut line);
        assert_eq!(crate::ingest::wire::read(&line, &catalogue).unwrap().news, news);
    }
}

/// Run by hand: `cargo test --release --lib simulator::tests::measure -- --ignored --nocapture`.
#[test]
#[ignore = "a measurement"]
fn measure() {
    let simulator = simulator();
    for unix in [START + 2 * DAY + 3, START + 5 * DAY + 80_000, START + 6 * DAY + 70_000, START + 200 * DAY] {
        let start = std::time::Instant::now();
        let news = simulator.opening(at(unix));
        let cold = start.elapsed();
        let start = std::time::Instant::now();
        simulator.opening(at(unix));
        let warm = start.elapsed();
        let start = std::time::Instant::now();
        let steps: usize = (0..600).map(|n| simulator.between(at(unix + n), at(unix + n + 1)).len()).sum();
        let step = start.elapsed() / 600;
        println!(
            "{} {} news, opening {cold:?} cold {warm:?} warm, step {step:?} with {} news",
            at(unix),
            news.len(),
            steps / 600
        );
        board(news);
    }
}

/// Events by status, and records by sport and region.
fn board(news: Vec<News>) {
    let catalogue = catalogue();
    let mut rows: BTreeMap<String, usize> = BTreeMap::new();
    let mut add = |row: String| *rows.entry(row).or_default() += 1;
    for news in news {
        let news = match news {
            News::AsOf(_, news) => *news,
            news => news,
        };
        match news {
            News::Event(event) => add(format!("{} events {}", catalogue[event.sport].key, event.status)),
            News::Odds(odds) => {
                add("all records".into());
                let book = catalogue.bookmakers().iter().find(|book| *book.key == *odds.bookmaker).unwrap();
                for region in book.regions.iter() {
                    add(format!("{} records {region}", catalogue[odds.sport].key));
                }
            }
            _ => {}
        }
    }
    println!("  {rows:?}");
}
