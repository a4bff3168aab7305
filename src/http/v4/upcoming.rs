//! `/v4/sports/upcoming/odds`: what is on now and the next events, of every sport that the key may read.

use super::{odds, values};
use crate::board::v4::UpcomingQuery;
use crate::http::error::ApiError;
use crate::http::query::{Parameter, Params};
use crate::http::reply::{Content, Freshness};
use crate::http::view::WorldView;

/// Those of the odds of one key, but the last: the list is short and has one page.
pub(in crate::http) const PARAMETERS: &[Parameter] = odds::PARAMETERS.split_at(odds::PARAMETERS.len() - 1).0;

pub(in crate::http) fn get(view: &WorldView<'_>, query: Option<&str>) -> Result<Content, ApiError> {
    let params = Params::read_leniently(query, PARAMETERS)?;
    let prices = values::prices(&params, view.bookmakers())?;
    let query = UpcomingQuery { sports: view.sports(), prices, scope: values::scope(&params)? };
    Ok(Content::kept(view.board().v4_upcoming(view.catalogue, &query), Freshness::UntilRefresh))
}
