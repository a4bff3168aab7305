//! Golf: tournaments of four rounds on four days, sixty players, everyone at the same hole at the same time. A period
//! is a round; it holds the lowest and the second lowest total of it so far.

use std::sync::Arc;

use super::curve::sigmoid;
use super::fair::{Side, one_of, some_of, two_way};
use super::fixture::{Beat, Fixture, Outline, Play, View, second};
use super::noise::{Dice, SWING};
use super::roster::around;
use super::schedule::{DAY, Slot};
use crate::model::{Contest, Market, Period, Score, ScoreStatus};

const MARKETS: [Market; 7] = [
    Market::Outright,
    Market::Top5,
    Market::Top10,
    Market::Top20,
    Market::ThreeBall,
    Market::Matchup,
    Market::RoundLeader,
];
const TOURS: [&str; 2] = ["Meridian Tour", "Southern Cross Tour"];
const PLAYERS: usize = 60;
const POOL: usize = 120;
const FIRST_MAN: usize = 600;
const ROUNDS: usize = 4;
const HOLES: usize = 18;
const ALL_HOLES: usize = ROUNDS * HOLES;
const HOLE_SECONDS: i64 = 2_000;
const ROUND_SECONDS: i64 = 18 * HOLE_SECONDS;
/// After a round, when the next day's groups are out, and when its leader can be bet on.
const GROUPS_AFTER: i64 = ROUND_SECONDS + 3_600;
const LEADER_AFTER: i64 = DAY - 7_200;
/// How far a hole scatters around what is expected of it, squared, in millionths of a stroke.
const HOLE_VARIANCE: i64 = 372_100;

/// The tournament of a week.
pub(super) fn tournament(slot: &Slot<'_>) -> Vec<Fixture> {
    let tour = usize::try_from(slot.tour).unwrap_or(0) % TOURS.len();
    let title: Arc<str> = around(&slot.roster.golf, slot.number * 5 + slot.tour * 12).into();
    let golf = Golf::new(slot, tour);
    let outline = Outline {
        dice: slot.dice.of("tournament"),
        sport: slot.sport,
        competition: TOURS[tour].into(),
        contest: Contest::Tournament { title },
        announced: slot.announced + slot.dice.of("announced").below(6 * 3_600),
        commence: slot.start,
        mishaps: 0,
    };
    let beats = golf.course();
    Fixture::new(outline, beats, Box::new(golf)).into_iter().collect()
}

#[derive(Debug)]
struct Player {
    name: Arc<str>,
    dice: Dice,
    /// By how much better than the average a round is, in thousandths of a stroke.
    skill: i64,
}

#[derive(Debug)]
struct Golf {
    first_tee: i64,
    /// The best ones first.
    players: Vec<Player>,
    /// The strokes of each player after each number of holes.
    strokes: Vec<Box<[i32]>>,
    /// Who plays with whom in each round.
    groups: [Vec<usize>; ROUNDS],
    pairs: Vec<usize>,
}

/// Where the play stands.
#[derive(Clone, Copy)]
struct Stand {
    /// The round that is played, or the next one.
    round: usize,
    holes: usize,
    /// Seconds since the last round began; `None` before the first.
    elapsed: Option<i64>,
}

impl Golf {
    fn new(slot: &Slot<'_>, tour: usize) -> Self {
        let mut field = slot.dice.of("field").shuffled(POOL);
        field.truncate(PLAYERS);
        let player = |number: usize| {
            let name = slot.roster.man(FIRST_MAN + tour * POOL + number);
            let skill = slot.world.of("golfer").of(&name).within(-1_300, 1_300);
            Player { dice: slot.dice.of("golfer").of(&name), name, skill }
        };
        let mut players: Vec<Player> = field.into_iter().map(player).collect();
        players.sort_by_key(|player| -player.skill);
        let groups = [0, 1, 2, 3].map(|round| slot.dice.of("groups").nth(round).shuffled(PLAYERS));
        let strokes = strokes(&players);
        Golf { first_tee: slot.start, players, strokes, groups, pairs: slot.dice.of("pairs").shuffled(PLAYERS) }
    }

    fn stand(&self, at: i64) -> Stand {
        let since = at - self.first_tee;
        if since < 0 {
            return Stand { round: 0, holes: 0, elapsed: None };
        }
        let elapsed = since % DAY;
        let round = usize::try_from(since / DAY).unwrap_or(ROUNDS).min(ROUNDS);
        let played = usize::try_from(elapsed / HOLE_SECONDS).unwrap_or(HOLES).min(HOLES);
        let round_over = usize::from(played == HOLES);
        let holes = (round * HOLES + played).min(ALL_HOLES);
        Stand { round: (round + round_over).min(ROUNDS), holes, elapsed: Some(elapsed) }
    }

