//! Sports played over periods of fixed length, in which both sides take turns at scoring: a period is divided into
//! chances, and each of them brings some points or none.

use super::fair::Estimate;
use super::fixture::{FixtureView, ScoreChange};
use super::matches::{Forecast, Match};
use super::noise::Seed;
use crate::model::Period;

/// Parameters of a timed sport.
#[derive(Debug)]
pub(super) struct Timed {
    /// When each period starts, in seconds after the start of the game, and how long it lasts.
    pub starts: &'static [i64],
    pub seconds: i64,
    /// Chances of both sides in a period; the away side has the first.
    pub chances: i64,
    /// What a side usually scores. How often it does follows from its expected points.
    pub points: i32,
    /// Other scores, each with its share of a thousand chances.
    pub other_points: &'static [(i32, i64)],
    /// The expected total of a game in thousandths of a point: the least and the most.
    pub total: (i64, i64),
    /// The standard deviation of the final margin and of the total before the start, in thousandths of a point.
    pub deviation: i64,
    /// `None` if a tied game is drawn: the draw is an outcome of the moneyline then.
    pub overtime: Option<Overtime>,
}

#[derive(Debug)]
pub(super) struct Overtime {
    /// Seconds before each period of it, and of the period itself.
    pub pause: i64,
    pub seconds: i64,
    /// How many periods are played in full if they end in a tie, before the first score wins.
    pub full_periods: i64,
    /// Scores that can win, equally likely.
    pub points: &'static [i32],
    /// One game in so many has no winner even so; zero for none.
    pub stays_tied_one_in: i64,
}

/// A game in progress.
struct Course {
    periods: Vec<Period>,
    changes: Vec<ScoreChange>,
}

impl Course {
    fn start_period(&mut self, at: i64) {
        let number = u16::try_from(self.periods.len() + 1).unwrap_or(u16::MAX);
        self.periods.push(Period { number, home: 0, away: 0 });
        self.push(at);
    }

    fn add(&mut self, points: i32, by_home: bool) {
        if let Some(period) = self.periods.last_mut() {
            *(if by_home { &mut period.home } else { &mut period.away }) += points;
        }
    }

    fn push(&mut self, at: i64) {
        self.changes.push(ScoreChange::new(at, Some(self.points()), &self.periods));
    }

    fn finish(mut self, at: i64) -> Vec<ScoreChange> {
        self.changes.push(ScoreChange::new(at, Some(self.points()), &self.periods).finished());
        self.changes
    }

    fn points(&self) -> (i32, i32) {
        self.periods.iter().fold((0, 0), |(home, away), period| (home + period.home, away + period.away))
    }

    fn is_tied(&self) -> bool {
        let (home, away) = self.points();
        home == away
    }
}

impl Timed {
    pub(super) fn score_changes(&self, game: &Match) -> Vec<ScoreChange> {
        let mut course = Course { periods: Vec::new(), changes: Vec::new() };
        let mut end = game.commence;
        for start in self.starts {
            self.play_period(game, &mut course, game.commence + start, self.seconds);
            end = game.commence + start + self.seconds;
        }
        match &self.overtime {
            Some(overtime) if course.is_tied() => self.play_overtime(game, overtime, course, end),
            _ => course.finish(end),
        }
    }

    fn play_period(&self, game: &Match, course: &mut Course, start: i64, seconds: i64) {
        course.start_period(start);
        let seed = game.seed.named("period").nth(i64::try_from(course.periods.len()).unwrap_or(0));
        let chances = (self.chances * seconds / self.seconds).max(2);
        for chance in 0..chances {
            let (seed, by_home) = (seed.nth(chance), chance % 2 == 1);
            if let Some(points) = self.score(game, seed, by_home) {
                course.add(points, by_home);
                let before_end = seed.named("at").within(1, seconds / chances / 2);
                course.push(start + (chance + 1) * seconds / chances - before_end);
            }
        }
    }

    fn play_overtime(&self, game: &Match, rules: &Overtime, mut course: Course, end: i64) -> Vec<ScoreChange> {
        let mut start = end + rules.pause;
        for _ in 0..rules.full_periods {
            self.play_period(game, &mut course, start, rules.seconds);
            if !course.is_tied() {
                return course.finish(start + rules.seconds);
            }
            start += rules.seconds + rules.pause;
        }
        let seed = game.seed.named("overtime");
        course.start_period(start);
        if rules.stays_tied_one_in > 0 && seed.named("tied").one_in(rules.stays_tied_one_in) {
            return course.finish(start + rules.seconds);
        }
        let points = rules.points.get(seed.named("points").pick(rules.points.len())).copied();
        course.add(points.unwrap_or(self.points), seed.named("side").one_in(2));
        course.finish(start + seed.named("at").within(rules.seconds / 4, rules.seconds))
    }

    /// What a chance brings.
    fn score(&self, game: &Match, seed: Seed, by_home: bool) -> Option<i32> {
        let periods = i64::try_from(self.starts.len()).unwrap_or(1);
        let edge = if by_home { game.edge } else { -game.edge };
        // Half of the total, and half of the chances.
        let expected = (self.expected_total(game) + edge) / (self.chances * periods);
        let by_others: i64 = self.other_points.iter().map(|(points, share)| i64::from(*points) * share).sum();
        let share = ((expected - by_others) / i64::from(self.points)).max(0);
        let mut number = seed.named("score").below(1_000);
        for (points, share) in std::iter::once((self.points, share)).chain(self.other_points.iter().copied()) {
            if number < share {
                return Some(points);
            }
            number -= share;
        }
        None
    }

    fn expected_total(&self, game: &Match) -> i64 {
        game.seed.named("total").within(self.total.0, self.total.1)
    }

    pub(super) fn forecast(&self, game: &Match, view: FixtureView<'_>) -> Forecast {
        let (home, away) = view.score.and_then(|score| score.points).unwrap_or((0, 0));
        let elapsed = view.at - game.commence;
        let played: i64 = self.starts.iter().map(|start| (elapsed - start).clamp(0, self.seconds)).sum();
        let periods = i64::try_from(self.starts.len()).unwrap_or(1);
        let left = 1_000 - played * 1_000 / (periods * self.seconds);
        let deviation = (self.deviation * self.deviation / 1_000 * left).isqrt().max(self.deviation / 9);
        let margin = Estimate { mean: i64::from(home - away) * 1_000 + game.opinion(view) * left / 1_000, deviation };
        let expected = self.expected_total(game) + game.total_drift(view, game.rules.drift);
        // The line is above the points scored, also at the end.
        let to_come = (expected * left / 1_000).max(600);
        let total = Estimate { mean: i64::from(home + away) * 1_000 + to_come, deviation };
        let (home, draw) = match self.overtime {
            Some(_) => (margin.above(0, 0), None),
            // Margins are whole: a draw is one between plus and minus a half.
            None => (margin.above(500, 0), Some(margin.above(-500, 0) - margin.above(500, 0))),
        };
        Forecast { home, draw, margin: Some(margin), total: Some(total) }
    }
}
