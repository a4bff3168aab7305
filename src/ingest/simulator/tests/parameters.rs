//! Sports of points and goals: how games end, and what is expected of them.

use std::cmp::Ordering;

use super::super::curve::ONE;
use super::super::fair::Side;
use super::super::fixture::{FixtureView, PriceModel};
use super::super::markets::SimulatedMarket;
use super::super::matches::Match;
use super::super::sports::{Card, Rules};
use super::*;

fn rules_of(sport: &str) -> &'static Rules {
    let series = SPORTS.iter().find(|row| row.key == sport).unwrap().series;
    let rules = series.iter().find_map(|series| match &series.card {
        Card::Matches(_, rules) => Some(*rules),
        _ => None,
    });
    rules.unwrap()
}

/// Games between equal sides.
fn games(sport: &str) -> impl Iterator<Item = (Match, Score)> {
    let rules = rules_of(sport);
    (0..400).map(move |number| {
        let seed = Seed::new(SEED).nth(number);
        let (home, away) = ("Home".into(), "Away".into());
        let squads = [Vec::new(), Vec::new()];
        let game = Match { rules, seed, commence: i64::from(START), home, away, edge: 0, followed_by: 0, squads };
        let last = game.score_changes().pop().unwrap().score;
        (game, last)
    })
}

fn chances(game: &Match, market: &str, at: i64, score: Option<&Score>) -> Option<Vec<Side>> {
    let market: &SimulatedMarket = game.markets().iter().find(|own| own.key == market).unwrap();
    game.chances(market, FixtureView { at, score, bias: Seed::new(7) })
}

#[test]
fn tied_game_without_overtime_is_a_draw_and_priced_as_one() {
    let (mut drawn, mut goals) = (0, 0);
    for (game, last) in games("soccer") {
        let (home, away) = last.points.unwrap();
        drawn += i32::from(home == away);
        goals += home + away;
        assert_eq!(last.periods.len(), 2);
        let before = chances(&game, "moneyline", game.commence - 60, None).unwrap();
        assert_eq!(before.iter().map(|side| side.chance).sum::<i64>(), ONE);
        assert!(&*before[2].name == "Draw" && (200_000..330_000).contains(&before[2].chance), "{before:?}");
        let after = chances(&game, "moneyline", game.commence + 6_500, Some(&last)).unwrap();
        let likeliest = after.iter().max_by_key(|side| side.chance).unwrap();
        let expected = match home.cmp(&away) {
            Ordering::Less => "Away",
            Ordering::Equal => "Draw",
            Ordering::Greater => "Home",
        };
        assert_eq!(&*likeliest.name, expected);
        for market in ["spread", "total_points"] {
            let point = chances(&game, market, game.commence - 600, None).unwrap()[0].point_milli.unwrap();
            assert_eq!(point.rem_euclid(1_000), 500);
        }
    }
    assert!((60..140).contains(&drawn), "{drawn} of 400");
    assert!((900..1_300).contains(&goals), "{goals} in 400");
}

#[test]
fn market_of_a_part_of_the_game_closes_with_it() {
    for (sport, market, ends) in [
        ("soccer", "total_points_h1", 2_820),
        ("basketball", "moneyline_q1", 1_980),
        ("american_football", "spread_h1", 2_820 + 2_700),
        ("baseball", "total_points_1st_5_innings", 4_800 + 1_140),
        ("ice_hockey", "moneyline_3_way", 6_600 + 2_280),
    ] {
        let (game, _) = games(sport).next().unwrap();
        let is_open = |at: i64| chances(&game, market, game.commence + at, None).is_some();
        assert_eq!([-60, ends / 3, ends].map(is_open), [true, true, false], "{sport}");
    }
}

#[test]
fn both_teams_to_score_closes_once_they_have() {
    let (game, last) =
        games("soccer").find(|(_, last)| last.points.is_some_and(|(home, away)| home > 0 && away > 0)).unwrap();
    let before = chances(&game, "btts", game.commence - 60, None).unwrap();
    assert!(before.len() == 2 && (350_000..650_000).contains(&before[0].chance), "{before:?}");
    assert!(chances(&game, "btts", game.commence + 4_000, Some(&last)).is_none());
}

#[test]
fn full_overtime_periods_are_played_until_one_side_leads() {
    let (mut longer, mut longest, mut runs, mut unplayed) = (0, 0, 0, 0);
    for (game, last) in games("baseball") {
        let (home, away) = last.points.unwrap();
        assert_ne!(home, away);
        runs += home + away;
        longer += usize::from(last.periods.len() > 9);
        longest = longest.max(last.periods.len());
        // The home side does not bat again when it leads.
        let before: i32 = last.periods[..8].iter().map(|inning| inning.home - inning.away).sum();
        if before > last.periods[8].away {
            assert_eq!(last.periods[8].home, 0);
            unplayed += 1;
        }
        let sides = chances(&game, "spread", game.commence - 60, None).unwrap();
        assert_eq!(sides[0].point_milli.unwrap().abs(), 1_500);
        assert_eq!(chances(&game, "moneyline", game.commence, None).unwrap().len(), 2);
    }
    assert!((15..100).contains(&longer) && longest > 10, "{longer}, {longest}");
    assert!((400 * 7..400 * 10).contains(&runs) && unplayed > 100, "{runs} in 400, {unplayed}");
}

#[test]
fn moneyline_with_overtime_has_two_ways_and_without_it_three() {
    let (mut tied, mut goals) = (0, 0);
    for (game, last) in games("ice_hockey") {
        let (home, away) = last.points.unwrap();
        assert_ne!(home, away);
        goals += home + away;
        tied += usize::from(last.periods.len() == 4);
        let ways = |market: &str| chances(&game, market, game.commence - 60, None).unwrap();
        assert_eq!([ways("moneyline").len(), ways("moneyline_3_way").len()], [2, 3]);
        assert!((130_000..230_000).contains(&ways("moneyline_3_way")[2].chance));
        assert!(ways("spread")[0].point_milli.unwrap().abs() == 1_500);
    }
    assert!((40..110).contains(&tied), "{tied} of 400");
    assert!((400 * 5..400 * 7).contains(&goals), "{goals} in 400");
}

#[test]
fn basketball_has_four_quarters_and_plausible_totals() {
    let (mut points, mut longer) = (0, 0);
    for (_, last) in games("basketball") {
        let (home, away) = last.points.unwrap();
        assert_ne!(home, away);
        points += home + away;
        longer += usize::from(last.periods.len() > 4);
        assert!((4..=7).contains(&last.periods.len()) && home.min(away) > 60 && home.max(away) < 190, "{last:?}");
    }
    assert!((215..236).contains(&(points / 400)) && (1..60).contains(&longer), "{points} in 400, {longer}");
}
