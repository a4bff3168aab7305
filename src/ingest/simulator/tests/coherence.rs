//! Whatever the second, the markets of one bookmaker agree: every record is valid by its shape, alternate lines are in
//! order, and no bets at one bookmaker win together whatever happens.

use std::collections::{BTreeMap, HashSet};

use super::prices::{BILLION, SEEDS, implied};
use super::*;
use crate::model::market::{KeyParts, MarketShape, groups};

/// The records of one bookmaker for one event, by market.
type Offer = BTreeMap<&'static str, Box<[Outcome]>>;

/// What the bookmakers in turn offer at moments of a year.
fn offers(count: i64, mut visit: impl FnMut(&str, &Fixture, &str, &Offer)) {
    let simulators = SEEDS.map(|seed| Simulator::new(seed, &catalogue()));
    for (n, unix) in clustered_moments(count).enumerate() {
        let (now, simulator) = (i64::from(unix), &simulators[n / 7 % SEEDS.len()]);
        for slot in simulator.slots(&[now]) {
            let (key, fixtures) = &slot;
            for fixture in fixtures.iter().filter(|fixture| fixture.is_open(now)) {
                let books =
                    simulator.books.iter().enumerate().filter(|(at, book)| book.covers(key.0) && at % 7 == n % 7);
                for (_, book) in books {
                    let listing = BookListing::new(fixture, book);
                    let quoted = |market: &'static markets::SimulatedMarket| {
                        let outcomes = listing.outcomes(market, listing.tick(market, now)?)?;
                        Some((market.key, outcomes))
                    };
                    visit(SPORTS[key.0].key, fixture, &book.key, &listing.markets().filter_map(quoted).collect());
                }
            }
        }
    }
}

fn milli(outcome: &Outcome) -> i32 {
    outcome.point.unwrap().milli()
}

#[test]
fn every_record_is_valid_by_the_shape_of_its_market() {
    let catalogue = catalogue();
    let mut seen = BTreeMap::new();
    offers(short_or_long(70, 700), |sport, _, book, offer| {
        for (market, outcomes) in offer {
            *seen.entry((sport.to_owned(), *market)).or_insert(0) += 1;
            let traits = catalogue.markets().traits(market).unwrap();
            let places: HashSet<_> = outcomes.iter().map(|outcome| (&outcome.name, outcome.point)).collect();
            let repeats = ["three_ball", "matchup"].contains(market);
            assert!(repeats || places.len() == outcomes.len(), "{sport} {market} {book}: {outcomes:?}");
            for group in groups(traits, outcomes) {
                let sides = match traits.shape {
                    MarketShape::Spread | MarketShape::OverUnder | MarketShape::YesNo => 2..=2,
                    MarketShape::Ways => 2..=3,
                    MarketShape::Field => outcomes.len()..=outcomes.len(),
                    MarketShape::OverOnly => panic!("{market}"),
                };
                assert!(sides.contains(&group.len()), "{sport} {market} {book}: {outcomes:?}");
            }
            let has_players = KeyParts::split(market).unwrap().is_prop;
            assert!(outcomes.iter().all(|outcome| outcome.name.description().is_some() == has_players), "{outcomes:?}");
        }
    });
    // Fights two markets each, tennis three, golf seven; the outright of each league of teams.
    let expected = 2 + 2 + 3 + 7 + (9 + 1) + (7 + 1) + (10 + 1) + (9 + 1) + (8 + 1);
    assert_eq!(seen.len(), expected, "{seen:?}");
}

/// Lines in ascending order with prices that get no shorter for the first side, and with the main line at its price.
fn check_alternates(lines: &[Outcome], main: Option<&[Outcome]>) {
    let pairs: Vec<&[Outcome]> = lines.chunks(2).collect();
    for (one, next) in pairs.iter().zip(pairs.iter().skip(1)) {
        let is_spread = milli(&one[0]) == -milli(&one[1]);
        let (one_line, next_line) =
            if is_spread { (-milli(&one[0]), -milli(&next[0])) } else { (milli(&one[0]), milli(&next[0])) };
        assert!(one_line < next_line, "{lines:?}");
        assert!(implied(&one[0]) >= implied(&next[0]) && implied(&one[1]) <= implied(&next[1]), "{lines:?}");
    }
    // The first side of a lower line or the second of a higher one wins, whatever happens.
    for (at, lower) in pairs.iter().enumerate() {
        assert!(pairs[at..].iter().all(|higher| implied(&lower[0]) + implied(&higher[1]) > BILLION), "{lines:?}");
    }
    let has_main = |main: &&[Outcome]| milli(&main[0]) == milli(&lines[0]) || pairs.len() > 1;
    if let Some(main) = main.filter(has_main) {
        let same = pairs.iter().find(|pair| pair[0].point == main[0].point);
        assert!(same.is_none_or(|same| **same == *main), "{lines:?} {main:?}");
    }
}

#[test]
fn alternate_lines_are_monotonic_and_agree_with_the_main_line() {
    let mut checked = 0;
    offers(short_or_long(140, 1_400), |_, _, _, offer| {
        for (alternate, main) in [("alternate_spread", "spread"), ("alternate_total_points", "total_points")] {
            if let Some(lines) = offer.get(alternate) {
                check_alternates(lines, offer.get(main).map(|main| &**main));
                checked += usize::from(lines.len() > 6);
            }
        }
    });
    assert!(checked > 100, "{checked}");
}

#[test]
fn no_bets_at_one_bookmaker_win_whatever_happens() {
    let (mut spreads, mut both) = (0, 0);
    offers(short_or_long(140, 1_400), |sport, _, book, offer| {
        let Some(ways) = offer.get("moneyline").filter(|_| sport != "tennis") else { return };
        let lines = ["spread", "alternate_spread"].into_iter().filter_map(|market| offer.get(market));
        for pair in lines.flat_map(|lines| lines.chunks(2)) {
            // A side wins the game, or the other one keeps within its handicap. A draw loses a handicap of zero.
            let is_safe = |outcome: &Outcome| milli(outcome) > 0 || (milli(outcome) == 0 && ways.len() == 2);
            for (winner, other) in [(0, 1), (1, 0)].into_iter().filter(|(_, other)| is_safe(&pair[*other])) {
                let sum = implied(&ways[winner]) + implied(&pair[other]);
                assert!(sum > BILLION, "{sport} {book} {ways:?} {pair:?}");
                spreads += 1;
            }
            if ways.len() == 3 && milli(&pair[0]) == -500 {
                let sum = implied(&pair[0]) + implied(&ways[1]) + implied(&ways[2]);
                assert!(sum > BILLION, "{sport} {book} {ways:?} {pair:?}");
            }
        }
        // If both score, there are two goals or more.
        let over = offer.get("alternate_total_points").and_then(|lines| lines.iter().find(|line| milli(line) == 1_500));
        if let (Some(btts), Some(over)) = (offer.get("btts"), over) {
            assert!(implied(&btts[1]) + implied(over) > BILLION, "{book} {btts:?} {over:?}");
            both += 1;
        }
    });
    assert!(spreads > 500 && both > 10, "{spreads} {both}");
}

#[test]
fn prices_of_a_bookmaker_for_an_event_are_updated_together() {
    let simulator = simulator();
    let now = i64::from(START + 5 * DAY + 80_000);
    for slot in simulator.slots(&[now]) {
        simulator.each_listing(&slot, now, |_, listing| {
            let ticks: HashSet<i64> = listing.markets().filter_map(|market| listing.tick(market, now)).collect();
            assert!(ticks.len() <= 1);
        });
    }
}
