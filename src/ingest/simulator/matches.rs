//! The engine of all sports in which two sides meet: it draws the fixtures of a slot and prices their markets, by the
//! parameters of the sport. How the score comes about, and what is expected of it, is the [`Play`]'s.

use std::sync::{Arc, LazyLock};

use super::curve::ONE;
use super::fair::{Distribution, Side};
use super::fixture::{Fixture, FixtureView, Outline, PriceModel, ScoreChange};
use super::markets::{Bet, GamePart, SimulatedMarket};
use super::noise::{AMPLITUDE, Seed};
use super::props::{Athlete, Prop};
use super::schedule::{DAY, Slot};
use super::sports::{Play, Rules, Starts};
use super::tennis;
use crate::model::{Contest, OutcomeName};

/// A line is offered while both of its sides are at least this likely, in millionths.
const OPEN_LINE: i64 = 20_000;
/// The same for alternate lines, and how many there are on each side of the main one.
const OPEN_ALTERNATE: i64 = 50_000;
const ALTERNATES: i64 = 3;
/// How much of the market's drift remains at the start, in thousandths: opinions approach each other until then.
const DRIFT_AT_START: i64 = 400;
/// From how long before the start they do.
const DRIFT_SETTLES: i64 = 3 * DAY;

/// Outcome names that all fixtures share.
static OVER: LazyLock<OutcomeName> = LazyLock::new(|| "Over".into());
static UNDER: LazyLock<OutcomeName> = LazyLock::new(|| "Under".into());
static DRAW: LazyLock<Arc<str>> = LazyLock::new(|| "Draw".into());
static YES_NO: LazyLock<[Arc<str>; 2]> = LazyLock::new(|| ["Yes".into(), "No".into()]);

/// What is expected at a second.
#[derive(Debug)]
pub(super) struct Forecast {
    /// Chances of the moneyline; `None` where the draw is not priced.
    pub home: i64,
    pub draw: Option<i64>,
    /// Of the final score; `None` while the market is closed.
    pub margin: Option<Distribution>,
    pub total: Option<Distribution>,
    /// The chance that both sides score.
    pub both_score: Option<i64>,
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
    /// The players of home and away that have props.
    pub squads: [Vec<Athlete>; 2],
}

/// The fixtures of a slot.
pub(super) fn fixtures(slot: &Slot, starts: &Starts, rules: &'static Rules) -> Vec<Fixture> {
    let (competition, competition_key) = slot.series.competition.of(slot.number);
    let starts = starts.seconds(slot.seed);
    let mut pool = slot.series.pool.draw(slot.seed, slot.number);
    let mut second_pool = slot.series.second_pool.map(|(one_in, pool)| {
        let names: Vec<Arc<str>> = pool.draw(slot.seed, slot.number).collect();
        (one_in, pool.seed, names.into_iter())
    });
    let strength = |name: &str| {
        let seed = slot.sport_seed.named("competitor").named(name);
        seed.within(-rules.strength_max, rules.strength_max)
    };
    let squad = |name: &str| -> Vec<Athlete> {
        let team = slot.series.pool.names.position(name);
        rules.squad.map(|squad| squad.players(team, slot.sport_seed).collect()).unwrap_or_default()
    };
    let mut fixtures = Vec::with_capacity(starts.len());
    for (number, start) in starts.iter().enumerate() {
        let seed = slot.seed.named("fixture").nth(i64::try_from(number).unwrap_or(0));
        let from_second = second_pool.as_mut().filter(|(one_in, name, _)| seed.named(name).one_in(*one_in));
        let pair = from_second.and_then(|(_, _, names)| names.next().zip(names.next()));
        let Some((home, away)) = pair.or_else(|| pool.next().zip(pool.next())) else { break };
        let edge = strength(&home) - strength(&away) + rules.home_advantage;
        let commence = slot.start + start;
        let followed_by = starts.len() - number - 1;
        let squads = [squad(&home), squad(&away)];
        let game = Match { rules, seed, commence, home, away, edge, followed_by, squads };
        let outline = Outline {
            seed,
            sport: slot.sport,
            competition: Arc::clone(&competition),
            competition_key: competition_key.clone(),
            contest: Contest::Sides { home: Arc::clone(&game.home), away: Arc::clone(&game.away) },
            announced: slot.announced + seed.named("announced").below(rules.announced_within),
            commence,
            called_off_one_in: rules.called_off_one_in,
        };
        fixtures.extend(Fixture::new(outline, game.score_changes(), Box::new(game)));
    }
    fixtures
}

impl Match {
    pub(super) fn score_changes(&self) -> Vec<ScoreChange> {
        match &self.rules.play {
            Play::Rounds(rounds) => rounds.score_changes(self),
            Play::Sets => tennis::score_changes(self),
            Play::Timed(timed) => timed.score_changes(self),
        }
    }

