//! Sports of teams: leagues of the catalogue with invented teams, and the winners of their seasons.

use super::super::markets::{
    ALTERNATE_SPREAD, ALTERNATE_TOTAL_POINTS, BTTS, Bet, MONEYLINE, MONEYLINE_3_WAY, SPREAD, TOTAL_POINTS, first,
    players,
};
use super::super::props::{Prop, Squad};
use super::super::roster::{self, Names};
use super::super::schedule::{DAY, HOUR, Series, WEEK};
use super::super::timed::{Overtime, Scoring, Timed};
use super::{Card, CompetitionName, Play, Rules, SimulatedSport, Starts, Timing, pool, series};
use crate::model::SportKind;

const MINUTE: i64 = 60;

pub(super) const AMERICAN_FOOTBALL: SimulatedSport = SimulatedSport {
    key: "american_football",
    kind: SportKind::HeadToHead,
    series: &[
        // One game on Thursday night, three waves on Sunday, one on Sunday and one on Monday night.
        week(
            "americanfootball_nfl",
            "NFL",
            (roster::FOOTBALL_TEAMS, 32),
            Card::Matches(
                Starts::At(&[
                    (1, 4 * DAY + 15 * MINUTE),
                    (8, 6 * DAY + 18 * HOUR),
                    (1, 6 * DAY + 21 * HOUR),
                    (2, 6 * DAY + 21 * HOUR + 15 * MINUTE),
                    (1, 7 * DAY + 75 * MINUTE),
                    (1, 8 * DAY + 15 * MINUTE),
                ]),
                &FOOTBALL_RULES,
            ),
        ),
        season("americanfootball_nfl_super_bowl_winner", "NFL Super Bowl Winner", 3, (roster::FOOTBALL_TEAMS, 32)),
    ],
};

pub(super) const SOCCER: SimulatedSport = SimulatedSport {
    key: "soccer",
    kind: SportKind::HeadToHead,
    series: &[
        week(
            "soccer_epl",
            "EPL",
            (roster::ENGLISH_CLUBS, 20),
            Card::Matches(
                Starts::At(&[
                    (1, 4 * DAY + 20 * HOUR),
                    (1, 5 * DAY + 12 * HOUR + 30 * MINUTE),
                    (4, 5 * DAY + 15 * HOUR),
                    (1, 5 * DAY + 17 * HOUR + 30 * MINUTE),
                    (2, 6 * DAY + 14 * HOUR),
                    (1, 6 * DAY + 16 * HOUR + 30 * MINUTE),
                ]),
                &SOCCER_RULES,
            ),
        ),
        week(
            "soccer_usa_mls",
            "MLS",
            (roster::MLS_CLUBS, 16),
            Card::Matches(
                Starts::At(&[
                    (2, DAY + 23 * HOUR + 30 * MINUTE),
                    (3, 2 * DAY + 23 * HOUR + 30 * MINUTE),
                    (3, 5 * DAY + 23 * HOUR + 30 * MINUTE),
                ]),
                &SOCCER_RULES,
            ),
        ),
        Series {
            card: Card::Season { is_ranked: true },
            ..season("soccer_fifa_world_cup_winner", "FIFA World Cup Winner", 5, (roster::NATIONS, 28))
        },
    ],
};

pub(super) const BASKETBALL: SimulatedSport = SimulatedSport {
    key: "basketball",
    kind: SportKind::HeadToHead,
    series: &[
        day(
            "basketball_nba",
            "NBA",
            (roster::BASKETBALL_TEAMS, 24),
            Card::Matches(
                Starts::At(&[
                    (1, 0),
                    (1, 30 * MINUTE),
                    (1, HOUR),
                    (1, 2 * HOUR + 30 * MINUTE),
                    (1, 19 * HOUR + 30 * MINUTE),
                ]),
                &BASKETBALL_RULES,
            ),
        ),
        season("basketball_nba_championship_winner", "NBA Championship Winner", 7, (roster::BASKETBALL_TEAMS, 24)),
    ],
};

pub(super) const BASEBALL: SimulatedSport = SimulatedSport {
    key: "baseball",
    kind: SportKind::HeadToHead,
    series: &[
        day(
            "baseball_mlb",
            "MLB",
            (roster::BASEBALL_TEAMS, 24),
            Card::Matches(
                Starts::At(&[(1, 2 * HOUR), (1, 17 * HOUR), (1, 20 * HOUR), (2, 23 * HOUR)]),
                &BASEBALL_RULES,
            ),
        ),
        season("baseball_mlb_world_series_winner", "MLB World Series Winner", 9, (roster::BASEBALL_TEAMS, 24)),
    ],
};

