//! The shape of The Odds API, version 4: its clients work here by changing their base URL.
//!
//! Only names and shapes are of its own. The keys, what they may read, what they are charged, the boards and the kept
//! bodies are those of `/v1`. Where the two differ in manners, this follows the other: parameters that nobody knows are
//! passed over, a mistake in a known one is 422 with a code of its own, and a spent quota is 401.

pub(super) mod event_markets;
pub(super) mod event_odds;
pub(super) mod events;
pub(super) mod odds;
pub(super) mod participants;
pub(super) mod scores;
pub(super) mod sports;
pub(super) mod upcoming;
mod values;

use super::error::{ApiError, Code};
use super::reply::{Content, Freshness};
use super::view::SportView;
use crate::board::v4::{ListQuery, Listed, Priced, PricedQuery};
use crate::model::V4Names;

/// Where the codes are explained.
pub(super) const DETAILS_URL: &str = "/docs#shape-V4ErrorCode";

/// The code for a value that a parameter does not take.
pub(super) fn invalid_code_of(parameter: &str) -> &'static str {
    values::INVALID_CODES.iter().find(|(name, _)| *name == parameter).map_or("INVALID_PARAMETER", |(_, code)| code)
}

fn event_not_found() -> ApiError {
    ApiError::new(Code::EventNotFound, "There is no such event under this key, or it is over or was removed.")
}

/// Prices under a key, as they are published.
fn priced(view: &SportView<'_>, key: &str, what: Priced) -> Result<Content, ApiError> {
    let (query, names) = (PricedQuery { key: key.into(), what }, names_of(view)?);
    let body = view.board().v4_priced(view.sport, names, &query).ok_or_else(event_not_found)?;
    Ok(Content::kept(body, Freshness::UntilRefresh))
}

/// Events and scores under a key, as they come.
fn listed(view: &SportView<'_>, key: &str, what: Listed) -> Result<Content, ApiError> {
    let query = ListQuery { key: key.into(), what };
    let body = view.board().v4_listed(view.sport, names_of(view)?, &query);
    Ok(Content::kept(body, Freshness::Revalidated))
}

/// The names of a sport that was found by one of them.
fn names_of<'s>(view: &SportView<'s>) -> Result<&'s V4Names, ApiError> {
    view.sport.v4.as_ref().ok_or_else(ApiError::internal)
}
