//! Tennis: a day's matches of a tournament, best of three sets, played game by game. The score counts sets, its periods
//! are the games of each set.

use std::sync::Arc;

use super::curve::{ONE, sigmoid};
use super::fair::{Line, Side, two_way};
use super::fixture::{Beat, Fixture, Outline, Play, View, second};
use super::noise::{Dice, SWING};
use super::roster::{Roster, around};
use super::schedule::Slot;
use crate::model::{Contest, Market, Period, Score, ScoreStatus};

const MARKETS: [Market; 3] = [Market::Moneyline, Market::Spread, Market::TotalPoints];
const MATCHES_A_DAY: i64 = 5;
const MATCH_EVERY: i64 = 4_500;
const FIELD: usize = 32;
const DAYS: i64 = 7;
const FIRST_MAN: usize = 480;
const FIRST_WOMAN: usize = 200;
/// What serving is worth, in thousandths of a logit: four games of five are held.
const SERVE: i64 = 1_400;
/// How many games a set takes, in thousandths.
const SET_GAMES: i64 = 9_700;

/// A day of a tour's tournament. Each tour has its own players; the second is the women's.
pub(super) fn day(slot: &Slot<'_>) -> Vec<Fixture> {
    let week = slot.number.div_euclid(DAYS);
    let competition: Arc<str> = around(&slot.roster.tennis, week * 3 + slot.tour).into();
    let order = slot.dice.of("draw").shuffled(FIELD);
    let mut matches = Vec::new();
    for (number, pair) in (0..MATCHES_A_DAY).zip(order.chunks_exact(2)) {
        let dice = slot.dice.of("match").nth(number);
        let players = [pair[0], pair[1]].map(|player| Player::new(slot, player));
        let game = Tennis::new(dice, players, slot.roster);
        let outline = Outline {
            dice,
            sport: slot.sport,
            competition: Arc::clone(&competition),
            contest: Contest::Sides { home: Arc::clone(&game.home), away: Arc::clone(&game.away) },
            announced: slot.announced + dice.of("announced").below(4 * 3_600),
            commence: slot.start + number * MATCH_EVERY,
            mishaps: 30,
        };
        let beats = game.course(outline.commence);
        matches.extend(Fixture::new(outline, beats, Box::new(game)));
    }
    matches
}

struct Player {
    name: Arc<str>,
    strength: i64,
}

impl Player {
    fn new(slot: &Slot<'_>, player: usize) -> Self {
        let tour = usize::try_from(slot.tour).unwrap_or(0);
        let name = match tour {
            1 => slot.roster.woman(FIRST_WOMAN + player),
            _ => slot.roster.man(FIRST_MAN + tour * FIELD + player),
        };
        let strength = slot.world.of("player").of(&name).within(-1_000, 1_000);
        Player { name, strength }
    }
}

#[derive(Debug)]
struct Tennis {
    dice: Dice,
    home: Arc<str>,
    away: Arc<str>,
    over: Arc<str>,
    under: Arc<str>,
    edge: i64,
}

impl Tennis {
    fn new(dice: Dice, [home, away]: [Player; 2], roster: &Roster) -> Self {
        Tennis {
            dice,
            edge: home.strength - away.strength,
            home: home.name,
            away: away.name,
            over: Arc::clone(&roster.over),
            under: Arc::clone(&roster.under),
        }
    }

    /// The whole match, game by game.
    fn course(&self, commence: i64) -> Vec<Beat> {
        let mut sets = vec![Period { number: 1, home: 0, away: 0 }];
        let mut beats = vec![beat(commence, &sets)];
        let mut at = commence;
        for game in 0.. {
            let dice = self.dice.of("game").nth(game);
            let Some(set) = sets.last_mut() else { break };
            let tie_break = set.home == 6 && set.away == 6;
            at += if tie_break { dice.within(420, 720) } else { dice.within(150, 330) };
            let serve = match (tie_break, game % 2) {
                (true, _) => 0,
                (false, 0) => SERVE,
                (false, _) => -SERVE,
            };
            if dice.of("won").below(ONE) < sigmoid(serve + self.edge / 4) {
                set.home += 1;
            } else {
                set.away += 1;
            }
            let next = (is_won(set) && sets_won(&sets).0.max(sets_won(&sets).1) < 2).then(|| sets.len() + 1);
            beats.push(beat(at, &sets));
            if let Some(number) = next {
                at += 90;
                sets.push(Period { number: u16::try_from(number).unwrap_or(u16::MAX), home: 0, away: 0 });
                beats.push(beat(at, &sets));
            } else if sets_won(&sets).0.max(sets_won(&sets).1) == 2 {
                break;
            }
        }
        beats
    }

