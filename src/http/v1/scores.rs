//! Get Scores: `/v1/sports/{sport_key}/scores`, with period detail.

use super::filters::{self, COMPETITION};
use crate::board::ScoresQuery;
use crate::http::exchange::error::ApiError;
use crate::http::exchange::query::{Parameter, Params};
use crate::http::exchange::reply::{Content, Freshness};
use crate::http::exchange::service::SportView;
use crate::http::exchange::values::{self, AFTER, EVENT_IDS, LIMIT};
use crate::model::{MarketFilter, ScoreStatus};

const STATUS: Parameter = Parameter::new("status", "scheduled, live or final");

pub(crate) const PARAMETERS: &[Parameter] = &[STATUS, EVENT_IDS, COMPETITION, LIMIT, AFTER];

pub(crate) fn get(view: &SportView<'_>, query: Option<&str>) -> Result<Content, ApiError> {
    let params = Params::read(query, PARAMETERS)?;
    let query = ScoresQuery {
        status: params.parse(&STATUS, ScoreStatus::parse)?,
        scope: filters::scope(view, &params, &MarketFilter::Featured)?,
        limit: values::limit(&params)?,
        after: values::after(&params)?,
    };
    Ok(Content::kept(view.board().scores(&view.sport.key, &query), Freshness::Revalidated))
}
