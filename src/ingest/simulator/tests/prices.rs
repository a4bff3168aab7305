//! Prices at any time: every market with a margin above zero and below a bound, every sport in every region, lines on
//! half points.

use std::collections::BTreeSet;

use super::*;
use crate::model::{OddsFormat, Region};

/// Worlds differ in who leaves out what; the promises hold in all of them.
const SEEDS: [u64; 3] = [SEED, 0, u64::MAX];
/// Those of the simulator's bookmakers.
const REGIONS: [Region; 4] = [Region::Us, Region::Uk, Region::Eu, Region::Au];
const BILLION: u64 = 1_000_000_000;

/// The chance that a price implies, in billionths, cut.
fn implied(outcome: &Outcome) -> u64 {
    let (profit, stake) = outcome.price.fraction();
    BILLION * u64::from(stake) / (u64::from(profit) + u64::from(stake))
}

/// Asserts the margin of each group of a record; returns the largest sum over what can win, in thousandths.
fn check_margin(market: Market, outcomes: &[Outcome]) -> u64 {
    let settlement = market.settlement();
    let size = settlement.group.unwrap_or(outcomes.len());
    assert!(outcomes.len().is_multiple_of(size));
    let winners = BILLION * u64::try_from(settlement.winners).unwrap();
    let ratio = |group: &[Outcome]| {
        let sum: u64 = group.iter().map(implied).sum();
        // Cutting lost less than a billionth of each outcome.
        assert!(sum > winners && sum * 100 < winners * 135, "{market} {sum}: {group:?}");
        sum * 1000 / winners
    };
    outcomes.chunks(size).map(ratio).max().unwrap()
}

fn check_points(market: Market, outcomes: &[Outcome]) {
    let points: Vec<i32> = outcomes.iter().filter_map(|outcome| outcome.point.map(Point::milli)).collect();
    assert!(points.iter().all(|milli| milli % 500 == 0));
    match market {
        Market::SPREAD => assert!(points.len() == 2 && points[0] == -points[1]),
        Market::TOTAL_ROUNDS | Market::TOTAL_POINTS => {
            assert!(points.len() == 2 && points[0] == points[1] && points[0] > 0);
        }
        _ => assert!(points.is_empty()),
    }
}

#[test]
fn every_market_has_a_margin_at_any_moment_of_a_year() {
    let simulators = SEEDS.map(|seed| Simulator::new(seed, &catalogue()));
    let (mut records, mut highest) = (0, 0);
    let count = short_or_long(240, 2_000);
    for (n, unix) in moments(count).enumerate() {
        let now = i64::from(unix);
        let simulator = &simulators[n % SEEDS.len()];
        // One book at a time: all of them come round.
        for slot in simulator.slots(&[now]) {
            simulator.each_listing(&slot, now, |book, listing| {
                if book == n % simulator.books.len()
                    && let Some(outcomes) = listing.tick(now).and_then(|tick| listing.outcomes(tick))
                    && let News::Odds(odds) = listing.news(now, outcomes)
                {
                    let market = market_of(&odds);
                    highest = highest.max(check_margin(market, &odds.outcomes));
                    check_points(market, &odds.outcomes);
                    records += 1;
                }
            });
        }
    }
    assert!(records > count * 100, "{records}");
    assert!(highest < 1_320, "{highest}");
}

