//! The report on an input: what was accepted, what was rejected and why, and the first rejected lines.
//!
//! Its JSON is the same in the answers of the admin interface and the push interface and in the drop directory's files.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::model::{Reason, World};

/// As many rejected lines as a report shows.
const EXAMPLES_MAX: usize = 10;

/// How often each reason occurred.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReasonCounts([u64; Reason::COUNT]);

impl Default for ReasonCounts {
    fn default() -> Self {
        ReasonCounts([0; Reason::COUNT])
    }
}

impl ReasonCounts {
    pub(super) fn add(&mut self, reason: Reason, count: u64) {
        self.0[reason as usize] += count;
    }

    pub(super) fn add_all(&mut self, counts: impl Iterator<Item = (Reason, u64)>) {
        for (reason, count) in counts {
            self.add(reason, count);
        }
    }

    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// The reasons that occurred.
    pub fn iter(&self) -> impl Iterator<Item = (Reason, u64)> + use<> {
        Reason::ALL.into_iter().zip(self.0).filter(|(_, count)| *count > 0)
    }

    pub(super) fn by_key(&self) -> BTreeMap<String, u64> {
        self.iter().map(|(reason, count)| (reason.key().to_owned(), count)).collect()
    }
}

/// The report on a stream of lines, or on the messages of a payload.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IngestSummary {
    #[serde(with = "world_name")]
    pub world: World,
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
    pub examples: Vec<RejectedLine>,
}

/// A line that was rejected.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RejectedLine {
    /// Counted from 1, blank lines included, as an editor does. Of a payload, the number of the event.
    pub line: u64,
    pub reason: String,
    pub detail: String,
}

/// Adds a rejected line to those that a report shows, which are in the order of their numbers: the writer reports on a
/// batch after later lines were read. Of lines that are rejected for the same cause only the first is shown.
pub(super) fn add_example(examples: &mut Vec<RejectedLine>, new: RejectedLine) {
    let is_same = |shown: &RejectedLine| (&shown.reason, &shown.detail) == (&new.reason, &new.detail);
    if let Some(shown) = examples.iter().position(is_same) {
        if examples[shown].line <= new.line {
            return;
        }
        examples.remove(shown);
    }
    let at = examples.partition_point(|shown| shown.line <= new.line);
    examples.insert(at, new);
    examples.truncate(EXAMPLES_MAX);
}

/// A world by its name.
mod world_name {
    use serde::de::{Error, Unexpected};
    use serde::{Deserialize, Deserializer, Serializer};

    use crate::model::World;

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
    pub(super) fn serialize<S: Serializer>(world: &World, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(world.name())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<World, D::Error> {
        let name = String::deserialize(deserializer)?;
        World::parse(&name).ok_or_else(|| D::Error::invalid_value(Unexpected::Str(&name), &"live or sandbox"))
    }
}
