//! List Markets: `/v1/markets`, the markets that have prices now. The list is the same for every key of a world, whatever
//! the key is restricted to.

use std::collections::BTreeMap;

use crate::board::Boards;
use crate::board::render::json;
use crate::http::exchange::error::ApiError;
use crate::http::exchange::query::Params;
use crate::http::exchange::reply::Content;
use crate::model::{Market, World};

/// What a market takes, about.
const MARKET_BYTES: usize = 96;

pub(crate) fn get(boards: &Boards, world: World, query: Option<&str>) -> Result<Content, ApiError> {
    Params::read(query, &[])?;
    let (board, catalogue) = (boards.load(world), boards.catalogue());
    let mut sports_by_market: BTreeMap<Market, Vec<&str>> = BTreeMap::new();
    for (id, sport) in catalogue.sports() {
        for market in board.sport(id).published().index().coverage().markets() {
            sports_by_market.entry(*market).or_default().push(&sport.key);
        }
    }
    let mut markets: Vec<(Market, Vec<&str>)> = sports_by_market.into_iter().collect();
    markets.sort_unstable_by(|(one, _), (other, _)| one.cmp_in_lists(*other));
    let mut out = Vec::with_capacity(MARKET_BYTES * markets.len() + 2);
    json::array(markets, &mut out, |(market, sports), out| {
        out.extend_from_slice(b"{\"key\":");
        json::string(market.key(), out);
        out.extend_from_slice(b",\"shape\":");
        let traits = catalogue.markets().traits(market.key());
        json::optional_string(traits.map(|traits| traits.shape.key()), out);
        out.extend_from_slice(b",\"sports\":");
        json::array(sports, out, json::string);
        out.push(b'}');
    });
    Ok(Content::once(out))
}