#[test]
fn the_board_is_full_and_bounded_at_any_time() {
    let catalogue = catalogue();
    let simulators = SEEDS.map(|seed| Simulator::new(seed, &catalogue));
    let mut markets = BTreeSet::new();
    for (n, unix) in moments(short_or_long(9, 45)).enumerate() {
        let simulator = &simulators[n % SEEDS.len()];
        assert!(simulator.books.len() >= 20);
        let news = simulator.opening(at(unix));
        let mut sources = BTreeSet::new();
        let (mut events, mut records) = (0, 0);
        for news in &news {
            match news {
                News::AsOf(_, news) if matches!(**news, News::Event(_)) => events += 1,
                News::Odds(odds) => {
                    records += 1;
                    assert!(odds.last_update <= at(unix));
                    check_margin(market_of(odds), &odds.outcomes);
                    markets.insert((odds.sport, market_of(odds)));
                    sources.insert((odds.sport, odds.bookmaker.clone()));
                }
                _ => {}
            }
        }
        assert!((90..=200).contains(&events), "{events} at {}", at(unix));
        assert!((3_800..=7_500).contains(&records), "{records} at {}", at(unix));
        for (sport, region) in catalogue.sport_ids().take(5).flat_map(|sport| REGIONS.map(|region| (sport, region))) {
            let offered =
                |key: &str| catalogue.bookmakers().iter().any(|b| *b.key == *key && b.regions.contains(region));
            let books = sources.iter().filter(|(own, key)| *own == sport && offered(key)).count();
            assert!(books >= 4, "{books} books in {region} for {} at {}", catalogue[sport].key, at(unix));
        }
    }
    assert_eq!(markets.len(), 2 + 2 + 3 + 3 + 7);
}

#[test]
fn books_quote_in_the_format_of_their_region() {
    let simulator = simulator();
    let catalogue = catalogue();
    let formats: Vec<(&str, OddsFormat)> = simulator.books.iter().map(|book| (&*book.key, book.format)).collect();
    for (key, format) in &formats {
        let book = catalogue.bookmakers().iter().find(|book| *book.key == **key).unwrap();
        assert_eq!(book.regions.contains(Region::Us), *format == OddsFormat::American, "{key}");
    }
    assert!(formats.iter().any(|(_, format)| *format == OddsFormat::Fractional), "{formats:?}");
    assert!(formats.iter().any(|(_, format)| *format == OddsFormat::Decimal));
}

#[test]
fn some_fights_are_priced_with_a_draw_and_markets_close_and_open_again() {
    let simulator = simulator();
    let start = START + 10 * DAY;
    let mut world = World::of(simulator.opening(at(start)));
    let draws = world.prices.values().filter(|quote| quote.outcomes.iter().any(|outcome| &*outcome.name == "Draw"));
    assert!(draws.count() > 50);
    let (mut closed, mut reopened) = (BTreeSet::new(), 0);
    let step_s = short_or_long(300, 60);
    for now in (start..start + 4 * 3_600).step_by(usize::try_from(step_s).unwrap()) {
        let news = simulator.between(at(now), at(now + step_s));
        for news in &news {
            if let News::Odds(odds) = news {
                let key = (odds.event.clone(), odds.bookmaker.clone(), market_of(odds));
                if odds.outcomes.is_empty() {
                    closed.insert(key);
                } else if closed.remove(&key) {
                    reopened += 1;
                }
            }
        }
        world.apply(news);
    }
    assert!(reopened > 50, "{reopened}");
}

#[test]
fn prices_in_play_follow_the_score() {
    let simulator = simulator();
    // In the last minute of a decided game the leader is the favourite everywhere.
    let week = i64::from(START + 5 * DAY + 80_000);
    let mut decided = 0;
    for ((row, ..), fixtures) in simulator.slots(&[week]) {
        for fixture in fixtures.iter().filter(|_| SPORTS[row].key == "american_football") {
            let now = fixture.outline.commence + 11_900;
            let (home, away) = fixture.score(now).unwrap().points.unwrap();
            if (home - away).abs() < 10 || !fixture.is_open(now) {
                continue;
            }
            for book in &simulator.books {
                let listing = SimulatedRecord::new(fixture, book, Market::MONEYLINE);
                let Some(outcomes) = listing.tick(now).and_then(|tick| listing.outcomes(tick)) else { continue };
                assert_eq!(implied(&outcomes[0]) > implied(&outcomes[1]), home > away);
                decided += 1;
            }
        }
    }
    assert!(decided > 20);
}
