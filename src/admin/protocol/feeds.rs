//! Answers about feeds: their tokens, what they have sent, and how fresh each source is.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{SecretText, WorldName};

/// A feeder on another machine, without its token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenAnswer {
    pub name: String,
    /// The secret: in the answers to issue and rotate only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<SecretText>,
    pub world: WorldName,
    /// `active` or `revoked`.
    pub status: String,
    /// Its prefix and its last four characters.
    pub hint: String,
    pub created: String,
    pub revoked: Option<String>,
    /// Until when a token that was rotated out is still accepted.
    #[serde(default)]
    pub old_secret_until: Option<String>,
    /// Nodes of the cluster that may still go by what was before, because they are cut off.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unconfirmed: Vec<String>,
}

/// Every feed and every source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FeedsAnswer {
    pub time: String,
    /// `null` when no server runs: feeds are counted by a server, from its start.
    pub feeds: Option<Vec<FeedAnswer>>,
    pub sources: Vec<SourceAnswer>,
    pub tokens: Vec<TokenAnswer>,
}

/// What a feed has sent since the server started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FeedAnswer {
    pub name: String,
    pub kind: String,
    pub world: WorldName,
    pub accepted: u64,
    pub rejected: u64,
    pub rejected_by_reason: BTreeMap<String, u64>,
    /// The last rejected messages of each reason, oldest first; a few of each.
    #[serde(default)]
    pub rejected_messages: BTreeMap<String, Vec<RejectedAnswer>>,
    /// Bytes of lines that came, as inflated.
    #[serde(default)]
    pub bytes: u64,
    /// What a feeder has added, against its quota; `null` for a feed that has none.
    #[serde(default)]
    pub added: Option<AddedAnswer>,
    pub last_good: Option<String>,
    pub last_failure: Option<FailureAnswer>,
    /// Of a feed that is polled.
    pub upstream: Option<UpstreamAnswer>,
}

/// A message that was rejected.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RejectedAnswer {
    pub at: String,
    /// The number of its line in the input or, in a payload of The Odds API, of its event.
    pub line: u64,
    /// What was wrong with it.
    pub detail: String,
    /// The beginning of the line; `null` for a message of a payload.
    pub text: Option<String>,
}

/// What a feeder has added; restarts change nothing in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AddedAnswer {
    pub bookmakers_today: u32,
    pub bookmakers_per_day: u32,
    /// In all.
    pub bookmakers: u32,
    pub bookmakers_max: u32,
    pub events_today: u32,
    pub events_per_day: u32,
    /// Those that exist now.
    pub events: u32,
    pub events_max: u32,
    /// Competitions and markets.
    pub names_today: u32,
    pub names_per_day: u32,
    pub names: u32,
    pub names_max: u32,
}

/// When a feed failed as a whole, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailureAnswer {
    pub at: String,
    pub why: String,
}

/// The quota of an upstream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UpstreamAnswer {
    pub remaining: Option<u64>,
    pub used: Option<u64>,
    pub budget_left: Option<u64>,
    pub next_poll: Option<String>,
    /// The quota is used up: the upstream is not polled before this.
    #[serde(default)]
    pub used_up_until: Option<String>,
    /// The operator's own budget for a day; `null` if none is set.
    #[serde(default)]
    pub budget_per_day: Option<u64>,
    /// `null` until the feed knows what its polls cost.
    #[serde(default)]
    pub plan: Option<PlanAnswer>,
    /// Competitions and markets that are configured and not polled now.
    #[serde(default)]
    pub skipped: Vec<SkippedAnswer>,
}

/// A competition, or a market of it, that is configured and not polled now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkippedAnswer {
    pub competition: String,
    /// `null` for all of the competition.
    pub market: Option<String>,
    pub why: String,
    /// When it is requested again, at the latest.
    pub until: String,
}

/// How the credits of an upstream are spent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanAnswer {
    pub credits_per_day: u64,
    pub interval_s: u64,
    /// When the upstream renews its quota; `null` for one that reports no quota.
    pub resets: Option<String>,
    /// The parts of the credits of a day.
    #[serde(default)]
    pub odds_per_day: u64,
    #[serde(default)]
    pub event_odds_per_day: u64,
    #[serde(default)]
    pub scores_per_day: u64,
    #[serde(default)]
    pub scores_interval_s: u64,
    /// What makes the intervals longer than configured: `budget`, `upstream` (what is left there), or `null` for nothing.
    #[serde(default)]
    pub limited_by: Option<String>,
}

/// One bookmaker as a source of one sport's prices.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceAnswer {
    pub world: WorldName,
    pub sport: String,
    pub bookmaker: String,
    pub last_good: String,
    pub age_s: u32,
    /// The age at which it is stale.
    pub stale_after_s: u32,
    pub stale: bool,
    pub latency_ms: u32,
    /// Since when it has no price; `null` while it has one.
    pub empty_since: Option<String>,
}
