//! Errors as clients see them: one table of codes and statuses, one shape of body for each version.
//!
//! A message says what to change. It contains nothing internal and no part of a key.

use std::borrow::Cow;

use http::StatusCode;

use super::route::Version;
use crate::board::render::json;
use crate::keys::{AuthError, Refusal};

/// What went wrong, as one word for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Code {
    InvalidParameter,
    /// The request itself is malformed, not one of its parameters. 400 in both versions.
    InvalidRequest,
    /// Neither regions nor bookmakers, where one of them is needed.
    MissingRegion,
    /// A request for history that does not say of when.
    MissingTimestamp,
    /// It ends before it begins.
    InvalidTimeRange,
    MissingKey,
    InvalidKey,
    /// It was valid before.
    DeactivatedKey,
    Forbidden,
    /// A page from elsewhere sent it.
    ForeignOrigin,
    /// The key, or this secret of it, may not rotate the key.
    RotationRefused,
    NotFound,
    SportNotFound,
    EventNotFound,
    /// Older than the history that is kept.
    HistoryGone,
    /// A position that the log does not have.
    PositionGone,
    TooManyStreams,
    MethodNotAllowed,
    /// The same where only POST is allowed.
    PostOnly,
    UriTooLong,
    HeadersTooLarge,
    RateLimited,
    QuotaExceeded,
    InternalError,
    Maintenance,
    Overloaded,
}

/// Why a key was rejected, as one word for logs and counters: first the reasons of a key that is not valid.
pub(crate) static REFUSED: [&str; 14] = [
    "missing",
    "malformed",
    "unknown",
    "revoked",
    "expired",
    "rotated_out",
    "burst",
    "day",
    "month",
    GROUP,
    LENGTH,
    HISTORY,
    STREAMS,
    SELF_SERVICE,
];
/// How many of them are for a key that is not valid.
pub(crate) const INVALID_KEYS: usize = 6;
/// The key is restricted to other groups of sports.
pub(crate) const GROUP: &str = "group";
/// The quota is not enough for an answer of this length.
pub(crate) const LENGTH: &str = "length";
/// The key, or the service, has as many streams as it may have.
pub(crate) const STREAMS: &str = "streams";
/// The key may not rotate itself.
pub(crate) const SELF_SERVICE: &str = "self_service";
/// The key reads history more than twice at a time.
pub(crate) const HISTORY: &str = "history";

/// What The Odds API calls a parameter at fault has a code of its own for each parameter.
const BY_PARAMETER: &str = "";

/// Where the codes of `/v4` are explained.
pub(crate) const DETAILS_URL: &str = "/docs#shape-V4ErrorCode";

/// The `/v4` code for a value that a parameter does not take.
const INVALID_CODES: [(&str, &str); 17] = [
    ("date", "INVALID_HISTORICAL_TIMESTAMP"),
    ("regions", "INVALID_REGION"),
    ("bookmakers", "INVALID_BOOKMAKERS"),
    ("markets", "INVALID_MARKET"),
    ("oddsFormat", "INVALID_ODDS_FORMAT"),
    ("dateFormat", "INVALID_DATE_FORMAT"),
    ("eventIds", "INVALID_EVENT_IDS"),
    ("commenceTimeFrom", "INVALID_COMMENCE_TIME_FROM"),
    ("commenceTimeTo", "INVALID_COMMENCE_TIME_TO"),
    ("includeLinks", "INVALID_INCLUDE_LINKS"),
    ("includeSids", "INVALID_INCLUDE_SIDS"),
    ("includeBetLimits", "INVALID_INCLUDE_BET_LIMITS"),
    ("includeMultipliers", "INVALID_INCLUDE_MULTIPLIERS"),
    ("includeRotationNumbers", "INVALID_INCLUDE_ROTATION_NUMBERS"),
    ("daysFrom", "INVALID_SCORES_DAYS_FROM"),
    ("all", "INVALID_ALL_SPORTS_PARAM"),
    ("after", "INVALID_AFTER"),
];

