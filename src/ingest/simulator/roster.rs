//! Names of competitors and competitions: lists in `data/simulator`, all invented but for nations. A person's name combines a first and
//! a last name so that no two numbers give the same one.

use std::sync::Arc;

use super::noise::Seed;

const MEN: &str = include_str!("../../../data/simulator/men.txt");
const WOMEN: &str = include_str!("../../../data/simulator/women.txt");
const LAST: &str = include_str!("../../../data/simulator/last.txt");
pub(super) const FOOTBALL_TEAMS: &str = include_str!("../../../data/simulator/football.txt");
pub(super) const BASKETBALL_TEAMS: &str = include_str!("../../../data/simulator/basketball.txt");
pub(super) const BASEBALL_TEAMS: &str = include_str!("../../../data/simulator/baseball.txt");
pub(super) const HOCKEY_TEAMS: &str = include_str!("../../../data/simulator/hockey.txt");
pub(super) const ENGLISH_CLUBS: &str = include_str!("../../../data/simulator/english_clubs.txt");
pub(super) const MLS_CLUBS: &str = include_str!("../../../data/simulator/mls_clubs.txt");
pub(super) const NATIONS: &str = include_str!("../../../data/simulator/nations.txt");
pub(super) const MMA: &str = include_str!("../../../data/simulator/mma.txt");
pub(super) const BOXING: &str = include_str!("../../../data/simulator/boxing.txt");
pub(super) const TENNIS: &str = include_str!("../../../data/simulator/tennis.txt");
pub(super) const GOLF: &str = include_str!("../../../data/simulator/golf.txt");

/// Where the names of competitors come from.
#[derive(Clone, Copy, Debug)]
pub(super) enum Names {
    Men,
    Women,
    /// One to a line.
    Listed(&'static str),
}

impl Names {
    pub(super) fn get(self, number: usize) -> Arc<str> {
        match self {
            Names::Men => person(MEN, number),
            Names::Women => person(WOMEN, number),
            Names::Listed(list) => line(list, number).into(),
        }
    }

    /// The position of a name in a list; zero for people.
    pub(super) fn position(self, name: &str) -> usize {
        match self {
            Names::Men | Names::Women => 0,
            Names::Listed(list) => list.lines().position(|line| line == name).unwrap_or(0),
        }
    }
}

/// Part of a list of names, from which a slot draws its competitors.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pool {
    /// Names the seed of the draw.
    pub seed: &'static str,
    pub names: Names,
    pub first: usize,
    pub size: usize,
    /// Consecutive slots draw from so many blocks of `size` names in turn, so that no one competes twice in a week.
    pub blocks: i64,
}

impl Pool {
    /// The names for a slot in random order.
    pub(super) fn draw(self, seed: Seed, slot: i64) -> impl Iterator<Item = Arc<str>> {
        let block = usize::try_from(slot.rem_euclid(self.blocks)).unwrap_or(0);
        let order = seed.named(self.seed).shuffled(self.size);
        order.into_iter().map(move |number| self.names.get(self.first + block * self.size + number))
    }
}

fn person(first: &str, number: usize) -> Arc<str> {
    let count = first.lines().count();
    // Neighbours get last names far apart; for one first name, each number has another last name.
    let last = number / count + number % count * 17;
    format!("{} {}", line(first, number), line(LAST, last)).into()
}

/// The line of a list at a number, modulo its length.
fn line(list: &str, number: usize) -> &str {
    list.lines().nth(number % list.lines().count().max(1)).unwrap_or_default()
}

/// The same for a number that may be negative.
pub(super) fn cycled(list: &str, number: i64) -> &str {
    let len = i64::try_from(list.lines().count()).unwrap_or(1).max(1);
    line(list, usize::try_from(number.rem_euclid(len)).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_have_distinct_names() {
        let mut names: Vec<Arc<str>> = (0..1000).flat_map(|n| [Names::Men.get(n), Names::Women.get(n)]).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), 2000);
    }

    #[test]
    fn lists_have_no_blank_or_padded_lines() {
        let teams = [FOOTBALL_TEAMS, BASKETBALL_TEAMS, BASEBALL_TEAMS, HOCKEY_TEAMS, ENGLISH_CLUBS, MLS_CLUBS, NATIONS];
        assert_eq!(teams.map(|list| list.lines().count()), [32, 24, 24, 24, 20, 16, 28]);
        for list in [MEN, WOMEN, LAST, MMA, BOXING, TENNIS, GOLF].into_iter().chain(teams) {
            assert!(list.lines().all(|name| !name.is_empty() && name.trim() == name));
            let names: std::collections::HashSet<&str> = list.lines().collect();
            assert_eq!(names.len(), list.lines().count());
        }
    }
}