    fn forecast(&self, part: GamePart, view: FixtureView<'_>) -> Option<Forecast> {
        match &self.rules.play {
            Play::Rounds(rounds) => Some(rounds.forecast(self, view)),
            Play::Sets => Some(tennis::forecast(self, view)),
            Play::Timed(timed) => timed.forecast(self, part, view),
        }
    }

    /// The home side's advantage as a bookmaker sees it.
    pub(super) fn opinion(&self, view: FixtureView<'_>) -> i64 {
        let Rules { drift, bias, .. } = self.rules;
        self.edge + self.settling(self.seed, *drift, view) + view.bias.within(-bias, *bias)
    }

    /// By how much a bookmaker's opinion of the total differs from the truth.
    pub(super) fn total_drift(&self, view: FixtureView<'_>, drift: i64, bias: i64) -> i64 {
        self.settling(self.seed.named("total"), drift, view) + view.bias.named("total").within(-bias, bias)
    }

    /// A drift that becomes less until the start.
    fn settling(&self, seed: Seed, drift: i64, view: FixtureView<'_>) -> i64 {
        let ahead = (self.commence - view.at).clamp(0, DRIFT_SETTLES);
        let remaining = DRIFT_AT_START + (1_000 - DRIFT_AT_START) * ahead / DRIFT_SETTLES;
        seed.drift(view.at) * drift / AMPLITUDE * remaining / 1_000
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

    /// The main line and, for alternates, those around it.
    fn lines(&self, main: i64, is_alternate: bool) -> impl Iterator<Item = i64> {
        let count = if is_alternate { ALTERNATES } else { 0 };
        let step = self.rules.alternate_step;
        (-count..=count).map(move |number| main + number * step)
    }

    fn spread(&self, margin: &Distribution, is_alternate: bool) -> Vec<Side> {
        let handicap = self.rules.fixed_handicap.map(|points| if margin.above(0) < ONE / 2 { -points } else { points });
        let main = handicap.unwrap_or_else(|| margin.line(self.rules.whole_lines));
        let (home, away): (OutcomeName, OutcomeName) = (Arc::clone(&self.home).into(), Arc::clone(&self.away).into());
        let mut sides = Vec::new();
        for line in self.lines(main, is_alternate) {
            let chance = margin.above(line);
            if is_offered(chance, is_alternate) {
                sides.extend([Side::at(&home, chance, -line), Side::at(&away, ONE - chance, line)]);
            }
        }
        sides
    }

    fn total(&self, total: &Distribution, is_alternate: bool) -> Vec<Side> {
        let mut sides = Vec::new();
        for line in self.lines(total.line(self.rules.whole_lines), is_alternate).filter(|line| *line > 0) {
            let over = total.above(line);
            if is_offered(over, is_alternate) {
                sides.extend([Side::at(&OVER, over, line), Side::at(&UNDER, ONE - over, line)]);
            }
        }
        sides
    }

    fn players(&self, prop: &Prop, key: &str, view: FixtureView<'_>) -> Vec<Side> {
        let mut sides = Vec::new();
        for squad in &self.squads {
            prop.chances(key, squad, view, &mut sides);
        }
        sides
    }
}

/// Whether a line with this chance of its first side is offered: one that is all but decided is not.
const fn is_offered(chance: i64, is_alternate: bool) -> bool {
    let least = if is_alternate { OPEN_ALTERNATE } else { OPEN_LINE };
    chance >= least && chance <= ONE - least
}

impl PriceModel for Match {
    fn markets(&self) -> &'static [SimulatedMarket] {
        self.rules.markets
    }

    fn chances(&self, market: &SimulatedMarket, view: FixtureView<'_>) -> Option<Vec<Side>> {
        if let Bet::Players(prop) = market.bet {
            return Some(self.players(prop, market.key, view));
        }
        let forecast = self.forecast(market.part, view)?;
        let sides = match market.bet {
            Bet::Ways => self.moneyline(&forecast, view),
            Bet::Spread => self.spread(&forecast.margin?, false),
            Bet::AlternateSpreads => self.spread(&forecast.margin?, true),
            Bet::Total => self.total(&forecast.total?, false),
            Bet::AlternateTotals => self.total(&forecast.total?, true),
            Bet::BothScore => {
                let yes = forecast.both_score.filter(|yes| is_offered(*yes, false))?;
                vec![Side::new(&YES_NO[0], yes), Side::new(&YES_NO[1], ONE - yes)]
            }
            _ => return None,
        };
        (!sides.is_empty()).then_some(sides)
    }
}
