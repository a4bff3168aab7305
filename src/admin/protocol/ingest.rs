//! What became of a stream of feed lines.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::model::{OddsFormat, Regions, World};

/// A world by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorldName {
    Sandbox,
    Live,
}

impl From<World> for WorldName {
    fn from(world: World) -> Self {
        match world {
            World::Sandbox => WorldName::Sandbox,
            World::Live => WorldName::Live,
        }
    }
}

impl From<WorldName> for World {
    fn from(world: WorldName) -> Self {
        match world {
            WorldName::Sandbox => World::Sandbox,
            WorldName::Live => World::Live,
        }
    }
}

/// How a stream of lines is to be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IngestOptions {
    pub world: World,
    /// All of it or, if one line is rejected, nothing.
    pub strict: bool,
}

/// How a saved payload of The Odds API is to be taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PayloadOptions {
    pub world: World,
    /// All of it or, if anything is rejected, nothing.
    pub strict: bool,
    /// The sport that it must be of, by our key or one of The Odds API.
    pub sport: Option<String>,
    /// How its prices are quoted; without it they must show that.
    pub odds_format: Option<OddsFormat>,
    /// Where bookmakers that nobody declared are offered; with none they are rejected.
    pub regions: Regions,
}

/// The report on a stream of lines, or on the messages of a payload.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IngestAnswer {
    pub world: WorldName,
    pub strict: bool,
    /// False when nothing was written because a line of a strict input was rejected.
    pub written: bool,
    /// Blank lines are not counted.
    pub lines: u64,
    /// Of a strict input that was not written: what would have been accepted. Nothing of it changed anything.
    pub accepted: u64,
    pub changed: u64,
    pub unchanged: u64,
    pub rejected: u64,
    pub rejected_by_reason: BTreeMap<String, u64>,
    /// Outcomes left out of lines that were accepted without them.
    pub dropped_outcomes: u64,
    pub dropped_outcomes_by_reason: BTreeMap<String, u64>,
    /// The first rejected lines; of those with the same reason and detail only the first.
    pub examples: Vec<Example>,
}

/// A line that was rejected.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Example {
    /// Counted from 1, blank lines included, as an editor does. Of a payload, the number of the event.
    pub line: u64,
    pub reason: String,
    pub detail: String,
}
