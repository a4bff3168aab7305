//! Errors as clients see them: one table of codes and statuses, one shape of body.
//!
//! A message says what to change. Nothing internal stands in one, and no part of a key ever does.

use std::borrow::Cow;

use http::StatusCode;

use crate::board::render::json;
use crate::keys::{AuthError, Refusal};

/// What went wrong, as one word for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Code {
    InvalidParameter,
    AuthenticationFailed,
    Forbidden,
    NotFound,
    SportNotFound,
    EventNotFound,
    MethodNotAllowed,
    UriTooLong,
    HeadersTooLarge,
    RateLimited,
    QuotaExceeded,
    InternalError,
    Maintenance,
    Overloaded,
}

impl Code {
    /// The table.
    const fn row(self) -> (&'static str, StatusCode) {
        match self {
            Code::InvalidParameter => ("invalid_parameter", StatusCode::BAD_REQUEST),
            Code::AuthenticationFailed => ("authentication_failed", StatusCode::UNAUTHORIZED),
            Code::Forbidden => ("forbidden", StatusCode::FORBIDDEN),
            Code::NotFound => ("not_found", StatusCode::NOT_FOUND),
            Code::SportNotFound => ("sport_not_found", StatusCode::NOT_FOUND),
            Code::EventNotFound => ("event_not_found", StatusCode::NOT_FOUND),
            Code::MethodNotAllowed => ("method_not_allowed", StatusCode::METHOD_NOT_ALLOWED),
            Code::UriTooLong => ("uri_too_long", StatusCode::URI_TOO_LONG),
            Code::HeadersTooLarge => ("headers_too_large", StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE),
            Code::RateLimited => ("rate_limited", StatusCode::TOO_MANY_REQUESTS),
            Code::QuotaExceeded => ("quota_exceeded", StatusCode::TOO_MANY_REQUESTS),
            Code::InternalError => ("internal_error", StatusCode::INTERNAL_SERVER_ERROR),
            Code::Maintenance => ("maintenance", StatusCode::SERVICE_UNAVAILABLE),
            Code::Overloaded => ("overloaded", StatusCode::SERVICE_UNAVAILABLE),
        }
    }

    pub(super) const fn key(self) -> &'static str {
        self.row().0
    }

    pub(super) const fn status(self) -> StatusCode {
        self.row().1
    }
}

/// A request that is not answered with what it asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ApiError {
    pub code: Code,
    pub message: Cow<'static, str>,
    /// The parameter at fault, where one is.
    pub param: Option<Cow<'static, str>>,
    pub retry_after_s: Option<u32>,
}

impl ApiError {
    pub(super) fn new(code: Code, message: impl Into<Cow<'static, str>>) -> Self {
        ApiError { code, message: message.into(), param: None, retry_after_s: None }
    }

    pub(super) fn invalid_parameter(param: impl Into<Cow<'static, str>>, message: String) -> Self {
        ApiError { param: Some(param.into()), ..ApiError::new(Code::InvalidParameter, message) }
    }

    #[must_use]
    pub(super) fn retry_after(self, seconds: u32) -> Self {
        ApiError { retry_after_s: Some(seconds), ..self }
    }

    /// `{"error":{"code":"…","message":"…","param":"…","request_id":"…"}}`
    pub(super) fn to_json(&self, request_id: &str) -> Vec<u8> {
        let mut out = Vec::with_capacity(96 + self.message.len() + request_id.len());
        out.extend_from_slice(b"{\"error\":{\"code\":");
        json::string(self.code.key(), &mut out);
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
}

impl From<AuthError> for ApiError {
    /// Says how to send a key, or that the one sent is no good. Which of the reasons it is stays with the operator.
    fn from(error: AuthError) -> Self {
        let message = match error {
            AuthError::Missing => "Send your API key in the X-API-Key header.",
            AuthError::Malformed => "This is not an API key: check that it was copied whole and unchanged.",
            AuthError::Unknown | AuthError::Revoked(_) | AuthError::Expired(_) | AuthError::RotatedOut(_) => {
                "This API key is not valid: it is unknown, revoked, expired or has been replaced. Ask for a new one."
            }
        };
        ApiError::new(Code::AuthenticationFailed, message)
    }
}

impl From<Refusal> for ApiError {
    fn from(refusal: Refusal) -> Self {
        let (code, limit, retry_after_s) = match refusal {
            Refusal::Burst { retry_after_s } => (Code::RateLimited, "requests per minute", retry_after_s),
            Refusal::Day { retry_after_s } => (Code::QuotaExceeded, "requests per day", retry_after_s),
            Refusal::Month { retry_after_s } => (Code::QuotaExceeded, "requests per month", retry_after_s),
            Refusal::NeedsLease => return ApiError::overloaded(),
        };
        let message = format!("This key's {limit} are used up. Try again in {retry_after_s} seconds.");
        ApiError::new(code, message).retry_after(retry_after_s)
    }
}

impl ApiError {
    pub(super) fn overloaded() -> Self {
        ApiError::new(Code::Overloaded, "The service is overloaded. Try again in a few seconds.").retry_after(5)
    }

    pub(super) fn internal() -> Self {
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
            String::from_utf8(error.to_json("r-1")).unwrap(),
            r#"{"error":{"code":"event_not_found","message":"There is no event \"e9\".","request_id":"r-1"}}"#
        );
        let error = ApiError::invalid_parameter("limit", "too many".into());
        assert_eq!(
            String::from_utf8(error.to_json("r-2")).unwrap(),
            r#"{"error":{"code":"invalid_parameter","message":"too many","param":"limit","request_id":"r-2"}}"#
        );
    }

    #[test]
    fn a_refusal_says_how_long_to_wait() {
        let error = ApiError::from(Refusal::Month { retry_after_s: 7200 });
        assert_eq!((error.code, error.retry_after_s), (Code::QuotaExceeded, Some(7200)));
        assert_eq!(error.message, "This key's requests per month are used up. Try again in 7200 seconds.");
    }
}
