//! Sports played over periods, in which both sides take turns at scoring: a period is divided into chances, and each of
//! them brings some points or none. A sport of many points is priced by a normal distribution, one of few by `goals`.

use super::curve::ONE;
use super::fair::{Distribution, Estimate};
use super::fixture::{FixtureView, ScoreChange};
use super::goals::GoalGame;
use super::markets::GamePart;
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
    pub scoring: Scoring,
    /// Whether the last period, and any of overtime, ends when the home side leads before its last turn.
    pub home_plays_last: bool,
    /// `None` if a tied game is drawn: the draw is an outcome of the moneyline then.
    pub overtime: Option<Overtime>,
}

/// How final scores are distributed.
#[derive(Debug)]
pub(super) enum Scoring {
    /// Many points: normally, with this standard deviation of margin and total before the start, in thousandths.
    Points { deviation: i64 },
    /// Few goals: each side's by a Poisson distribution.
    Goals,
}

/// The part of a game that a market is about, at a second.
struct Progress {
    /// What home and away have in it.
    score: (i64, i64),
    /// What is left of it, in thousandths, and its share of the game.
    left: i64,
    share: i64,
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

    fn is_home_ahead(&self) -> bool {
        let (home, away) = self.points();
        home > away
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
            if self.home_plays_last && by_home && course.periods.len() >= self.starts.len() && course.is_home_ahead() {
                break;
            }
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

    /// `None` once the part is over.
    fn progress(&self, game: &Match, part: GamePart, view: FixtureView<'_>) -> Option<Progress> {
        let periods = self.starts.len();
        let count = if let GamePart::First(count) = part { count.min(periods) } else { periods };
        let elapsed = view.at - game.commence;
        let starts = &self.starts[..count];
        let is_over = starts.last().is_none_or(|start| elapsed >= start + self.seconds);
        if part != GamePart::Whole && is_over {
            return None;
        }
        let played: i64 = starts.iter().map(|start| (elapsed - start).clamp(0, self.seconds)).sum();
        let lengths = [count, periods].map(|count| i64::try_from(count).unwrap_or(1) * self.seconds);
        let (home, away) = view.score.and_then(|score| score.points).unwrap_or((0, 0));
        Some(Progress {
            score: (i64::from(home), i64::from(away)),
            left: 1_000 - played * 1_000 / lengths[0],
            share: lengths[0] * 1_000 / lengths[1],
        })
    }

    /// `None` while markets of this part of the game are closed.
    pub(super) fn forecast(&self, game: &Match, part: GamePart, view: FixtureView<'_>) -> Option<Forecast> {
        let progress = self.progress(game, part, view)?;
        let to_come = progress.share * progress.left / 1_000;
        let margin = game.opinion(view) * to_come / 1_000;
        let rules = game.rules;
        let expected = self.expected_total(game) + game.total_drift(view, rules.drift, rules.bias);
        let total = expected * to_come / 1_000;
        Some(match self.scoring {
            Scoring::Points { deviation } => points(&progress, margin, total, deviation),
            Scoring::Goals => self.goals(game, part, &progress, (margin, total), view),
        })
    }

    fn goals(
        &self,
        game: &Match,
        part: GamePart,
        progress: &Progress,
        (margin, total): (i64, i64),
        view: FixtureView<'_>,
    ) -> Forecast {
        // The better side is a little more likely to score first in overtime.
        let home_first = || ONE / 2 + (game.opinion(view) * 120).clamp(-ONE / 5, ONE / 5);
        let has_overtime = part == GamePart::Whole && self.overtime.is_some();
        let chances = GoalGame {
            score: progress.score,
            expected: ((total + margin).max(30) / 2, (total - margin).max(30) / 2),
            overtime: has_overtime.then(home_first),
        }
        .chances();
        Forecast {
            home: chances.home,
            draw: (!has_overtime).then_some(chances.draw),
            margin: Some(Distribution::Goals(chances.margin)),
            total: Some(Distribution::Goals(chances.total)),
            both_score: Some(chances.both_score),
        }
    }
}

/// The forecast of a sport of many points.
fn points(progress: &Progress, margin: i64, total: i64, deviation: i64) -> Forecast {
    let (home, away) = progress.score;
    let variance = deviation * deviation / 1_000 * progress.share / 1_000 * progress.left;
    let deviation = variance.isqrt().max(deviation / 9);
    let margin = Estimate { mean: (home - away) * 1_000 + margin, deviation };
    // The line is above the points scored, also at the end.
    let total = Estimate { mean: (home + away) * 1_000 + total.max(600), deviation };
    Forecast {
        home: margin.above(0),
        draw: None,
        margin: Some(Distribution::Normal(margin)),
        total: Some(Distribution::Normal(total)),
        both_score: None,
    }
}
