//! A bookmaker's prices for an event: at which tick they were last updated, what they are at a tick, and when they last
//! changed. All markets of a bookmaker for an event have the same ticks, so that they agree with each other. Prices change
//! only at ticks, and ticks become more frequent towards the start and in play.

use std::sync::Arc;

use super::books::Book;
use super::fixture::{Fixture, FixtureView, second};
use super::markets::SimulatedMarket;
use super::pricing;
use super::schedule::{DAY, HOUR};
use crate::model::{News, OddsNews, Outcome};

const SUSPENDED: i64 = 600;
/// One hour in so many of a market has a suspension by all bookmakers.
const SUSPENDED_ONE_IN: i64 = 90;
/// How many times longer than in play the time between ticks is on the last day before the start, and earlier. Each is a
/// multiple of the next, so that a tick of one phase is also one of the next.
const NEAR_FACTOR: i64 = 10;
const FAR_FACTOR: i64 = 100;

pub(super) struct BookListing<'a> {
    fixture: &'a Fixture,
    book: &'a Book,
    opens: i64,
    /// Of ticks in play.
    period: i64,
    offset: i64,
}

impl<'a> BookListing<'a> {
    pub(super) fn new(fixture: &'a Fixture, book: &'a Book) -> Self {
        let pair = fixture.outline.seed.joined(book.seed);
        let interval = fixture.model.interval();
        let period = pair.named("period").within(interval, 2 * interval);
        let opens = fixture.outline.announced + pair.below(3 * HOUR);
        BookListing { fixture, book, opens, period, offset: pair.named("offset").below(FAR_FACTOR * period) }
    }

    /// The markets that the bookmaker offers.
    pub(super) fn markets(&self) -> impl Iterator<Item = &'static SimulatedMarket> {
        let book = self.book;
        self.fixture.model.markets().iter().filter(move |market| book.offers(market))
    }

    /// The second of the last update, if the market is open. An event that is over has no listings.
    pub(super) fn tick(&self, market: &SimulatedMarket, at: i64) -> Option<i64> {
        let received = self.book.received(at);
        let (from, until) = market.window(&self.fixture.outline);
        let is_open = received >= self.opens && (from..until).contains(&received) && self.fixture.is_open(at);
        if !is_open || is_suspended(self.fixture, market, received) {
            return None;
        }
        let (_, factor, _) = self.phase(received);
        Some(received - (received + self.offset).rem_euclid(factor * self.period))
    }

    /// When the phase that a second is in began, and the factors of it and of the phase before.
    const fn phase(&self, at: i64) -> (i64, i64, i64) {
        let commence = self.fixture.outline.commence;
        if at >= commence {
            (commence, 1, NEAR_FACTOR)
        } else if at >= commence - DAY {
            (commence - DAY, NEAR_FACTOR, FAR_FACTOR)
        } else {
            (i64::MIN, FAR_FACTOR, FAR_FACTOR)
        }
    }

    /// The prices of a tick; `None` where the market is closed at it.
    pub(super) fn outcomes(&self, market: &SimulatedMarket, tick: i64) -> Option<Box<[Outcome]>> {
        let at = tick - self.book.lag;
        let bias = self.fixture.outline.seed.named("lean").joined(self.book.seed);
        let view = FixtureView { at, score: self.fixture.score(at), bias };
        pricing::price(&self.fixture.model.chances(market, view)?, market, self.book)
    }

    /// The prices at a time, if the market is open.
    fn quoted(&self, market: &SimulatedMarket, at: i64) -> Option<Box<[Outcome]>> {
        self.tick(market, at).and_then(|tick| self.outcomes(market, tick))
    }

    /// The record at a time, dated with its last change; `None` if the market is closed.
    pub(super) fn record(&self, market: &SimulatedMarket, at: i64) -> Option<News> {
        let outcomes = self.quoted(market, at)?;
        let changed = self.changed(market, at, i64::MIN, &outcomes)?;
        Some(self.news(market, changed, outcomes))
    }

    /// The record at `now` if it changed after `since`; without outcomes if it closed.
    pub(super) fn change(&self, market: &SimulatedMarket, since: i64, now: i64) -> Option<News> {
        let (old, new) = (self.tick(market, since), self.tick(market, now));
        // Within less than a suspension, equal ticks mean that there was none in between.
        if old == new && now - since < SUSPENDED {
            return None;
        }
        let Some(outcomes) = new.and_then(|tick| self.outcomes(market, tick)) else {
            let was_open = old.and_then(|tick| self.outcomes(market, tick)).is_some();
            return was_open.then(|| self.news(market, now, Box::default()));
        };
        let changed = self.changed(market, now, since, &outcomes)?;
        Some(self.news(market, changed, outcomes))
    }

    /// The second since which the market has been open at `outcomes`, its prices at `at`; `None` if it already was at
    /// `since`. Walks back tick by tick, since most ticks change the prices.
    fn changed(&self, market: &SimulatedMarket, at: i64, since: i64, outcomes: &[Outcome]) -> Option<i64> {
        let mut start = self.tick_start(market, at)?;
        while start > since {
            if self.quoted(market, start - 1).is_none_or(|earlier| *earlier != *outcomes) {
                return Some(start);
            }
            start = self.tick_start(market, start - 1)?;
        }
        None
    }

    /// The first of the seconds up to `at` in which the market was open at the same tick throughout.
    fn tick_start(&self, market: &SimulatedMarket, at: i64) -> Option<i64> {
        let tick = self.tick(market, at)?;
        let received = self.book.received(at);
        let (phase, _, earlier) = self.phase(received);
        // A tick that exists only at the rate of a phase takes effect when the phase begins.
        let is_between = tick < phase && (tick + self.offset).rem_euclid(earlier * self.period) != 0;
        let (window, _) = market.window(&self.fixture.outline);
        let from = if is_between { phase } else { tick }.max(self.opens).max(window);
        Some(self.book.received_from(reopened(self.fixture, market, from, received)))
    }

    /// The seconds after `from`, up to `to`, at which the bookmaker may change a price for reasons of its own. Those of the
    /// event are [`event_edges`].
    pub(super) fn edges(&self, from: i64, to: i64) -> impl Iterator<Item = i64> + use<> {
        // Ticks at the rate of the last phase include those of the phases before.
        let step = self.phase(to).1 * self.period;
        let first = from + 1 + (-(from + 1 + self.offset)).rem_euclid(step);
        let once = [Some(self.opens), self.book.outage_end(from, to)].into_iter().flatten();
        let ticks = (first..=to).step_by(usize::try_from(step).unwrap_or(usize::MAX));
        ticks.chain(once.filter(move |at| (from + 1..=to).contains(at)))
    }

    pub(super) fn news(&self, market: &SimulatedMarket, at: i64, outcomes: Box<[Outcome]>) -> News {
        News::Odds(OddsNews {
            sport: self.fixture.outline.sport,
            event: self.fixture.id.clone(),
            bookmaker: Arc::clone(&self.book.key),
            market: market.market_key(),
            last_update: second(at),
            bookmaker_update: None,
            outcomes,
        })
    }
}

