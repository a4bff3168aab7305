//! What became of a stream of feed lines.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::model::World;

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

/// The report on a stream of lines.
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
    /// The first rejected lines.
    pub examples: Vec<Example>,
}

/// A line that was rejected.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Example {
    /// Counted from 1, blank lines included, as an editor does.
    pub line: u64,
    pub reason: String,
    pub detail: String,
}
