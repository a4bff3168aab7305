//! The simulator: endless fixtures of nine sports, their scores and the prices of three dozen bookmakers, invented but
//! plausible.
//!
//! The world at a second is a pure function of a seed and that second, in integer arithmetic only: it is the same on
//! every machine, and a restart or a jump costs nothing. What changed between two seconds is the difference of the two
//! worlds. The simulator never reads a clock, and its only state is caches.
//!
//! Every random number is drawn from a seed named by the keys that it is about (sport, competition, event, bookmaker,
//! market). So a new sport, bookmaker or market changes no price that existed.
//!
//! `sports` has the parameters of each sport and `schedule` its slots. `matches` draws fixtures and prices of sports in
//! which two sides meet, with `fight`, `tennis` and `timed` for the ways of scoring, `goals` for sports of few of them, and
//! `props` for players; `golf` does so for tournaments and `futures` for seasons. `markets` says who offers what, `listing`
//! and `pricing` make a bookmaker's prices from fair chances, and `agenda` finds what may change in a second.

mod agenda;
mod books;
mod curve;
mod fair;
mod fight;
mod fixture;
mod futures;
mod goals;
mod golf;
mod listing;
mod markets;
mod matches;
mod noise;
mod pricing;
mod props;
mod roster;
mod run;
mod schedule;
mod sports;
mod tennis;
mod timed;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use agenda::Agenda;
use books::Book;
use fixture::{Fixture, second};
use listing::BookListing;
use noise::Seed;
use schedule::SlotKey;
use sports::SPORTS;

use crate::model::{Catalogue, News, ReadNews, SportId, Timestamp};

pub use run::Simulation;

/// A simulated world.
#[derive(Debug)]
pub struct Simulator {
    seed: Seed,
    books: Vec<Book>,
    /// By position in [`SPORTS`]; `None` where the catalogue does not have the sport.
    sports: [Option<SportId>; SPORTS.len()],
    /// The slots last used: building one costs more than reading it.
    slots: Mutex<BTreeMap<SlotKey, Arc<[Fixture]>>>,
    /// Of the minute last used.
    agenda: Mutex<Option<Arc<Agenda>>>,
}

/// A slot and its fixtures.
type Fixtures = (SlotKey, Arc<[Fixture]>);

impl Simulator {
    pub fn new(seed: u64, catalogue: &Catalogue) -> Self {
        let seed = Seed::new(seed);
        let find = |row: usize| {
            let sport = catalogue.find(SPORTS[row].key)?;
            (catalogue[sport].kind == SPORTS[row].kind).then_some(sport)
        };
        Simulator {
            seed,
            books: books::books(catalogue.bookmakers(), seed),
            sports: std::array::from_fn(find),
            slots: Mutex::default(),
            agenda: Mutex::default(),
        }
    }

    /// The whole world at a second: every event that is scheduled, live, or over for less than three days, with scores,
    /// prices and reads. It equals an earlier opening with every [`between`](Self::between) since applied, dates
    /// included.
    pub fn opening(&self, now: Timestamp) -> Vec<News> {
        let now = i64::from(now.unix());
        let slots = self.slots(&[now]);
        let mut news = Vec::new();
        for fixture in all_fixtures(&slots).filter(|fixture| fixture.is_visible(now)) {
            news.push(fixture.event_news(now));
            news.extend(fixture.score_news(now));
        }
        for slot in &slots {
            self.each_listing(slot, now, |_, listing| {
                news.extend(listing.markets().filter_map(|market| listing.record(market, now)));
            });
        }
        self.reads(i64::MIN, now, &mut news);
        news
    }

    /// What changed after `since`, up to `now`, however far apart they are: applied to the world at `since`, it gives the
    /// world at `now`. Empty if `now` is not after `since`.
    pub fn between(&self, since: Timestamp, now: Timestamp) -> Vec<News> {
        let (since, now) = (i64::from(since.unix()), i64::from(now.unix()));
        let mut news = Vec::new();
        if now <= since {
            return news;
        }
        if agenda::window_of(since + 1) == agenda::window_of(now) {
            self.due_changes(since, now, &mut news);
        } else {
            self.all_changes(since, now, &mut news);
        }
        self.reads(since, now, &mut news);
        news
    }

