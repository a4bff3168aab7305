//! The endless schedule: a sport has series of slots at fixed distances, and a slot holds a card, a day of matches, a
//! round of games or a tournament. Which slots are visible at a time is arithmetic, so every time costs the same.

use std::ops::RangeInclusive;

use super::fixture::{Fixture, RETENTION};
use super::noise::Seed;
use super::roster::Pool;
use super::sports::{Card, CompetitionName, SPORTS};
use super::{futures, golf, matches};
use crate::model::SportId;

pub(super) const HOUR: i64 = 3_600;
pub(super) const DAY: i64 = 24 * HOUR;
pub(super) const WEEK: i64 = 7 * DAY;
/// The first Monday after the epoch.
pub(super) const MONDAY: i64 = 4 * DAY;

/// Slots at equal distances.
#[derive(Debug)]
pub(super) struct Series {
    /// Names the seeds of its slots: unique in its sport, and never changed.
    pub name: &'static str,
    pub competition: CompetitionName,
    pub card: Card,
    /// When slot zero starts, and how far apart slots are.
    pub first: i64,
    pub every: i64,
    /// How long before its start a slot is announced, and how long after it every fixture is over.
    pub ahead: i64,
    pub lasts: i64,
    pub pool: Pool,
    /// A second pool, and one in how many fixtures is drawn from it.
    pub second_pool: Option<(i64, Pool)>,
}

impl Series {
    /// The slots of which a fixture may be visible.
    pub(super) const fn visible_slots(&self, at: i64) -> RangeInclusive<i64> {
        let since_first = at - self.first;
        let oldest = (since_first - self.lasts - RETENTION).div_euclid(self.every);
        let newest = (since_first + self.ahead).div_euclid(self.every);
        oldest..=newest
    }
}

/// The positions of a sport in [`SPORTS`] and of a series in it, and the number of a slot.
pub(super) type SlotKey = (usize, usize, i64);

/// One slot of a series, to be filled with fixtures.
#[derive(Debug)]
pub(super) struct Slot {
    /// Of the sport.
    pub sport_seed: Seed,
    pub seed: Seed,
    pub sport: SportId,
    pub series: &'static Series,
    pub number: i64,
    pub announced: i64,
    pub start: i64,
}

/// The fixtures of a slot.
pub(super) fn fixtures(world: Seed, sport: SportId, (row, position, number): SlotKey) -> Vec<Fixture> {
    let series = &SPORTS[row].series[position];
    let start = series.first + number * series.every;
    let sport_seed = world.named("sport").named(SPORTS[row].key);
    let seed = sport_seed.named("slot").named(series.name).nth(number);
    let slot = Slot { sport_seed, seed, sport, series, number, announced: start - series.ahead, start };
    match &series.card {
        Card::Matches(starts, rules) => matches::fixtures(&slot, starts, rules),
        Card::Golf { shift } => golf::tournament(&slot, *shift),
        Card::Season { is_ranked } => futures::season(&slot, *is_ranked),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_visible_from_announcement_until_retention_ends() {
        let series = &SPORTS[3].series[0];
        let at = series.first + 100 * series.every;
        assert!(!series.visible_slots(at - series.ahead - 1).contains(&100));
        assert!(series.visible_slots(at - series.ahead).contains(&100));
        assert!(series.visible_slots(at + series.lasts + RETENTION).contains(&100));
    }
}
