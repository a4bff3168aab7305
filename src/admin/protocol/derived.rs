//! Orders of derived prices. The answer is the rows of the public API, each with its event.

use serde::{Deserialize, Serialize};

use super::WorldName;

/// Which derived prices, and how they are written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DerivedOrder {
    pub world: WorldName,
    /// A key of ours or of The Odds API.
    pub sport: String,
    pub what: DerivedKind,
    /// Keys separated by commas, or `all`; `null` is the featured markets.
    #[serde(default)]
    pub market: Option<String>,
    #[serde(default)]
    pub bookmaker: Option<String>,
    /// Separated by commas; `null` is all.
    #[serde(default)]
    pub regions: Option<String>,
    /// `american`, `decimal` or `fractional`.
    pub odds_format: String,
    /// From 1 to 500 rows.
    pub limit: u64,
}

/// What is derived.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum DerivedKind {
    Best {
        /// The lowest hold first, instead of the order of events.
        by_hold: bool,
    },
    /// Prices above what is fair.
    Ev {
        /// The key of a bookmaker; `null` is the consensus.
        #[serde(default)]
        from: Option<String>,
        /// `power`, `shin`, `multiplicative` or `additive`.
        method: String,
        /// A fraction.
        min: String,
    },
    Arbitrage {
        /// A fraction.
        min: String,
    },
}
