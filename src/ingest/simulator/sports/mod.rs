//! The simulated sports as tables of parameters. Names of sports, series and competitors name their seeds, so the order of
//! a table means nothing, and a new row changes no other.

mod individual;
mod teams;

use std::sync::Arc;

use super::fight::Rounds;
use super::markets::SimulatedMarket;
use super::noise::Seed;
use super::props::Squad;
use super::roster::{Names, Pool, cycled};
use super::schedule::{MONDAY, Series};
use super::timed::Timed;
use crate::model::SportKind;

/// A simulated sport. It is left out if the catalogue does not have it, or with another kind.
#[derive(Debug)]
pub(super) struct SimulatedSport {
    pub key: &'static str,
    pub kind: SportKind,
    pub series: &'static [Series],
}

pub(super) static SPORTS: [SimulatedSport; 9] = [
    individual::MMA,
    individual::BOXING,
    individual::TENNIS,
    teams::AMERICAN_FOOTBALL,
    individual::GOLF,
    teams::SOCCER,
    teams::BASKETBALL,
    teams::BASEBALL,
    teams::ICE_HOCKEY,
];

/// What a slot holds.
#[derive(Debug)]
pub(super) enum Card {
    /// Fixtures in which two sides meet.
    Matches(Starts, &'static Rules),
    /// A field of players over four days. `shift` is where in the list of tournaments the tour begins.
    Golf { shift: i64 },
    /// The winner of a season, which ends with the slot. `is_ranked`: the list of teams has the strongest first.
    Season { is_ranked: bool },
}

/// Parameters of a sport in which two sides meet.
#[derive(Debug)]
pub(super) struct Rules {
    /// Fixtures are announced within so many seconds after their slot.
    pub announced_within: i64,
    /// One fixture in so many is cancelled, and one in so many removed.
    pub called_off_one_in: i64,
    /// The strongest competitor's advantage over an average one, in the unit of the play: thousandths of a point for
    /// [`Play::Timed`], of a logit elsewhere.
    pub strength_max: i64,
    pub home_advantage: i64,
    /// How far the market's opinion drifts from the true strengths, and how far one bookmaker's differs from it.
    pub drift: i64,
    pub bias: i64,
    pub markets: &'static [SimulatedMarket],
    /// The players of each team that have props.
    pub squad: Option<Squad>,
    /// Whether bookmakers list either side first.
    pub either_side_first: bool,
    /// Whether lines may be whole numbers, on which a bet can be void.
    pub whole_lines: bool,
    /// The favourite's handicap in thousandths of a point, in sports that always use the same one (run line, puck line).
    pub fixed_handicap: Option<i64>,
    /// From one alternate line to the next, in thousandths of a point.
    pub alternate_step: i64,
    pub play: Play,
}

/// How the score comes about.
#[derive(Debug)]
pub(super) enum Play {
    /// Rounds scored by judges, ended early by a stoppage.
    Rounds(Rounds),
    /// Tennis: best of three sets, won by games.
    Sets,
    /// Points scored over periods.
    Timed(Timed),
}

/// The competition of a slot.
#[derive(Debug)]
pub(super) enum CompetitionName {
    /// One of the catalogue, by key and title.
    Listed(&'static str, &'static str),
    /// Invented.
    Invented {
        /// One to a line, taken in turn from the line `shift`.
        names: &'static str,
        shift: i64,
        /// The distance in the list from one to the next.
        step: i64,
        /// How many consecutive slots one competition takes.
        slots: i64,
        /// Whether the number of the slot is part of the name.
        is_numbered: bool,
    },
}

/// When the fixtures of a slot start.
#[derive(Debug)]
pub(super) enum Starts {
    /// A random number of them, `seconds` apart.
    Every { fewest: i64, most: i64, seconds: i64 },
    /// So many of them at each of these seconds after the start of the slot.
    At(&'static [(usize, i64)]),
}

impl CompetitionName {
    /// The name, and the key if it is of the catalogue.
    pub(super) fn of(&self, slot: i64) -> (Arc<str>, Option<Arc<str>>) {
        match self {
            CompetitionName::Listed(key, title) => ((*title).into(), Some((*key).into())),
            CompetitionName::Invented { names, shift, step, slots, is_numbered } => {
                let name = cycled(names, slot.div_euclid(*slots) * step + shift);
                let number = slot.rem_euclid(900) + 1;
                (if *is_numbered { format!("{name} {number}").into() } else { name.into() }, None)
            }
        }
    }
}

impl Starts {
    /// Seconds after the start of the slot.
    pub(super) fn seconds(&self, slot: Seed) -> Vec<i64> {
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

/// When slots begin, how far apart they are, how long before that they are announced, and how long they last. The first is
/// counted from the start of a week.
struct Timing {
    first: i64,
    every: i64,
    ahead: i64,
    lasts: i64,
}

const fn series(name: &'static str, timing: Timing, pool: Pool, competition: CompetitionName, card: Card) -> Series {
    let Timing { first, every, ahead, lasts } = timing;
    Series { name, competition, card, first: MONDAY + first, every, ahead, lasts, pool, second_pool: None }
}

const fn pool(seed: &'static str, names: Names, first: usize, size: usize) -> Pool {
    Pool { seed, names, first, size, blocks: 1 }
}
