//! Get Closing: `/v1/sports/{sport_key}/closing`, the opening and closing prices of the events of a day, or of some events.

use std::sync::Arc;

use jiff::civil::Date;

use super::filters::{self, BOOKMAKER, MARKET, ODDS_FORMAT, REGION, REGIONS};
use crate::board::Body;
use crate::board::render::{self, ClosingStyle};
use crate::http::exchange::error::{ApiError, Code};
use crate::http::exchange::history::{ClosingOf, ClosingRead, Stop};
use crate::http::exchange::query::{Parameter, Params};
use crate::http::exchange::reply::Content;
use crate::http::exchange::service::{Authorized, SportView};
use crate::http::exchange::values::{self, EVENT_IDS};
use crate::model::OddsFormat;
use crate::model::derived::FairMethod;

const DATE: Parameter = Parameter::new("date", "a day such as 2026-11-14, in UTC");

const FAIR: Parameter = Parameter::new("fair", "power, shin, multiplicative or additive");

pub(crate) const PARAMETERS: &[Parameter] = &[DATE, EVENT_IDS, MARKET, BOOKMAKER, REGIONS, REGION, ODDS_FORMAT, FAIR];

pub(crate) fn get(authorized: &Authorized<'_>, view: &SportView<'_>) -> Result<Content, Stop> {
    let params = Params::read(authorized.request.query, PARAMETERS)?;
    let format = params.parse(&ODDS_FORMAT, OddsFormat::parse)?.unwrap_or(OddsFormat::American);
    let method = params.parse(&FAIR, FairMethod::parse)?;
    let read = ClosingRead {
        access: view.access(),
        of: events(&params)?,
        bookmakers: filters::book_keys(view, &params)?,
        markets: filters::markets(view, &params)?,
        rows_max: filters::ROWS_MAX,
    };
    let (named, sport_key) = (filters::unknown_book(view, &params), view.sport.key.clone());
    let (now, encoding) = (authorized.now, authorized.request.encoding());
    let boards = Arc::clone(&authorized.service.boards);
    authorized.history_content(move |history| {
        let events = history.closing(&read)?;
        let rows = events.iter().map(|event| event.lines.len()).sum();
        if let Some(key) = named.filter(|_| rows == 0) {
            return Err(BOOKMAKER.refuse(&key));
        }
        if rows > filters::ROWS_MAX {
            return Err(too_many());
        }
        let fair = method.map(|method| (method, boards.catalogue().markets()));
        let style = ClosingStyle { sport_key: &sport_key, format, fair };
        let body = Body::new(render::closing(&events, style, now), None);
        Ok(Content { rows, ..Content::prepared(body, encoding) })
    })
}

fn too_many() -> ApiError {
    let most = filters::ROWS_MAX;
    let message = format!(
        "This answer would have more than {most} rows: name one bookmaker, fewer markets, or some of the events with event_ids."
    );
    ApiError::new(Code::InvalidParameter, message)
}

fn events(params: &Params<'_>) -> Result<ClosingOf, ApiError> {
    let day = params.parse(&DATE, day)?;
    let ids = values::event_ids(params, &EVENT_IDS)?;
    match (day, ids) {
        (Some(day), None) => Ok(ClosingOf::Day(day)),
        (None, Some(ids)) => Ok(ClosingOf::Events(ids.iter().cloned().collect())),
        (Some(_), Some(_)) => Err(DATE.fault("cannot be sent together with `event_ids`")),
        (None, None) => {
            let message = format!("Send `date` ({}) or `event_ids` ({}).", DATE.takes, EVENT_IDS.takes);
            Err(ApiError::invalid_parameter(DATE.name, message))
        }
    }
}

/// Days since 1970.
fn day(text: &str) -> Option<u32> {
    let is_plain = text.len() == 10 && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
    let date: Date = text.parse().ok().filter(|_| is_plain)?;
    let days = date.since(Date::constant(1970, 1, 1)).ok()?.get_days();
    u32::try_from(days).ok()
}
