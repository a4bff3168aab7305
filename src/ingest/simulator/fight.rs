//! Fights: a bout ends by a stoppage or by the judges' decision, which can be a draw. Its score is 0 to 0 until then, and
//! its periods are the judges' rounds.

use std::cmp::Ordering::{self, Equal, Greater, Less};

use super::curve::{ONE, sigmoid};
use super::fair::{Distribution, Estimate};
use super::fixture::{FixtureView, ScoreChange};
use super::matches::{Forecast, Match};
use super::noise::Seed;
use crate::model::Period;

const REST_SECONDS: i64 = 60;
const DECISION_SECONDS: i64 = 180;
/// In thousandths of a round.
const TOTAL_DRIFT: i64 = 300;
const TOTAL_BIAS: i64 = 120;
const TOTAL_DEVIATION: i64 = 3_400;

/// Parameters of a sport of rounds.
#[derive(Debug)]
pub(super) struct Rounds {
    pub rounds: i64,
    /// Rounds of the last bouts of a card, and how many bouts those are.
    pub main_rounds: i64,
    pub main_bouts: usize,
    pub seconds: i64,
    /// In how many of a thousand rounds a bout is stopped: the least and the most.
    pub stopped: (i64, i64),
    /// The chance of a draw in millionths where it is priced, and in how many bouts it is.
    pub drawn: (i64, i64),
    pub draw_priced_one_in: i64,
}

impl Rounds {
    fn scheduled(&self, bout: &Match) -> i64 {
        if bout.followed_by < self.main_bouts { self.main_rounds } else { self.rounds }
    }

    fn stopped(&self, bout: &Match) -> i64 {
        bout.seed.named("stopped").within(self.stopped.0, self.stopped.1)
    }

    pub(super) fn score_changes(&self, bout: &Match) -> Vec<ScoreChange> {
        let (rounds, stopped) = (self.scheduled(bout), self.stopped(bout));
        let mut periods: Vec<Period> = Vec::new();
        let mut changes = vec![ScoreChange::new(bout.commence, Some((0, 0)), &periods)];
        for round in 0..rounds {
            let seed = bout.seed.named("round").nth(round);
            let start = bout.commence + round * (self.seconds + REST_SECONDS);
            if seed.named("stopped").below(1_000) < stopped {
                let at = start + seed.named("moment").within(20, self.seconds);
                let result = if home_wins(bout, seed.named("stopper")) { Greater } else { Less };
                changes.push(decided(bout, at, &periods, result));
                return changes;
            }
            let number = u16::try_from(round + 1).unwrap_or(u16::MAX);
            let (home, away) = match seed.named("even").one_in(16) {
                true => (10, 10),
                false if home_wins(bout, seed.named("judges")) => (10, 9),
                false => (9, 10),
            };
            periods.push(Period { number, home, away });
            changes.push(ScoreChange::new(start + self.seconds, Some((0, 0)), &periods));
        }
        let end = bout.commence + rounds * (self.seconds + REST_SECONDS) + DECISION_SECONDS;
        changes.push(decided(bout, end, &periods, lead(&periods).cmp(&0)));
        changes
    }

    pub(super) fn forecast(&self, bout: &Match, view: FixtureView<'_>) -> Forecast {
        let rounds = self.scheduled(bout);
        let periods = view.score.map_or(&[][..], |score| &score.periods);
        let done = i64::try_from(periods.len()).unwrap_or(0);
        // A lead weighs more the fewer rounds are left.
        let lead = lead(periods) * 2_100 / rounds * (rounds + done) / rounds;
        let is_draw_priced = bout.seed.named("draw").one_in(self.draw_priced_one_in);
        let draw = is_draw_priced.then(|| bout.seed.named("drawn").within(self.drawn.0, self.drawn.1));
        let home = sigmoid(bout.opinion(view) + lead) * (ONE - draw.unwrap_or(0)) / ONE;
        // The market closes in the last round.
        let total = (done + 1 < rounds).then(|| Distribution::Normal(self.total(bout, rounds, done, view)));
        Forecast { home, draw, margin: None, total, both_score: None }
    }

    fn total(&self, bout: &Match, rounds: i64, done: i64, view: FixtureView<'_>) -> Estimate {
        // The sum of the chances that each further round starts, less the part of the last one that is not fought.
        let (mut reached, mut mean) = (1_000, done * 1_000 - 400);
        for _ in done..rounds {
            mean += reached;
            reached = reached * (1_000 - self.stopped(bout)) / 1_000;
        }
        Estimate { mean: mean + bout.total_drift(view, TOTAL_DRIFT, TOTAL_BIAS), deviation: TOTAL_DEVIATION }
    }
}

fn home_wins(bout: &Match, seed: Seed) -> bool {
    seed.below(ONE) < sigmoid(bout.edge)
}

/// `result` compares the home fighter with the other.
fn decided(bout: &Match, at: i64, periods: &[Period], result: Ordering) -> ScoreChange {
    let (points, winner) = match result {
        Greater => ((1, 0), Some(&bout.home)),
        Less => ((0, 1), Some(&bout.away)),
        Equal => ((0, 0), None),
    };
    let mut change = ScoreChange::new(at, Some(points), periods).finished();
    change.score.winner = winner.cloned();
    change
}

/// By how many rounds the home fighter is ahead.
fn lead(periods: &[Period]) -> i64 {
    periods.iter().map(|period| i64::from((period.home - period.away).signum())).sum()
}
