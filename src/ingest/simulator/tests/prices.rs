//! Prices at any time: every market with a margin that is plausible for it, every sport in every region, lines on half
//! points, prices in play by the score.

use std::collections::BTreeSet;

use super::*;
use crate::model::market::groups;
use crate::model::{OddsFormat, Region};

/// Worlds differ in who leaves out what; the promises hold in all of them.
pub(super) const SEEDS: [u64; 3] = [SEED, 0, u64::MAX];
/// Those in which every sport has bookmakers.
const REGIONS: [Region; 4] = [Region::Us, Region::Uk, Region::Eu, Region::Au];
pub(super) const BILLION: u64 = 1_000_000_000;

/// The chance that a price implies, in billionths, cut.
pub(super) fn implied(outcome: &Outcome) -> u64 {
    let (profit, stake) = outcome.price.fraction();
    BILLION * u64::from(stake) / (u64::from(profit) + u64::from(stake))
}

/// What the outcomes of each group sum to over what can win, in thousandths.
fn overrounds(market: &str, outcomes: &[Outcome], catalogue: &Catalogue) -> Vec<u64> {
    let traits = catalogue.markets().traits(market).unwrap();
    let winners = BILLION * u64::try_from(traits.settlement.winners).unwrap();
    let ratio = |group: Vec<usize>| {
        let sum: u64 = group.iter().map(|at| implied(&outcomes[*at])).sum();
        // Cutting lost less than a billionth of each outcome.
        assert!(sum > winners, "{market} {sum}: {outcomes:?}");
        sum * 1000 / winners
    };
    groups(traits, outcomes).into_iter().map(ratio).collect()
}

fn check_points(market: &str, outcomes: &[Outcome]) {
    let points: Vec<i32> = outcomes.iter().filter_map(|outcome| outcome.point.map(Point::milli)).collect();
    assert!(points.iter().all(|milli| milli % 500 == 0));
    match market {
        "spread" => assert!(points.len() == 2 && points[0] == -points[1]),
        "total_rounds" | "total_points" => assert!(points.len() == 2 && points[0] == points[1] && points[0] > 0),
        "moneyline" | "outright" | "btts" => assert!(points.is_empty()),
        _ => {}
    }
}

/// The least and the most that a record of a market may sum to, in thousandths.
fn plausible(market: &str, format: OddsFormat) -> std::ops::RangeInclusive<u64> {
    let is_main = ["moneyline", "spread", "total_points", "total_rounds"].contains(&market);
    match (is_main, format) {
        // Steps of fractions are coarse.
        (true, OddsFormat::Fractional) => 1_010..=1_140,
        (true, _) => 1_015..=1_110,
        (false, _) => 1_010..=1_340,
    }
}

#[test]
fn every_market_has_a_margin_at_any_moment_of_a_year() {
    let catalogue = catalogue();
    let simulators = SEEDS.map(|seed| Simulator::new(seed, &catalogue));
    let mut records = 0;
    // Sums and counts of main markets, of players and of outrights.
    let mut kinds = [(0, 0); 3];
    let count = short_or_long(245, 2_100);
    for (n, unix) in clustered_moments(count).enumerate() {
        let now = i64::from(unix);
        let simulator = &simulators[n / 7 % SEEDS.len()];
        // One book at a time: all of them come round.
        for slot in simulator.slots(&[now]) {
            simulator.each_listing(&slot, now, |book, listing| {
                for market in listing.markets().filter(|_| book == n % simulator.books.len()) {
                    let quoted = listing.tick(market, now).and_then(|tick| listing.outcomes(market, tick));
                    let Some(outcomes) = quoted else { continue };
                    check_points(market.key, &outcomes);
                    let plausible = plausible(market.key, simulator.books[book].format);
                    let kind = match market.key {
                        "moneyline" | "spread" | "total_points" => Some(0),
                        "outright" => Some(2),
                        key => (key.starts_with("player") || key.contains("er_")).then_some(1),
                    };
                    for sum in overrounds(market.key, &outcomes, &catalogue) {
                        assert!(plausible.contains(&sum), "{} {sum}: {outcomes:?}", market.key);
                        if let Some(kind) = kind {
                            kinds[kind] = (kinds[kind].0 + sum - 1_000, kinds[kind].1 + 1);
                        }
                    }
                    records += 1;
                }
            });
        }
    }
    assert!(records > count * 100, "{records}");
    let [main, players, futures] = kinds.map(|(sum, count)| sum / count.max(1));
    assert!((35..75).contains(&main) && players > main && futures > 2 * main, "{main} {players} {futures}");
}

#[test]
fn the_board_is_full_and_bounded_at_any_time() {
    let catalogue = catalogue();
    let simulators = SEEDS.map(|seed| Simulator::new(seed, &catalogue));
    // The last one is among the fullest: two rounds of football are announced, and one of them is being played.
    for (n, unix) in moments(short_or_long(5, 45)).chain([START + 6 * DAY + 70_000]).enumerate() {
        let simulator = &simulators[n % SEEDS.len()];
        let news = simulator.opening(at(unix));
        let mut sources = BTreeSet::new();
        let (mut events, mut outcomes) = (0, 0);
        let mut records: BTreeMap<SportId, usize> = BTreeMap::new();
        for news in &news {
            match news {
                News::AsOf(_, news) if matches!(**news, News::Event(_)) => events += 1,
                News::Odds(odds) => {
                    *records.entry(odds.sport).or_default() += 1;
                    outcomes += odds.outcomes.len();
                    assert!(odds.last_update <= at(unix));
                    sources.insert((odds.sport, odds.bookmaker.clone()));
                }
                _ => {}
            }
        }
        assert!((200..=400).contains(&events), "{events} at {}", at(unix));
        // The demo has two such worlds in 40 MB.
        let all: usize = records.values().sum();
        assert!((6_000..=12_500).contains(&all) && outcomes < 66_000, "{all} with {outcomes} at {}", at(unix));
        for (sport, most) in MOST_RECORDS {
            let count = records[&catalogue.find(sport).unwrap()];
            assert!((most / 12..=most).contains(&count), "{sport}: {count} at {}", at(unix));
        }
        for (sport, region) in catalogue.sport_ids().take(9).flat_map(|sport| REGIONS.map(|region| (sport, region))) {
            let offered =
                |key: &str| catalogue.bookmakers().iter().any(|b| *b.key == *key && b.regions.contains(region));
            let books = sources.iter().filter(|(own, key)| *own == sport && offered(key)).count();
            assert!(books >= 4, "{books} books in {region} for {} at {}", catalogue[sport].key, at(unix));
        }
    }
}

