//! Fights: cards of bouts, fought round by round. A bout ends by a stoppage or on the judges' cards, where it can be
//! drawn; its score stays 0 to 0 until then, and its periods are the judges' rounds.

use std::cmp::Ordering::{self, Greater, Less};
use std::sync::Arc;

use super::curve::{ONE, sigmoid};
use super::fair::{Line, Side, two_way};
use super::fixture::{Beat, Fixture, Outline, Play, View, second};
use super::noise::{Dice, SWING};
use super::roster::{Roster, around};
use super::schedule::Slot;
use crate::model::{Contest, Market, Period, Score, ScoreStatus};

const MARKETS: [Market; 2] = [Market::Moneyline, Market::TotalRounds];

/// What tells one fighting sport from the other.
#[derive(Debug)]
pub(super) struct Rules {
    pub bouts: (i64, i64),
    pub bout_every: i64,
    /// Rounds of the early bouts and of the main ones.
    pub rounds: (i64, i64),
    pub main_bouts: i64,
    pub round_seconds: i64,
    /// In how many of a thousand rounds a bout is stopped.
    pub stopped: (i64, i64),
    /// A draw's chance in millionths, where it is priced.
    pub drawn: (i64, i64),
    /// Every so many of the bouts are priced with a draw.
    pub draw_priced_one_in: i64,
    /// Where in the list of names its fighters begin.
    pub first_man: usize,
    pub first_woman: usize,
    pub women_one_in: i64,
}

pub(super) const MMA: Rules = Rules {
    bouts: (8, 12),
    bout_every: 1_800,
    rounds: (3, 5),
    main_bouts: 1,
    round_seconds: 300,
    stopped: (110, 260),
    drawn: (12_000, 25_000),
    draw_priced_one_in: 5,
    first_man: 0,
    first_woman: 0,
    women_one_in: 4,
};

pub(super) const BOXING: Rules = Rules {
    bouts: (5, 6),
    bout_every: 3_600,
    rounds: (8, 12),
    main_bouts: 2,
    round_seconds: 180,
    stopped: (35, 90),
    drawn: (30_000, 70_000),
    draw_priced_one_in: 2,
    first_man: 240,
    first_woman: 100,
    women_one_in: 6,
};

const REST: i64 = 60;
const VERDICT_AFTER: i64 = 180;
/// Cards that follow each other draw their fighters from different parts of the list.
const CARDS_APART: i64 = 6;
const MEN_PER_CARD: usize = 36;
const WOMEN_PER_CARD: usize = 12;

/// The bouts of one card, the main one last.
pub(super) fn card(slot: &Slot<'_>, rules: &'static Rules, promotions: &[&str]) -> Vec<Fixture> {
    let dice = slot.dice;
    let number = slot.number.rem_euclid(900) + 1;
    let competition: Arc<str> = format!("{} {number}", around(promotions, slot.number)).into();
    let bouts = dice.of("bouts").within(rules.bouts.0, rules.bouts.1);
    let part = usize::try_from(slot.number.rem_euclid(CARDS_APART)).unwrap_or(0);
    let men = dice.of("men").shuffled(MEN_PER_CARD);
    let women = dice.of("women").shuffled(WOMEN_PER_CARD);
    let (mut by_men, mut by_women) = (men.chunks_exact(2), women.chunks_exact(2));
    let mut card = Vec::new();
    for bout in 0..bouts {
        let dice = dice.of("bout").nth(bout);
        let is_womens = dice.of("women").one_in(rules.women_one_in) && by_women.len() > 0;
        let Some([first, second]) = (if is_womens { by_women.next() } else { by_men.next() }) else { break };
        let base =
            if is_womens { rules.first_woman + part * WOMEN_PER_CARD } else { rules.first_man + part * MEN_PER_CARD };
        let fighters = [base + first, base + second].map(|athlete| Fighter::new(slot, athlete, is_womens));
        let is_main = bout + rules.main_bouts >= bouts;
        let fight = Fight::new(dice, rules, fighters, is_main, slot.roster);
        let outline = Outline {
            dice,
            sport: slot.sport,
            competition: Arc::clone(&competition),
            contest: Contest::Sides { home: Arc::clone(&fight.home), away: Arc::clone(&fight.away) },
            announced: slot.announced + dice.of("announced").below(6 * 3_600),
            commence: slot.start + bout * rules.bout_every,
            mishaps: 30,
        };
        let beats = fight.course(outline.commence);
        card.extend(Fixture::new(outline, beats, Box::new(fight)));
    }
    card
}

struct Fighter {
    name: Arc<str>,
    strength: i64,
}

impl Fighter {
    fn new(slot: &Slot<'_>, athlete: usize, is_womens: bool) -> Self {
        let name = if is_womens { slot.roster.woman(athlete) } else { slot.roster.man(athlete) };
        // By name, so that strength is the fighter's own, card after card.
        let strength = slot.world.of("fighter").of(&name).within(-1_100, 1_100);
        Fighter { name, strength }
    }
}

#[derive(Debug)]
struct Fight {
    dice: Dice,
    home: Arc<str>,
    away: Arc<str>,
    /// Where the draw is priced, its name and chance.
    draw: Option<(Arc<str>, i64)>,
    over: Arc<str>,
    under: Arc<str>,
    edge: i64,
    rounds: i64,
    round_seconds: i64,
    stopped: i64,
}

