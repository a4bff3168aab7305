//! Get Odds: `/v1/sports/{sport_key}/odds`, as a bare array of records or grouped by bout.

use std::sync::Arc;

use http::HeaderValue;

use super::filters::{
    self, BOOKMAKER, COMMENCE_FROM, COMMENCE_TO, COMPETITION, INCLUDE, MARKET, ODDS_FORMAT, REGION, REGIONS,
    REGIONS_DEFAULT,
};
use crate::attachment::Attachment;
use crate::board::OddsQuery;
use crate::http::exchange::error::ApiError;
use crate::http::exchange::history::{Shown, Stop};
use crate::http::exchange::query::{self, Parameter, Params};
use crate::http::exchange::reply::{Content, Freshness};
use crate::http::exchange::service::{Authorized, SportView};
use crate::http::exchange::values::{self, AFTER, AS_OF, EVENT_IDS, LIMIT};
use crate::model::{Market, MarketFilter, OddsFormat, SportKind};

const GROUP: Parameter = Parameter::new("group", "bout, for fight sports only");

pub(crate) const PARAMETERS: &[Parameter] = &[
    MARKET,
    BOOKMAKER,
    REGIONS,
    REGION,
    ODDS_FORMAT,
    EVENT_IDS,
    COMPETITION,
    COMMENCE_FROM,
    COMMENCE_TO,
    LIMIT,
    AFTER,
    GROUP,
    INCLUDE,
    AS_OF,
];

pub(crate) fn get(authorized: &Authorized<'_>, view: SportView<'_>) -> Result<Content, Stop> {
    let request = authorized.request;
    let cache = view.board().published().target_cache();
    if let Some(cached) = cache.get(request.target) {
        let link = cached.attachment.get::<HeaderValue>().cloned();
        let position = Some(view.position());
        return Ok(Content { link, position, ..Content::kept(Arc::clone(&cached.body), Freshness::UntilRefresh) });
    }
    let params = Params::read(request.query, PARAMETERS)?;
    if params.get(&AS_OF).is_some() {
        return get_as_of(authorized, view, &params);
    }
    let query = read(&view, &params)?;
    let body = view.board().odds(&view.sport.key, &query);
    let link = body.next().and_then(|cursor| values::next_link(request, cursor));
    if !query::holds_key(request.query) {
        let bytes = link.as_ref().map_or(0, HeaderValue::len);
        let attachment = link.clone().map_or_else(Attachment::default, Attachment::new);
        cache.insert(request.target, &body, (attachment, bytes));
    }
    let position = Some(view.position());
    Ok(Content { link, position, ..Content::kept(body, Freshness::UntilRefresh) })
}

fn get_as_of(authorized: &Authorized<'_>, view: SportView<'_>, params: &Params<'_>) -> Result<Content, Stop> {
    // A mistake is reported before anything is read, but for a bookmaker that may be one of then.
    match read(&view, params) {
        Err(error) if error.param.as_deref() != Some(BOOKMAKER.name) => return Err(error.into()),
        _ => {}
    }
    let view = filters::at_time(authorized, view, params, Shown::Prices)?;
    let body = view.board().odds(&view.sport.key, &read(&view, params)?);
    Ok(filters::page(&view, authorized.request, body, Freshness::UntilRefresh))
}

fn read(view: &SportView<'_>, params: &Params<'_>) -> Result<OddsQuery, ApiError> {
    let kind = view.sport.kind;
    let by_bout = params.parse(&GROUP, |group| (group == "bout" && kind == SportKind::Fight).then_some(()))?.is_some();
    let markets = filters::markets(view, params)?;
    if by_bout && markets != MarketFilter::Featured && !markets.is_only(Market::MONEYLINE) {
        return Err(MARKET.fault("must be moneyline, or absent, with `group=bout`"));
    }
    let with_event = filters::includes_event(params)?;
    if by_bout && with_event {
        return Err(INCLUDE.fault("cannot be sent together with `group=bout`, which has the event already"));
    }
    let (scope, regions) = (filters::scope(view, params, &markets)?, filters::regions(params)?);
    let format = params.parse(&ODDS_FORMAT, OddsFormat::parse)?.unwrap_or(OddsFormat::American);
    let (limit, after) = (values::limit(params)?, values::after(params)?);
    // The last one, so that an unknown bookmaker hides no other mistake.
    let bookmaker = params.parse(&BOOKMAKER, |key| view.bookmakers().find(key))?;
    Ok(OddsQuery {
        scope,
        // Bouts carry the moneyline only: named or not, it is the same answer.
        markets: if by_bout { MarketFilter::Featured } else { markets },
        // A named bookmaker is wanted wherever it is offered: the default region would hide it.
        regions: regions.or(bookmaker.is_none().then_some(REGIONS_DEFAULT)),
        bookmakers: bookmaker.map(|book| [book].into()),
        format,
        limit,
        after,
        by_bout,
        with_event,
    })
}
