//! `/v4/sports/{sport}/scores`: the open events of a key with their scores, and those that ended in the last days.

use super::values::{self, DATE_FORMAT, DAYS_FROM, EVENT_IDS};
use crate::board::v4::Listed;
use crate::http::error::ApiError;
use crate::http::query::{Parameter, Params};
use crate::http::reply::Content;
use crate::http::values::AFTER;
use crate::http::view::SportView;
use crate::model::Timestamp;

pub(in crate::http) const PARAMETERS: &[Parameter] = &[DAYS_FROM, DATE_FORMAT, EVENT_IDS, AFTER];

const DAY_S: u32 = 86_400;
/// Days are counted back from the minute, so that an answer can be kept for longer than a second.
const MINUTE_S: u32 = 60;

pub(in crate::http) fn get(
    view: &SportView<'_>,
    key: &str,
    now: Timestamp,
    query: Option<&str>,
) -> Result<Content, ApiError> {
    let params = Params::read_leniently(query, PARAMETERS)?;
    let days = params.parse(&DAYS_FROM, |text| match text {
        "1" => Some(1),
        "2" => Some(2),
        "3" => Some(3),
        _ => None,
    })?;
    let minute = now.unix() - now.unix() % MINUTE_S;
    let ended_since = days.map(|days| Timestamp::from_unix(minute.saturating_sub(days * DAY_S)));
    let (dates, scope) = (values::dates(&params)?, values::scope(&params)?);
    super::listed(view, key, Listed::Scores { dates, scope, ended_since })
}