/// The seconds after `from`, up to `to`, at which a market of an event may open or close, or ticks become more frequent, at
/// all bookmakers.
pub(super) fn event_edges(fixture: &Fixture, from: i64, to: i64) -> Vec<i64> {
    let commence = fixture.outline.commence;
    let mut edges = vec![commence - DAY, commence];
    for market in fixture.model.markets() {
        let (opens, closes) = market.window(&fixture.outline);
        edges.extend([opens, closes]);
        for hour in from.div_euclid(HOUR)..=to.div_euclid(HOUR) {
            edges.extend(suspension(fixture, market, hour).into_iter().flat_map(|(from, until)| [from, until]));
        }
    }
    edges.retain(|at| (from + 1..=to).contains(at));
    edges
}

fn is_suspended(fixture: &Fixture, market: &SimulatedMarket, at: i64) -> bool {
    suspension(fixture, market, at.div_euclid(HOUR)).is_some_and(|(from, until)| (from..until).contains(&at))
}

/// The end of the market's last suspension from `from` to `at`; `from` if there was none.
fn reopened(fixture: &Fixture, market: &SimulatedMarket, from: i64, at: i64) -> i64 {
    let hours = from.div_euclid(HOUR)..=at.div_euclid(HOUR);
    let ends = hours.filter_map(|hour| suspension(fixture, market, hour)).map(|(_, until)| until);
    ends.filter(|until| (from..=at).contains(until)).max().unwrap_or(from)
}

/// The suspension of an hour, if it has one: its first second, and the first after it.
fn suspension(fixture: &Fixture, market: &SimulatedMarket, hour: i64) -> Option<(i64, i64)> {
    let seed = fixture.outline.seed.named("suspended").named(market.key).nth(hour);
    let from = hour * HOUR + seed.nth(1).below(HOUR - SUSPENDED);
    seed.one_in(SUSPENDED_ONE_IN).then_some((from, from + SUSPENDED))
}
