//! The engine of all sports in which two sides meet: it draws the fixtures of a slot and prices their markets, by the
//! parameters of the sport. How the score comes about, and what is expected of it, is the [`Play`]'s.

use std::sync::{Arc, LazyLock};

use super::curve::ONE;
use super::fair::{Estimate, Side};
use super::fixture::{Fixture, FixtureView, Outline, PriceModel, ScoreChange};
use super::noise::{AMPLITUDE, Seed};
use super::roster::cycled;
use super::schedule::Slot;
use super::sports::{CompetitionNames, Play, Rules, Starts};
use super::tennis;
use crate::model::{Contest, Market};

/// How far the price of a line moves by a bookmaker's own opinion, in thousandths of a logit.
const LINE_BIAS: i64 = 60;

/// Outcome names that all fixtures share.
static OVER: LazyLock<Arc<str>> = LazyLock::new(|| "Over".into());
static UNDER: LazyLock<Arc<str>> = LazyLock::new(|| "Under".into());
static DRAW: LazyLock<Arc<str>> = LazyLock::new(|| "Draw".into());

/// What is expected at a second.
#[derive(Debug)]
pub(super) struct Forecast {
    /// Chances of the moneyline; `None` where the draw is not priced.
    pub home: i64,
    pub draw: Option<i64>,
    /// Of the final score; `None` while the market is closed.
    pub margin: Option<Estimate>,
    pub total: Option<Estimate>,
}

#[derive(Debug)]
pub(super) struct Match {
    pub rules: &'static Rules,
    pub seed: Seed,
    pub commence: i64,
    pub home: Arc<str>,
    pub away: Arc<str>,
    /// The home side's advantage, in the unit of the play.
    pub edge: i64,
    /// How many fixtures of the slot follow.
    pub followed_by: usize,
}

/// The fixtures of a slot.
pub(super) fn fixtures(slot: &Slot, rules: &'static Rules) -> Vec<Fixture> {
    let competition = rules.competitions.name(slot);
    let starts = rules.starts.seconds(slot.seed);
    let mut pool = slot.series.pool.draw(slot.seed, slot.number);
    let mut second_pool = slot.series.second_pool.map(|(one_in, pool)| {
        let names: Vec<Arc<str>> = pool.draw(slot.seed, slot.number).collect();
        (one_in, pool.seed, names.into_iter())
    });
    let strength = |name: &str| {
        let seed = slot.world.named(rules.competitor_seed).named(name);
        seed.within(-rules.strength_max, rules.strength_max)
    };
    let mut fixtures = Vec::with_capacity(starts.len());
    for (number, start) in starts.iter().enumerate() {
        let seed = slot.seed.named(rules.fixture_seed).nth(i64::try_from(number).unwrap_or(0));
        let from_second = second_pool.as_mut().filter(|(one_in, name, _)| seed.named(name).one_in(*one_in));
        let pair = from_second.and_then(|(_, _, names)| names.next().zip(names.next()));
        let Some((home, away)) = pair.or_else(|| pool.next().zip(pool.next())) else { break };
        let edge = strength(&home) - strength(&away) + rules.home_advantage;
        let commence = slot.start + start;
        let followed_by = starts.len() - number - 1;
        let game = Match { rules, seed, commence, home, away, edge, followed_by };
        let outline = Outline {
            seed,
            sport: slot.sport,
            competition: Arc::clone(&competition),
            contest: Contest::Sides { home: Arc::clone(&game.home), away: Arc::clone(&game.away) },
            announced: slot.announced + seed.named("announced").below(rules.announced_within),
            commence,
            called_off_one_in: rules.called_off_one_in,
        };
        fixtures.extend(Fixture::new(outline, game.score_changes(), Box::new(game)));
    }
    fixtures
}

impl CompetitionNames {
    fn name(&self, slot: &Slot) -> Arc<str> {
        let name = cycled(self.names, slot.number.div_euclid(self.slots) * slot.series_count + slot.position);
        if self.is_numbered { format!("{name} {}", slot.number.rem_euclid(900) + 1).into() } else { name.into() }
    }
}

impl Starts {
    /// Seconds after the start of the slot.
    fn seconds(&self, slot: Seed) -> Vec<i64> {
        match self {
            Starts::Every { fewest, most, seconds } => {
                (0..slot.named("bouts").within(*fewest, *most)).map(|number| number * seconds).collect()
            }
            Starts::At(starts) => {
                starts.iter().flat_map(|(count, start)| std::iter::repeat_n(*start, *count)).collect()
            }
        }
    }
}

impl Match {
    pub(super) fn score_changes(&self) -> Vec<ScoreChange> {
        match &self.rules.play {
            Play::Rounds(rounds) => rounds.score_changes(self),
            Play::Sets => tennis::score_changes(self),
            Play::Timed(timed) => timed.score_changes(self),
        }
    }

    fn forecast(&self, view: FixtureView<'_>) -> Forecast {
        match &self.rules.play {
            Play::Rounds(rounds) => rounds.forecast(self, view),
            Play::Sets => tennis::forecast(self, view),
            Play::Timed(timed) => timed.forecast(self, view),
        }
    }

    /// The home side's advantage as a bookmaker sees it.
    pub(super) fn opinion(&self, view: FixtureView<'_>) -> i64 {
        let Rules { drift, bias, .. } = self.rules;
        self.edge + self.seed.drift(view.at) * drift / AMPLITUDE + view.bias.within(-bias, *bias)
    }

    /// By how much the market's opinion of the total differs from the truth.
    pub(super) fn total_drift(&self, view: FixtureView<'_>, drift: i64) -> i64 {
        self.seed.named("total").drift(view.at) * drift / AMPLITUDE
    }

    fn moneyline(&self, forecast: &Forecast, view: FixtureView<'_>) -> Vec<Side> {
        let away = ONE - forecast.home - forecast.draw.unwrap_or(0);
        let mut sides = vec![Side::new(&self.home, forecast.home), Side::new(&self.away, away)];
        if self.rules.either_side_first && view.bias.named("order").one_in(2) {
            sides.swap(0, 1);
        }
        sides.extend(forecast.draw.map(|chance| Side::new(&DRAW, chance)));
        sides
    }

    fn spread(&self, margin: Estimate, view: FixtureView<'_>) -> Vec<Side> {
        let handicap = self.rules.fixed_handicap.map(|points| if margin.mean < 0 { -points } else { points });
        let line = handicap.unwrap_or_else(|| margin.line(self.rules.whole_lines));
        let home = margin.above(line, view.bias.named("spread").within(-LINE_BIAS, LINE_BIAS));
        vec![Side::at(&self.home, home, -line), Side::at(&self.away, ONE - home, line)]
    }

    fn total(&self, total: Estimate, view: FixtureView<'_>) -> Vec<Side> {
        let line = total.line(self.rules.whole_lines);
        let over = total.above(line, view.bias.named("total").within(-LINE_BIAS, LINE_BIAS));
        vec![Side::at(&OVER, over, line), Side::at(&UNDER, ONE - over, line)]
    }
}

impl PriceModel for Match {
    fn markets(&self) -> &'static [Market] {
        self.rules.markets
    }

    fn chances(&self, market: Market, view: FixtureView<'_>) -> Option<Vec<Side>> {
        let forecast = self.forecast(view);
        match market {
            Market::MONEYLINE => Some(self.moneyline(&forecast, view)),
            Market::SPREAD => forecast.margin.map(|margin| self.spread(margin, view)),
            Market::TOTAL_ROUNDS | Market::TOTAL_POINTS => forecast.total.map(|total| self.total(total, view)),
            _ => None,
        }
    }
}
