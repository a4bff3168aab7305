//! Who competes, and under which names: lists in `data/simulator`, all invented. A person is a first and a last name
//! combined so that no two numbers of one list share a name.

use std::sync::Arc;

/// The lists, and the three names that every totals market or drawn fight uses.
#[derive(Debug)]
pub(super) struct Roster {
    men: Vec<&'static str>,
    women: Vec<&'static str>,
    last: Vec<&'static str>,
    pub teams: Vec<&'static str>,
    pub mma: Vec<&'static str>,
    pub boxing: Vec<&'static str>,
    pub tennis: Vec<&'static str>,
    pub golf: Vec<&'static str>,
    pub over: Arc<str>,
    pub under: Arc<str>,
    pub draw: Arc<str>,
}

impl Roster {
    pub(super) fn new() -> Self {
        Roster {
            men: lines(include_str!("../../../data/simulator/men.txt")),
            women: lines(include_str!("../../../data/simulator/women.txt")),
            last: lines(include_str!("../../../data/simulator/last.txt")),
            teams: lines(include_str!("../../../data/simulator/teams.txt")),
            mma: lines(include_str!("../../../data/simulator/mma.txt")),
            boxing: lines(include_str!("../../../data/simulator/boxing.txt")),
            tennis: lines(include_str!("../../../data/simulator/tennis.txt")),
            golf: lines(include_str!("../../../data/simulator/golf.txt")),
            over: "Over".into(),
            under: "Under".into(),
            draw: "Draw".into(),
        }
    }

    pub(super) fn man(&self, number: usize) -> Arc<str> {
        self.person(&self.men, number)
    }

    pub(super) fn woman(&self, number: usize) -> Arc<str> {
        self.person(&self.women, number)
    }

    fn person(&self, first: &[&str], number: usize) -> Arc<str> {
        let given = number % first.len();
        // Neighbours get last names far apart; for one first name, each number has another last name.
        let family = (number / first.len() + given * 17) % self.last.len();
        format!("{} {}", first[given], self.last[family]).into()
    }
}

/// An element of a list, going round for ever.
pub(super) fn around<'a>(list: &[&'a str], number: i64) -> &'a str {
    let len = i64::try_from(list.len()).unwrap_or(1).max(1);
    usize::try_from(number.rem_euclid(len)).ok().and_then(|at| list.get(at)).copied().unwrap_or_default()
}

fn lines(text: &'static str) -> Vec<&'static str> {
    text.lines().filter(|line| !line.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_people_share_a_name() {
        let roster = Roster::new();
        let mut names: Vec<Arc<str>> = (0..1000).flat_map(|n| [roster.man(n), roster.woman(n)]).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), 2000);
    }

    #[test]
    fn the_lists_are_clean() {
        let roster = Roster::new();
        assert_eq!(roster.teams.len(), 32);
        for list in [&roster.teams, &roster.mma, &roster.boxing, &roster.tennis, &roster.golf, &roster.last] {
            assert!(!list.is_empty() && list.iter().all(|name| name.trim() == *name));
        }
    }
}
