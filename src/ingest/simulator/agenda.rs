//! What may change in each second of a minute. Building it costs as much as looking at every price once; the steps of that
//! minute then look only at what is due in them.

use std::ops::RangeInclusive;

use super::Fixtures;
use super::books::Book;
use super::listing::{BookListing, event_edges};

/// Seconds that an agenda is for.
const WINDOW: i64 = 60;

/// Something that may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Due {
    /// Positions of a slot in the agenda, of a fixture in it, and of a bookmaker.
    pub slot: u16,
    pub fixture: u16,
    /// `None`: the event or its score.
    pub book: Option<u16>,
}

#[derive(Debug)]
pub(super) struct Agenda {
    number: i64,
    pub slots: Vec<Fixtures>,
    /// By second of the window.
    due: Vec<Vec<Due>>,
}

/// The number of the window of a second; its first one belongs to the window before.
pub(super) const fn window_of(at: i64) -> i64 {
    (at - 1).div_euclid(WINDOW)
}

/// The seconds at the ends of a window: those of it come after the first one.
pub(super) const fn bounds(window: i64) -> (i64, i64) {
    (window * WINDOW, (window + 1) * WINDOW)
}

impl Agenda {
    /// `slots` are those visible at the bounds of the window.
    pub(super) fn new(number: i64, slots: Vec<Fixtures>, books: &[Book]) -> Self {
        let (from, to) = bounds(number);
        let mut due: Vec<Vec<Due>> = vec![Vec::new(); usize::try_from(WINDOW).unwrap_or(0)];
        let mut add = |at: i64, entry: Due| {
            if let Some(second) = usize::try_from(at - from - 1).ok().and_then(|at| due.get_mut(at)) {
                second.push(entry);
            }
        };
        for (slot, (key, fixtures)) in (0..).zip(&slots) {
            for (position, fixture) in (0..).zip(fixtures.iter()) {
                let mut entry = Due { slot, fixture: position, book: None };
                fixture.edges(from, to).for_each(|at| add(at, entry));
                if !fixture.is_open(to) && !fixture.is_open(from) {
                    continue;
                }
                let shared = event_edges(fixture, from, to);
                for (number, book) in (0..).zip(books).filter(|(_, book)| book.covers(key.0)) {
                    entry.book = Some(number);
                    let own = BookListing::new(fixture, book).edges(from, to);
                    own.chain(shared.iter().copied()).for_each(|at| add(at, entry));
                }
            }
        }
        Agenda { number, slots, due }
    }

    pub(super) const fn is_of(&self, window: i64) -> bool {
        self.number == window
    }

    /// What may change in some seconds of the window: events first, then prices in the order of their slots.
    pub(super) fn due(&self, seconds: RangeInclusive<i64>) -> Vec<Due> {
        let (from, _) = bounds(self.number);
        let position = |at: i64| usize::try_from(at - from - 1).unwrap_or(0).min(self.due.len());
        let (first, last) = (position(*seconds.start()), position(*seconds.end() + 1));
        let mut due: Vec<Due> = self.due.get(first..last).unwrap_or_default().concat();
        due.sort_unstable_by_key(|due| (due.book.is_some(), *due));
        due.dedup();
        due
    }
}
