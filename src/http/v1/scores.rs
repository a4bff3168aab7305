//! Get Scores: `/v1/sports/{sport_key}/scores`, with period detail.

use super::filters::{self, COMPETITION};
use crate::board::ScoresQuery;
use crate::http::exchange::history::{Shown, Stop};
use crate::http::exchange::query::{Parameter, Params};
use crate::http::exchange::reply::{Content, Freshness};
use crate::http::exchange::service::{Authorized, SportView};
use crate::http::exchange::values::{self, AFTER, AS_OF, EVENT_IDS, LIMIT};
use crate::model::{MarketFilter, ScoreStatus};

const STATUS: Parameter = Parameter::new("status", "scheduled, live or final");

pub(crate) const PARAMETERS: &[Parameter] = &[STATUS, EVENT_IDS, COMPETITION, LIMIT, AFTER, AS_OF];

pub(crate) fn get(authorized: &Authorized<'_>, view: SportView<'_>) -> Result<Content, Stop> {
    let request = authorized.request;
    let params = Params::read(request.query, PARAMETERS)?;
    let query = ScoresQuery {
        status: params.parse(&STATUS, ScoreStatus::parse)?,
        scope: filters::scope(&view, &params, &MarketFilter::Featured)?,
        limit: values::limit(&params)?,
        after: values::after(&params)?,
    };
    let view = filters::at_time(authorized, view, &params, Shown::Lists)?;
    let body = view.board().scores(&view.sport.key, &query);
    Ok(filters::page(&view, request, body, Freshness::Revalidated))
}