pub(super) const ICE_HOCKEY: SimulatedSport = SimulatedSport {
    key: "ice_hockey",
    kind: SportKind::HeadToHead,
    series: &[
        day(
            "icehockey_nhl",
            "NHL",
            (roster::HOCKEY_TEAMS, 24),
            Card::Matches(Starts::At(&[(2, 0), (1, 2 * HOUR), (1, 18 * HOUR)]), &HOCKEY_RULES),
        ),
        season("icehockey_nhl_championship_winner", "NHL Championship Winner", 11, (roster::HOCKEY_TEAMS, 24)),
    ],
};

static FOOTBALL_RULES: Rules = Rules {
    announced_within: 6 * HOUR,
    called_off_one_in: 120,
    strength_max: 5_500,
    home_advantage: 1_800,
    drift: 2_500,
    bias: 300,
    markets: &[
        MONEYLINE,
        SPREAD,
        TOTAL_POINTS,
        ALTERNATE_SPREAD,
        ALTERNATE_TOTAL_POINTS,
        first(2, "moneyline_h1", Bet::Ways),
        first(2, "spread_h1", Bet::Spread),
        players("player_pass_yds", &Prop { first: 0, count: 1, mean: (185_000, 295_000), deviation_percent: 27 }),
        players("player_rush_yds", &Prop { first: 1, count: 1, mean: (38_000, 92_000), deviation_percent: 45 }),
    ],
    squad: Some(Squad { first: 1_000, size: 2 }),
    either_side_first: false,
    whole_lines: true,
    fixed_handicap: None,
    alternate_step: 1_000,
    play: Play::Timed(Timed {
        starts: &[0, 2_820, 6_420, 9_240],
        seconds: 2_700,
        chances: 6,
        points: 7,
        other_points: &[(6, 10), (8, 10), (3, 155), (2, 3)],
        total: (38_000, 52_000),
        scoring: Scoring::Points { deviation: 13_500 },
        home_plays_last: false,
        overtime: Some(Overtime {
            pause: 120,
            seconds: 900,
            full_periods: 0,
            points: &[6, 3, 3],
            stays_tied_one_in: 8,
        }),
    }),
};

static SOCCER_RULES: Rules = Rules {
    announced_within: 6 * HOUR,
    called_off_one_in: 100,
    strength_max: 550,
    home_advantage: 300,
    drift: 250,
    bias: 40,
    markets: &[
        MONEYLINE,
        SPREAD,
        TOTAL_POINTS,
        ALTERNATE_SPREAD,
        ALTERNATE_TOTAL_POINTS,
        BTTS,
        first(1, "total_points_h1", Bet::Total),
    ],
    squad: None,
    either_side_first: false,
    whole_lines: false,
    fixed_handicap: None,
    alternate_step: 1_000,
    play: Play::Timed(Timed {
        starts: &[0, 3_720],
        seconds: 2_820,
        chances: 40,
        points: 1,
        other_points: &[],
        total: (2_200, 3_200),
        scoring: Scoring::Goals,
        home_plays_last: false,
        overtime: None,
    }),
};

static BASKETBALL_RULES: Rules = Rules {
    announced_within: 4 * HOUR,
    called_off_one_in: 150,
    strength_max: 6_500,
    home_advantage: 2_200,
    drift: 2_500,
    bias: 300,
    markets: &[
        MONEYLINE,
        SPREAD,
        TOTAL_POINTS,
        ALTERNATE_SPREAD,
        ALTERNATE_TOTAL_POINTS,
        first(1, "moneyline_q1", Bet::Ways),
        first(2, "spread_h1", Bet::Spread),
        first(2, "total_points_h1", Bet::Total),
        players("player_points", &Prop { first: 0, count: 3, mean: (12_000, 29_000), deviation_percent: 30 }),
        players("player_rebounds", &Prop { first: 1, count: 2, mean: (4_500, 11_500), deviation_percent: 36 }),
    ],
    squad: Some(Squad { first: 2_000, size: 3 }),
    either_side_first: false,
    whole_lines: true,
    fixed_handicap: None,
    alternate_step: 1_500,
    play: Play::Timed(Timed {
        starts: &[0, 2_100, 5_100, 7_200],
        seconds: 1_980,
        chances: 40,
        points: 2,
        other_points: &[(3, 210), (1, 60)],
        total: (212_000, 238_000),
        scoring: Scoring::Points { deviation: 14_500 },
        home_plays_last: false,
        overtime: Some(Overtime { pause: 150, seconds: 900, full_periods: 6, points: &[2], stays_tied_one_in: 0 }),
    }),
};

