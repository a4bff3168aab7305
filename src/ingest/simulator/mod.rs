//! The simulator: five sports, their events, scores and the prices of two dozen bookmakers, invented but plausible, for
//! ever.
//!
//! The world at a second is a pure function of a seed and that second, in integers only: it is the same on every
//! machine, a restart or a jump costs nothing, and what changed between two seconds is the difference of two readings.
//! It never looks at a clock, keeps nothing but a cache of what it can compute again, and says nothing that the feed
//! line could not say.
//!
//! From slot to price: `schedule` says which cards, days, weeks and tournaments are in sight; `fight`, `tennis`,
//! `football` and `golf` fill them with fixtures, whole courses included; `fair` and the sports' own files give true
//! chances at a second; `listing` says at which second a bookmaker looks, `pricing` what it writes.

mod books;
mod curve;
mod fair;
mod fight;
mod fixture;
mod football;
mod golf;
mod listing;
mod noise;
mod pricing;
mod roster;
mod run;
mod schedule;
mod tennis;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use books::Book;
use fixture::{Fixture, second};
use listing::Listing;
use noise::Dice;
use roster::Roster;
use schedule::{Discipline, SERIES, Stage};

use crate::model::{Catalogue, News, ReadNews, SportId, Timestamp};

pub use run::Simulation;

/// A simulated world.
#[derive(Debug)]
pub struct Simulator {
    stage: Stage,
    books: Vec<Book>,
    /// By discipline; `None` where the catalogue does not carry the sport.
    sports: [Option<SportId>; Discipline::ALL.len()],
    /// The slots last asked for: building one costs more than reading it.
    slots: Mutex<BTreeMap<SlotKey, Arc<Program>>>,
}

/// The position of a series and the number of a slot in it.
type SlotKey = (usize, i64);

/// The events of one slot.
#[derive(Debug)]
struct Program {
    discipline: Discipline,
    fixtures: Vec<Fixture>,
}

impl Simulator {
    pub fn new(seed: u64, catalogue: &Catalogue) -> Self {
        let world = Dice::new(seed);
        Simulator {
            books: books::choose(catalogue.bookmakers(), world),
            sports: Discipline::ALL.map(|discipline| discipline.sport(catalogue)),
            stage: Stage { world, roster: Roster::new() },
            slots: Mutex::default(),
        }
    }

    /// The whole world at a second: every event that is scheduled, live, or over for less than three days, with scores,
    /// prices and reads. Whoever applied an earlier opening and every [`between`](Self::between) since holds the same,
    /// dates included.
    pub fn opening(&self, now: Timestamp) -> Vec<News> {
        let now = i64::from(now.unix());
        let programs = self.programs(&[now]);
        let mut news = Vec::new();
        for fixture in fixtures(&programs).filter(|fixture| fixture.is_visible(now)) {
            news.push(fixture.event_news(now));
            news.extend(fixture.score_news(now));
        }
        for program in &programs {
            self.each_listing(program, now, |_, listing| news.extend(listing.record(now)));
        }
        self.reads(i64::MIN, now, &mut news);
        news
    }

    /// What changed after `since`, up to `now`, however far apart they are: whoever applied the world as of `since` and
    /// then this holds the world as of `now`. Nothing if no time passed.
    pub fn between(&self, since: Timestamp, now: Timestamp) -> Vec<News> {
        let (since, now) = (i64::from(since.unix()), i64::from(now.unix()));
        let mut news = Vec::new();
        if now <= since {
            return news;
        }
        let programs = self.programs(&[since, now]);
        for fixture in fixtures(&programs) {
            fixture.changes(since, now, &mut news);
        }
        for program in &programs {
            self.each_listing(program, now, |_, listing| news.extend(listing.change(since, now)));
        }
        self.reads(since, now, &mut news);
        news
    }

    /// Every record that can be open, with the position of its book.
    fn each_listing<'a>(&'a self, program: &'a Program, at: i64, mut visit: impl FnMut(usize, Listing<'a>)) {
        for fixture in program.fixtures.iter().filter(|fixture| fixture.is_open(at)) {
            for (position, book) in self.books.iter().enumerate().filter(|(_, book)| book.covers(program.discipline)) {
                for market in fixture.play.markets().iter().filter(|market| book.offers(**market)) {
                    visit(position, Listing::new(fixture, book, *market));
                }
            }
        }
    }

    /// A good read of every source that was heard after `since`.
    fn reads(&self, since: i64, now: i64, news: &mut Vec<News>) {
        for discipline in Discipline::ALL {
            let Some(sport) = self.sports[discipline.index()] else { continue };
            for book in self.books.iter().filter(|book| book.covers(discipline)) {
                let heard = book.heard(now);
                if heard > since {
                    let latency_ms = book.latency_ms(discipline, heard);
                    let bookmaker = Arc::clone(&book.key);
                    news.push(News::Read(ReadNews { sport, bookmaker, at: second(heard), latency_ms }));
                }
            }
        }
    }

    /// The slots that are in sight at the given times, in an order that depends on nothing else.
    fn programs(&self, times: &[i64]) -> Vec<Arc<Program>> {
        let mut wanted = BTreeSet::new();
        for (position, series) in SERIES.iter().enumerate() {
            wanted.extend(times.iter().flat_map(|at| series.in_sight(*at)).map(|number| (position, number)));
        }
        // A panic in another thread leaves the cache whole: a slot is put in when it is finished.
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        slots.retain(|key, _| wanted.contains(key));
        let program = |key| Arc::clone(slots.entry(key).or_insert_with(|| Arc::new(self.build(key))));
        wanted.into_iter().map(program).collect()
    }

    fn build(&self, (position, number): SlotKey) -> Program {
        let series = &SERIES[position];
        let sport = self.sports[series.discipline.index()];
        let fixtures = sport.map_or_else(Vec::new, |sport| series.fixtures(&self.stage, sport, number));
        Program { discipline: series.discipline, fixtures }
    }
}

fn fixtures(programs: &[Arc<Program>]) -> impl Iterator<Item = &Fixture> {
    programs.iter().flat_map(|program| &program.fixtures)
}
