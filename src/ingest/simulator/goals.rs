//! Sports of few goals: both sides score by a Poisson process of their own, and every chance is a sum over the scores that
//! are still possible. So all markets of an event agree with each other.

use super::curve::{ONE, exp_below};

/// The number of goal counts of one side with a chance of their own, from 0; the last one includes all higher counts.
const GOALS: usize = 13;

/// A distribution over whole numbers, in millionths.
#[derive(Clone, Debug)]
pub(super) struct CountChances {
    /// The number that the first chance is of.
    first: i64,
    chances: Vec<i64>,
}

impl CountChances {
    fn new(first: i64) -> Self {
        CountChances { first, chances: vec![0; 2 * GOALS] }
    }

    fn add(&mut self, number: i64, chance: i64) {
        let last = self.chances.len() - 1;
        let at = usize::try_from(number - self.first).unwrap_or(0).min(last);
        self.chances[at] += chance;
    }

    /// The chance of more than a line in thousandths.
    pub(super) fn above(&self, line: i64) -> i64 {
        let numbers = (self.first..).zip(&self.chances);
        numbers.filter(|(number, _)| number * 1_000 > line).map(|(_, chance)| chance).sum::<i64>().min(ONE)
    }

    /// The half point that is nearest to an even chance.
    pub(super) fn line(&self) -> i64 {
        let lines = (self.first..).take(self.chances.len()).map(|number| number * 1_000 + 500);
        lines.min_by_key(|line| (2 * self.above(*line) - ONE).abs()).unwrap_or(500)
    }
}

/// A game of goals, from its score and what is still expected.
#[derive(Clone, Copy, Debug)]
pub(super) struct GoalGame {
    /// The goals of home and away so far.
    pub score: (i64, i64),
    /// The goals that each is expected to add, in thousandths.
    pub expected: (i64, i64),
    /// The home side's chance to score first in overtime; `None` if a tie stays one.
    pub overtime: Option<i64>,
}

/// What can be bet on in a game of goals.
#[derive(Debug)]
pub(super) struct GoalChances {
    pub home: i64,
    pub draw: i64,
    pub both_score: i64,
    pub margin: CountChances,
    pub total: CountChances,
}

impl GoalGame {
    pub(super) fn chances(self) -> GoalChances {
        let (home_goals, away_goals) = (poisson(self.expected.0), poisson(self.expected.1));
        let (home, away) = self.score;
        let most = i64::try_from(GOALS).unwrap_or(0);
        let mut margin = CountChances::new(home - away - most);
        let mut total = CountChances::new(home + away);
        let (mut wins, mut draws, mut both_score) = (0, 0, 0);
        for (home, home_chance) in (home..).zip(&home_goals) {
            for (away, away_chance) in (away..).zip(&away_goals) {
                let chance = home_chance * away_chance / ONE;
                if home > 0 && away > 0 {
                    both_score += chance;
                }
                match self.overtime {
                    Some(home_first) if home == away => {
                        let by_home = chance * home_first / ONE;
                        margin.add(1, by_home);
                        margin.add(-1, chance - by_home);
                        total.add(home + away + 1, chance);
                        wins += by_home;
                    }
                    _ => {
                        margin.add(home - away, chance);
                        total.add(home + away, chance);
                        wins += if home > away { chance } else { 0 };
                        draws += if home == away { chance } else { 0 };
                    }
                }
            }
        }
        GoalChances { home: wins, draw: draws, both_score, margin, total }
    }
}

/// The chances of no, one, two and so on goals, which sum to one.
fn poisson(mean: i64) -> [i64; GOALS] {
    let mut chances = [0; GOALS];
    let (mut chance, mut left) = (exp_below(mean).min(ONE), ONE);
    for (number, slot) in (1..).zip(&mut chances) {
        *slot = chance.min(left);
        left -= *slot;
        chance = chance * mean / (number * 1_000);
    }
    chances[GOALS - 1] += left;
    chances
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVEN: GoalGame = GoalGame { score: (0, 0), expected: (1_400, 1_200), overtime: None };

    #[test]
    fn goals_follow_a_poisson_distribution() {
        let chances = poisson(1_400);
        for (chance, expected) in chances.into_iter().zip([246_597, 345_236, 241_665, 112_777, 39_472]) {
            assert!((chance - expected).abs() < 1_000, "{chances:?}");
        }
        for mean in (0..9_000).step_by(7) {
            assert_eq!(poisson(mean).iter().sum::<i64>(), ONE, "{mean}");
        }
    }

    #[test]
    fn markets_of_a_game_agree() {
        for (score, expected) in [((0, 0), (1_400, 1_200)), ((2, 0), (300, 900)), ((1, 3), (15, 15))] {
            let chances = GoalGame { score, expected, ..EVEN }.chances();
            assert!((chances.margin.above(500) - chances.home).abs() <= 200, "{chances:?}");
            assert!((chances.margin.above(-500) - chances.home - chances.draw).abs() <= 200, "{chances:?}");
            assert!(chances.both_score <= chances.total.above(1_500) + 200, "{chances:?}");
        }
        let even = EVEN.chances();
        assert!((230_000..290_000).contains(&even.draw) && even.total.line() == 2_500, "{even:?}");
    }

    #[test]
    fn tie_is_settled_by_a_goal_in_overtime() {
        let game = GoalGame { score: (2, 2), expected: (0, 0), overtime: Some(600_000) };
        let chances = game.chances();
        assert_eq!((chances.home, chances.draw, chances.total.above(4_500)), (600_000, 0, ONE));
        assert_eq!((chances.margin.above(500), chances.margin.above(1_500)), (600_000, 0));
    }
}
