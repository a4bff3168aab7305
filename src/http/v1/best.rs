//! Best Prices: `/v1/sports/{sport_key}/best`, the best price of each outcome, and the margin of all of them together.

use super::derived;
use super::filters::{
    BOOKMAKER, COMMENCE_FROM, COMMENCE_TO, COMPETITION, INCLUDE, MARKET, ODDS_FORMAT, REGION, REGIONS,
};
use crate::board::{BestOrder, Derived};
use crate::http::exchange::history::Stop;
use crate::http::exchange::query::{Parameter, Params};
use crate::http::exchange::reply::Content;
use crate::http::exchange::service::{Authorized, SportView};
use crate::http::exchange::values::{AFTER, AS_OF, EVENT_IDS, LIMIT};

const SORT: Parameter = Parameter::new("sort", "hold");

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
    SORT,
    LIMIT,
    AFTER,
    INCLUDE,
    AS_OF,
];

pub(crate) fn get(authorized: &Authorized<'_>, view: SportView<'_>) -> Result<Content, Stop> {
    let params = Params::read(authorized.request.query, PARAMETERS)?;
    derived::answer(authorized, view, &params, |view, params| {
        let order = params.parse(&SORT, |text| (text == "hold").then_some(BestOrder::Hold))?.unwrap_or_default();
        derived::query(view, params, Derived::Best(order), derived::books(view, params)?)
    })
}