    fn edge_at(&self, view: View<'_>) -> i64 {
        self.edge + self.dice.drift(view.at) * 300 / SWING + view.lean.within(-40, 40)
    }

    fn chance(&self, view: View<'_>) -> i64 {
        let State { set_lead, set, .. } = State::of(view);
        sigmoid(self.edge_at(view) + set_lead * 1_600 + (set.0 - set.1) * 330)
    }

    fn spread(&self, view: View<'_>) -> Vec<Side> {
        let state = State::of(view);
        let still = (state.expected() - state.played * 1_000).max(0);
        let mean = state.lead * 1_000 + self.edge_at(view) * 2_600 / 1_000 * still / 23_000;
        Line::around(mean, 220, view.lean.of("spread").within(-60, 60)).handicap(&self.home, &self.away)
    }

    fn total(&self, view: View<'_>) -> Vec<Side> {
        let state = State::of(view);
        // A match between equals is the longer one.
        let style = self.dice.of("length").drift(view.at) * 900 / SWING - self.edge.abs() * 700 / 1_000;
        let mean = state.expected() + style.max(state.played * 1_000 + 1_000 - state.expected());
        Line::around(mean, 200, view.lean.of("total").within(-60, 60)).totals(&self.over, &self.under)
    }
}

impl Play for Tennis {
    fn markets(&self) -> &'static [Market] {
        &MARKETS
    }

    fn fair(&self, market: Market, view: View<'_>) -> Option<Vec<Side>> {
        match market {
            Market::Moneyline => Some(two_way(&self.home, &self.away, self.chance(view))),
            Market::Spread => Some(self.spread(view)),
            Market::TotalPoints => Some(self.total(view)),
            _ => None,
        }
    }
}

/// What the score says about the games.
struct State {
    /// Sets won by home, less those won by away.
    set_lead: i64,
    sets_done: i64,
    /// The games of the set that is being played.
    set: (i64, i64),
    played: i64,
    lead: i64,
}

impl State {
    fn of(view: View<'_>) -> Self {
        let periods = view.score.map_or(&[][..], |score| &score.periods);
        let (home, away) = sets_won(periods);
        let games = |period: &Period| (i64::from(period.home), i64::from(period.away));
        let running = periods.last().filter(|set| !is_won(set)).map_or((0, 0), games);
        State {
            set_lead: i64::from(home) - i64::from(away),
            sets_done: i64::from(home + away),
            set: running,
            played: periods.iter().map(|period| games(period).0 + games(period).1).sum(),
            lead: periods.iter().map(|period| games(period).0 - games(period).1).sum(),
        }
    }

    /// How many games the match is expected to have in all, in thousandths; more than have been played.
    fn expected(&self) -> i64 {
        let running = self.set.0 + self.set.1;
        let finished = (self.played - running) * 1_000;
        let this_set = SET_GAMES.max((running + 1) * 1_000);
        // Two sets in five matches go to a third.
        let further = match (self.sets_done, self.set_lead) {
            (0, _) => SET_GAMES * 14 / 10,
            (1, _) => SET_GAMES * 4 / 10,
            _ => 0,
        };
        finished + this_set + further
    }
}

fn is_won(set: &Period) -> bool {
    let (more, less) = (set.home.max(set.away), set.home.min(set.away));
    more == 7 || (more == 6 && less <= 4)
}

fn sets_won(sets: &[Period]) -> (i32, i32) {
    let won = |home: bool| sets.iter().filter(|set| is_won(set) && (set.home > set.away) == home).count();
    (i32::try_from(won(true)).unwrap_or(0), i32::try_from(won(false)).unwrap_or(0))
}

fn beat(at: i64, sets: &[Period]) -> Beat {
    let points = sets_won(sets);
    let status = if points.0.max(points.1) == 2 { ScoreStatus::Final } else { ScoreStatus::Live };
    Beat { at, score: Score { status, points: Some(points), periods: sets.into(), winner: None, updated: second(at) } }
}
