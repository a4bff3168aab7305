//! One record of the board: a bookmaker's prices in a market of an event. Says which tick its prices are of at a time,
//! and what they are at a tick; between two ticks nothing moves, so equal ticks need no prices computed.

use std::sync::Arc;

use super::books::Book;
use super::fixture::{Fixture, View, second};
use super::pricing;
use crate::model::{Market, News, OddsNews, Outcome};

const HOUR: i64 = 3_600;
const SUSPENDED: i64 = 600;
/// Of so many hours of a market, one holds ten minutes in which all books take it down.
const SUSPENDED_ONE_IN: i64 = 90;
/// Before the start, prices move more slowly by this factor.
const CALM: i64 = 6;

pub(super) struct Listing<'a> {
    fixture: &'a Fixture,
    book: &'a Book,
    market: Market,
    opens: i64,
    /// How often it ticks in play, and when.
    period: i64,
    offset: i64,
}

impl<'a> Listing<'a> {
    pub(super) fn new(fixture: &'a Fixture, book: &'a Book, market: Market) -> Self {
        let pair = fixture.outline.dice.joined(book.dice);
        let own = pair.nth(market as i64);
        let pace = fixture.play.pace();
        let period = own.within(pace, 2 * pace);
        let opens = fixture.outline.announced + pair.below(3 * HOUR);
        Listing { fixture, book, market, opens, period, offset: own.nth(1).below(CALM * period) }
    }

    /// The second whose opinion the prices are, if the market is open. An event that is over has no listings.
    pub(super) fn tick(&self, at: i64) -> Option<i64> {
        let heard = self.book.heard(at);
        if heard < self.opens || !self.fixture.is_open(at) || is_suspended(self.fixture, self.market, heard) {
            return None;
        }
        let period = if self.fixture.is_live(heard) { self.period } else { CALM * self.period };
        Some(heard - (heard + self.offset).rem_euclid(period))
    }

    /// The prices of a tick; `None` where the market is closed at it.
    pub(super) fn outcomes(&self, tick: i64) -> Option<Box<[Outcome]>> {
        let at = tick - self.book.lag;
        let lean = self.fixture.outline.dice.of("lean").joined(self.book.dice);
        let view = View { at, score: self.fixture.score(at), lean };
        pricing::price(&self.fixture.play.fair(self.market, view)?, self.market, self.book)
    }

    /// The record after `since` as of `now`, if it is another one; no outcomes if it closed.
    pub(super) fn change(&self, since: i64, now: i64) -> Option<News> {
        let (old, new) = (self.tick(since), self.tick(now));
        if old == new {
            return None;
        }
        let outcomes = new.and_then(|tick| self.outcomes(tick));
        if outcomes == old.and_then(|tick| self.outcomes(tick)) {
            return None;
        }
        // A market that opened again shows an older opinion, but it changed only now.
        let at = new.filter(|tick| *tick > since).unwrap_or(now);
        Some(self.news(at, outcomes.unwrap_or_default()))
    }

    pub(super) fn news(&self, at: i64, outcomes: Box<[Outcome]>) -> News {
        News::Odds(OddsNews {
            sport: self.fixture.outline.sport,
            event: self.fixture.id.clone(),
            bookmaker: Arc::clone(&self.book.key),
            market: self.market,
            last_update: second(at),
            bookmaker_update: None,
            outcomes,
        })
    }
}

/// Whether every book has taken the market down for a while.
fn is_suspended(fixture: &Fixture, market: Market, at: i64) -> bool {
    let dice = fixture.outline.dice.of("suspended").nth(market as i64).nth(at.div_euclid(HOUR));
    let into_hour = at.rem_euclid(HOUR);
    let from = dice.nth(1).below(HOUR - SUSPENDED);
    dice.one_in(SUSPENDED_ONE_IN) && (from..from + SUSPENDED).contains(&into_hour)
}