/// The most records of each sport.
const MOST_RECORDS: [(&str, usize); 9] = [
    ("mma", 2_000),
    ("boxing", 1_600),
    ("tennis", 3_000),
    ("american_football", 3_000),
    ("golf", 500),
    ("soccer", 2_200),
    ("basketball", 1_500),
    ("baseball", 1_500),
    ("ice_hockey", 1_200),
];

#[test]
fn regions_beyond_the_first_four_have_the_sports_that_they_are_known_for() {
    let (catalogue, simulator) = (catalogue(), simulator());
    let regions = |key: &str| catalogue.bookmakers().iter().find(|book| *book.key == *key).unwrap().regions;
    for (region, sport) in [
        (Region::Us2, "basketball"),
        (Region::UsEx, "american_football"),
        (Region::UsDfs, "baseball"),
        (Region::Fr, "soccer"),
        (Region::Se, "ice_hockey"),
    ] {
        let row = SPORTS.iter().position(|row| row.key == sport).unwrap();
        let books = simulator.books.iter().filter(|book| book.covers(row) && regions(&book.key).contains(region));
        assert!(books.count() >= 2, "{region}");
    }
}

#[test]
fn books_quote_in_the_format_of_their_region() {
    let (catalogue, simulator) = (catalogue(), simulator());
    let formats: Vec<(&str, OddsFormat)> = simulator.books.iter().map(|book| (&*book.key, book.format)).collect();
    for (key, format) in &formats {
        let book = catalogue.bookmakers().iter().find(|book| *book.key == **key).unwrap();
        let american = [Region::Us, Region::Us2, Region::UsDfs, Region::UsEx];
        let is_american = american.into_iter().any(|region| book.regions.contains(region));
        assert_eq!(is_american, *format == OddsFormat::American, "{key}");
    }
    assert!(formats.iter().any(|(_, format)| *format == OddsFormat::Fractional), "{formats:?}");
    assert!(formats.iter().any(|(_, format)| *format == OddsFormat::Decimal));
}

#[test]
fn some_fights_are_priced_with_a_draw_and_markets_close_and_open_again() {
    let mut simulator = simulator();
    for (sport, row) in simulator.sports.iter_mut().zip(&SPORTS) {
        *sport = sport.filter(|_| ["mma", "boxing", "tennis"].contains(&row.key));
    }
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
fn prices_are_updated_more_often_towards_the_start_and_in_play() {
    let simulator = simulator();
    let sunday = i64::from(START + 6 * DAY + 70_000);
    let slots = simulator.slots(&[sunday]);
    let soccer = SPORTS.iter().position(|row| row.key == "soccer").unwrap();
    let fixtures =
        slots.iter().filter(|(key, _)| key.0 == soccer && key.1 == 0).flat_map(|(_, fixtures)| fixtures.iter());
    let fixture = fixtures.max_by_key(|fixture| fixture.outline.commence).unwrap();
    let commence = fixture.outline.commence;
    for book in simulator.books.iter().filter(|book| book.covers(soccer)) {
        let (listing, moneyline) = (BookListing::new(fixture, book), &fixture.model.markets()[0]);
        let ticks = |from: i64| -> usize {
            let ticks = (from..from + 3_000).filter_map(|at| listing.tick(moneyline, at));
            ticks.collect::<BTreeSet<_>>().len()
        };
        let [early, late, live] = [-3 * 86_400, -40_000, 1_800].map(|at| ticks(commence + at));
        assert!((0..=4).contains(&early) && live > 50, "{}: {early} {late} {live}", book.key);
        assert!(late > 2 * early && live > 4 * late, "{}: {early} {late} {live}", book.key);
    }
}

#[test]
fn prices_in_play_follow_the_score() {
    let simulator = simulator();
    // In the last minute of a decided game the leader is the favourite everywhere.
    let week = i64::from(START + 5 * DAY + 80_000);
    let mut decided = 0;
    let is_game = |fixture: &&Fixture| matches!(fixture.outline.contest, crate::model::Contest::Sides { .. });
    for ((row, ..), fixtures) in simulator.slots(&[week]) {
        for fixture in fixtures.iter().filter(|_| SPORTS[row].key == "american_football").filter(is_game) {
            let now = fixture.outline.commence + 11_900;
            let (home, away) = fixture.score(now).unwrap().points.unwrap();
            if (home - away).abs() < 10 || !fixture.is_open(now) {
                continue;
            }
            for book in &simulator.books {
                let (listing, moneyline) = (BookListing::new(fixture, book), &fixture.model.markets()[0]);
                let tick = listing.tick(moneyline, now);
                let Some(outcomes) = tick.and_then(|tick| listing.outcomes(moneyline, tick)) else { continue };
                assert_eq!(implied(&outcomes[0]) > implied(&outcomes[1]), home > away);
                decided += 1;
            }
        }
    }
    assert!(decided > 20);
}