impl Fight {
    fn new(dice: Dice, rules: &Rules, [home, away]: [Fighter; 2], is_main: bool, roster: &Roster) -> Self {
        let draw_chance = dice.of("drawn").within(rules.drawn.0, rules.drawn.1);
        let draw_priced = dice.of("draw").one_in(rules.draw_priced_one_in);
        Fight {
            dice,
            edge: home.strength - away.strength,
            home: home.name,
            away: away.name,
            draw: draw_priced.then(|| (Arc::clone(&roster.draw), draw_chance)),
            over: Arc::clone(&roster.over),
            under: Arc::clone(&roster.under),
            rounds: if is_main { rules.rounds.1 } else { rules.rounds.0 },
            round_seconds: rules.round_seconds,
            stopped: dice.of("stopped").within(rules.stopped.0, rules.stopped.1),
        }
    }

    /// The whole bout, from the first bell to the verdict.
    fn course(&self, commence: i64) -> Vec<Beat> {
        let mut periods: Vec<Period> = Vec::new();
        let mut beats = vec![self.beat(commence, &periods, None)];
        for round in 0..self.rounds {
            let dice = self.dice.of("round").nth(round);
            let bell = commence + round * (self.round_seconds + REST);
            if dice.of("stopped").below(1_000) < self.stopped {
                let at = bell + dice.of("moment").within(20, self.round_seconds);
                let verdict = if self.goes_home(dice.of("stopper")) { Greater } else { Less };
                beats.push(self.beat(at, &periods, Some(verdict)));
                return beats;
            }
            periods.push(self.judged(dice, round));
            beats.push(self.beat(bell + self.round_seconds, &periods, None));
        }
        let end = commence + self.rounds * (self.round_seconds + REST) + VERDICT_AFTER;
        beats.push(self.beat(end, &periods, Some(lead(&periods).cmp(&0))));
        beats
    }

    fn goes_home(&self, dice: Dice) -> bool {
        dice.below(ONE) < sigmoid(self.edge)
    }

    fn judged(&self, dice: Dice, round: i64) -> Period {
        let number = u16::try_from(round + 1).unwrap_or(u16::MAX);
        let (home, away) = match dice.of("even").one_in(16) {
            true => (10, 10),
            false if self.goes_home(dice.of("judges")) => (10, 9),
            false => (9, 10),
        };
        Period { number, home, away }
    }

    /// `verdict` compares the home fighter with the other at the end.
    fn beat(&self, at: i64, periods: &[Period], verdict: Option<Ordering>) -> Beat {
        let (points, winner) = match verdict {
            Some(Greater) => ((1, 0), Some(&self.home)),
            Some(Less) => ((0, 1), Some(&self.away)),
            _ => ((0, 0), None),
        };
        let status = if verdict.is_some() { ScoreStatus::Final } else { ScoreStatus::Live };
        let score = Score {
            status,
            points: Some(points),
            periods: periods.into(),
            winner: winner.cloned(),
            updated: second(at),
        };
        Beat { at, score }
    }

    fn moneyline(&self, view: View<'_>) -> Vec<Side> {
        let periods = view.score.map_or(&[][..], |score| &score.periods);
        let done = i64::try_from(periods.len()).unwrap_or(0);
        // A round in hand weighs more the fewer are left.
        let in_hand = lead(periods) * 2_100 / self.rounds * (self.rounds + done) / self.rounds;
        let edge = self.edge + self.dice.drift(view.at) * 350 / SWING + view.lean.within(-50, 50) + in_hand;
        let mut sides = two_way(&self.home, &self.away, sigmoid(edge));
        if let Some((name, chance)) = &self.draw {
            for side in &mut sides {
                side.chance = side.chance * (ONE - chance) / ONE;
            }
            sides.push(Side::new(name, *chance));
        }
        // Not every book lists the home fighter first.
        if view.lean.of("order").one_in(2) {
            sides.swap(0, 1);
        }
        sides
    }

    /// Closed in the last round, when there is no line left to set.
    fn total_rounds(&self, view: View<'_>) -> Option<Vec<Side>> {
        let done = view.score.map_or(0, |score| i64::try_from(score.periods.len()).unwrap_or(0));
        if done + 1 >= self.rounds {
            return None;
        }
        let drift = self.dice.of("rounds").drift(view.at);
        // Each round to come counts by the chance that it is reached.
        let (mut reached, mut mean) = (1_000, done * 1_000);
        for _ in done..self.rounds {
            mean += reached;
            reached = reached * (1_000 - self.stopped) / 1_000;
        }
        let mean = mean + drift * 300 / SWING;
        // Half a round past a full one, and past those that are over.
        let line = (mean - 400).div_euclid(1_000).clamp(done, self.rounds - 1) * 1_000 + 500;
        Some(Line::on(line, mean, 500, view.lean.within(-60, 60)).totals(&self.over, &self.under))
    }
}

impl Play for Fight {
    fn markets(&self) -> &'static [Market] {
        &MARKETS
    }

    fn fair(&self, market: Market, view: View<'_>) -> Option<Vec<Side>> {
        match market {
            Market::Moneyline => Some(self.moneyline(view)),
            Market::TotalRounds => self.total_rounds(view),
            _ => None,
        }
    }
}

/// By how many rounds the home fighter is ahead.
fn lead(periods: &[Period]) -> i64 {
    periods.iter().map(|period| i64::from((period.home - period.away).signum())).sum()
}
