//! Edges: `/v1/sports/{sport_key}/edges`, prices above what is fair, or best prices that together leave a profit.

use super::derived::{self, FROM, METHOD};
use super::filters::{
    BOOKMAKER, COMMENCE_FROM, COMMENCE_TO, COMPETITION, INCLUDE, MARKET, ODDS_FORMAT, REGION, REGIONS,
};
use crate::board::{Derived, EdgeKind};
use crate::http::exchange::error::ApiError;
use crate::http::exchange::history::Stop;
use crate::http::exchange::query::{Parameter, Params};
use crate::http::exchange::reply::Content;
use crate::http::exchange::service::{Authorized, SportView};
use crate::http::exchange::values::{AFTER, AS_OF, EVENT_IDS, LIMIT};
use crate::model::derived::Millionths;

const KIND: Parameter = Parameter::new("kind", "ev or arbitrage");
const MIN: Parameter = Parameter::new("min", "a fraction from 0 to 1 with at most 6 decimals, such as 0.02");

/// One per cent.
const MIN_DEFAULT: Millionths = Millionths::from_count(10_000);

pub(crate) const PARAMETERS: &[Parameter] = &[
    KIND,
    MIN,
    FROM,
    METHOD,
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
    INCLUDE,
    AS_OF,
];

pub(crate) fn get(authorized: &Authorized<'_>, view: SportView<'_>) -> Result<Content, Stop> {
    let params = Params::read(authorized.request.query, PARAMETERS)?;
    derived::answer(authorized, view, &params, |view, params| {
        let kind = kind(view, params)?;
        let min = params.parse(&MIN, min)?.unwrap_or(MIN_DEFAULT);
        derived::query(view, params, Derived::Edges { kind, min }, derived::books(view, params)?)
    })
}

fn kind(view: &SportView<'_>, params: &Params<'_>) -> Result<EdgeKind, ApiError> {
    match params.get(&KIND) {
        Some("ev") => Ok(EdgeKind::Value(derived::fair(view, params)?)),
        Some("arbitrage") => {
            let unwanted = [&FROM, &METHOD].into_iter().find(|parameter| params.get(parameter).is_some());
            unwanted.map_or(Ok(EdgeKind::Arbitrage), |parameter| Err(parameter.fault("is for `kind=ev` only")))
        }
        Some(other) => Err(KIND.refuse(other)),
        None => Err(ApiError::invalid_parameter(KIND.name, format!("Send `kind`: {}.", KIND.takes))),
    }
}

fn min(text: &str) -> Option<Millionths> {
    Millionths::parse(text).filter(|min| (Millionths::default()..=Millionths::ONE).contains(min))
}
