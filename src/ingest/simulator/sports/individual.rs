//! Sports of single competitors: fights, tennis and golf.

use super::super::fight::Rounds;
use super::super::markets::{MONEYLINE, SPREAD, TOTAL_POINTS, TOTAL_ROUNDS};
use super::super::roster::{self, Names, Pool};
use super::super::schedule::{DAY, HOUR, Series, WEEK};
use super::{Card, CompetitionName, Play, Rules, SimulatedSport, Starts, Timing, pool, series};
use crate::model::SportKind;

// Saturday night and Wednesday morning.
pub(super) const MMA: SimulatedSport = SimulatedSport {
    key: "mma",
    kind: SportKind::Fight,
    series: &[cards(
        (5 * DAY + 22 * HOUR, 10 * DAY),
        (0, 0, 4),
        roster::MMA,
        Card::Matches(Starts::Every { fewest: 8, most: 12, seconds: 1_800 }, &MMA_RULES),
    )],
};

// Friday evening and Tuesday morning.
pub(super) const BOXING: SimulatedSport = SimulatedSport {
    key: "boxing",
    kind: SportKind::Fight,
    series: &[cards(
        (4 * DAY + 19 * HOUR, 12 * DAY),
        (240, 100, 6),
        roster::BOXING,
        Card::Matches(Starts::Every { fewest: 5, most: 6, seconds: 3_600 }, &BOXING_RULES),
    )],
};

pub(super) const TENNIS: SimulatedSport = SimulatedSport {
    key: "tennis",
    kind: SportKind::HeadToHead,
    series: &[
        courts("morning", 2 * HOUR, pool("draw", Names::Men, 480, 32), 0),
        courts("noon", 10 * HOUR, pool("draw", Names::Women, 200, 32), 1),
        courts("evening", 17 * HOUR, pool("draw", Names::Men, 544, 32), 2),
    ],
};

pub(super) const GOLF: SimulatedSport = SimulatedSport {
    key: "golf",
    kind: SportKind::Tournament,
    series: &[
        tour("meridian", 3 * DAY + 11 * HOUR, 600, "Meridian Tour", 0),
        tour("southern", 2 * DAY + 23 * HOUR, 720, "Southern Cross Tour", 12),
    ],
};

static MMA_RULES: Rules = fight(Rounds {
    rounds: 3,
    main_rounds: 5,
    main_bouts: 1,
    seconds: 300,
    stopped: (110, 260),
    drawn: (12_000, 25_000),
    draw_priced_one_in: 5,
});

static BOXING_RULES: Rules = fight(Rounds {
    rounds: 8,
    main_rounds: 12,
    main_bouts: 2,
    seconds: 180,
    stopped: (35, 90),
    drawn: (30_000, 70_000),
    draw_priced_one_in: 2,
});

static TENNIS_RULES: Rules = Rules {
    announced_within: 4 * HOUR,
    called_off_one_in: 30,
    strength_max: 1_000,
    home_advantage: 0,
    drift: 300,
    bias: 40,
    markets: &[MONEYLINE, SPREAD, TOTAL_POINTS],
    squad: None,
    either_side_first: false,
    whole_lines: true,
    fixed_handicap: None,
    alternate_step: 1_000,
    play: Play::Sets,
};

const fn fight(rounds: Rounds) -> Rules {
    Rules {
        announced_within: 6 * HOUR,
        called_off_one_in: 30,
        strength_max: 1_100,
        home_advantage: 0,
        drift: 350,
        bias: 50,
        markets: &[MONEYLINE, TOTAL_ROUNDS],
        squad: None,
        either_side_first: true,
        whole_lines: false,
        fixed_handicap: None,
        alternate_step: 1_000,
        play: Play::Rounds(rounds),
    }
}

/// Cards of fights from a time of the week, announced so long ahead. Consecutive cards have different fighters: the numbers
/// say with which names of men and women they begin, and one bout in how many is one of women.
const fn cards(
    (first, ahead): (i64, i64),
    (first_man, first_woman, women_one_in): (usize, usize, i64),
    names: &'static str,
    card: Card,
) -> Series {
    let men = Pool { blocks: 6, ..pool("men", Names::Men, first_man, 36) };
    let women = Pool { blocks: 6, ..pool("women", Names::Women, first_woman, 12) };
    let timing = Timing { first, every: WEEK / 2, ahead, lasts: 9 * HOUR };
    let competition = CompetitionName::Invented { names, shift: 0, step: 1, slots: 1, is_numbered: true };
    Series { second_pool: Some((women_one_in, women)), ..series("cards", timing, men, competition, card) }
}

/// Five matches a day. Three tournaments are played at a time, each for a week.
const fn courts(name: &'static str, first: i64, pool: Pool, shift: i64) -> Series {
    let timing = Timing { first, every: DAY, ahead: 2 * DAY, lasts: 12 * HOUR };
    let competition = CompetitionName::Invented { names: roster::TENNIS, shift, step: 3, slots: 7, is_numbered: false };
    let starts = Starts::Every { fewest: 5, most: 5, seconds: 4_500 };
    series(name, timing, pool, competition, Card::Matches(starts, &TENNIS_RULES))
}

const fn tour(name: &'static str, first: i64, first_man: usize, names: &'static str, shift: i64) -> Series {
    let timing = Timing { first, every: WEEK, ahead: 4 * DAY, lasts: 4 * DAY };
    let competition = CompetitionName::Invented { names, shift: 0, step: 1, slots: 1, is_numbered: false };
    series(name, timing, pool("field", Names::Men, first_man, 120), competition, Card::Golf { shift })
}
