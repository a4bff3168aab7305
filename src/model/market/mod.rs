//! Markets: what a bookmaker prices in an event.
//!
//! A market is its key. Which keys there are is data: eleven are always known, and every other key that reads (see
//! [`MarketFamilies`]) becomes a [`Market`] when the writer first accepts a price of it. A [`Market`] is a small number that
//! stands for the key within this process, as a symbol does in a compiler, so that records and indexes hold two bytes.

mod families;
mod key;
mod names;
mod set;
mod shape;
mod symbols;

use std::cmp::Ordering;
use std::fmt;

pub use families::MarketFamilies;
pub use key::{KeyParts, MarketKey, MarketPeriod};
pub use set::MarketFilter;
pub use shape::{MarketShape, MarketTraits, OutcomeGroup, Settlement, groups};

use super::sport::SportKind;
use symbols::Symbol;

/// A market. Its number is private to this process: never stored or sent.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Market(u16);

impl Market {
    pub const MONEYLINE: Market = Market(0);
    pub const SPREAD: Market = Market(1);
    pub const TOTAL_ROUNDS: Market = Market(2);
    pub const TOTAL_POINTS: Market = Market(3);
    pub const OUTRIGHT: Market = Market(4);
    pub const TOP5: Market = Market(5);
    pub const TOP10: Market = Market(6);
    pub const TOP20: Market = Market(7);
    pub const THREE_BALL: Market = Market(8);
    pub const MATCHUP: Market = Market(9);
    pub const ROUND_LEADER: Market = Market(10);

    /// The markets that are returned unless others are requested, in the order in which the API lists their keys.
    pub const FEATURED: [Market; 11] = [
        Market::MONEYLINE,
        Market::SPREAD,
        Market::TOTAL_ROUNDS,
        Market::TOTAL_POINTS,
        Market::OUTRIGHT,
        Market::TOP5,
        Market::TOP10,
        Market::TOP20,
        Market::THREE_BALL,
        Market::MATCHUP,
        Market::ROUND_LEADER,
    ];

    /// The most markets that a process can have.
    pub const MAX: usize = 4096;

    /// The market of a key that has been accepted before. Knows the service's own names only.
    pub fn find(key: &str) -> Option<Market> {
        symbols::find(key)
    }

    /// The same for a key in the names of The Odds API, whose `totals` depends on the sport.
    pub fn find_alias(key: &str, kind: SportKind) -> Option<Market> {
        names::from_v4(key, kind).map_or_else(|| Market::find(key), |own| Market::find(&own))
    }

    /// The market of a key, a new one if need be. `None` if there are [`Market::MAX`] already.
    pub fn intern(key: &MarketKey) -> Option<Market> {
        match key {
            MarketKey::Known(market) => Some(*market),
            MarketKey::New(text) => symbols::intern(text),
        }
    }

    fn symbol(self) -> &'static Symbol {
        symbols::get(self.0)
    }

    pub fn key(self) -> &'static str {
        self.symbol().key
    }

    /// The key in The Odds API; markets that it does not have keep their own.
    pub fn v4_key(self) -> &'static str {
        self.symbol().v4_key
    }

    /// The key in The Odds API for events of a kind. A total that the kind does not have keeps its own key, so that no
    /// two markets of an event share one.
    pub fn alias(self, kind: SportKind) -> &'static str {
        if self.is_of(kind) { self.v4_key() } else { self.key() }
    }

    /// Whether events of this kind can have the market: a fight has rounds where everything else has points. This is the
    /// only such rule.
    pub fn is_of(self, kind: SportKind) -> bool {
        names::is_of(self.key(), kind)
    }

    /// Lay prices are for betting against an outcome, so they are returned only when their market is named.
    pub fn is_lay(self) -> bool {
        self.symbol().is_lay
    }

    pub fn is_featured(self) -> bool {
        self.index() < Market::FEATURED.len()
    }

    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// How the outcomes of the featured markets settle; every other market is a single group with one winner until the
    /// catalogue says otherwise.
    pub const fn settlement(self) -> Settlement {
        let (group, winners) = match self {
            Market::THREE_BALL => (Some(3), 1),
            Market::MATCHUP => (Some(2), 1),
            Market::TOP5 => (None, 5),
            Market::TOP10 => (None, 10),
            Market::TOP20 => (None, 20),
            _ => (None, 1),
        };
        Settlement { group, winners }
    }

    /// Whether an outcome has a handicap or line: `None` where that is up to the feed.
    pub const fn has_point(self) -> Option<bool> {
        match self {
            Market::SPREAD | Market::TOTAL_ROUNDS | Market::TOTAL_POINTS => Some(true),
            Market(index) if (index as usize) < Market::FEATURED.len() => Some(false),
            _ => None,
        }
    }

    /// The order of records in a response: featured markets first, then by key.
    pub fn cmp_in_records(self, other: Market) -> Ordering {
        (!self.is_featured(), self.key()).cmp(&(!other.is_featured(), other.key()))
    }

    /// The same for keys that no market may have any more.
    pub fn cmp_keys(one: &str, other: &str) -> Ordering {
        let place = |key| (!symbols::is_featured(key), key);
        place(one).cmp(&place(other))
    }

    /// The order of an event's list of markets: featured markets as the specification lists them, then by key.
    pub fn cmp_in_lists(self, other: Market) -> Ordering {
        match (self.is_featured(), other.is_featured()) {
            (true, true) => self.cmp(&other),
            (false, false) => self.key().cmp(other.key()),
            (is, _) => is.cmp(&false).reverse(),
        }
    }
}

impl fmt::Debug for Market {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.key())
    }
}

impl fmt::Display for Market {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.key())
    }
}
