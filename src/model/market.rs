//! The eleven markets: their keys, their aliases in The Odds API, and how their outcomes settle.

use std::fmt;

use super::sport::SportKind;

/// A market, in the order in which the API lists the keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Market {
    Moneyline,
    Spread,
    TotalRounds,
    TotalPoints,
    Outright,
    Top5,
    Top10,
    Top20,
    ThreeBall,
    Matchup,
    RoundLeader,
}

/// How a market's outcomes settle: they form groups of size `group` (`None` for a single group), and `winners` of each
/// group win.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settlement {
    pub group: Option<usize>,
    pub winners: usize,
}

impl Market {
    pub const COUNT: usize = 11;

    pub const ALL: [Market; Market::COUNT] = [
        Market::Moneyline,
        Market::Spread,
        Market::TotalRounds,
        Market::TotalPoints,
        Market::Outright,
        Market::Top5,
        Market::Top10,
        Market::Top20,
        Market::ThreeBall,
        Market::Matchup,
        Market::RoundLeader,
    ];

    pub const fn key(self) -> &'static str {
        match self {
            Market::Moneyline => "moneyline",
            Market::Spread => "spread",
            Market::TotalRounds => "total_rounds",
            Market::TotalPoints => "total_points",
            Market::Outright => "outright",
            Market::Top5 => "top5",
            Market::Top10 => "top10",
            Market::Top20 => "top20",
            Market::ThreeBall => "three_ball",
            Market::Matchup => "matchup",
            Market::RoundLeader => "round_leader",
        }
    }

    pub fn parse(key: &str) -> Option<Market> {
        Market::ALL.into_iter().find(|market| market.key() == key)
    }

    /// Also accepts the aliases of The Odds API, whose `totals` depends on the sport.
    pub fn parse_alias(key: &str, kind: SportKind) -> Option<Market> {
        match key {
            "h2h" => Some(Market::Moneyline),
            "spreads" => Some(Market::Spread),
            "totals" if kind == SportKind::Fight => Some(Market::TotalRounds),
            "totals" => Some(Market::TotalPoints),
            "outrights" => Some(Market::Outright),
            _ => Market::parse(key),
        }
    }

    /// The key in The Odds API; markets that it does not have keep their own.
    pub const fn v4_key(self) -> &'static str {
        match self {
            Market::Moneyline => "h2h",
            Market::Spread => "spreads",
            Market::TotalRounds | Market::TotalPoints => "totals",
            Market::Outright => "outrights",
            own => own.key(),
        }
    }

    /// The alias for events of a kind. A total that the kind does not have keeps its own key, so that no two markets of
    /// an event share an alias.
    pub const fn alias(self, kind: SportKind) -> &'static str {
        match self {
            Market::TotalRounds | Market::TotalPoints if !self.is_of(kind) => self.key(),
            _ => self.v4_key(),
        }
    }

    /// Whether events of this kind have the market. This is the only such rule: the writer rejects prices of other
    /// markets, and polls request only these.
    pub const fn is_of(self, kind: SportKind) -> bool {
        match self {
            Market::Moneyline | Market::Spread => !matches!(kind, SportKind::Tournament),
            Market::TotalPoints => matches!(kind, SportKind::HeadToHead),
            Market::TotalRounds => matches!(kind, SportKind::Fight),
            _ => matches!(kind, SportKind::Tournament),
        }
    }

    pub const fn index(self) -> usize {
        self as usize
    }

    /// The inverse of [`Market::index`], for stored records.
    pub fn from_index(index: usize) -> Option<Market> {
        Market::ALL.get(index).copied()
    }

    pub const fn settlement(self) -> Settlement {
        let (group, winners) = match self {
            Market::ThreeBall => (Some(3), 1),
            Market::Matchup => (Some(2), 1),
            Market::Top5 => (None, 5),
            Market::Top10 => (None, 10),
            Market::Top20 => (None, 20),
            _ => (None, 1),
        };
        Settlement { group, winners }
    }

    /// Whether the market's outcomes have a handicap or line.
    pub const fn has_point(self) -> bool {
        matches!(self, Market::Spread | Market::TotalRounds | Market::TotalPoints)
    }
}

impl fmt::Display for Market {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.key())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_indexes_round_trip() {
        for market in Market::ALL {
            assert_eq!(Market::parse(market.key()), Some(market));
            assert_eq!(Market::from_index(market.index()), Some(market));
        }
    }

    #[test]
    fn aliases_round_trip_for_every_kind_that_has_the_market() {
        for kind in [SportKind::HeadToHead, SportKind::Fight, SportKind::Tournament] {
            for market in Market::ALL.into_iter().filter(|market| market.is_of(kind)) {
                assert_eq!(Market::parse_alias(market.v4_key(), kind), Some(market));
            }
        }
    }

    #[test]
    fn totals_alias_depends_on_the_sport() {
        assert_eq!(Market::parse_alias("totals", SportKind::Fight), Some(Market::TotalRounds));
        assert_eq!(Market::parse_alias("totals", SportKind::HeadToHead), Some(Market::TotalPoints));
        assert_eq!(Market::parse("totals"), None);
        for (market, kind) in Market::ALL.into_iter().flat_map(|market| {
            [SportKind::Fight, SportKind::HeadToHead, SportKind::Tournament].map(|kind| (market, kind))
        }) {
            assert_eq!(Market::parse_alias(market.alias(kind), kind), Some(market), "{market}");
        }
    }
}
