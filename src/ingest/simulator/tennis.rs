//! Tennis: best of three sets, played game by game. The score counts sets, and its periods are the games of each set.

use super::curve::{ONE, sigmoid};
use super::fair::{Distribution, Estimate};
use super::fixture::{FixtureView, ScoreChange};
use super::matches::{Forecast, Match};
use crate::model::Period;

/// The server's advantage in thousandths of a logit: four games of five are held.
const SERVE: i64 = 1_400;
/// The expected games of a set, and the deviations of the margin and the total of a match, in thousandths.
const SET_GAMES: i64 = 9_700;
const MARGIN_DEVIATION: i64 = 7_700;
const TOTAL_DEVIATION: i64 = 8_500;
const TOTAL_DRIFT: i64 = 900;
const TOTAL_BIAS: i64 = 300;

pub(super) fn score_changes(game: &Match) -> Vec<ScoreChange> {
    let mut sets: Vec<Period> = Vec::new();
    let mut changes = Vec::new();
    let (mut at, mut number) = (game.commence, 0);
    while sets_won(&sets).0.max(sets_won(&sets).1) < 2 {
        at += if sets.is_empty() { 0 } else { 90 };
        let mut set = Period { number: u16::try_from(sets.len() + 1).unwrap_or(u16::MAX), home: 0, away: 0 };
        sets.push(set);
        changes.push(ScoreChange::new(at, Some(sets_won(&sets)), &sets));
        while !is_won(&set) {
            let seed = game.seed.named("game").nth(number);
            let is_tie_break = (set.home, set.away) == (6, 6);
            at += if is_tie_break { seed.within(420, 720) } else { seed.within(150, 330) };
            let serve = match (is_tie_break, number % 2) {
                (true, _) => 0,
                (false, 0) => SERVE,
                (false, _) => -SERVE,
            };
            let home_wins = seed.named("won").below(ONE) < sigmoid(serve + game.edge / 4);
            *(if home_wins { &mut set.home } else { &mut set.away }) += 1;
            if let Some(last) = sets.last_mut() {
                *last = set;
            }
            changes.push(ScoreChange::new(at, Some(sets_won(&sets)), &sets));
            number += 1;
        }
    }
    let last = changes.pop().map(ScoreChange::finished);
    changes.extend(last);
    changes
}

pub(super) fn forecast(game: &Match, view: FixtureView<'_>) -> Forecast {
    let sets = view.score.map_or(&[][..], |score| &score.periods);
    let games = |set: &Period| (i64::from(set.home), i64::from(set.away));
    let sum = |(home, away): (i64, i64), set: &Period| (home + games(set).0, away + games(set).1);
    let (home, away) = sets.iter().fold((0, 0), sum);
    let running = sets.last().filter(|set| !is_won(set)).map_or((0, 0), games);
    let (home_sets, away_sets) = sets_won(sets);
    let opinion = game.opinion(view);

    let played = (home + away) * 1_000;
    let expected = expected_games(played, (running.0 + running.1) * 1_000, home_sets + away_sets);
    let margin = (home - away) * 1_000 + opinion * 2_600 / 1_000 * (expected - played).max(0) / 23_000;
    // A match between equals is the longer one.
    let total = expected + game.total_drift(view, TOTAL_DRIFT, TOTAL_BIAS) - game.edge.abs() * 700 / 1_000;
    Forecast {
        home: sigmoid(opinion + i64::from(home_sets - away_sets) * 1_600 + (running.0 - running.1) * 330),
        draw: None,
        margin: Some(Distribution::Normal(Estimate { mean: margin, deviation: MARGIN_DEVIATION })),
        total: Some(Distribution::Normal(Estimate { mean: total.max(played + 1_000), deviation: TOTAL_DEVIATION })),
        both_score: None,
    }
}

/// The games of the whole match in thousandths; `running` are those of the current set.
fn expected_games(played: i64, running: i64, sets_done: i32) -> i64 {
    // Two matches in five go to a third set.
    let further_sets = match sets_done {
        0 => SET_GAMES * 14 / 10,
        1 => SET_GAMES * 4 / 10,
        _ => 0,
    };
    played - running + SET_GAMES.max(running + 1_000) + further_sets
}

fn is_won(set: &Period) -> bool {
    let (more, less) = (set.home.max(set.away), set.home.min(set.away));
    more == 7 || (more == 6 && less <= 4)
}

fn sets_won(sets: &[Period]) -> (i32, i32) {
    let won = |home: bool| sets.iter().filter(|set| is_won(set) && (set.home > set.away) == home).count();
    (i32::try_from(won(true)).unwrap_or(0), i32::try_from(won(false)).unwrap_or(0))
}