pub(crate) fn invalid_code_of(parameter: &str) -> &'static str {
    INVALID_CODES.iter().find(|(name, _)| *name == parameter).map_or("INVALID_PARAMETER", |(_, code)| code)
}

impl Code {
    /// The table: the code in `/v1`, the code in `/v4`, and the status. Some codes have another status in `/v4`.
    const fn row(self) -> (&'static str, &'static str, StatusCode) {
        match self {
            Code::InvalidParameter => ("invalid_parameter", BY_PARAMETER, StatusCode::BAD_REQUEST),
            Code::InvalidRequest => ("invalid_parameter", "INVALID_REQUEST", StatusCode::BAD_REQUEST),
            Code::MissingRegion => ("invalid_parameter", "MISSING_REGION", StatusCode::BAD_REQUEST),
            Code::InvalidTimeRange => ("invalid_parameter", "INVALID_COMMENCE_TIME_RANGE", StatusCode::BAD_REQUEST),
            Code::MissingTimestamp => ("invalid_parameter", "MISSING_HISTORICAL_TIMESTAMP", StatusCode::BAD_REQUEST),
            Code::MissingKey => ("authentication_failed", "MISSING_KEY", StatusCode::UNAUTHORIZED),
            Code::InvalidKey => ("authentication_failed", "INVALID_KEY", StatusCode::UNAUTHORIZED),
            Code::DeactivatedKey => ("authentication_failed", "DEACTIVATED_KEY", StatusCode::UNAUTHORIZED),
            Code::Forbidden | Code::ForeignOrigin | Code::RotationRefused => {
                ("forbidden", "FORBIDDEN", StatusCode::FORBIDDEN)
            }
            Code::NotFound => ("not_found", "NOT_FOUND", StatusCode::NOT_FOUND),
            Code::SportNotFound => ("sport_not_found", "UNKNOWN_SPORT", StatusCode::NOT_FOUND),
            Code::EventNotFound => ("event_not_found", "EVENT_NOT_FOUND", StatusCode::NOT_FOUND),
            Code::HistoryGone => ("history_gone", "INVALID_HISTORICAL_TIMESTAMP", StatusCode::GONE),
            Code::PositionGone => ("position_gone", "POSITION_GONE", StatusCode::GONE),
            Code::TooManyStreams => ("too_many_streams", "TOO_MANY_STREAMS", StatusCode::TOO_MANY_REQUESTS),
            Code::MethodNotAllowed | Code::PostOnly => {
                ("method_not_allowed", "METHOD_NOT_ALLOWED", StatusCode::METHOD_NOT_ALLOWED)
            }
            Code::UriTooLong => ("uri_too_long", "URI_TOO_LONG", StatusCode::URI_TOO_LONG),
            Code::HeadersTooLarge => {
                ("headers_too_large", "HEADERS_TOO_LARGE", StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE)
            }
            Code::RateLimited => ("rate_limited", "EXCEEDED_FREQ_LIMIT", StatusCode::TOO_MANY_REQUESTS),
            Code::QuotaExceeded => ("quota_exceeded", "OUT_OF_USAGE_CREDITS", StatusCode::TOO_MANY_REQUESTS),
            Code::InternalError => ("internal_error", "INTERNAL_ERROR", StatusCode::INTERNAL_SERVER_ERROR),
            Code::Maintenance => ("maintenance", "MAINTENANCE", StatusCode::SERVICE_UNAVAILABLE),
            Code::Overloaded => ("overloaded", "OVERLOADED", StatusCode::SERVICE_UNAVAILABLE),
        }
    }

    pub(crate) const fn status(self, version: Version) -> StatusCode {
        match (self.row().2, version) {
            (StatusCode::BAD_REQUEST, Version::V4) if !matches!(self, Code::InvalidRequest) => {
                StatusCode::UNPROCESSABLE_ENTITY
            }
            (_, Version::V4) if matches!(self, Code::QuotaExceeded) => StatusCode::UNAUTHORIZED,
            (_, Version::V4) if matches!(self, Code::HistoryGone) => StatusCode::UNPROCESSABLE_ENTITY,
            (status, _) => status,
        }
    }
}

