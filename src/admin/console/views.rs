//! What the page reads: the bodies that clients are sent, from the same snapshots, and what only an operator sees.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::sparklines::{self, sparklines};
use super::strips::Strips;
use crate::admin::Context;
use crate::board::{Body, EventIds, EventScope, EventsQuery, Limit, OddsQuery, ScoresQuery, SportBoard};
use crate::http::percent::{self, Plus};
use crate::http::{books, sports};
use crate::metrics::History;
use crate::model::{BookId, EventId, Market, OddsFormat, Region, Regions, SportId, World};
use crate::store::{HistoryError, SportFold, SportPath};

/// A request for a view that names something that there is not.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct BadView(pub &'static str);

/// The parameters of a view.
struct Given<'q>(Option<&'q str>);

impl<'q> Given<'q> {
    fn get(&self, name: &str) -> Option<&'q str> {
        let mut pairs = self.0?.split('&').filter_map(|pair| pair.split_once('='));
        pairs.find(|(sent, _)| *sent == name).map(|(_, value)| value)
    }

    fn world(&self) -> Result<World, BadView> {
        self.get("world").and_then(World::parse).ok_or(BadView("world takes live or sandbox"))
    }

    fn market(&self) -> Result<Market, BadView> {
        self.get("market").and_then(Market::find).ok_or(BadView("market takes a market key"))
    }

    fn sport(&self, context: &Context) -> Result<SportId, BadView> {
        let sport = self.get("sport").and_then(|key| context.boards.catalogue().find(key));
        sport.ok_or(BadView("sport takes a sport key"))
    }

    fn format(&self) -> Result<OddsFormat, BadView> {
        let format = self.get("odds_format").and_then(OddsFormat::parse);
        format.ok_or(BadView("odds_format takes american, decimal or fractional"))
    }

    fn regions(&self) -> Result<Regions, BadView> {
        let regions = self.get("regions").and_then(|text| text.split(',').map(Region::parse).collect());
        regions.ok_or(BadView("regions takes regions such as us and uk, separated by commas"))
    }

    fn events(&self) -> Result<EventIds, BadView> {
        let bad = BadView("event_ids takes up to 100 event ids, separated by commas");
        let Some(text) = self.get("event_ids").and_then(|text| percent::decode(text, Plus::Space)) else {
            return Err(bad);
        };
        let ids: Vec<EventId> = text.split(',').take(EventIds::MAX + 1).filter_map(EventId::new).collect();
        if ids.len() > EventIds::MAX { Err(bad) } else { Ok(EventIds::new(ids)) }
    }
}

/// A view, by its path; `None` if there is none there.
pub(super) fn view(path: &str, query: Option<&str>, context: &Context, strips: &Strips) -> Option<ViewResult> {
    let given = Given(query);
    Some(match path {
        "/api/sports" => given.world().map(|world| plain(sports::document(&context.boards, world, now(context)))),
        "/api/books" => given.world().map(|world| Arc::new(books::render(context.boards.load(world).register()))),
        "/api/odds" => odds(&given, context),
        "/api/totals" => totals(&given, context),
        "/api/events" => events(&given, context),
        "/api/scores" => scores(&given, context),
        "/api/history" => Ok(history(context)),
        "/api/markets" => markets(&given, context),
        "/api/strips" => Ok(document(&strips.sent(&context.boards))),
        _ => return None,
    })
}

pub(super) type ViewResult = Result<Arc<Body>, BadView>;

fn now(context: &Context) -> crate::model::Timestamp {
    context.clock.now().timestamp()
}

fn plain(json: Vec<u8>) -> Arc<Body> {
    Arc::new(Body::new(json, None))
}

fn board<T>(
    given: &Given<'_>,
    context: &Context,
    read: impl FnOnce(&SportBoard, &str) -> Result<T, BadView>,
) -> Result<T, BadView> {
    let (world, sport) = (given.world()?, given.sport(context)?);
    let key = &context.boards.catalogue()[sport].key;
    read(context.boards.load(world).sport(sport), key)
}

/// What a client gets that asks the same.
fn odds(given: &Given<'_>, context: &Context) -> ViewResult {
    board(given, context, |board, key| {
        let query = OddsQuery {
            markets: given.market()?.into(),
            regions: Some(given.regions()?),
            format: given.format()?,
            limit: Limit::new(u64::from(Limit::MAX)).unwrap_or(Limit::DEFAULT),
            after: match given.get("after") {
                None => None,
                Some(text) => Some(crate::board::Cursor::parse(text).ok_or(BadView("after takes a cursor"))?),
            },
            ..OddsQuery::default()
        };
        Ok(board.odds(key, &query))
    })
}

