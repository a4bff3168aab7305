//! Rules of sports that differ only by parameters: a drawn game, full periods of overtime, lines and handicaps.

use std::cmp::Ordering;

use super::super::curve::ONE;
use super::super::fair::Side;
use super::super::fixture::{FixtureView, PriceModel};
use super::super::matches::Match;
use super::super::sports::{CompetitionNames, Play, Rules, Starts};
use super::super::timed::{Overtime, Timed};
use super::*;

const MARKETS: [Market; 3] = [Market::MONEYLINE, Market::SPREAD, Market::TOTAL_POINTS];

const fn rules(strength_max: i64, fixed_handicap: Option<i64>, timed: Timed) -> Rules {
    Rules {
        fixture_seed: "game",
        competitor_seed: "team",
        competitions: CompetitionNames { names: "League", slots: 1, is_numbered: false },
        starts: Starts::At(&[(10, 0)]),
        announced_within: 3_600,
        called_off_one_in: 0,
        strength_max,
        home_advantage: strength_max / 4,
        drift: strength_max / 4,
        bias: strength_max / 20,
        markets: &MARKETS,
        either_side_first: false,
        whole_lines: false,
        fixed_handicap,
        play: Play::Timed(timed),
    }
}

static SOCCER: Rules = rules(
    900,
    None,
    Timed {
        starts: &[0, 3_600],
        seconds: 2_820,
        chances: 20,
        points: 1,
        other_points: &[],
        total: (2_200, 3_200),
        deviation: 1_650,
        overtime: None,
    },
);

static BASEBALL: Rules = rules(
    1_000,
    Some(1_500),
    Timed {
        starts: &[0, 1_200, 2_400, 3_600, 4_800, 6_000, 7_200, 8_400, 9_600],
        seconds: 1_140,
        chances: 2,
        points: 1,
        other_points: &[(2, 60), (3, 30), (4, 12)],
        total: (7_500, 9_500),
        deviation: 4_300,
        overtime: Some(Overtime { pause: 60, seconds: 1_140, full_periods: 9, points: &[1], stays_tied_one_in: 0 }),
    },
);

/// Games between equal sides.
fn games(rules: &'static Rules) -> impl Iterator<Item = (Match, Score)> {
    (0..400).map(move |number| {
        let seed = Seed::new(SEED).nth(number);
        let (home, away) = ("Home".into(), "Away".into());
        let game = Match { rules, seed, commence: i64::from(START), home, away, edge: 0, followed_by: 0 };
        let last = game.score_changes().pop().unwrap().score;
        (game, last)
    })
}

fn chances(game: &Match, market: Market, at: i64, score: Option<&Score>) -> Vec<Side> {
    game.chances(market, FixtureView { at, score, bias: Seed::new(7) }).unwrap()
}

#[test]
fn tied_game_without_overtime_is_a_draw_and_priced_as_one() {
    let (mut drawn, mut goals) = (0, 0);
    for (game, last) in games(&SOCCER) {
        let (home, away) = last.points.unwrap();
        drawn += i32::from(home == away);
        goals += home + away;
        assert_eq!(last.periods.len(), 2);
        let before = chances(&game, Market::MONEYLINE, game.commence - 60, None);
        assert_eq!(before.iter().map(|side| side.chance).sum::<i64>(), ONE);
        assert!(&*before[2].name == "Draw" && (180_000..320_000).contains(&before[2].chance), "{before:?}");
        let after = chances(&game, Market::MONEYLINE, game.commence + 6_420, Some(&last));
        let likeliest = after.iter().max_by_key(|side| side.chance).unwrap();
        let expected = match home.cmp(&away) {
            Ordering::Less => "Away",
            Ordering::Equal => "Draw",
            Ordering::Greater => "Home",
        };
        assert_eq!(&*likeliest.name, expected);
        for market in [Market::SPREAD, Market::TOTAL_POINTS] {
            let point = chances(&game, market, game.commence + 600, None)[0].point_milli.unwrap();
            assert_eq!(point.rem_euclid(1_000), 500);
        }
    }
    assert!((60..140).contains(&drawn), "{drawn} of 400");
    assert!((900..1_300).contains(&goals), "{goals} in 400");
}

#[test]
fn full_overtime_periods_are_played_until_one_side_leads() {
    let (mut longer, mut longest, mut runs) = (0, 0, 0);
    for (game, last) in games(&BASEBALL) {
        let (home, away) = last.points.unwrap();
        assert_ne!(home, away);
        runs += home + away;
        longer += usize::from(last.periods.len() > 9);
        longest = longest.max(last.periods.len());
        let sides = chances(&game, Market::SPREAD, game.commence - 60, None);
        assert_eq!(sides[0].point_milli.unwrap().abs(), 1_500);
        assert_eq!(chances(&game, Market::MONEYLINE, game.commence, None).len(), 2);
    }
    assert!((15..100).contains(&longer) && longest > 10, "{longer}, {longest}");
    assert!((400 * 7..400 * 10).contains(&runs), "{runs} in 400");
}