    /// The leaders of each round, hole by hole.
    fn course(&self) -> Vec<Beat> {
        let mut beats = Vec::with_capacity(ALL_HOLES + ROUNDS);
        let mut rounds: Vec<Period> = Vec::new();
        for (round, day) in (0..ROUNDS).zip(0..) {
            let number = u16::try_from(round + 1).unwrap_or(u16::MAX);
            rounds.push(Period { number, home: 0, away: 0 });
            for (hole, wave) in (0..=HOLES).zip(0..) {
                let (home, away) = self.leaders(round, hole);
                if let Some(last) = rounds.last_mut() {
                    (last.home, last.away) = (home, away);
                }
                let is_final = round + 1 == ROUNDS && hole == HOLES;
                let status = if is_final { ScoreStatus::Final } else { ScoreStatus::Live };
                let at = self.first_tee + day * DAY + wave * HOLE_SECONDS;
                let periods = rounds.as_slice().into();
                beats.push(Beat {
                    at,
                    score: Score { status, points: None, periods, winner: None, updated: second(at) },
                });
            }
        }
        beats
    }

    /// The two lowest totals of a round after some of its holes.
    fn leaders(&self, round: usize, holes: usize) -> (i32, i32) {
        let start = round * HOLES;
        let (before, now) = (&self.strokes[start], &self.strokes[start + holes]);
        now.iter().zip(before).map(|(now, before)| now - before).fold((i32::MAX, i32::MAX), |(low, next), total| {
            if total < low { (total, low) } else { (low, next.min(total)) }
        })
    }

    /// What each player is expected to have on his card after hole `to`, if the card begins after hole `from`: as a
    /// strength in thousandths, the more the better.
    fn strengths(&self, view: View<'_>, stand: Stand, from: usize, to: usize) -> Vec<i64> {
        let holes = stand.holes.clamp(from, to);
        let left = i64::try_from(to - holes).unwrap_or(0);
        let scatter = (left * HOLE_VARIANCE).isqrt().max(450);
        let strength = |(at, player): (usize, &Player)| {
            let card = i64::from(self.strokes[holes][at] - self.strokes[from][at]) * 1_000;
            let form =
                player.dice.wave(view.at, 43_200) * 250 / SWING + player.dice.nth(1).wave(view.at, 2_700) * 90 / SWING;
            let lean = player.dice.joined(view.lean).within(-120, 120);
            let to_come = (player.skill + form + lean) * left / 18;
            (to_come - card) * 1_000 / scatter
        };
        self.players.iter().enumerate().map(strength).collect()
    }

    /// The whole field, in the order of the players, from a strength for each.
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

    /// The market of the round that is played or comes next; `None` between a round's end and the next one's opening.
    fn of_round(&self, market: Market, view: View<'_>, stand: Stand) -> Option<Vec<Side>> {
        let opens = if market == Market::ThreeBall { GROUPS_AFTER } else { LEADER_AFTER };
        let resting = stand.elapsed.is_some_and(|elapsed| (ROUND_SECONDS..opens).contains(&elapsed));
        if resting || stand.round >= ROUNDS {
            return None;
        }
        let from = stand.round * HOLES;
        let strengths = self.strengths(view, stand, from, from + HOLES);
        Some(match market {
            Market::ThreeBall => self.three_balls(&strengths, stand.round),
            _ => self.field(one_of(&scaled(&strengths, 17))),
        })
    }
}

impl Play for Golf {
    fn markets(&self) -> &'static [Market] {
        &MARKETS
    }

    fn fair(&self, market: Market, view: View<'_>) -> Option<Vec<Side>> {
        let stand = self.stand(view.at);
        if matches!(market, Market::ThreeBall | Market::RoundLeader) {
            return self.of_round(market, view, stand);
        }
        let strengths = self.strengths(view, stand, 0, ALL_HOLES);
        match market {
            Market::Outright => Some(self.field(one_of(&scaled(&strengths, 19)))),
            Market::Top5 | Market::Top10 | Market::Top20 => {
                Some(self.field(some_of(&scaled(&strengths, 17), market.settlement().winners)))
            }
            Market::Matchup => Some(self.matchups(&strengths)),
            _ => None,
        }
    }

    fn pace(&self) -> i64 {
        60
    }
}

/// The cards of all players, after no hole, one, and so on to the last.
fn strokes(players: &[Player]) -> Vec<Box<[i32]>> {
    let mut cards = vec![vec![0; players.len()].into_boxed_slice()];
    let mut card = vec![0; players.len()];
    for hole in 0..72 {
        for (sum, player) in card.iter_mut().zip(players) {
            *sum += on_a_hole(player.dice.of("hole").nth(hole), player.skill);
        }
        cards.push(card.as_slice().into());
    }
    cards
}

/// Strokes on a hole of par four.
fn on_a_hole(dice: Dice, skill: i64) -> i32 {
    // A stroke of skill in a round is a birdie more or a bogey less in eighteen holes.
    let shift = skill / 36;
    match dice.below(1_000) {
        throw if throw < 175 + shift => 3,
        throw if throw < 825 + shift => 4,
        throw if throw < 980 + shift / 4 => 5,
        _ => 6,
    }
}

fn scaled(strengths: &[i64], tenths: i64) -> Vec<i64> {
    strengths.iter().map(|strength| strength * tenths / 10).collect()
}