static BASEBALL_RULES: Rules = Rules {
    announced_within: 4 * HOUR,
    called_off_one_in: 60,
    strength_max: 850,
    home_advantage: 250,
    drift: 350,
    bias: 60,
    markets: &[
        MONEYLINE,
        SPREAD,
        TOTAL_POINTS,
        ALTERNATE_SPREAD,
        ALTERNATE_TOTAL_POINTS,
        first(5, "moneyline_1st_5_innings", Bet::Ways),
        first(5, "total_points_1st_5_innings", Bet::Total),
        players("pitcher_strikeouts", &Prop { first: 0, count: 1, mean: (3_800, 7_800), deviation_percent: 38 }),
        players("batter_total_bases", &Prop { first: 1, count: 2, mean: (1_100, 2_100), deviation_percent: 85 }),
    ],
    squad: Some(Squad { first: 3_000, size: 3 }),
    either_side_first: false,
    whole_lines: false,
    fixed_handicap: Some(1_500),
    alternate_step: 1_000,
    play: Play::Timed(Timed {
        starts: &[0, 1_200, 2_400, 3_600, 4_800, 6_000, 7_200, 8_400, 9_600],
        seconds: 1_140,
        chances: 2,
        points: 1,
        other_points: &[(2, 60), (3, 30), (4, 12)],
        total: (7_500, 9_500),
        scoring: Scoring::Points { deviation: 4_300 },
        home_plays_last: true,
        overtime: Some(Overtime { pause: 60, seconds: 1_140, full_periods: 9, points: &[1], stays_tied_one_in: 0 }),
    }),
};

static HOCKEY_RULES: Rules = Rules {
    announced_within: 4 * HOUR,
    called_off_one_in: 150,
    strength_max: 650,
    home_advantage: 220,
    drift: 300,
    bias: 50,
    markets: &[
        MONEYLINE,
        SPREAD,
        TOTAL_POINTS,
        ALTERNATE_SPREAD,
        ALTERNATE_TOTAL_POINTS,
        MONEYLINE_3_WAY,
        first(1, "total_points_p1", Bet::Total),
        players("player_shots_on_goal", &Prop { first: 0, count: 3, mean: (1_900, 4_100), deviation_percent: 55 }),
    ],
    squad: Some(Squad { first: 4_000, size: 3 }),
    either_side_first: false,
    whole_lines: false,
    fixed_handicap: Some(1_500),
    alternate_step: 1_000,
    play: Play::Timed(Timed {
        starts: &[0, 3_300, 6_600],
        seconds: 2_280,
        chances: 40,
        points: 1,
        other_points: &[],
        total: (5_300, 6_700),
        scoring: Scoring::Goals,
        home_plays_last: false,
        overtime: Some(Overtime { pause: 300, seconds: 900, full_periods: 0, points: &[1], stays_tied_one_in: 0 }),
    }),
};

/// A round of games a week, announced on the day before the week begins.
const fn week(key: &'static str, title: &'static str, (teams, count): (&'static str, usize), card: Card) -> Series {
    let timing = Timing { first: 0, every: WEEK, ahead: DAY, lasts: 9 * DAY };
    league(timing, key, title, (teams, count), card)
}

/// Games every day, announced two days ahead.
const fn day(key: &'static str, title: &'static str, (teams, count): (&'static str, usize), card: Card) -> Series {
    let timing = Timing { first: 0, every: DAY, ahead: DAY + 12 * HOUR, lasts: 36 * HOUR };
    league(timing, key, title, (teams, count), card)
}

/// The winner of a season of twelve weeks, which ends on a Sunday in one of them.
const fn season(key: &'static str, title: &'static str, ends: i64, (teams, count): (&'static str, usize)) -> Series {
    let timing =
        Timing { first: ends * WEEK + 6 * DAY + 20 * HOUR, every: 12 * WEEK, ahead: 12 * WEEK, lasts: 12 * HOUR };
    league(timing, key, title, (teams, count), Card::Season { is_ranked: false })
}

const fn league(
    timing: Timing,
    key: &'static str,
    title: &'static str,
    (teams, count): (&'static str, usize),
    card: Card,
) -> Series {
    let pool = pool("draw", Names::Listed(teams), 0, count);
    series(key, timing, pool, CompetitionName::Listed(key, title), card)
}
