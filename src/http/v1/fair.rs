//! Fair Prices: `/v1/sports/{sport_key}/fair`, the probabilities that prices imply without the bookmaker's margin.

use super::derived::{self, FROM, METHOD};
use super::filters::{
    self, COMMENCE_FROM, COMMENCE_TO, COMPETITION, INCLUDE, MARKET, ODDS_FORMAT, REGION, REGIONS, REGIONS_DEFAULT,
};
use crate::board::{Derived, FairFrom};
use crate::http::exchange::history::Stop;
use crate::http::exchange::query::{Parameter, Params};
use crate::http::exchange::reply::Content;
use crate::http::exchange::service::{Authorized, SportView};
use crate::http::exchange::values::{AFTER, AS_OF, EVENT_IDS, LIMIT};

pub(crate) const PARAMETERS: &[Parameter] = &[
    METHOD,
    FROM,
    MARKET,
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
        let fair = derived::fair(view, params)?;
        let regions = filters::regions(params)?;
        // A named bookmaker is wanted wherever it is offered.
        let books = match fair.from {
            FairFrom::Consensus => (None, regions.or(Some(REGIONS_DEFAULT))),
            FairFrom::Bookmaker(book) => (Some(book), regions),
        };
        derived::query(view, params, Derived::Fair(fair), books)
    })
}
