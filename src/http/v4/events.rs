//! `/v4/sports/{sport}/events`: the open events of a key, without prices.

use super::values::{self, COMMENCE_TIME_FROM, COMMENCE_TIME_TO, DATE_FORMAT, EVENT_IDS};
use crate::board::v4::Listed;
use crate::http::error::ApiError;
use crate::http::query::{Parameter, Params};
use crate::http::reply::Content;
use crate::http::values::AFTER;
use crate::http::view::SportView;

pub(in crate::http) const PARAMETERS: &[Parameter] =
    &[DATE_FORMAT, EVENT_IDS, COMMENCE_TIME_FROM, COMMENCE_TIME_TO, AFTER];

pub(in crate::http) fn get(view: &SportView<'_>, key: &str, query: Option<&str>) -> Result<Content, ApiError> {
    let params = Params::read_leniently(query, PARAMETERS)?;
    super::listed(view, key, Listed::Events { dates: values::dates(&params)?, scope: values::scope(&params)? })
}
