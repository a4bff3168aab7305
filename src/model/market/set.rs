//! Which markets a query is about.

use super::Market;

/// The markets of a query.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum MarketFilter {
    /// Those that are returned unless others are requested.
    #[default]
    Featured,
    /// Every market but lay prices.
    All,
    /// Sorted, each once.
    Only(Box<[Market]>),
}

impl MarketFilter {
    pub fn only(mut markets: Vec<Market>) -> Self {
        markets.sort_unstable();
        markets.dedup();
        MarketFilter::Only(markets.into())
    }

    /// Whether a single market is requested, and it is this one.
    pub fn is_only(&self, market: Market) -> bool {
        matches!(self, MarketFilter::Only(markets) if **markets == [market])
    }

    /// Whether this market is requested by name.
    pub fn names(&self, market: Market) -> bool {
        matches!(self, MarketFilter::Only(markets) if markets.contains(&market))
    }

    #[inline]
    pub fn accepts(&self, market: Market) -> bool {
        match self {
            MarketFilter::Featured => market.is_featured(),
            MarketFilter::All => !market.is_lay(),
            MarketFilter::Only(markets) => match &**markets {
                [only] => *only == market,
                several => several.contains(&market),
            },
        }
    }
}

impl From<Market> for MarketFilter {
    fn from(market: Market) -> Self {
        MarketFilter::Only([market].into())
    }
}
