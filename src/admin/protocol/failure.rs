//! Why a command was not executed.

use serde::{Deserialize, Serialize};

/// What kind of failure it is. Each has its HTTP status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureCode {
    BadRequest,
    /// No valid token.
    Unauthorized,
    /// Well-formed, but against a rule.
    Refused,
    KeyNotFound,
    FeederNotFound,
    NotFound,
    MethodNotAllowed,
    Timeout,
    TooLarge,
    /// A body in an encoding that is not supported.
    UnsupportedEncoding,
    /// Nothing was changed; the same command may succeed later.
    Unavailable,
}

/// A command that was not executed. The message is one line that says what to do next.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    pub code: FailureCode,
    pub message: String,
}

impl Failure {
    pub fn new(code: FailureCode, message: impl Into<String>) -> Self {
        Failure { code, message: message.into() }
    }

    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Failure::new(FailureCode::BadRequest, message)
    }
}

/// The body of an answer that is a failure.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct FailureBody {
    pub(crate) error: Failure,
    /// Of a stream of feed lines that failed: the lines from its start that are done with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) taken_lines: Option<u64>,
}
