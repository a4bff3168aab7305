//! `/v4/sports/{sport}/participants`: who competes.

use crate::board::v4::Listed;
use crate::http::error::ApiError;
use crate::http::reply::Content;
use crate::http::view::SportView;

/// It takes no parameters, so there are none to get wrong.
pub(in crate::http) fn get(view: &SportView<'_>, key: &str) -> Result<Content, ApiError> {
    super::listed(view, key, Listed::Participants)
}
