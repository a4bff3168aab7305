//! The endpoints with prices: `/v4/sports/{sport}/odds` and the same of one event and of all sports, and the markets of one
//! event.

use super::values::{
    self, BOOKMAKERS, COMMENCE_TIME_FROM, COMMENCE_TIME_TO, DATE_FORMAT, EVENT_IDS, INCLUDE_BET_LIMITS, INCLUDE_LINKS,
    INCLUDE_MULTIPLIERS, INCLUDE_ROTATION_NUMBERS, INCLUDE_SIDS, MARKETS, ODDS_FORMAT, REGIONS,
};
use crate::board::v4::{Priced, Shown, UpcomingQuery};
use crate::http::exchange::error::ApiError;
use crate::http::exchange::query::{Parameter, Params};
use crate::http::exchange::reply::{Content, Freshness};
use crate::http::exchange::service::{SportView, WorldView};
use crate::http::exchange::values::AFTER;
use crate::model::EventId;

pub(crate) const PARAMETERS: &[Parameter] = &[
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
    INCLUDE_MULTIPLIERS,
    INCLUDE_ROTATION_NUMBERS,
    AFTER,
];
/// Those of the odds of one key, but the last: the list is short and has one page.
pub(crate) const OF_UPCOMING: &[Parameter] = PARAMETERS.split_at(PARAMETERS.len() - 1).0;
pub(crate) const OF_EVENT: &[Parameter] = &[
    REGIONS,
    BOOKMAKERS,
    MARKETS,
    ODDS_FORMAT,
    DATE_FORMAT,
    INCLUDE_LINKS,
    INCLUDE_SIDS,
    INCLUDE_BET_LIMITS,
    INCLUDE_MULTIPLIERS,
    INCLUDE_ROTATION_NUMBERS,
];
pub(crate) const OF_MARKETS: &[Parameter] = &[REGIONS, BOOKMAKERS, DATE_FORMAT];

/// The open events of a key with their prices.
pub(crate) fn get(view: &SportView<'_>, key: &str, query: Option<&str>) -> Result<Content, ApiError> {
    let params = Params::read_leniently(query, PARAMETERS)?;
    let prices = values::prices(&params, view.bookmakers(), view.catalogue.markets())?;
    super::priced(view, key, Priced::Events { prices, scope: values::scope(&params)? })
}

/// `/v4/sports/upcoming/odds`: the events that are live and the next ones, of every sport that the key may read.
pub(crate) fn get_upcoming(view: &WorldView<'_>, query: Option<&str>) -> Result<Content, ApiError> {
    let params = Params::read_leniently(query, OF_UPCOMING)?;
    let prices = values::prices(&params, view.bookmakers(), view.catalogue.markets())?;
    let query = UpcomingQuery { sports: view.sports(), prices, scope: values::scope(&params)? };
    Ok(Content::kept(view.board().v4_upcoming(view.catalogue, &query), Freshness::UntilRefresh))
}

/// `/v4/sports/{sport}/events/{eventId}/odds`: one open event with its prices.
pub(crate) fn get_event(view: &SportView<'_>, key: &str, id: &str, query: Option<&str>) -> Result<Content, ApiError> {
    let params = Params::read_leniently(query, OF_EVENT)?;
    let prices = values::prices(&params, view.bookmakers(), view.catalogue.markets())?;
    let id = EventId::new(id).ok_or_else(super::event_not_found)?;
    super::priced(view, key, Priced::OneEvent { id, shown: Shown::Odds(prices) })
}

/// `/v4/sports/{sport}/events/{eventId}/markets`: which markets each bookmaker has of one open event.
pub(crate) fn get_markets(view: &SportView<'_>, key: &str, id: &str, query: Option<&str>) -> Result<Content, ApiError> {
    let params = Params::read_leniently(query, OF_MARKETS)?;
    let (books, dates) = (values::books(&params, view.bookmakers())?, values::dates(&params)?);
    let id = EventId::new(id).ok_or_else(super::event_not_found)?;
    super::priced(view, key, Priced::OneEvent { id, shown: Shown::Markets { books, dates } })
}
