//! Golf: tournaments of four rounds on four days with sixty players, all on the same hole at the same time. A period is a
//! round, and holds the two lowest totals of it so far.

use std::sync::Arc;

use super::curve::sigmoid;
use super::fair::{Side, one_of, some_of, two_way};
use super::fixture::{Fixture, FixtureView, Outline, PriceModel, ScoreChange};
use super::markets::{Bet, OUTRIGHT, SimulatedMarket, main};
use super::noise::{AMPLITUDE, Seed};
use super::roster::{self, cycled};
use super::schedule::{DAY, Slot};
use crate::model::{Contest, Period};

static MARKETS: [SimulatedMarket; 7] = [
    OUTRIGHT,
    main("top5", Bet::Top(5)),
    main("top10", Bet::Top(10)),
    main("top20", Bet::Top(20)),
    main("three_ball", Bet::ThreeBall),
    main("matchup", Bet::Matchup),
    main("round_leader", Bet::RoundLeader),
];
const PLAYERS: usize = 60;
const ROUNDS: usize = 4;
const HOLES: usize = 18;
const ALL_HOLES: usize = ROUNDS * HOLES;
const HOLE_SECONDS: i64 = 2_000;
const ROUND_SECONDS: i64 = 18 * HOLE_SECONDS;
/// Seconds after the start of a round at which the next round's three-balls and leader markets open.
const GROUPS_AFTER: i64 = ROUND_SECONDS + 3_600;
const LEADER_AFTER: i64 = DAY - 7_200;
/// The variance of a player's strokes on a hole, in millionths.
const HOLE_VARIANCE: i64 = 372_100;

/// The tournament of a week. `shift` is where in the list of tournaments the tour begins.
pub(super) fn tournament(slot: &Slot, shift: i64) -> Vec<Fixture> {
    let (competition, _) = slot.series.competition.of(slot.number);
    let title: Arc<str> = cycled(roster::GOLF, slot.number * 5 + shift).into();
    let golf = Golf::new(slot);
    let outline = Outline {
        seed: slot.seed.named("tournament"),
        sport: slot.sport,
        competition,
        competition_key: None,
        contest: Contest::Tournament { title },
        announced: slot.announced + slot.seed.named("announced").below(6 * 3_600),
        commence: slot.start,
        called_off_one_in: 0,
    };
    let changes = golf.score_changes();
    Fixture::new(outline, changes, Box::new(golf)).into_iter().collect()
}

#[derive(Debug)]
struct Player {
    name: Arc<str>,
    seed: Seed,
    /// Strokes below the average of a round, in thousandths.
    skill: i64,
}

#[derive(Debug)]
struct Golf {
    first_tee: i64,
    /// The strongest first.
    players: Vec<Player>,
    /// The strokes of each player after each number of holes.
    strokes: Vec<Box<[i32]>>,
    /// The players in the order of their groups of three in each round.
    groups: [Vec<usize>; ROUNDS],
    pairs: Vec<usize>,
}

#[derive(Clone, Copy)]
struct GolfProgress {
    /// The current round, or the next one.
    round: usize,
    holes: usize,
    /// Seconds since the last round began; `None` before the first.
    elapsed: Option<i64>,
}

impl Golf {
    fn new(slot: &Slot) -> Self {
        let player = |name: Arc<str>| {
            let skill = slot.sport_seed.named("golfer").named(&name).within(-1_300, 1_300);
            Player { seed: slot.seed.named("golfer").named(&name), name, skill }
        };
        let field = slot.series.pool.draw(slot.seed, slot.number).take(PLAYERS);
        let mut players: Vec<Player> = field.map(player).collect();
        players.sort_by_key(|player| -player.skill);
        let groups = [0, 1, 2, 3].map(|round| slot.seed.named("groups").nth(round).shuffled(PLAYERS));
        let strokes = strokes(&players);
        Golf { first_tee: slot.start, players, strokes, groups, pairs: slot.seed.named("pairs").shuffled(PLAYERS) }
    }

    fn progress(&self, at: i64) -> GolfProgress {
        let since = at - self.first_tee;
        if since < 0 {
            return GolfProgress { round: 0, holes: 0, elapsed: None };
        }
        let elapsed = since % DAY;
        let round = usize::try_from(since / DAY).unwrap_or(ROUNDS).min(ROUNDS);
        let played = usize::try_from(elapsed / HOLE_SECONDS).unwrap_or(HOLES).min(HOLES);
        let round_over = usize::from(played == HOLES);
        let holes = (round * HOLES + played).min(ALL_HOLES);
        GolfProgress { round: (round + round_over).min(ROUNDS), holes, elapsed: Some(elapsed) }
    }

    /// The leaders of each round, hole by hole.
    fn score_changes(&self) -> Vec<ScoreChange> {
        let mut changes = Vec::with_capacity(ALL_HOLES + ROUNDS);
        let mut rounds: Vec<Period> = Vec::new();
        for (round, day) in (0..ROUNDS).zip(0..) {
            let number = u16::try_from(round + 1).unwrap_or(u16::MAX);
            rounds.push(Period { number, home: 0, away: 0 });
            for (hole, holes) in (0..=HOLES).zip(0..) {
                let (home, away) = self.leaders(round, hole);
                if let Some(last) = rounds.last_mut() {
                    (last.home, last.away) = (home, away);
                }
                let at = self.first_tee + day * DAY + holes * HOLE_SECONDS;
                changes.push(ScoreChange::new(at, None, &rounds));
            }
        }
        let last = changes.pop().map(ScoreChange::finished);
        changes.extend(last);
        changes
    }

