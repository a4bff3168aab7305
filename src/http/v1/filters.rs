//! What the endpoints of a sport have in common: as of when, which events, and which markets.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::board::{Body, CompetitionKeys, EventScope, Register};
use crate::http::exchange::error::ApiError;
use crate::http::exchange::history::{Shown, Stop};
use crate::http::exchange::query::{Parameter, Params};
use crate::http::exchange::reply::{Content, Freshness};
use crate::http::exchange::request_headers::RequestParts;
use crate::http::exchange::service::{Authorized, SportView};
use crate::http::exchange::values::{self, EVENT_IDS, Round};
use crate::keys::UNITS_MAX;
use crate::model::market::KeyParts;
use crate::model::{Catalogue, Market, MarketFilter, MarketKey, Region, Regions, SportKind};
use crate::nearest::nearest;

pub(crate) const COMPETITION: Parameter = Parameter::list(
    "competition",
    "keys of competitions, as /v1/sports/{sport_key}/competitions lists them, separated by commas",
);
pub(super) const COMMENCE_FROM: Parameter = Parameter::new("commence_from", TIME);
pub(super) const COMMENCE_TO: Parameter = Parameter::new("commence_to", TIME);
pub(super) const TIME: &str = "a time such as 2026-11-14T23:39:00Z (the + of an offset is written %2B)";

pub(crate) const MARKET: Parameter = Parameter::list(
    "market",
    "up to 20 market keys such as moneyline, spread, total_points, alternate_spread_q1 or player_points, separated by \
            commas, or all; /v1/markets lists those that have prices",
);
pub(crate) const MARKETS_MAX: usize = 20;

/// The most records, points or rows of an answer about history.
pub(super) const ROWS_MAX: usize = 20_000;
const _: () = assert!(ROWS_MAX as u64 / 500 <= UNITS_MAX, "one lease pays for it");
pub(crate) const EVERY_MARKET: &str = "all";

pub(super) const BOOKMAKER: Parameter = Parameter::new("bookmaker", "the key of a bookmaker that /v1/books lists");
pub(crate) const REGIONS: Parameter = Parameter::list("regions", values::REGIONS_TAKE);
pub(crate) const REGION: Parameter = Parameter::new("region", values::REGIONS_TAKE);
pub(crate) const ODDS_FORMAT: Parameter = Parameter::new("odds_format", "american, decimal or fractional");
pub(crate) const INCLUDE: Parameter = Parameter::list("include", "event");

/// The region of a request that names none.
pub(crate) const REGIONS_DEFAULT: Regions = Regions::only(Region::Us);

/// The sport as of the time that a request names, or now.
pub(super) fn at_time<'s>(
    authorized: &Authorized<'_>,
    view: SportView<'s>,
    params: &Params<'_>,
    shown: Shown,
) -> Result<SportView<'s>, Stop> {
    match values::as_of(params, authorized.now)? {
        Some(time) => authorized.as_of(view, shown, time),
        None => Ok(view),
    }
}

/// A page of a sport, which can be cached for as long as `freshness` says unless it is as of a time.
pub(super) fn page(view: &SportView<'_>, request: &RequestParts<'_>, body: Arc<Body>, freshness: Freshness) -> Content {
    let Some(as_of) = view.as_of() else { return Content::kept(body, freshness) };
    let freshness = Freshness::of_past(as_of.permanence);
    let link = values::links_as_of(request, body.next(), as_of);
    Content { link, as_of: Some(as_of.at), ..Content::kept(body, freshness) }
}

/// Whether each record or row has the event's names, competition and start.
pub(crate) fn includes_event(params: &Params<'_>) -> Result<bool, ApiError> {
    Ok(params.parse(&INCLUDE, |text| (text == "event").then_some(()))?.is_some())
}

/// Which events a request is about. Those with a field are left out of sports whose events have two sides by the
/// specification, unless the request names them.
pub(super) fn scope(view: &SportView<'_>, params: &Params<'_>, markets: &MarketFilter) -> Result<EventScope, ApiError> {
    let events = values::event_ids(params, &EVENT_IDS)?;
    let competitions = competitions(view, params)?;
    let names_fields = events.is_some() || competitions.is_some() || markets.names(Market::OUTRIGHT);
    Ok(EventScope {
        sides_only: view.sport.hides_fields && !names_fields,
        events,
        competitions,
        commence_from: params.parse(&COMMENCE_FROM, |text| values::time(text, Round::Up))?,
        commence_to: params.parse(&COMMENCE_TO, |text| values::time(text, Round::Down))?,
    })
}

