//! The endpoints of history: `/v4/historical/sports/{sport}/odds` and the same of events and of one event, and
//! `/v4/sports/{sport}/odds-history`, the older name of the first.

use std::sync::Arc;

use super::odds::{OF_EVENT, PARAMETERS};
use super::values::{
    self, COMMENCE_TIME_FROM, COMMENCE_TIME_TO, DATE, DATE_FORMAT, EVENT_IDS, INCLUDE_ROTATION_NUMBERS,
};
use crate::board::v4::{DateFormat, ListQuery, Listed, Priced, PricedQuery, Shown as ShownEvent};
use crate::board::{Body, Encoding, render};
use crate::http::exchange::error::{ApiError, Code};
use crate::http::exchange::history::{Shown, Stop};
use crate::http::exchange::query::{Parameter, Params};
use crate::http::exchange::reply::{Content, Freshness};
use crate::http::exchange::request_headers::RequestParts;
use crate::http::exchange::service::{Authorized, SportView};
use crate::http::exchange::values::{AFTER, Round, link_replacing, time};
use crate::model::{EventId, Timestamp};

/// A longer answer is sent uncompressed: compressing it for one request would keep others waiting.
const COMPRESSED_MAX: usize = 512 << 10;

pub(crate) const OF_ODDS: &[Parameter] = &with_date::<{ PARAMETERS.len() + 1 }>(PARAMETERS);
pub(crate) const OF_ONE_EVENT: &[Parameter] = &with_date::<{ OF_EVENT.len() + 1 }>(OF_EVENT);
pub(crate) const OF_EVENTS: &[Parameter] =
    &[DATE, DATE_FORMAT, EVENT_IDS, COMMENCE_TIME_FROM, COMMENCE_TIME_TO, INCLUDE_ROTATION_NUMBERS, AFTER];

const fn with_date<const N: usize>(parameters: &[Parameter]) -> [Parameter; N] {
    let mut all = [DATE; N];
    let mut at = 0;
    while at < parameters.len() {
        all[at + 1] = parameters[at];
        at += 1;
    }
    all
}

/// The open events of a key with their prices, as of a date.
pub(crate) fn get_odds(authorized: &Authorized<'_>, view: SportView<'_>, key: &str) -> Result<Content, Stop> {
    let params = Params::read_leniently(authorized.request.query, OF_ODDS)?;
    let view = at_date(authorized, view, &params, Shown::Prices)?;
    let prices = values::prices(&params, view.bookmakers(), view.catalogue.markets())?;
    let what = Priced::Events { prices, scope: values::scope(&params)? };
    priced(authorized, &view, key, what, values::dates(&params)?)
}

/// One event with its prices, as of a date.
pub(crate) fn get_event(
    authorized: &Authorized<'_>,
    view: SportView<'_>,
    key: &str,
    id: &str,
) -> Result<Content, Stop> {
    let params = Params::read_leniently(authorized.request.query, OF_ONE_EVENT)?;
    let view = at_date(authorized, view, &params, Shown::Prices)?;
    let prices = values::prices(&params, view.bookmakers(), view.catalogue.markets())?;
    let id = EventId::new(id).ok_or_else(super::event_not_found)?;
    let what = Priced::OneEvent { id, shown: ShownEvent::Odds(prices) };
    priced(authorized, &view, key, what, values::dates(&params)?)
}

/// The open events of a key, as of a date.
pub(crate) fn get_events(authorized: &Authorized<'_>, view: SportView<'_>, key: &str) -> Result<Content, Stop> {
    let params = Params::read_leniently(authorized.request.query, OF_EVENTS)?;
    let view = at_date(authorized, view, &params, Shown::Lists)?;
    let rotation_numbers = values::is_yes(&params, &INCLUDE_ROTATION_NUMBERS)?;
    let (dates, scope) = (values::dates(&params)?, values::scope(&params)?);
    let query = ListQuery { key: key.into(), what: Listed::Events { dates, scope, rotation_numbers } };
    let body = view.board().v4_listed(view.sport, view.register().competitions(), &query);
    Ok(wrapped(&view, authorized.request, &body, dates))
}

fn at_date<'s>(
    authorized: &Authorized<'_>,
    view: SportView<'s>,
    params: &Params<'_>,
    shown: Shown,
) -> Result<SportView<'s>, Stop> {
    let date = params.parse(&DATE, |text| time(text, Round::Down))?.ok_or_else(|| {
        let message = format!("Send `{}`: {}.", DATE.name, DATE.takes);
        ApiError { param: Some(DATE.name.into()), ..ApiError::new(Code::MissingTimestamp, message) }
    })?;
    if date > authorized.now {
        return Err(DATE.fault("is in the future").into());
    }
    authorized.as_of(view, shown, date)
}

fn priced(
    authorized: &Authorized<'_>,
    view: &SportView<'_>,
    key: &str,
    what: Priced,
    dates: DateFormat,
) -> Result<Content, Stop> {
    let query = PricedQuery { key: key.into(), what };
    let seen = view.register().competitions();
    let body = view.board().v4_priced(view.sport, seen, &query).ok_or_else(super::event_not_found)?;
    Ok(wrapped(view, authorized.request, &body, dates))
}

/// `{"timestamp":"…","previous_timestamp":"…","next_timestamp":"…","data":…}`
fn wrapped(view: &SportView<'_>, request: &RequestParts<'_>, data: &Body, dates: DateFormat) -> Content {
    let Some(as_of) = view.as_of() else { return Content::once(Vec::new()) };
    let data_bytes = data.bytes(Encoding::Identity);
    let mut out = Vec::with_capacity(data_bytes.len() + 160);
    out.extend_from_slice(b"{\"timestamp\":");
    timestamp(Some(as_of.at), dates, &mut out);
    out.extend_from_slice(b",\"previous_timestamp\":");
    timestamp(as_of.previous, dates, &mut out);
    out.extend_from_slice(b",\"next_timestamp\":");
    timestamp(as_of.next, dates, &mut out);
    out.extend_from_slice(b",\"data\":");
    out.extend_from_slice(data_bytes);
    out.push(b'}');
    let date = as_of.at.to_string();
    let link = data
        .next()
        .and_then(|next| link_replacing(request, &[(DATE.name, Some(&date)), (AFTER.name, Some(&next.to_text()))]));
    let freshness = Freshness::of_past(as_of.permanence);
    let is_kept = out.len() <= COMPRESSED_MAX;
    let content = Content::kept(Arc::new(Body::new(out, None)), freshness);
    Content { link, rows: data.rows(), as_of: Some(as_of.at), is_kept, ..content }
}

fn timestamp(time: Option<Timestamp>, dates: DateFormat, out: &mut Vec<u8>) {
    match time {
        None => out.extend_from_slice(b"null"),
        Some(time) => render::v4::time(time, dates, out),
    }
}