/// How many events and bookmakers a view of the odds has in all, however few of them a page shows.
fn totals(given: &Given<'_>, context: &Context) -> ViewResult {
    board(given, context, |board, _| {
        let (market, published) = (given.market()?, board.published());
        let query = OddsQuery { markets: market.into(), regions: Some(given.regions()?), ..OddsQuery::default() };
        let books = published.books_of(query.bookmakers.as_deref(), query.regions);
        let is_asked = |book: BookId| books.as_ref().is_none_or(|set| set.contains(book));
        let (mut events, mut bookmakers) = (0_u64, BTreeSet::new());
        for node in published.index().iter() {
            let mut records = node.records_of(&query.markets, is_asked).map(|record| record.bookmaker).peekable();
            events += u64::from(records.peek().is_some());
            bookmakers.extend(records);
        }
        Ok(document(&serde_json::json!({ "events": events, "bookmakers": bookmakers.len() })))
    })
}

fn events(given: &Given<'_>, context: &Context) -> ViewResult {
    board(given, context, |board, key| {
        let query = EventsQuery {
            status: None,
            scope: EventScope { events: Some(given.events()?), ..EventScope::default() },
            limit: Limit::DEFAULT,
            after: None,
        };
        Ok(board.events(key, &query))
    })
}

fn scores(given: &Given<'_>, context: &Context) -> ViewResult {
    board(given, context, |board, key| {
        let scope = EventScope { events: Some(given.events()?), ..EventScope::default() };
        let query = ScoresQuery { status: None, scope, limit: Limit::DEFAULT, after: None };
        Ok(board.scores(key, &query))
    })
}

/// The lines of the last hour. Reads the log, so not on a thread that answers requests.
pub(super) fn sparklines_of(query: Option<&str>, context: &Context) -> ViewResult {
    let given = Given(query);
    let asked = sparklines::Asked { world: given.world()?, sport: given.sport(context)?, market: given.market()? };
    let (world, now) = (context.boards.load_full(asked.world), now(context));
    let path = context.history.path(asked.world, asked.sport, sparklines::begin(now));
    // Without history there are no lines; the page shows the prices all the same.
    let path = path.unwrap_or_else(|error| {
        if !matches!(error, HistoryError::Gone) {
            tracing::warn!(%error, "failed to read the last hour of the log");
        }
        SportPath { since: now, state: SportFold::default(), changes: Vec::new() }
    });
    Ok(document(&sparklines(world.sport(asked.sport).published().index(), &path, asked, now)))
}

/// The last hour of the public interface, in columns: a rate, latencies, and answers that failed or were refused, each
/// as of the end of a step.
fn history(context: &Context) -> Arc<Body> {
    let steps = context.server.as_ref().map(|server| server.traffic().history().steps()).unwrap_or_default();
    let millis = |us: Option<u64>| us.map(|us| figure(us) / 1000.0);
    document(&serde_json::json!({
        "step_s": History::STEP_S,
        "at_s": steps.iter().map(|step| step.ended_s).collect::<Vec<_>>(),
        "requests_per_s": steps.iter().map(|step| figure(step.requests) / figure(History::STEP_S)).collect::<Vec<_>>(),
        "p50_ms": steps.iter().map(|step| millis(step.p50_us)).collect::<Vec<_>>(),
        "p99_ms": steps.iter().map(|step| millis(step.p99_us)).collect::<Vec<_>>(),
        "failed": steps.iter().map(|step| step.errors).collect::<Vec<_>>(),
        "refused": steps.iter().map(|step| step.refused).collect::<Vec<_>>(),
    }))
}

#[expect(clippy::cast_precision_loss, reason = "for display, and far below what a double holds exactly")]
fn figure(number: u64) -> f64 {
    number as f64
}

/// The markets of a sport that have a price now.
fn markets(given: &Given<'_>, context: &Context) -> ViewResult {
    board(given, context, |board, _| {
        let markets: Vec<&str> =
            board.published().index().coverage().markets().iter().map(|market| market.key()).collect();
        Ok(document(&markets))
    })
}

fn document(value: &impl serde::Serialize) -> Arc<Body> {
    // These types have only keys that are texts, so writing them cannot fail.
    plain(serde_json::to_vec(value).unwrap_or_default())
}
