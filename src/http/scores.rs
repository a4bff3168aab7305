//! Get Scores: `/v1/sports/{sport_key}/scores`, with period detail.

use super::error::ApiError;
use super::query::{Parameter, Params};
use super::reply::{Content, Freshness};
use super::values::{self, AFTER, EVENT_IDS, LIMIT};
use super::view::SportView;
use crate::board::ScoresQuery;
use crate::model::ScoreStatus;

const STATUS: Parameter = Parameter::new("status", "scheduled, live or final");

pub(super) const PARAMETERS: &[Parameter] = &[STATUS, EVENT_IDS, LIMIT, AFTER];

pub(super) fn get(view: &SportView<'_>, query: Option<&str>) -> Result<Content, ApiError> {
    let params = Params::read(query, PARAMETERS)?;
    let query = ScoresQuery {
        status: params.parse(&STATUS, ScoreStatus::parse)?,
        events: values::event_ids(&params, &EVENT_IDS)?,
        limit: values::limit(&params)?,
        after: values::after(&params)?,
    };
    Ok(Content::kept(view.board().scores(&view.sport.key, &query), Freshness::Revalidated))
}
