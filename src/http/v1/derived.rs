//! What the endpoints of derived prices have in common: their parameters, and how an answer comes to be. It is computed once
//! for each publication and query, away from the threads that answer requests.

use std::sync::Arc;

use super::filters::{self, BOOKMAKER, ODDS_FORMAT, REGIONS_DEFAULT};
use crate::board::{Derived, DerivedFilter, DerivedQuery, FairFrom, FairQuery};
use crate::http::exchange::error::ApiError;
use crate::http::exchange::history::{Shown, Stop};
use crate::http::exchange::query::{Parameter, Params};
use crate::http::exchange::reply::{Content, Freshness};
use crate::http::exchange::service::{Authorized, SportView};
use crate::http::exchange::values::{self, AFTER, AS_OF};
use crate::model::derived::FairMethod;
use crate::model::{BookId, OddsFormat, Regions};

pub(super) const METHOD: Parameter = Parameter::new("method", "power, shin, multiplicative or additive");
pub(super) const FROM: Parameter = Parameter::new("from", "consensus, or the key of a bookmaker that /v1/books lists");

const CONSENSUS: &str = "consensus";

/// The answer to a request whose query `read` reads.
pub(super) fn answer(
    authorized: &Authorized<'_>,
    view: SportView<'_>,
    params: &Params<'_>,
    read: impl Fn(&SportView<'_>, &Params<'_>) -> Result<DerivedQuery, ApiError>,
) -> Result<Content, Stop> {
    if params.get(&AS_OF).is_some() {
        // A mistake is reported before anything is read, but for a bookmaker that may be one of then.
        let may_be_of_then =
            |error: &ApiError| error.param.as_deref().is_some_and(|param| [BOOKMAKER.name, FROM.name].contains(&param));
        match read(&view, params) {
            Err(error) if !may_be_of_then(&error) => return Err(error.into()),
            _ => {}
        }
    }
    let view = filters::at_time(authorized, view, params, Shown::Prices)?;
    let query = read(&view, params)?;
    let published = view.board().published();
    let kept = published.kept_derived(&query).map(Ok);
    let body = kept.unwrap_or_else(|| {
        let (published, boards) = (Arc::clone(published), Arc::clone(&authorized.service.boards));
        let (sport_key, encoding) = (view.sport.key.clone(), authorized.request.encoding());
        authorized.computed(move || {
            let body = published.derived(&sport_key, boards.catalogue().markets(), &query);
            if body.is_worth_compressing() {
                body.bytes(encoding);
            }
            body
        })
    })?;
    Ok(filters::page(&view, authorized.request, body, Freshness::UntilRefresh))
}

/// A query of `what`, about the prices of a bookmaker or of all in the regions.
pub(super) fn query(
    view: &SportView<'_>,
    params: &Params<'_>,
    what: Derived,
    (bookmaker, regions): (Option<BookId>, Option<Regions>),
) -> Result<DerivedQuery, ApiError> {
    let markets = filters::markets(view, params)?;
    let scope = filters::scope(view, params, &markets)?;
    let after = values::after(params)?;
    if after.as_ref().is_some_and(|cursor| !DerivedQuery::is_cursor(cursor)) {
        return Err(AFTER.refuse(params.get(&AFTER).unwrap_or_default()));
    }
    Ok(DerivedQuery {
        filter: DerivedFilter { markets, bookmaker, regions, scope },
        what,
        format: params.parse(&ODDS_FORMAT, OddsFormat::parse)?.unwrap_or(OddsFormat::American),
        limit: values::limit(params)?,
        after,
        with_event: filters::includes_event(params)?,
    })
}

/// Whose prices are offered: a named bookmaker's wherever it is offered.
pub(super) fn books(view: &SportView<'_>, params: &Params<'_>) -> Result<(Option<BookId>, Option<Regions>), ApiError> {
    let regions = filters::regions(params)?;
    let bookmaker = params.parse(&BOOKMAKER, |key| view.bookmakers().find(key))?;
    Ok((bookmaker, regions.or(bookmaker.is_none().then_some(REGIONS_DEFAULT))))
}

/// Which prices are taken for fair, and by which method.
pub(super) fn fair(view: &SportView<'_>, params: &Params<'_>) -> Result<FairQuery, ApiError> {
    let method = params.parse(&METHOD, FairMethod::parse)?.unwrap_or_default();
    let from = params.parse(&FROM, |text| match text {
        CONSENSUS => Some(FairFrom::Consensus),
        key => view.bookmakers().find(key).map(FairFrom::Bookmaker),
    })?;
    Ok(FairQuery { method, from: from.unwrap_or_default() })
}
