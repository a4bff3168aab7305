//! The calendar without end: series of slots at fixed distances, each slot a card, a day of matches, a week of games or
//! a tournament. Which slots are in sight at a time is arithmetic, so any time costs the same.

use std::ops::RangeInclusive;

use super::fight::{self, BOXING, MMA};
use super::fixture::{AFTERGLOW, Fixture};
use super::noise::Dice;
use super::roster::Roster;
use super::{football, golf, tennis};
use crate::model::{Catalogue, SportId, SportKind};

pub(super) const DAY: i64 = 86_400;
const HOUR: i64 = 3_600;
const WEEK: i64 = 7 * DAY;
/// The first Monday of the epoch.
const MONDAY: i64 = 4 * DAY;

/// The sports that can be simulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Discipline {
    Mma,
    Boxing,
    Tennis,
    Football,
    Golf,
}

impl Discipline {
    pub(super) const ALL: [Discipline; 5] =
        [Discipline::Mma, Discipline::Boxing, Discipline::Tennis, Discipline::Football, Discipline::Golf];

    pub(super) const fn number(self) -> i64 {
        self as i64
    }

    pub(super) const fn index(self) -> usize {
        self as usize
    }

    /// The sport of the catalogue, if it is there and has the shape that the simulation gives it.
    pub(super) fn sport(self, catalogue: &Catalogue) -> Option<SportId> {
        let (key, kind) = match self {
            Discipline::Mma => ("mma", SportKind::Fight),
            Discipline::Boxing => ("boxing", SportKind::Fight),
            Discipline::Tennis => ("tennis", SportKind::HeadToHead),
            Discipline::Football => ("american_football", SportKind::HeadToHead),
            Discipline::Golf => ("golf", SportKind::Tournament),
        };
        catalogue.find(key).filter(|sport| catalogue[*sport].kind == kind)
    }
}

/// A row of like slots.
#[derive(Debug)]
pub(super) struct Series {
    pub discipline: Discipline,
    tour: i64,
    /// When slot zero starts, and how far apart slots are.
    first: i64,
    every: i64,
    /// How long before its start a slot is announced, and when after it everything in it is over.
    ahead: i64,
    lasts: i64,
}

pub(super) const SERIES: [Series; 8] = [
    // Saturday night, and Wednesday in the morning.
    series(Discipline::Mma, 0, MONDAY + 5 * DAY + 22 * HOUR, WEEK / 2, 10 * DAY, 9 * HOUR),
    // Friday evening, and Tuesday in the morning.
    series(Discipline::Boxing, 0, MONDAY + 4 * DAY + 19 * HOUR, WEEK / 2, 12 * DAY, 9 * HOUR),
    series(Discipline::Tennis, 0, MONDAY + 2 * HOUR, DAY, 2 * DAY, 12 * HOUR),
    series(Discipline::Tennis, 1, MONDAY + 10 * HOUR, DAY, 2 * DAY, 12 * HOUR),
    series(Discipline::Tennis, 2, MONDAY + 17 * HOUR, DAY, 2 * DAY, 12 * HOUR),
    series(Discipline::Football, 0, MONDAY, WEEK, DAY, 9 * DAY),
    series(Discipline::Golf, 0, MONDAY + 3 * DAY + 11 * HOUR, WEEK, 5 * DAY, 4 * DAY),
    series(Discipline::Golf, 1, MONDAY + 2 * DAY + 23 * HOUR, WEEK, 5 * DAY, 4 * DAY),
];

const fn series(discipline: Discipline, tour: i64, first: i64, every: i64, ahead: i64, lasts: i64) -> Series {
    Series { discipline, tour, first, every, ahead, lasts }
}

/// What every slot is built from.
#[derive(Debug)]
pub(super) struct Stage {
    pub world: Dice,
    pub roster: Roster,
}

/// One slot of a series, to be filled with events.
#[derive(Debug)]
pub(super) struct Slot<'a> {
    pub world: Dice,
    pub roster: &'a Roster,
    pub dice: Dice,
    pub sport: SportId,
    pub tour: i64,
    pub number: i64,
    pub announced: i64,
    pub start: i64,
}

impl Series {
    /// The slots of which something may be in sight.
    pub(super) fn in_sight(&self, at: i64) -> RangeInclusive<i64> {
        let since_first = at - self.first;
        let oldest = (since_first - self.lasts - AFTERGLOW).div_euclid(self.every);
        let newest = (since_first + self.ahead).div_euclid(self.every);
        oldest..=newest
    }

    pub(super) fn fixtures(&self, stage: &Stage, sport: SportId, number: i64) -> Vec<Fixture> {
        let start = self.first + number * self.every;
        let row = stage.world.of("slot").nth(self.discipline.number()).nth(self.tour);
        let slot = Slot {
            world: stage.world,
            roster: &stage.roster,
            dice: row.nth(number),
            sport,
            tour: self.tour,
            number,
            announced: start - self.ahead,
            start,
        };
        match self.discipline {
            Discipline::Mma => fight::card(&slot, &MMA, &stage.roster.mma),
            Discipline::Boxing => fight::card(&slot, &BOXING, &stage.roster.boxing),
            Discipline::Tennis => tennis::day(&slot),
            Discipline::Football => football::week(&slot),
            Discipline::Golf => golf::tournament(&slot),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_in_sight_from_their_announcement_to_a_day_after_their_end() {
        let row = &SERIES[5];
        let at = row.first + 100 * row.every;
        assert!(!row.in_sight(at - row.ahead - 1).contains(&100));
        assert!(row.in_sight(at - row.ahead).contains(&100));
        assert!(row.in_sight(at + row.lasts + AFTERGLOW).contains(&100));
    }
}
