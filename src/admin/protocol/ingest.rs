//! What the admin interface has in common with [`ingest`](crate::ingest): worlds by their names, and failures. The report on
//! an input is [`IngestSummary`](crate::ingest::IngestSummary), whose JSON is the same everywhere.

use serde::{Deserialize, Serialize};

use super::failure::{Failure, FailureBody, FailureCode};
use crate::ingest::{IngestError, IngestErrorKind, InterruptedInput};
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

impl From<IngestError> for Failure {
    fn from(error: IngestError) -> Self {
        Failure::new(error.kind().into(), error.to_string())
    }
}

impl From<IngestErrorKind> for FailureCode {
    fn from(kind: IngestErrorKind) -> Self {
        match kind {
            IngestErrorKind::BadRequest => FailureCode::BadRequest,
            IngestErrorKind::Unauthorized => FailureCode::Unauthorized,
            IngestErrorKind::Refused => FailureCode::Refused,
            IngestErrorKind::NotFound => FailureCode::NotFound,
            IngestErrorKind::MethodNotAllowed => FailureCode::MethodNotAllowed,
            IngestErrorKind::Timeout => FailureCode::Timeout,
            IngestErrorKind::TooLarge => FailureCode::TooLarge,
            IngestErrorKind::UnsupportedEncoding => FailureCode::UnsupportedEncoding,
            IngestErrorKind::Unavailable => FailureCode::Unavailable,
        }
    }
}

impl From<InterruptedInput> for FailureBody {
    fn from(interrupted: InterruptedInput) -> Self {
        let error = Failure::new(interrupted.error.kind().into(), interrupted.to_string());
        FailureBody { error, taken_lines: Some(interrupted.taken_lines) }
    }
}
