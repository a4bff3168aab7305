//! `/v4/sports/{sport}/events/{eventId}/markets`: which markets each bookmaker has of one open event.

use super::values::{self, BOOKMAKERS, DATE_FORMAT, REGIONS};
use crate::board::v4::{Priced, Shown};
use crate::http::error::ApiError;
use crate::http::query::{Parameter, Params};
use crate::http::reply::Content;
use crate::http::view::SportView;
use crate::model::EventId;

pub(in crate::http) const PARAMETERS: &[Parameter] = &[REGIONS, BOOKMAKERS, DATE_FORMAT];

pub(in crate::http) fn get(
    view: &SportView<'_>,
    key: &str,
    id: &str,
    query: Option<&str>,
) -> Result<Content, ApiError> {
    let params = Params::read_leniently(query, PARAMETERS)?;
    let (books, dates) = (values::books(&params, view.bookmakers())?, values::dates(&params)?);
    let id = EventId::new(id).ok_or_else(super::event_not_found)?;
    super::priced(view, key, Priced::OneEvent { id, shown: Shown::Markets { books, dates } })
}
