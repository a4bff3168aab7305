//! A bookmaker's prices in a market of an event: at which tick they were last updated, what they are at a tick, and when
//! they last changed. Prices change only at ticks, so a step within one computes none.

use std::sync::Arc;

use super::books::Book;
use super::fixture::{Fixture, FixtureView, second};
use super::pricing;
use crate::model::{Market, News, OddsNews, Outcome};

const HOUR: i64 = 3_600;
const SUSPENDED: i64 = 600;
/// One hour in so many of a market has a suspension by all bookmakers.
const SUSPENDED_ONE_IN: i64 = 90;
/// How many times longer the interval between ticks is before the start.
const PREMATCH_FACTOR: i64 = 6;

pub(super) struct SimulatedRecord<'a> {
    fixture: &'a Fixture,
    book: &'a Book,
    market: Market,
    opens: i64,
    /// Of ticks in play.
    period: i64,
    offset: i64,
}

impl<'a> SimulatedRecord<'a> {
    pub(super) fn new(fixture: &'a Fixture, book: &'a Book, market: Market) -> Self {
        let pair = fixture.outline.seed.joined(book.seed);
        let own = pair.nth(number(market));
        let interval = fixture.model.interval();
        let period = own.within(interval, 2 * interval);
        let opens = fixture.outline.announced + pair.below(3 * HOUR);
        SimulatedRecord { fixture, book, market, opens, period, offset: own.nth(1).below(PREMATCH_FACTOR * period) }
    }

    /// The second of the last update, if the market is open. An event that is over has no listings.
    pub(super) fn tick(&self, at: i64) -> Option<i64> {
        let received = self.book.received(at);
        if received < self.opens || !self.fixture.is_open(at) || is_suspended(self.fixture, self.market, received) {
            return None;
        }
        let period = if self.fixture.is_live(received) { self.period } else { PREMATCH_FACTOR * self.period };
        Some(received - (received + self.offset).rem_euclid(period))
    }

    /// The prices of a tick; `None` where the market is closed at it.
    pub(super) fn outcomes(&self, tick: i64) -> Option<Box<[Outcome]>> {
        let at = tick - self.book.lag;
        let bias = self.fixture.outline.seed.named("lean").joined(self.book.seed);
        let view = FixtureView { at, score: self.fixture.score(at), bias };
        pricing::price(&self.fixture.model.chances(self.market, view)?, self.market, self.book)
    }

    /// The prices at a time, if the market is open.
    fn quoted(&self, at: i64) -> Option<Box<[Outcome]>> {
        self.tick(at).and_then(|tick| self.outcomes(tick))
    }

    /// The record at a time, dated with its last change; `None` if the market is closed.
    pub(super) fn record(&self, at: i64) -> Option<News> {
        let outcomes = self.quoted(at)?;
        let changed = self.changed(at, i64::MIN, &outcomes)?;
        Some(self.news(changed, outcomes))
    }

    /// The record at `now` if it changed after `since`; without outcomes if it closed.
    pub(super) fn change(&self, since: i64, now: i64) -> Option<News> {
        let (old, new) = (self.tick(since), self.tick(now));
        // Within less than a suspension, equal ticks mean that there was none in between.
        if old == new && now - since < SUSPENDED {
            return None;
        }
        let Some(outcomes) = new.and_then(|tick| self.outcomes(tick)) else {
            let was_open = old.and_then(|tick| self.outcomes(tick)).is_some();
            return was_open.then(|| self.news(now, Box::default()));
        };
        let changed = self.changed(now, since, &outcomes)?;
        Some(self.news(changed, outcomes))
    }

    /// The second since which the market has been open at `outcomes`, its prices at `at`; `None` if it already was at
    /// `since`. Walks back tick by tick, since most ticks change the prices.
    fn changed(&self, at: i64, since: i64, outcomes: &[Outcome]) -> Option<i64> {
        let mut start = self.tick_start(at)?;
        while start > since {
            if self.quoted(start - 1).is_none_or(|earlier| *earlier != *outcomes) {
                return Some(start);
            }
            start = self.tick_start(start - 1)?;
        }
        None
    }

    /// The first of the seconds up to `at` in which the market was open at the same tick throughout.
    fn tick_start(&self, at: i64) -> Option<i64> {
        let tick = self.tick(at)?;
        let received = self.book.received(at);
        let commence = self.fixture.outline.commence;
        let period = PREMATCH_FACTOR * self.period;
        // A tick that exists only at the rate in play takes effect at the start.
        let is_between = tick < commence && commence <= received && (tick + self.offset).rem_euclid(period) != 0;
        let from = if is_between { commence } else { tick };
        let from = from.max(self.opens).max(reopened(self.fixture, self.market, from, received));
        Some(self.book.received_from(from))
    }

    pub(super) fn news(&self, at: i64, outcomes: Box<[Outcome]>) -> News {
        News::Odds(OddsNews {
            sport: self.fixture.outline.sport,
            event: self.fixture.id.clone(),
            bookmaker: Arc::clone(&self.book.key),
            market: self.market.into(),
            last_update: second(at),
            bookmaker_update: None,
            outcomes,
        })
    }
}

/// The featured markets have fixed numbers: prices are made from them.
fn number(market: Market) -> i64 {
    i64::try_from(market.index()).unwrap_or(0)
}

fn is_suspended(fixture: &Fixture, market: Market, at: i64) -> bool {
    suspension(fixture, market, at.div_euclid(HOUR)).is_some_and(|(from, until)| (from..until).contains(&at))
}

/// The end of the market's last suspension from `from` to `at`; `from` if there was none.
fn reopened(fixture: &Fixture, market: Market, from: i64, at: i64) -> i64 {
    let hours = from.div_euclid(HOUR)..=at.div_euclid(HOUR);
    let ends = hours.filter_map(|hour| suspension(fixture, market, hour)).map(|(_, until)| until);
    ends.filter(|until| (from..=at).contains(until)).max().unwrap_or(from)
}

/// The suspension of an hour, if it has one: its first second, and the first after it.
fn suspension(fixture: &Fixture, market: Market, hour: i64) -> Option<(i64, i64)> {
    let seed = fixture.outline.seed.named("suspended").nth(number(market)).nth(hour);
    let from = hour * HOUR + seed.nth(1).below(HOUR - SUSPENDED);
    seed.one_in(SUSPENDED_ONE_IN).then_some((from, from + SUSPENDED))
}