    /// Looks at everything.
    fn all_changes(&self, since: i64, now: i64, news: &mut Vec<News>) {
        let slots = self.slots(&[since, now]);
        for fixture in all_fixtures(&slots) {
            fixture.news_between(since, now, news);
        }
        for slot in &slots {
            self.each_listing(slot, now, |_, listing| {
                news.extend(listing.markets().filter_map(|market| listing.change(market, since, now)));
            });
        }
    }

    /// Looks only at what is due in some seconds of one window of the agenda.
    fn due_changes(&self, since: i64, now: i64, news: &mut Vec<News>) {
        let agenda = self.agenda(agenda::window_of(now));
        for due in agenda.due(since + 1..=now) {
            let (_, fixtures) = &agenda.slots[usize::from(due.slot)];
            let fixture = &fixtures[usize::from(due.fixture)];
            match due.book {
                None => fixture.news_between(since, now, news),
                Some(book) if fixture.is_open(now) => {
                    let listing = BookListing::new(fixture, &self.books[usize::from(book)]);
                    news.extend(listing.markets().filter_map(|market| listing.change(market, since, now)));
                }
                Some(_) => {}
            }
        }
    }

    fn agenda(&self, window: i64) -> Arc<Agenda> {
        // A panic in another thread leaves a finished agenda or none.
        let mut kept = self.agenda.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(agenda) = kept.as_ref().filter(|agenda| agenda.is_of(window)) {
            return Arc::clone(agenda);
        }
        let (from, to) = agenda::bounds(window);
        let agenda = Arc::new(Agenda::new(window, self.slots(&[from, to]), &self.books));
        *kept = Some(Arc::clone(&agenda));
        agenda
    }

    /// The listing of every event that can have open markets, by each bookmaker, with the position of the bookmaker.
    fn each_listing<'a>(
        &'a self,
        (key, fixtures): &'a Fixtures,
        at: i64,
        mut visit: impl FnMut(usize, BookListing<'a>),
    ) {
        for fixture in fixtures.iter().filter(|fixture| fixture.is_open(at)) {
            for (position, book) in self.books.iter().enumerate().filter(|(_, book)| book.covers(key.0)) {
                visit(position, BookListing::new(fixture, book));
            }
        }
    }

    /// A successful read of every source that was received after `since`.
    fn reads(&self, since: i64, now: i64, news: &mut Vec<News>) {
        for (row, sport) in self.sports.iter().enumerate() {
            let Some(sport) = *sport else { continue };
            for book in self.books.iter().filter(|book| book.covers(row)) {
                let received = book.received(now);
                if received > since {
                    let latency_ms = book.latency_ms(SPORTS[row].key, received);
                    let bookmaker = Arc::clone(&book.key);
                    news.push(News::Read(ReadNews { sport, bookmaker, at: second(received), latency_ms }));
                }
            }
        }
    }

    /// The slots that are visible at the given times, in the order of their keys.
    fn slots(&self, times: &[i64]) -> Vec<Fixtures> {
        let mut visible = BTreeSet::new();
        for (row, sport) in SPORTS.iter().enumerate() {
            for (position, series) in sport.series.iter().enumerate() {
                let numbers = times.iter().flat_map(|at| series.visible_slots(*at));
                visible.extend(numbers.map(|number| (row, position, number)));
            }
        }
        // A panic in another thread leaves the cache consistent: only finished slots are inserted.
        let mut cache = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        cache.retain(|key, _| visible.contains(key));
        let fixtures = |key| (key, Arc::clone(cache.entry(key).or_insert_with(|| self.build(key).into())));
        visible.into_iter().map(fixtures).collect()
    }

    fn build(&self, key: SlotKey) -> Vec<Fixture> {
        self.sports[key.0].map_or_else(Vec::new, |sport| schedule::fixtures(self.seed, sport, key))
    }
}

fn all_fixtures(slots: &[Fixtures]) -> impl Iterator<Item = &Fixture> {
    slots.iter().flat_map(|(_, fixtures)| fixtures.iter())
}
