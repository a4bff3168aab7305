//! The simulated sports as tables of parameters. The order of [`SPORTS`] and the names of seeds determine the ids of
//! events: append, never reorder.

use super::fight::Rounds;
use super::roster::{self, Names, Pool};
use super::schedule::{DAY, HOUR, MONDAY, Series, WEEK};
use super::timed::{Overtime, Timed};
use crate::model::{Market, SportKind};

/// A simulated sport. It is left out if the catalogue does not have it, or with another kind.
#[derive(Debug)]
pub(super) struct SimulatedSport {
    pub key: &'static str,
    pub kind: SportKind,
    pub series: &'static [Series],
    pub format: SportFormat,
}

#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "there is one static value for each sport")]
pub(super) enum SportFormat {
    /// Two sides meet.
    Match(Rules),
    /// A field of players over four days.
    Golf,
}

/// Parameters of a sport in which two sides meet.
#[derive(Debug)]
pub(super) struct Rules {
    /// Name the seeds of fixtures and of competitors' strengths.
    pub fixture_seed: &'static str,
    pub competitor_seed: &'static str,
    pub competitions: CompetitionNames,
    pub starts: Starts,
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
    pub markets: &'static [Market],
    /// Whether bookmakers list either side first.
    pub either_side_first: bool,
    /// Whether lines may be whole numbers, on which a bet can be void.
    pub whole_lines: bool,
    /// The favourite's handicap in thousandths of a point, in sports that always use the same one (run line, puck line).
    pub fixed_handicap: Option<i64>,
    pub play: Play,
}

/// How the score comes about.
#[derive(Debug)]
pub(super) enum Play {
    /// Rounds scored by judges, ended early by a stoppage.
    Rounds(Rounds),
    /// Tennis: best of three sets, won by games.
    Sets,
    /// Points scored over periods of fixed length.
    Timed(Timed),
}

#[derive(Debug)]
pub(super) struct CompetitionNames {
    /// One to a line.
    pub names: &'static str,
    /// How many consecutive slots of a series one competition takes.
    pub slots: i64,
    /// Whether the number of the slot is part of the name.
    pub is_numbered: bool,
}

