//! Derived prices, for the operator: as the public API has them, with the event in each row.

use super::super::context::Context;
use super::super::protocol::{Answer, DerivedKind, DerivedOrder, Failure, FailureCode};
use crate::board::{
    BestOrder, Derived, DerivedFilter, DerivedQuery, EdgeKind, Encoding, EventScope, FairFrom, FairQuery, Limit,
};
use crate::model::derived::{FairMethod, Millionths};
use crate::model::{
    BookId, Bookmakers, Market, MarketFamilies, MarketFilter, MarketKey, OddsFormat, Region, Regions, SportKind, World,
};

/// Computes on a thread of its own.
pub(super) async fn derived(order: DerivedOrder, context: &Context) -> Result<Answer, Failure> {
    let (context, unavailable) = (context.clone(), |error| Failure::new(FailureCode::Unavailable, format!("{error}")));
    let rows = tokio::task::spawn_blocking(move || rows(&order, &context)).await.map_err(unavailable)?;
    Ok(Answer::Derived(rows?))
}

fn rows(order: &DerivedOrder, context: &Context) -> Result<Vec<serde_json::Value>, Failure> {
    let catalogue = context.boards.catalogue();
    let sport = catalogue.find_any(&order.sport).map_err(|unknown| Failure::bad_request(unknown.to_string()))?;
    let world = context.boards.load_full(World::from(order.world));
    let (families, books) = (catalogue.markets(), world.register().bookmakers());
    let query = DerivedQuery {
        filter: DerivedFilter {
            markets: markets(order.market.as_deref(), families, catalogue[sport].kind)?,
            bookmaker: order.bookmaker.as_deref().map(|key| bookmaker(key, books)).transpose()?,
            regions: order.regions.as_deref().map(regions).transpose()?,
            scope: EventScope::default(),
        },
        what: what(&order.what, books)?,
        format: OddsFormat::parse(&order.odds_format)
            .ok_or_else(|| Failure::bad_request("the format of odds is american, decimal or fractional"))?,
        limit: Limit::new(order.limit)
            .ok_or_else(|| Failure::bad_request("limit takes a whole number from 1 to 500"))?,
        after: None,
        with_event: true,
    };
    let body = world.sport(sport).published().derived(&catalogue[sport].key, families, &query);
    let unreadable = |error: serde_json::Error| Failure::new(FailureCode::Unavailable, error.to_string());
    serde_json::from_slice(body.bytes(Encoding::Identity)).map_err(unreadable)
}

fn what(kind: &DerivedKind, books: &Bookmakers) -> Result<Derived, Failure> {
    Ok(match kind {
        DerivedKind::Best { by_hold } => Derived::Best(if *by_hold { BestOrder::Hold } else { BestOrder::Schedule }),
        DerivedKind::Arbitrage { min } => Derived::Edges { kind: EdgeKind::Arbitrage, min: fraction(min)? },
        DerivedKind::Ev { from, method, min } => {
            let fair = fair(method, from.as_deref(), books)?;
            Derived::Edges { kind: EdgeKind::Value(fair), min: fraction(min)? }
        }
    })
}

pub(in crate::admin) fn fraction(text: &str) -> Result<Millionths, Failure> {
    let range = Millionths::default()..=Millionths::ONE;
    let min = Millionths::parse(text).filter(|min| range.contains(min));
    min.ok_or_else(|| Failure::bad_request("min takes a fraction from 0 to 1, such as 0.02"))
}

/// Whose prices are taken for fair, and how their margin is taken out.
pub(in crate::admin) fn fair(method: &str, from: Option<&str>, books: &Bookmakers) -> Result<FairQuery, Failure> {
    let method = FairMethod::parse(method)
        .ok_or_else(|| Failure::bad_request("the method is power, shin, multiplicative or additive"))?;
    let from = match from {
        None | Some("consensus") => FairFrom::Consensus,
        Some(key) => FairFrom::Bookmaker(bookmaker(key, books)?),
    };
    Ok(FairQuery { method, from })
}

pub(in crate::admin) fn bookmaker(key: &str, books: &Bookmakers) -> Result<BookId, Failure> {
    books.find(key).ok_or_else(|| Failure::bad_request(format!("there is no bookmaker {key} in this world")))
}

fn regions(list: &str) -> Result<Regions, Failure> {
    let regions: Option<Regions> = list.split(',').map(|region| Region::parse(region.trim())).collect();
    regions.ok_or_else(|| Failure::bad_request("the regions are us, us2, us_dfs, us_ex, uk, eu, fr, se and au"))
}

/// A key that reads and has no prices matches nothing.
pub(in crate::admin) fn markets(
    list: Option<&str>,
    families: &MarketFamilies,
    kind: SportKind,
) -> Result<MarketFilter, Failure> {
    let keys = match list {
        None => return Ok(MarketFilter::Featured),
        Some("all") => return Ok(MarketFilter::All),
        Some(list) => list.split(',').map(str::trim),
    };
    let mut markets: Vec<Market> = Vec::new();
    for key in keys {
        match families.read(key, kind) {
            Some(MarketKey::Known(market)) => markets.push(market),
            Some(MarketKey::New(_)) => {}
            None => {
                return Err(Failure::bad_request(format!("there is no market {key}: `oddsbox catalogue` lists them")));
            }
        }
    }
    Ok(MarketFilter::only(markets))
}
