//! What the simulator guarantees: a deterministic world, differences that add up, prices with a margin, and scores by the
//! rules of each sport.

mod course;
mod parameters;
mod prices;
mod steps;

use std::collections::BTreeMap;
use std::sync::Arc;

use super::*;
use crate::model::{EventId, EventNews, EventStatus, Market, OddsNews, Outcome, Point, Score};
use crate::testing::short_or_long;

const SEED: u64 = 2026;
/// 2026-01-05, a Monday.
const START: u32 = 1_767_571_200;
const DAY: u32 = 86_400;
const YEAR: u32 = 365 * DAY;

fn simulator() -> Simulator {
    Simulator::new(SEED, &catalogue())
}

/// The simulator prices featured markets only.
fn market_of(odds: &OddsNews) -> Market {
    Market::find(odds.market.as_str()).unwrap()
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
    prices: BTreeMap<(EventId, Arc<str>, Market), Quote>,
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

/// Compares worlds without the positions of sports in the catalogue.
#[test]
fn prices_do_not_depend_on_other_entries_of_the_catalogue() {
    let sport = "sports = [{ key = \"curling\", title = \"Curling\", group = \"curling\", kind = \"head_to_head\" },";
    let book = "bookmakers = [{ key = \"acme\", title = \"Acme\", regions = [\"us\", \"uk\", \"eu\", \"au\"] },";
    let region = "title = \"Pinnacle\", regions = [\"us\", \"eu\"]";
    let text = crate::config::catalogue::BUILTIN
        .replace("sports = [", sport)
        .replace("bookmakers = [", book)
        .replace("title = \"Pinnacle\", regions = [\"eu\"]", region);
    let larger = crate::config::catalogue::parse(&text).unwrap();
    assert_eq!(larger.bookmakers().len(), catalogue().bookmakers().len() + 1);
    let now = at(START + 3 * DAY);
    let (ours, theirs) = [&catalogue(), &larger].map(|catalogue| Simulator::new(SEED, catalogue).opening(now)).into();
    let (ours, theirs) = (World::of(ours), World::of(theirs));
    assert_eq!((ours.prices, ours.scores), (theirs.prices, theirs.scores));
}

#[test]
fn every_simulated_bookmaker_is_in_the_built_in_catalogue() {
    let catalogue = catalogue();
    let simulator = simulator();
    assert_eq!([simulator.books.len(), books::keys().count()], [books::COUNT; 2]);
    for (_, key) in books::keys() {
        assert!(catalogue.bookmakers().iter().any(|bookmaker| *bookmaker.key == *key), "{key}");
        assert!(simulator.books.iter().any(|book| *book.key == *key), "{key}");
    }
}

/// Scores and prices change only on purpose: a new sport, or a change to one, leaves the others as they are.
#[test]
fn worlds_are_the_same_in_every_version() {
    let pinned = [
        ("mma", "1ef89f9da880e16d"),
        ("boxing", "9606eefcf6cdb895"),
        ("tennis", "f69a4065b01776f9"),
        ("american_football", "d4b12ad6e535afd4"),
        ("golf", "3c4cc8b76cc32d3e"),
    ];
    let world = World::of(simulator().opening(at(START + 6 * DAY + 70_000)));
    let digest = |sport: SportId| {
        let is_of = |id: &EventId| world.events[id].sport == sport;
        let mut seed = Seed::new(0);
        for (id, score) in world.scores.iter().filter(|(id, _)| is_of(id)) {
            let Score { points, periods, winner, updated, .. } = score;
            seed = seed.named(&format!("{id} {points:?} {winner:?} {updated}"));
            seed = periods.iter().fold(seed, |seed, period| seed.nth(period.home.into()).nth(period.away.into()));
        }
        for ((id, book, market), quote) in world.prices.iter().filter(|((id, ..), _)| is_of(id)) {
            seed = seed.named(&format!("{id} {book} {market} {}", quote.last_update));
            for Outcome { name, price, point } in &quote.outcomes {
                seed = seed.named(&format!("{name} {:?} {:?}", price.fraction(), point.map(Point::milli)));
            }
        }
        seed.identifier()[..16].to_owned()
    };
    let digests = pinned.map(|(sport, _)| (sport, digest(catalogue().find(sport).unwrap())));
    assert_eq!(digests.each_ref().map(|(sport, digest)| (*sport, digest.as_str())), pinned);
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
