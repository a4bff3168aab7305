//! List Events: `/v1/sports/{sport_key}/events`, a bare array; and Get Event, one of them by its id.

use super::filters::{self, COMMENCE_FROM, COMMENCE_TO, COMPETITION};
use crate::board::EventsQuery;
use crate::http::exchange::error::{ApiError, Code};
use crate::http::exchange::history::{Shown, Stop};
use crate::http::exchange::query::{Parameter, Params};
use crate::http::exchange::reply::{Content, Freshness};
use crate::http::exchange::service::{Authorized, SportView};
use crate::http::exchange::values::{self, AFTER, AS_OF, EVENT_IDS, LIMIT};
use crate::model::{EventStatus, MarketFilter};

const STATUS: Parameter = Parameter::new("status", "scheduled, live, final or cancelled");

pub(crate) const PARAMETERS: &[Parameter] =
    &[STATUS, EVENT_IDS, COMPETITION, COMMENCE_FROM, COMMENCE_TO, LIMIT, AFTER, AS_OF];

pub(crate) fn get(authorized: &Authorized<'_>, view: SportView<'_>) -> Result<Content, Stop> {
    let request = authorized.request;
    let params = Params::read(request.query, PARAMETERS)?;
    let query = EventsQuery {
        status: params.parse(&STATUS, EventStatus::parse)?,
        scope: filters::scope(&view, &params, &MarketFilter::Featured)?,
        limit: values::limit(&params)?,
        after: values::after(&params)?,
    };
    let view = filters::at_time(authorized, view, &params, Shown::Lists)?;
    let body = view.board().events(&view.sport.key, &query);
    Ok(filters::page(&view, request, body, Freshness::Revalidated))
}

/// Get Event: `/v1/sports/{sport_key}/events/{event_id}`.
pub(crate) fn get_one(view: &SportView<'_>, id: &str, query: Option<&str>) -> Result<Content, ApiError> {
    Params::read(query, &[])?;
    match view.board().event(&view.sport.key, id) {
        Some(body) => Ok(Content::kept(body, Freshness::Revalidated)),
        None => Err(ApiError::new(Code::EventNotFound, "There is no such event in this sport, or it was removed.")),
    }
}