/// When the fixtures of a slot start.
#[derive(Debug)]
pub(super) enum Starts {
    /// A random number of them, `seconds` apart.
    Every { fewest: i64, most: i64, seconds: i64 },
    /// So many of them at each of these seconds after the start of the slot.
    At(&'static [(usize, i64)]),
}

pub(super) static SPORTS: [SimulatedSport; 5] = [
    SimulatedSport {
        key: "mma",
        kind: SportKind::Fight,
        // Saturday night and Wednesday morning.
        series: &[cards(5 * DAY + 22 * HOUR, 10 * DAY, 0, 0, 4)],
        format: SportFormat::Match(fight(
            roster::MMA,
            Starts::Every { fewest: 8, most: 12, seconds: 1_800 },
            Rounds {
                rounds: 3,
                main_rounds: 5,
                main_bouts: 1,
                seconds: 300,
                stopped: (110, 260),
                drawn: (12_000, 25_000),
                draw_priced_one_in: 5,
            },
        )),
    },
    SimulatedSport {
        key: "boxing",
        kind: SportKind::Fight,
        // Friday evening and Tuesday morning.
        series: &[cards(4 * DAY + 19 * HOUR, 12 * DAY, 240, 100, 6)],
        format: SportFormat::Match(fight(
            roster::BOXING,
            Starts::Every { fewest: 5, most: 6, seconds: 3_600 },
            Rounds {
                rounds: 8,
                main_rounds: 12,
                main_bouts: 2,
                seconds: 180,
                stopped: (35, 90),
                drawn: (30_000, 70_000),
                draw_priced_one_in: 2,
            },
        )),
    },
    SimulatedSport {
        key: "tennis",
        kind: SportKind::HeadToHead,
        series: &[
            series(2 * HOUR, DAY, 2 * DAY, 12 * HOUR, pool("draw", Names::Men, 480, 32)),
            series(10 * HOUR, DAY, 2 * DAY, 12 * HOUR, pool("draw", Names::Women, 200, 32)),
            series(17 * HOUR, DAY, 2 * DAY, 12 * HOUR, pool("draw", Names::Men, 544, 32)),
        ],
        format: SportFormat::Match(Rules {
            fixture_seed: "match",
            competitor_seed: "player",
            competitions: CompetitionNames { names: roster::TENNIS, slots: 7, is_numbered: false },
            starts: Starts::Every { fewest: 5, most: 5, seconds: 4_500 },
            announced_within: 4 * HOUR,
            called_off_one_in: 30,
            strength_max: 1_000,
            home_advantage: 0,
            drift: 300,
            bias: 40,
            markets: &[Market::MONEYLINE, Market::SPREAD, Market::TOTAL_POINTS],
            either_side_first: false,
            whole_lines: true,
            fixed_handicap: None,
            play: Play::Sets,
        }),
    },
    SimulatedSport {
        key: "american_football",
        kind: SportKind::HeadToHead,
        series: &[series(0, WEEK, DAY, 9 * DAY, pool("draw", Names::Listed(roster::FOOTBALL_TEAMS), 0, 32))],
        format: SportFormat::Match(Rules {
            fixture_seed: "game",
            competitor_seed: "team",
            competitions: CompetitionNames { names: "Continental Football League", slots: 1, is_numbered: false },
            // One game on Thursday night, three waves on Sunday, one on Sunday and one on Monday night.
            starts: Starts::At(&[
                (1, 4 * DAY + 900),
                (8, 6 * DAY + 64_800),
                (1, 6 * DAY + 75_600),
                (2, 6 * DAY + 76_500),
                (1, 7 * DAY + 4_500),
                (1, 8 * DAY + 900),
            ]),
            announced_within: 6 * HOUR,
            called_off_one_in: 120,
            strength_max: 5_500,
            home_advantage: 1_800,
            drift: 2_500,
            bias: 200,
            markets: &[Market::MONEYLINE, Market::SPREAD, Market::TOTAL_POINTS],
            either_side_first: false,
            whole_lines: true,
            fixed_handicap: None,
            play: Play::Timed(Timed {
                starts: &[0, 2_820, 6_420, 9_240],
                seconds: 2_700,
                chances: 6,
                points: 7,
                other_points: &[(6, 10), (8, 10), (3, 155), (2, 3)],
                total: (38_000, 52_000),
                deviation: 13_500,
                overtime: Some(Overtime {
                    pause: 120,
                    seconds: 900,
                    full_periods: 0,
                    points: &[6, 3, 3],
                    stays_tied_one_in: 8,
                }),
            }),
        }),
    },
    SimulatedSport {
        key: "golf",
        kind: SportKind::Tournament,
        series: &[
            series(3 * DAY + 11 * HOUR, WEEK, 5 * DAY, 4 * DAY, pool("field", Names::Men, 600, 120)),
            series(2 * DAY + 23 * HOUR, WEEK, 5 * DAY, 4 * DAY, pool("field", Names::Men, 720, 120)),
        ],
        format: SportFormat::Golf,
    },
];

/// `first` is counted from the start of a week.
const fn series(first: i64, every: i64, ahead: i64, lasts: i64, pool: Pool) -> Series {
    Series { first: MONDAY + first, every, ahead, lasts, pool, second_pool: None }
}

const fn pool(seed: &'static str, names: Names, first: usize, size: usize) -> Pool {
    Pool { seed, names, first, size, blocks: 1 }
}

/// Consecutive cards have different fighters.
const fn cards(first: i64, ahead: i64, first_man: usize, first_woman: usize, women_one_in: i64) -> Series {
    let men = Pool { blocks: 6, ..pool("men", Names::Men, first_man, 36) };
    let women = Pool { blocks: 6, ..pool("women", Names::Women, first_woman, 12) };
    let series = series(first, WEEK / 2, ahead, 9 * HOUR, men);
    Series { second_pool: Some((women_one_in, women)), ..series }
}

const fn fight(promotions: &'static str, starts: Starts, rounds: Rounds) -> Rules {
    Rules {
        fixture_seed: "bout",
        competitor_seed: "fighter",
        competitions: CompetitionNames { names: promotions, slots: 1, is_numbered: true },
        starts,
        announced_within: 6 * HOUR,
        called_off_one_in: 30,
        strength_max: 1_100,
        home_advantage: 0,
        drift: 350,
        bias: 50,
        markets: &[Market::MONEYLINE, Market::TOTAL_ROUNDS],
        either_side_first: true,
        whole_lines: false,
        fixed_handicap: None,
        play: Play::Rounds(rounds),
    }
}
