//! `/v4/sports/{sport}/events/{eventId}/odds`: one open event with its prices.

use super::values::{
    self, BOOKMAKERS, DATE_FORMAT, INCLUDE_BET_LIMITS, INCLUDE_LINKS, INCLUDE_SIDS, MARKETS, ODDS_FORMAT, REGIONS,
};
use crate::board::v4::{Priced, Shown};
use crate::http::error::ApiError;
use crate::http::query::{Parameter, Params};
use crate::http::reply::Content;
use crate::http::view::SportView;
use crate::model::EventId;

pub(in crate::http) const PARAMETERS: &[Parameter] =
    &[REGIONS, BOOKMAKERS, MARKETS, ODDS_FORMAT, DATE_FORMAT, INCLUDE_LINKS, INCLUDE_SIDS, INCLUDE_BET_LIMITS];

pub(in crate::http) fn get(
    view: &SportView<'_>,
    key: &str,
    id: &str,
    query: Option<&str>,
) -> Result<Content, ApiError> {
    let params = Params::read_leniently(query, PARAMETERS)?;
    let prices = values::prices(&params, view.bookmakers())?;
    let id = EventId::new(id).ok_or_else(super::event_not_found)?;
    super::priced(view, key, Priced::OneEvent { id, shown: Shown::Odds(prices) })
}
