//! The markets of the simulated world: what each is priced from, which bookmakers offer it, and when it is open.

use super::fixture::Outline;
use super::props::Prop;
use super::schedule::DAY;
use crate::model::{Market, MarketKey};

/// A market of an event. Its key names seeds, so a new market changes no price of another.
#[derive(Debug)]
pub(super) struct SimulatedMarket {
    pub key: &'static str,
    pub bet: Bet,
    pub part: GamePart,
    pub reach: Reach,
    /// How much of a bookmaker's usual margin it has, in tenths.
    pub margin_tenths: i64,
}

/// What is bet on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bet {
    /// Who wins: two sides, and the draw where it counts.
    Ways,
    Spread,
    Total,
    AlternateSpreads,
    AlternateTotals,
    BothScore,
    Players(&'static Prop),
    /// Which of a field wins.
    Outright,
    /// Which of a field are among the first so many.
    Top(usize),
    ThreeBall,
    Matchup,
    RoundLeader,
}

/// The part of a game that a market is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GamePart {
    Whole,
    /// Without overtime.
    Regulation,
    /// The first so many periods.
    First(usize),
}

/// Who offers a market, and when. Markets with many outcomes are limited to a few bookmakers and the last day, which bounds
/// the size of a world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// Most bookmakers, from the announcement.
    Main,
    /// Bookmakers with many markets, from a day before the start.
    Deep,
    /// The same and those that have players only, until the start.
    Players,
}

impl SimulatedMarket {
    /// Interned, so that the same market is always the same value.
    pub(super) fn market_key(&self) -> MarketKey {
        let new = || MarketKey::New(self.key.into());
        let market = Market::find(self.key).or_else(|| Market::intern(&new()));
        market.map_or_else(new, MarketKey::Known)
    }

    /// How many consecutive outcomes settle together, of so many in all, and how many of these win.
    pub(super) fn settlement(&self, outcomes: usize) -> (usize, i64) {
        match self.bet {
            Bet::Ways | Bet::Outright | Bet::RoundLeader => (outcomes, 1),
            Bet::Top(winners) => (outcomes, i64::try_from(winners).unwrap_or(1)),
            Bet::ThreeBall => (3, 1),
            Bet::Spread
            | Bet::Total
            | Bet::AlternateSpreads
            | Bet::AlternateTotals
            | Bet::BothScore
            | Bet::Players(_)
            | Bet::Matchup => (2, 1),
        }
    }

    /// From when until when it can be open.
    pub(super) const fn window(&self, outline: &Outline) -> (i64, i64) {
        match self.reach {
            Reach::Main => (i64::MIN, i64::MAX),
            Reach::Deep => (outline.commence - DAY, i64::MAX),
            Reach::Players => (outline.commence - DAY, outline.commence),
        }
    }

    const fn of(self, part: GamePart) -> Self {
        SimulatedMarket { part, ..self }
    }
}

pub(super) const MONEYLINE: SimulatedMarket = main("moneyline", Bet::Ways);
pub(super) const SPREAD: SimulatedMarket = main("spread", Bet::Spread);
pub(super) const TOTAL_POINTS: SimulatedMarket = main("total_points", Bet::Total);
pub(super) const TOTAL_ROUNDS: SimulatedMarket = main("total_rounds", Bet::Total);
pub(super) const ALTERNATE_SPREAD: SimulatedMarket = deep("alternate_spread", Bet::AlternateSpreads);
pub(super) const ALTERNATE_TOTAL_POINTS: SimulatedMarket = deep("alternate_total_points", Bet::AlternateTotals);
pub(super) const BTTS: SimulatedMarket = deep("btts", Bet::BothScore);
pub(super) const MONEYLINE_3_WAY: SimulatedMarket = deep("moneyline_3_way", Bet::Ways).of(GamePart::Regulation);
pub(super) const OUTRIGHT: SimulatedMarket = SimulatedMarket { margin_tenths: 25, ..main("outright", Bet::Outright) };

pub(super) const fn main(key: &'static str, bet: Bet) -> SimulatedMarket {
    SimulatedMarket { key, bet, part: GamePart::Whole, reach: Reach::Main, margin_tenths: 10 }
}

pub(super) const fn deep(key: &'static str, bet: Bet) -> SimulatedMarket {
    SimulatedMarket { reach: Reach::Deep, ..main(key, bet) }
}

/// A market of the first so many periods.
pub(super) const fn first(periods: usize, key: &'static str, bet: Bet) -> SimulatedMarket {
    SimulatedMarket { margin_tenths: 12, ..deep(key, bet).of(GamePart::First(periods)) }
}

pub(super) const fn players(key: &'static str, prop: &'static Prop) -> SimulatedMarket {
    SimulatedMarket { reach: Reach::Players, margin_tenths: 15, ..main(key, Bet::Players(prop)) }
}