/// The bookmakers that a request is about, by key. A named one is wanted wherever it is offered.
pub(super) fn book_keys(view: &SportView<'_>, params: &Params<'_>) -> Result<BTreeSet<Box<str>>, ApiError> {
    let regions = regions(params)?;
    let offered_in = |regions: Regions| {
        let books = view.bookmakers().iter().filter(|(_, book)| book.regions.intersects(regions));
        books.map(|(_, book)| book.key.clone()).collect::<BTreeSet<_>>()
    };
    Ok(match (params.get(&BOOKMAKER), regions) {
        (None, regions) => offered_in(regions.unwrap_or(REGIONS_DEFAULT)),
        (Some(key), None) => [key.into()].into(),
        (Some(key), Some(regions)) if offered_in(regions).contains(key) => [key.into()].into(),
        (Some(_), Some(_)) => BTreeSet::new(),
    })
}

/// A named bookmaker that the world does not know: it may have had prices before.
pub(super) fn unknown_book(view: &SportView<'_>, params: &Params<'_>) -> Option<Box<str>> {
    params.get(&BOOKMAKER).filter(|key| view.bookmakers().find(key).is_none()).map(Box::from)
}

/// A competition that neither the catalogue nor this world has ever had is an error, so that a typo does not look like an
/// empty list.
fn competitions(view: &SportView<'_>, params: &Params<'_>) -> Result<Option<CompetitionKeys>, ApiError> {
    let Some(list) = params.get(&COMPETITION) else { return Ok(None) };
    let seen = view.register().competitions();
    let mut keys: Vec<Box<str>> = Vec::new();
    for key in list.split(',') {
        if keys.len() == CompetitionKeys::MAX {
            return Err(COMPETITION.fault("has more than 100 keys"));
        }
        if view.catalogue.competition(key).is_none() && seen.get(key).is_none() {
            let listed = view.catalogue.competitions().map(|listed| &*listed.key);
            let known: Vec<&str> = listed.chain(seen.iter().map(|(key, _)| &**key)).collect();
            return Err(unknown(&COMPETITION, key, nearest(key, known.into_iter())));
        }
        keys.push(key.into());
    }
    Ok(Some(CompetitionKeys::new(keys)))
}

/// The markets of a request; the featured ones if it names none. A key that reads and has no prices matches nothing.
pub(super) fn markets(view: &SportView<'_>, params: &Params<'_>) -> Result<MarketFilter, ApiError> {
    let Some(list) = params.get(&MARKET) else { return Ok(MarketFilter::Featured) };
    if list == EVERY_MARKET {
        return Ok(MarketFilter::All);
    }
    let mut markets = Vec::new();
    for (at, key) in list.split(',').enumerate() {
        if at == MARKETS_MAX {
            return Err(MARKET.fault("has more than 20 keys: use all"));
        }
        if let WantedMarket::Known(market) = market((view.catalogue, view.register()), key, view.sport.kind)? {
            markets.push(market);
        }
    }
    Ok(MarketFilter::only(markets))
}

/// A market that a request names.
pub(crate) enum WantedMarket {
    Known(Market),
    /// No price of it was ever accepted. By its own key.
    ToCome(Box<str>),
}

/// The market of a key in sports of a kind.
pub(crate) fn market(
    (catalogue, register): (&Catalogue, &Register),
    key: &str,
    kind: SportKind,
) -> Result<WantedMarket, ApiError> {
    let families = catalogue.markets();
    let is_known = |read: &MarketKey| match read {
        MarketKey::Known(market) if register.markets().contains(market) => true,
        read => {
            let is_prop = KeyParts::split(read.as_str()).is_some_and(|parts| parts.is_prop);
            !is_prop || families.traits(read.as_str()).is_some()
        }
    };
    match families.read(key, kind).filter(is_known) {
        Some(MarketKey::Known(market)) => Ok(WantedMarket::Known(market)),
        Some(MarketKey::New(key)) => Ok(WantedMarket::ToCome(key)),
        None => {
            let seen = register.markets().iter().map(|market| market.key());
            Err(unknown(&MARKET, key, families.nearest(key, seen).as_deref()))
        }
    }
}

/// Both spellings are read, so that a mistake in either is reported; `regions` wins.
pub(crate) fn regions(params: &Params<'_>) -> Result<Option<Regions>, ApiError> {
    let parse = |text: &str| text.split(',').map(Region::parse).collect::<Option<Regions>>();
    let (plural, singular) = (params.parse(&REGIONS, parse)?, params.parse(&REGION, parse)?);
    Ok(plural.or(singular))
}

fn unknown(parameter: &'static Parameter, value: &str, nearest: Option<&str>) -> ApiError {
    match nearest {
        Some(nearest) => parameter.fault(&format!("has the unknown key {value:?}; the nearest is {nearest}")),
        None => parameter.refuse(value),
    }
}
