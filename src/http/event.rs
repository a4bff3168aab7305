//! Get Event: `/v1/sports/{sport_key}/events/{event_id}`.

use super::error::{ApiError, Code};
use super::query::Params;
use super::reply::{Content, Freshness};
use super::view::SportView;

pub(super) fn get(view: &SportView<'_>, id: &str, query: Option<&str>) -> Result<Content, ApiError> {
    Params::read(query, &[])?;
    match view.board().event(&view.sport.key, id) {
        Some(body) => Ok(Content::kept(body, Freshness::Revalidated)),
        None => Err(ApiError::new(Code::EventNotFound, "There is no such event in this sport, or it was removed.")),
    }
}
