//! Why an input was not taken in, or not to its end. Each message is one line that says what to do next.

use std::io;
use std::time::Duration;

use hyper::StatusCode;

use super::gunzip::RATIO_MAX;
use super::spool::SPOOL_BYTES_MAX;
use super::the_odds_api::{PAYLOAD_BYTES_MAX, PayloadError};
use crate::model::{UnknownSport, World};
use crate::writer::WriteError;

/// Why an input was not taken in, or not to its end.
#[derive(Debug, thiserror::Error)]
pub enum IngestError {
    #[error("{0}")]
    BadParameter(String),
    #[error("the {what} broke off: {error}")]
    BodyBrokenOff { what: &'static str, error: hyper::Error },
    #[error("the body is no gzip, as its content-encoding says")]
    NotGzip,
    #[error("the gzip body broke off")]
    GzipBrokenOff,
    #[error("the file cannot be read: {0}")]
    File(io::Error),
    #[error(transparent)]
    UnknownSport(#[from] UnknownSport),
    #[error("the payload cannot be taken: {0}; nothing was written")]
    Payload(#[from] PayloadError),
    #[error("send a feed token that is in force as authorization: Bearer ft_ob_…; `oddsbox feeds token` issues one")]
    Unauthorized,
    #[error("the token was revoked or rotated out: ask the operator for a new one")]
    TokenRevoked,
    #[error(
        "this server cannot tell now whether the token is in force: send the lines again later, or to another node of its cluster"
    )]
    TokenUnconfirmed,
    #[error("this token is for the {0} world: leave out world")]
    OtherWorld(World),
    #[error("there is /ingest, for feed lines, and nothing else")]
    NotFound,
    #[error("/ingest takes POST")]
    MethodNotAllowed,
    #[error("nothing came for {} s: end a request that has nothing to send", .0.as_secs())]
    Silent(Duration),
    #[error(
        "the body inflates to more than {0} bytes, which is ingest.inflated_max: send the rest in another request, or \
         uncompressed"
    )]
    InflatesTooFar(u64),
    #[error(
        "the body inflates to more than {RATIO_MAX} times its size: send the rest in another request, or uncompressed"
    )]
    InflatesTooMuch,
    #[error("a strict input has at most {SPOOL_BYTES_MAX} bytes: split it, or send it without --strict")]
    SpoolFull,
    #[error("a payload has at most {PAYLOAD_BYTES_MAX} bytes: split it; nothing was written")]
    PayloadTooLarge,
    #[error("send the lines as they are, or as gzip")]
    UnsupportedEncoding,
    #[error("the server is stopping")]
    Stopping,
    #[error("the input could not be spooled in the data directory ({0}); nothing was written")]
    Spool(io::Error),
    #[error("{0}")]
    Task(#[from] tokio::task::JoinError),
    #[error(transparent)]
    Write(#[from] WriteError),
}

/// What kind of failure it is. Each has a code in the answer and an HTTP status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IngestErrorKind {
    BadRequest,
    Unauthorized,
    Refused,
    NotFound,
    MethodNotAllowed,
    Timeout,
    TooLarge,
    UnsupportedEncoding,
    /// The same input, from the line on that the answer names, may be taken later.
    Unavailable,
}

impl IngestError {
    pub fn kind(&self) -> IngestErrorKind {
        use IngestErrorKind as Kind;
        match self {
            IngestError::BadParameter(_)
            | IngestError::BodyBrokenOff { .. }
            | IngestError::NotGzip
            | IngestError::GzipBrokenOff
            | IngestError::File(_)
            | IngestError::UnknownSport(_)
            | IngestError::Payload(_) => Kind::BadRequest,
            IngestError::Unauthorized | IngestError::TokenRevoked => Kind::Unauthorized,
            IngestError::OtherWorld(_) => Kind::Refused,
            IngestError::NotFound => Kind::NotFound,
            IngestError::MethodNotAllowed => Kind::MethodNotAllowed,
            IngestError::Silent(_) => Kind::Timeout,
            IngestError::InflatesTooFar(_)
            | IngestError::InflatesTooMuch
            | IngestError::SpoolFull
            | IngestError::PayloadTooLarge => Kind::TooLarge,
            IngestError::UnsupportedEncoding => Kind::UnsupportedEncoding,
            IngestError::TokenUnconfirmed
            | IngestError::Stopping
            | IngestError::Spool(_)
            | IngestError::Task(_)
            | IngestError::Write(_) => Kind::Unavailable,
        }
    }
}

impl IngestErrorKind {
    pub(super) const fn code(self) -> &'static str {
        match self {
            IngestErrorKind::BadRequest => "bad_request",
            IngestErrorKind::Unauthorized => "unauthorized",
            IngestErrorKind::Refused => "refused",
            IngestErrorKind::NotFound => "not_found",
            IngestErrorKind::MethodNotAllowed => "method_not_allowed",
            IngestErrorKind::Timeout => "timeout",
            IngestErrorKind::TooLarge => "too_large",
            IngestErrorKind::UnsupportedEncoding => "unsupported_encoding",
            IngestErrorKind::Unavailable => "unavailable",
        }
    }

    pub(super) const fn status(self) -> StatusCode {
        match self {
            IngestErrorKind::BadRequest | IngestErrorKind::Refused => StatusCode::BAD_REQUEST,
            IngestErrorKind::Unauthorized => StatusCode::UNAUTHORIZED,
            IngestErrorKind::NotFound => StatusCode::NOT_FOUND,
            IngestErrorKind::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
            IngestErrorKind::Timeout => StatusCode::REQUEST_TIMEOUT,
            IngestErrorKind::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            IngestErrorKind::UnsupportedEncoding => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            IngestErrorKind::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        }
    }
}
