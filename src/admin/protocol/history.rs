//! Answers about history.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::WorldName;

/// Whose history, and how its prices are written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HistoryOrder {
    pub world: WorldName,
    pub event: String,
    /// `null` is the first market that the event has.
    #[serde(default)]
    pub market: Option<String>,
    #[serde(default)]
    pub bookmaker: Option<String>,
    /// `american`, `decimal` or `fractional`.
    pub odds_format: String,
}

/// Whose history is deleted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ForgetOrder {
    pub world: WorldName,
    pub event: String,
    /// Its sport; `null` is the one whose history has the event.
    #[serde(default)]
    pub sport: Option<String>,
}

/// What was deleted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForgottenAnswer {
    pub event_id: String,
    pub sport_key: String,
    /// Changes of the event, its score and its prices.
    pub changes: u64,
    /// Whether a part of the log is damaged, so that it could not be searched.
    pub is_incomplete: bool,
}

/// What the prices of an event were.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HistoryAnswer {
    pub event_id: String,
    pub sport_key: String,
    /// Its sides or its title.
    pub name: String,
    pub competition: String,
    pub commence_time: String,
    pub status: String,
    /// Every market that it has had a price in.
    pub markets: Vec<String>,
    pub market: Option<String>,
    pub lines: Vec<LineAnswer>,
}

/// What the prices of a bookmaker were in the market.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LineAnswer {
    pub bookmaker: String,
    pub opening: PointAnswer,
    pub closing: Option<PointAnswer>,
    pub closing_reason: Option<String>,
    pub points: Vec<PointAnswer>,
}

/// Prices from a time on; none from when the market closed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PointAnswer {
    pub at: String,
    pub outcomes: Vec<OutcomeAnswer>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OutcomeAnswer {
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// A number or a text, depending on the format.
    pub price: Value,
    pub point: Option<serde_json::Number>,
}