/// A request that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ApiError {
    pub code: Code,
    pub message: Cow<'static, str>,
    /// The parameter at fault, where one is.
    pub param: Option<Cow<'static, str>>,
    pub retry_after_s: Option<u32>,
}

impl ApiError {
    pub(crate) fn new(code: Code, message: impl Into<Cow<'static, str>>) -> Self {
        ApiError { code, message: message.into(), param: None, retry_after_s: None }
    }

    pub(crate) fn invalid_parameter(param: impl Into<Cow<'static, str>>, message: String) -> Self {
        ApiError { param: Some(param.into()), ..ApiError::new(Code::InvalidParameter, message) }
    }

    #[must_use]
    pub(crate) fn retry_after(self, seconds: u32) -> Self {
        ApiError { retry_after_s: Some(seconds), ..self }
    }

    pub(crate) fn status(&self, version: Version) -> StatusCode {
        self.code.status(version)
    }

    pub(crate) fn to_json(&self, version: Version, request_id: &str) -> Vec<u8> {
        match version {
            Version::V1 => self.to_v1_json(request_id),
            Version::V4 => self.to_v4_json(),
        }
    }

    /// `{"error":{"code":"…","message":"…","param":"…","request_id":"…"}}`
    fn to_v1_json(&self, request_id: &str) -> Vec<u8> {
        let mut out = Vec::with_capacity(96 + self.message.len() + request_id.len());
        out.extend_from_slice(b"{\"error\":{\"code\":");
        json::string(self.code.row().0, &mut out);
        out.extend_from_slice(b",\"message\":");
        json::string(&self.message, &mut out);
        if let Some(param) = &self.param {
            out.extend_from_slice(b",\"param\":");
            json::string(param, &mut out);
        }
        out.extend_from_slice(b",\"request_id\":");
        json::string(request_id, &mut out);
        out.extend_from_slice(b"}}");
        out
    }

    /// `{"message":"…","error_code":"…","details_url":"…"}`; the request id is in its header alone.
    fn to_v4_json(&self) -> Vec<u8> {
        let code = match self.code.row().1 {
            BY_PARAMETER => invalid_code_of(self.param.as_deref().unwrap_or_default()),
            code => code,
        };
        let mut out = Vec::with_capacity(128 + self.message.len());
        out.extend_from_slice(b"{\"message\":");
        json::string(&self.message, &mut out);
        out.extend_from_slice(b",\"error_code\":");
        json::string(code, &mut out);
        out.extend_from_slice(b",\"details_url\":");
        json::string(DETAILS_URL, &mut out);
        out.push(b'}');
        out
    }
}

impl ApiError {
    /// Says how to send a key, or that the key is not valid. The exact reason is only logged and counted, except
    /// that `/v4` distinguishes a key that was valid before from one that never was.
    pub(crate) fn of_key(error: &AuthError, version: Version) -> Self {
        let (code, message) = match error {
            AuthError::Missing if version == Version::V4 => {
                (Code::MissingKey, "Send your API key as apiKey in the query, or better in the X-API-Key header.")
            }
            AuthError::Missing => (Code::MissingKey, "Send your API key in the X-API-Key header."),
            AuthError::Malformed => {
                (Code::InvalidKey, "This is not an API key: check that it was copied whole and unchanged.")
            }
            AuthError::Unknown => (Code::InvalidKey, INVALID_KEY),
            AuthError::Revoked(_) | AuthError::Expired(_) | AuthError::RotatedOut(_) => {
                (Code::DeactivatedKey, INVALID_KEY)
            }
        };
        ApiError::new(code, message)
    }
}

const INVALID_KEY: &str =
    "This API key is not valid: it is unknown, revoked, expired or has been replaced. Ask for a new one.";

