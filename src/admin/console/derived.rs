//! Derived prices as the page shows them: the bodies that clients are sent.

use super::given::Given;
use super::views::{ViewContext, ViewResult};
use crate::admin::Failure;
use crate::admin::execute::derived::{bookmaker, fair, fraction, markets};
use crate::board::{BestOrder, Derived, DerivedFilter, DerivedQuery, EdgeKind, Limit};
use crate::model::Bookmakers;

/// Which derived prices a view has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DerivedView {
    Best,
    Fair,
    Edges,
}

/// Computes, unless another request had the same computed: not on a thread that answers requests.
pub(super) fn derived(what: DerivedView, given: Given<'_>, view: &ViewContext) -> ViewResult {
    let catalogue = view.context.boards.catalogue();
    let shown = view.shown(given)?;
    let (sport, published) = (&catalogue[shown.sport], shown.board.published());
    let books = published.register().bookmakers();
    let query = DerivedQuery {
        filter: DerivedFilter {
            markets: markets(given.get("market"), catalogue.markets(), sport.kind)?,
            bookmaker: given.text("bookmaker").map(|key| bookmaker(&key, books)).transpose()?,
            regions: given.regions_or_all()?,
            scope: given.scope()?,
        },
        what: what_of(what, given, books)?,
        format: given.format()?,
        limit: Limit::new(u64::from(Limit::MAX)).unwrap_or(Limit::DEFAULT),
        after: given.after()?.filter(DerivedQuery::is_cursor),
        with_event: what == DerivedView::Edges,
    };
    Ok(published.derived(&sport.key, catalogue.markets(), &query))
}

fn what_of(what: DerivedView, given: Given<'_>, books: &Bookmakers) -> Result<Derived, Failure> {
    let reference = || fair(given.get("method").unwrap_or("power"), given.text("from").as_deref(), books);
    let min = || fraction(given.get("min").unwrap_or("0.01"));
    Ok(match (what, given.get("kind")) {
        (DerivedView::Best, _) => Derived::Best(BestOrder::Schedule),
        (DerivedView::Fair, _) => Derived::Fair(reference()?),
        (DerivedView::Edges, Some("ev")) => Derived::Edges { kind: EdgeKind::Value(reference()?), min: min()? },
        (DerivedView::Edges, Some("arbitrage")) => Derived::Edges { kind: EdgeKind::Arbitrage, min: min()? },
        (DerivedView::Edges, _) => return Err(Failure::bad_request("kind takes ev or arbitrage")),
    })
}
