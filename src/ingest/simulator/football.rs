//! American football: a week of fourteen games, played possession by possession over four quarters. Ties go to
//! overtime, where a few of them remain.

use std::sync::Arc;

use super::curve::sigmoid;
use super::fair::{Line, Side, two_way};
use super::fixture::{Beat, Fixture, Outline, Play, View, second};
use super::noise::{Dice, SWING};
use super::roster::Roster;
use super::schedule::{DAY, Slot};
use crate::model::{Contest, Market, Period, Score, ScoreStatus};

const MARKETS: [Market; 3] = [Market::Moneyline, Market::Spread, Market::TotalPoints];
const COMPETITION: &str = "Continental Football League";

/// Kick-offs after the start of the week, a Monday: one on Thursday night, Sunday's three waves, one on Monday night.
const KICK_OFFS: [(i64, i64); 14] = [
    (4, 900),
    (6, 64_800),
    (6, 64_800),
    (6, 64_800),
    (6, 64_800),
    (6, 64_800),
    (6, 64_800),
    (6, 64_800),
    (6, 64_800),
    (6, 75_600),
    (6, 76_500),
    (6, 76_500),
    (7, 4_500),
    (8, 900),
];

const QUARTER_STARTS: [i64; 4] = [0, 2_820, 6_420, 9_240];
const QUARTER: i64 = 2_700;
const POSSESSIONS: i64 = 6;
const OVERTIME_START: i64 = 12_060;
const OVERTIME: i64 = 900;
/// What an average game brings, in thousandths of a point.
const USUAL_TOTAL: i64 = 45_000;

/// The games of one week.
pub(super) fn week(slot: &Slot<'_>) -> Vec<Fixture> {
    let order = slot.dice.of("draw").shuffled(slot.roster.teams.len());
    let competition: Arc<str> = COMPETITION.into();
    let mut games = Vec::new();
    for (number, ((day, time), pair)) in (0..).zip(KICK_OFFS.into_iter().zip(order.chunks_exact(2))) {
        let dice = slot.dice.of("game").nth(number);
        let teams = [pair[0], pair[1]].map(|team| Team::new(slot, team));
        let kick_off = slot.start + day * DAY + time;
        let game = Football::new(dice, kick_off, teams, slot.roster);
        let outline = Outline {
            dice,
            sport: slot.sport,
            competition: Arc::clone(&competition),
            contest: Contest::Sides { home: Arc::clone(&game.home), away: Arc::clone(&game.away) },
            announced: slot.announced + dice.of("announced").below(6 * 3_600),
            commence: kick_off,
            mishaps: 120,
        };
        let beats = game.course();
        games.extend(Fixture::new(outline, beats, Box::new(game)));
    }
    games
}

struct Team {
    name: Arc<str>,
    /// Points against an average team, in thousandths.
    strength: i64,
}

impl Team {
    fn new(slot: &Slot<'_>, team: usize) -> Self {
        let name: Arc<str> = slot.roster.teams[team].into();
        let strength = slot.world.of("team").of(&name).within(-5_500, 5_500);
        Team { name, strength }
    }
}

#[derive(Debug)]
struct Football {
    dice: Dice,
    kick_off: i64,
    home: Arc<str>,
    away: Arc<str>,
    over: Arc<str>,
    under: Arc<str>,
    /// The expected margin and total before the game, in thousandths of a point.
    margin: i64,
    total: i64,
}

impl Football {
    fn new(dice: Dice, kick_off: i64, [home, away]: [Team; 2], roster: &Roster) -> Self {
        Football {
            dice,
            kick_off,
            margin: home.strength - away.strength + 1_800,
            total: dice.of("total").within(38_000, 52_000),
            home: home.name,
            away: away.name,
            over: Arc::clone(&roster.over),
            under: Arc::clone(&roster.under),
        }
    }

    /// The whole game, from kick-off to the end of the fourth quarter or of overtime.
    fn course(&self) -> Vec<Beat> {
        let mut periods = Vec::new();
        let mut beats = Vec::new();
        for (number, start) in (1..).zip(QUARTER_STARTS) {
            periods.push(Period { number, home: 0, away: 0 });
            beats.push(beat(self.kick_off + start, &periods, ScoreStatus::Live));
            for possession in 0..POSSESSIONS {
                let dice = self.dice.of("possession").nth(i64::from(number)).nth(possession);
                let by_home = possession % 2 == i64::from(number) % 2;
                let Some(points) = self.scored(dice, by_home) else { continue };
                add(&mut periods, points, by_home);
                let at =
                    self.kick_off + start + (possession + 1) * QUARTER / POSSESSIONS - dice.of("at").within(1, 200);
                beats.push(beat(at, &periods, ScoreStatus::Live));
            }
        }
        let end = self.kick_off + QUARTER_STARTS[3] + QUARTER;
        let (home, away) = totals(&periods);
        if home == away {
            self.overtime(periods, &mut beats);
        } else {
            beats.push(beat(end, &periods, ScoreStatus::Final));
        }
        beats
    }