impl From<Refusal> for ApiError {
    /// Clients of The Odds API look for the words "usage limit" to tell a spent quota from a bad key.
    fn from(refusal: Refusal) -> Self {
        let (code, limit, retry_after_s) = match refusal {
            Refusal::Burst { retry_after_s } => (Code::RateLimited, "This key's requests per minute", retry_after_s),
            Refusal::Day { retry_after_s } => {
                (Code::QuotaExceeded, "Usage limit reached: this key's requests per day", retry_after_s)
            }
            Refusal::Month { retry_after_s } => {
                (Code::QuotaExceeded, "Usage limit reached: this key's requests per month", retry_after_s)
            }
            Refusal::NeedsLease => return ApiError::overloaded(),
        };
        let message = format!("{limit} are used up. Try again in {retry_after_s} seconds.");
        ApiError::new(code, message).retry_after(retry_after_s)
    }
}

impl ApiError {
    /// The quota has something left, but not enough for a long answer.
    pub(crate) fn too_long(units: u64, refusal: Refusal) -> Self {
        let error = ApiError::from(refusal);
        let retry_after_s = error.retry_after_s.unwrap_or_default();
        let message = format!(
            "Usage limit reached: this answer costs {units} requests, and fewer are left of this key's quota. Ask for \
             less, or try again in {retry_after_s} seconds."
        );
        ApiError { message: message.into(), ..error }
    }

    pub(crate) fn overloaded() -> Self {
        ApiError::new(Code::Overloaded, "The service is overloaded. Try again in a few seconds.").retry_after(5)
    }

    pub(crate) fn not_found() -> Self {
        ApiError::new(Code::NotFound, "There is nothing here: /docs lists what there is.")
    }

    pub(crate) fn internal() -> Self {
        let message = "Something went wrong on our side. Try again, and report the request id if it stays.";
        ApiError::new(Code::InternalError, message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_body_has_one_shape() {
        let error = ApiError::new(Code::EventNotFound, "There is no event \"e9\".");
        assert_eq!(
            String::from_utf8(error.to_json(Version::V1, "r-1")).unwrap(),
            r#"{"error":{"code":"event_not_found","message":"There is no event \"e9\".","request_id":"r-1"}}"#
        );
        let error = ApiError::invalid_parameter("limit", "too many".into());
        assert_eq!(
            String::from_utf8(error.to_json(Version::V1, "r-2")).unwrap(),
            r#"{"error":{"code":"invalid_parameter","message":"too many","param":"limit","request_id":"r-2"}}"#
        );
    }

    #[test]
    fn the_other_version_has_a_shape_and_codes_of_its_own() {
        let error = ApiError::invalid_parameter("oddsFormat", "no \"odds\"".into());
        assert_eq!(
            String::from_utf8(error.to_json(Version::V4, "r-1")).unwrap(),
            r#"{"message":"no \"odds\"","error_code":"INVALID_ODDS_FORMAT","details_url":"/docs#shape-V4ErrorCode"}"#
        );
        assert_eq!(error.status(Version::V1), StatusCode::BAD_REQUEST);
        assert_eq!(error.status(Version::V4), StatusCode::UNPROCESSABLE_ENTITY);
        let spent = ApiError::from(Refusal::Day { retry_after_s: 60 });
        assert_eq!(spent.status(Version::V1), StatusCode::TOO_MANY_REQUESTS);
        assert_eq!(spent.status(Version::V4), StatusCode::UNAUTHORIZED);
        let burst = ApiError::from(Refusal::Burst { retry_after_s: 60 });
        assert_eq!(burst.status(Version::V4), StatusCode::TOO_MANY_REQUESTS);
    }

    #[test]
    fn a_refusal_says_how_long_to_wait() {
        let error = ApiError::from(Refusal::Month { retry_after_s: 7200 });
        assert_eq!((error.code, error.retry_after_s), (Code::QuotaExceeded, Some(7200)));
        assert_eq!(
            error.message,
            "Usage limit reached: this key's requests per month are used up. Try again in 7200 seconds."
        );
    }
}