    /// The two lowest totals of a round after some of its holes.
    fn leaders(&self, round: usize, holes: usize) -> (i32, i32) {
        let start = round * HOLES;
        let (before, now) = (&self.strokes[start], &self.strokes[start + holes]);
        now.iter().zip(before).map(|(now, before)| now - before).fold((i32::MAX, i32::MAX), |(low, next), total| {
            if total < low { (total, low) } else { (low, next.min(total)) }
        })
    }

    /// The strength of each player, in thousandths of a logit, in a contest for the fewest strokes between the holes
    /// `from` and `to`.
    fn strengths(&self, view: FixtureView<'_>, progress: GolfProgress, from: usize, to: usize) -> Vec<i64> {
        let holes = progress.holes.clamp(from, to);
        let left = i64::try_from(to - holes).unwrap_or(0);
        let deviation = (left * HOLE_VARIANCE).isqrt().max(450);
        let strength = |(at, player): (usize, &Player)| {
            let card = i64::from(self.strokes[holes][at] - self.strokes[from][at]) * 1_000;
            let form = player.seed.wave(view.at, 43_200) * 250 / AMPLITUDE
                + player.seed.nth(1).wave(view.at, 2_700) * 90 / AMPLITUDE;
            let bias = player.seed.joined(view.bias).within(-120, 120);
            let to_come = (player.skill + form + bias) * left / 18;
            (to_come - card) * 1_000 / deviation
        };
        self.players.iter().enumerate().map(strength).collect()
    }

    /// Outcomes of the whole field.
    fn field(&self, chances: Vec<i64>) -> Vec<Side> {
        self.players.iter().zip(chances).map(|(player, chance)| Side::new(&player.name, chance)).collect()
    }

    fn three_balls(&self, strengths: &[i64], round: usize) -> Vec<Side> {
        let mut sides = Vec::with_capacity(PLAYERS);
        for group in self.groups[round].chunks_exact(3) {
            let chances = one_of(&[0, 1, 2].map(|at| strengths[group[at]] * 13 / 10));
            sides.extend(group.iter().zip(chances).map(|(at, chance)| Side::new(&self.players[*at].name, chance)));
        }
        sides
    }

    fn matchups(&self, strengths: &[i64]) -> Vec<Side> {
        let pair = |pair: &[usize]| {
            let chance = sigmoid((strengths[pair[0]] - strengths[pair[1]]) * 12 / 10);
            two_way(&self.players[pair[0]].name, &self.players[pair[1]].name, chance)
        };
        self.pairs.chunks_exact(2).flat_map(pair).collect()
    }

    /// A market of the current or next round; `None` until the next round's markets open.
    fn round_market(&self, bet: Bet, view: FixtureView<'_>, progress: GolfProgress) -> Option<Vec<Side>> {
        let opens = if bet == Bet::ThreeBall { GROUPS_AFTER } else { LEADER_AFTER };
        let is_closed = progress.elapsed.is_some_and(|elapsed| (ROUND_SECONDS..opens).contains(&elapsed));
        if is_closed || progress.round >= ROUNDS {
            return None;
        }
        let from = progress.round * HOLES;
        let strengths = self.strengths(view, progress, from, from + HOLES);
        Some(match bet {
            Bet::ThreeBall => self.three_balls(&strengths, progress.round),
            _ => self.field(one_of(&scaled(&strengths, 17))),
        })
    }
}

impl PriceModel for Golf {
    fn markets(&self) -> &'static [SimulatedMarket] {
        &MARKETS
    }

    fn chances(&self, market: &SimulatedMarket, view: FixtureView<'_>) -> Option<Vec<Side>> {
        let progress = self.progress(view.at);
        if matches!(market.bet, Bet::ThreeBall | Bet::RoundLeader) {
            return self.round_market(market.bet, view, progress);
        }
        let strengths = self.strengths(view, progress, 0, ALL_HOLES);
        match market.bet {
            Bet::Outright => Some(self.field(one_of(&scaled(&strengths, 19)))),
            Bet::Top(winners) => Some(self.field(some_of(&scaled(&strengths, 17), winners))),
            Bet::Matchup => Some(self.matchups(&strengths)),
            _ => None,
        }
    }

    fn interval(&self) -> i64 {
        120
    }
}

/// The strokes of all players after each number of holes, from zero.
fn strokes(players: &[Player]) -> Vec<Box<[i32]>> {
    let mut cards = vec![vec![0; players.len()].into_boxed_slice()];
    let mut card = vec![0; players.len()];
    for hole in 0..72 {
        for (sum, player) in card.iter_mut().zip(players) {
            *sum += strokes_on_hole(player.seed.named("hole").nth(hole), player.skill);
        }
        cards.push(card.as_slice().into());
    }
    cards
}

/// Strokes on a hole of par four.
fn strokes_on_hole(seed: Seed, skill: i64) -> i32 {
    // A stroke of skill in a round is a birdie more or a bogey less in eighteen holes.
    let shift = skill / 36;
    match seed.below(1_000) {
        number if number < 175 + shift => 3,
        number if number < 825 + shift => 4,
        number if number < 980 + shift / 4 => 5,
        _ => 6,
    }
}

fn scaled(strengths: &[i64], tenths: i64) -> Vec<i64> {
    strengths.iter().map(|strength| strength * tenths / 10).collect()
}