    /// What a possession brings, if anything.
    fn scored(&self, dice: Dice, by_home: bool) -> Option<i32> {
        // Twelve possessions a side: what a side should score beyond the usual shifts its touchdowns.
        let margin = if by_home { self.margin } else { -self.margin };
        let beyond = self.total - USUAL_TOTAL + margin;
        let touchdown = (200 + beyond / 168).clamp(60, 420);
        match dice.of("drive").below(1_000) {
            drive if drive < touchdown => Some(match dice.of("try").below(20) {
                0 => 6,
                1 => 8,
                _ => 7,
            }),
            drive if drive < touchdown + 155 => Some(3),
            drive if drive >= 997 => Some(2),
            _ => None,
        }
    }

    fn overtime(&self, mut periods: Vec<Period>, beats: &mut Vec<Beat>) {
        let dice = self.dice.of("overtime");
        let start = self.kick_off + OVERTIME_START;
        periods.push(Period { number: 5, home: 0, away: 0 });
        beats.push(beat(start, &periods, ScoreStatus::Live));
        if dice.of("tied").one_in(8) {
            beats.push(beat(start + OVERTIME, &periods, ScoreStatus::Final));
            return;
        }
        let points = if dice.of("points").one_in(3) { 6 } else { 3 };
        add(&mut periods, points, dice.of("side").one_in(2));
        beats.push(beat(start + dice.of("at").within(240, OVERTIME), &periods, ScoreStatus::Final));
    }

    fn moneyline(&self, view: View<'_>, state: &State) -> i64 {
        // Points scatter about thirteen and a half around what is expected of a whole game, less of what is left.
        let scatter = (state.left * 182_250).isqrt().max(1_500);
        sigmoid(self.final_margin(view, state) * 1_700 / scatter + view.lean.within(-40, 40))
    }

    fn final_margin(&self, view: View<'_>, state: &State) -> i64 {
        let opinion = self.margin + self.dice.drift(view.at) * 2_500 / SWING + view.lean.of("margin").within(-200, 200);
        state.lead + opinion * state.left / 1_000
    }

    fn final_total(&self, view: View<'_>, state: &State) -> i64 {
        let opinion = self.total + self.dice.of("points").drift(view.at) * 2_500 / SWING;
        state.scored + (opinion * state.left / 1_000).max(600)
    }
}

impl Play for Football {
    fn markets(&self) -> &'static [Market] {
        &MARKETS
    }

    fn fair(&self, market: Market, view: View<'_>) -> Option<Vec<Side>> {
        let state = State::of(self.kick_off, view);
        match market {
            Market::Moneyline => Some(two_way(&self.home, &self.away, self.moneyline(view, &state))),
            Market::Spread => {
                let tilt = view.lean.of("spread").within(-70, 70);
                Some(Line::around(self.final_margin(view, &state), 115, tilt).handicap(&self.home, &self.away))
            }
            Market::TotalPoints => {
                let tilt = view.lean.of("total").within(-70, 70);
                Some(Line::around(self.final_total(view, &state), 110, tilt).totals(&self.over, &self.under))
            }
            _ => None,
        }
    }
}

/// Lead and points in thousandths, and how much of the game is left, in thousandths of it.
struct State {
    lead: i64,
    scored: i64,
    left: i64,
}

impl State {
    fn of(kick_off: i64, view: View<'_>) -> Self {
        let (home, away) = view.score.and_then(|score| score.points).unwrap_or((0, 0));
        let elapsed = view.at - kick_off;
        let played: i64 = QUARTER_STARTS.iter().map(|start| (elapsed - start).clamp(0, QUARTER)).sum();
        State {
            lead: i64::from(home - away) * 1_000,
            scored: i64::from(home + away) * 1_000,
            left: 1_000 - played * 1_000 / (4 * QUARTER),
        }
    }
}

fn add(periods: &mut [Period], points: i32, by_home: bool) {
    if let Some(last) = periods.last_mut() {
        if by_home {
            last.home += points;
        } else {
            last.away += points;
        }
    }
}

fn totals(periods: &[Period]) -> (i32, i32) {
    periods.iter().fold((0, 0), |(home, away), period| (home + period.home, away + period.away))
}

fn beat(at: i64, periods: &[Period], status: ScoreStatus) -> Beat {
    let points = Some(totals(periods));
    Beat { at, score: Score { status, points, periods: periods.into(), winner: None, updated: second(at) } }
}
