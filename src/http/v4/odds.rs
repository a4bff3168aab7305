//! `/v4/sports/{sport}/odds`: the open events of a key with their prices.

use super::values::{
    self, BOOKMAKERS, COMMENCE_TIME_FROM, COMMENCE_TIME_TO, DATE_FORMAT, EVENT_IDS, INCLUDE_BET_LIMITS, INCLUDE_LINKS,
    INCLUDE_SIDS, MARKETS, ODDS_FORMAT, REGIONS,
};
use crate::board::v4::Priced;
use crate::http::error::ApiError;
use crate::http::query::{Parameter, Params};
use crate::http::reply::Content;
use crate::http::values::AFTER;
use crate::http::view::SportView;

pub(in crate::http) const PARAMETERS: &[Parameter] = &[
    REGIONS,
    BOOKMAKERS,
    MARKETS,
    ODDS_FORMAT,
    DATE_FORMAT,
    EVENT_IDS,
    COMMENCE_TIME_FROM,
    COMMENCE_TIME_TO,
    INCLUDE_LINKS,
    INCLUDE_SIDS,
    INCLUDE_BET_LIMITS,
    AFTER,
];

pub(in crate::http) fn get(view: &SportView<'_>, key: &str, query: Option<&str>) -> Result<Content, ApiError> {
    let params = Params::read_leniently(query, PARAMETERS)?;
    let prices = values::prices(&params, view.bookmakers())?;
    super::priced(view, key, Priced::Events { prices, scope: values::scope(&params)? })
}
