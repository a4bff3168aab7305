//! Player props: how much of something a player of a team gets, priced until the start.

use std::sync::Arc;

use super::curve::ONE;
use super::fair::{Estimate, Side};
use super::fixture::FixtureView;
use super::noise::{AMPLITUDE, Seed};
use super::roster::Names;
use crate::model::OutcomeName;

/// How far the market's opinion of a player moves, and how far one bookmaker's differs from it, in thousandths of the
/// expected number.
const DRIFT: i64 = 60;
const BIAS: i64 = 12;

/// A market of players.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Prop {
    /// Which players of each squad it lists.
    pub first: usize,
    pub count: usize,
    /// The expected number in thousandths: the least and the most.
    pub mean: (i64, i64),
    /// Of the number, in percent of its mean.
    pub deviation_percent: i64,
}

/// The players of each team: their numbers in the list of names, which no two teams of a sport share.
#[derive(Clone, Copy, Debug)]
pub(super) struct Squad {
    pub first: usize,
    pub size: usize,
}

/// A player of a team.
#[derive(Debug)]
pub(super) struct Athlete {
    /// The outcomes of a line, with the player as their description.
    over: OutcomeName,
    under: OutcomeName,
    seed: Seed,
}

impl Squad {
    /// The players of a team, by its position in the list of teams.
    pub(super) fn players(self, team: usize, sport: Seed) -> impl Iterator<Item = Athlete> {
        let first = self.first + team * self.size;
        (first..first + self.size).map(move |number| {
            let name: Arc<str> = Names::Men.get(number);
            let [over, under] = ["Over", "Under"].map(|outcome| OutcomeName::new(outcome, Some(&name)));
            Athlete { over, under, seed: sport.named("player").named(&name) }
        })
    }
}

impl Prop {
    /// Over and Under for each player it lists.
    pub(super) fn chances(&self, key: &str, squad: &[Athlete], view: FixtureView<'_>, sides: &mut Vec<Side>) {
        for athlete in squad.iter().skip(self.first).take(self.count) {
            let seed = athlete.seed.named(key);
            let usual = seed.within(self.mean.0, self.mean.1);
            let opinion = seed.drift(view.at) * DRIFT / AMPLITUDE + view.bias.joined(seed).within(-BIAS, BIAS);
            let mean = usual + usual * opinion / 1_000;
            let number = Estimate { mean, deviation: mean * self.deviation_percent / 100 };
            let line = number.line(false);
            let over = number.above(line);
            sides.push(Side::at(&athlete.over, over, line));
            sides.push(Side::at(&athlete.under, ONE - over, line));
        }
    }
}
