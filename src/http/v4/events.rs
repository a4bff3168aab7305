//! The endpoints without prices: `/v4/sports/{sport}/events`, its scores and its participants.

use super::values::{
    self, COMMENCE_TIME_FROM, COMMENCE_TIME_TO, DATE_FORMAT, DAYS_FROM, EVENT_IDS, INCLUDE_ROTATION_NUMBERS,
};
use crate::board::v4::Listed;
use crate::http::exchange::error::ApiError;
use crate::http::exchange::query::{Parameter, Params};
use crate::http::exchange::reply::Content;
use crate::http::exchange::service::SportView;
use crate::http::exchange::values::AFTER;
use crate::model::Timestamp;

pub(crate) const PARAMETERS: &[Parameter] =
    &[DATE_FORMAT, EVENT_IDS, COMMENCE_TIME_FROM, COMMENCE_TIME_TO, INCLUDE_ROTATION_NUMBERS, AFTER];
pub(crate) const OF_SCORES: &[Parameter] = &[DAYS_FROM, DATE_FORMAT, EVENT_IDS, AFTER];

const DAY_S: u32 = 86_400;
/// Days are counted back from the minute, so that a response can be cached for longer than a second.
const MINUTE_S: u32 = 60;

/// The open events of a key.
pub(crate) fn get(view: &SportView<'_>, key: &str, query: Option<&str>) -> Result<Content, ApiError> {
    let params = Params::read_leniently(query, PARAMETERS)?;
    let rotation_numbers = values::is_yes(&params, &INCLUDE_ROTATION_NUMBERS)?;
    let (dates, scope) = (values::dates(&params)?, values::scope(&params)?);
    Ok(super::listed(view, key, Listed::Events { dates, scope, rotation_numbers }))
}

/// `/v4/sports/{sport}/scores`: the open events of a key with their scores, and those that ended in the last days.
pub(crate) fn get_scores(
    view: &SportView<'_>,
    key: &str,
    now: Timestamp,
    query: Option<&str>,
) -> Result<Content, ApiError> {
    let params = Params::read_leniently(query, OF_SCORES)?;
    let days = params.parse(&DAYS_FROM, |text| match text {
        "1" => Some(1),
        "2" => Some(2),
        "3" => Some(3),
        _ => None,
    })?;
    let minute = now.unix() - now.unix() % MINUTE_S;
    let ended_since = days.map(|days| Timestamp::from_unix(minute.saturating_sub(days * DAY_S)));
    let (dates, scope) = (values::dates(&params)?, values::scope(&params)?);
    Ok(super::listed(view, key, Listed::Scores { dates, scope, ended_since }))
}

/// `/v4/sports/{sport}/participants`: who competes. It takes no parameters.
pub(crate) fn get_participants(view: &SportView<'_>, key: &str) -> Content {
    super::listed(view, key, Listed::Participants)
}
