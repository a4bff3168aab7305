//! What the page reads: the bodies that clients are sent, from the same snapshots, and what only an operator sees.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::derived::{DerivedView, derived};
use super::given::Given;
use super::history;
use super::past::PastBoards;
use super::sparklines::{self, sparklines};
use super::strips::Strips;
use crate::admin::{Context, Failure};
use crate::board::{Body, EventScope, EventsQuery, Limit, OddsQuery, ScoresQuery, SportBoard};
use crate::http::{books, sports};
use crate::metrics::History;
use crate::model::{BookId, SportId};
use crate::store::{HistoryError, SportFold, SportPath};

pub(super) type ViewResult = Result<Arc<Body>, Failure>;

/// What views are read from.
#[derive(Debug)]
pub(super) struct ViewContext {
    pub context: Context,
    pub strips: Arc<Strips>,
    pub past: PastBoards,
}

/// A sport as a view shows it.
#[derive(Debug)]
pub(super) struct ShownSport {
    pub sport: SportId,
    pub board: SportBoard,
}

impl ViewContext {
    /// A sport as it is, or as it was: then this reads the log.
    pub(super) fn shown(&self, given: Given<'_>) -> Result<ShownSport, Failure> {
        let (world, sport) = (given.world()?, given.sport(&self.context)?);
        let board = match given.as_of()? {
            None => self.context.boards.load(world).sport(sport).clone(),
            Some(time) => self.past.get(&self.context, (world, sport), time)?.board,
        };
        Ok(ShownSport { sport, board })
    }

    fn key(&self, sport: SportId) -> &str {
        &self.context.boards.catalogue()[sport].key
    }
}

/// Whether a view reads the log or computes, so that it must not run on a thread that answers requests.
pub(super) fn is_slow(path: &str, query: Option<&str>) -> bool {
    let computed = ["/api/best", "/api/fair", "/api/edges", "/api/sparklines", "/api/lines", "/api/moments"];
    computed.contains(&path) || Given(query).get("as_of").is_some()
}

/// A view, by its path; `None` if there is none there.
pub(super) fn view(path: &str, query: Option<&str>, view: &ViewContext) -> Option<ViewResult> {
    let (given, context) = (Given(query), &view.context);
    Some(match path {
        "/api/sports" => given.world().map(|world| plain(sports::document(&context.boards, world, now(context)))),
        "/api/books" => given.world().map(|world| Arc::new(books::render(context.boards.load(world).register()))),
        "/api/odds" => odds(given, view),
        "/api/totals" => totals(given, view),
        "/api/events" => events(given, view),
        "/api/scores" => scores(given, view),
        "/api/history" => Ok(traffic(context)),
        "/api/markets" => markets(given, view),
        "/api/strips" => Ok(document(&view.strips.sent(&context.boards))),
        "/api/sparklines" => sparklines_of(given, context),
        "/api/best" => derived(DerivedView::Best, given, view),
        "/api/fair" => derived(DerivedView::Fair, given, view),
        "/api/edges" => derived(DerivedView::Edges, given, view),
        "/api/lines" => history::lines(given, view),
        "/api/moments" => history::moments(given, view),
        _ => return None,
    })
}

fn now(context: &Context) -> crate::model::Timestamp {
    context.clock.now().timestamp()
}

fn plain(json: Vec<u8>) -> Arc<Body> {
    Arc::new(Body::new(json, None))
}

/// What a client gets that asks the same.
fn odds(given: Given<'_>, view: &ViewContext) -> ViewResult {
    let shown = view.shown(given)?;
    let query = OddsQuery {
        markets: given.market()?.into(),
        regions: Some(given.regions()?),
        scope: given.scope()?,
        format: given.format()?,
        limit: Limit::new(u64::from(Limit::MAX)).unwrap_or(Limit::DEFAULT),
        after: given.after()?,
        ..OddsQuery::default()
    };
    Ok(shown.board.odds(view.key(shown.sport), &query))
}

/// How many events and bookmakers a view of the odds has in all, however few of them a page shows.
fn totals(given: Given<'_>, view: &ViewContext) -> ViewResult {
    let shown = view.shown(given)?;
    let published = shown.board.published();
    let query = OddsQuery { markets: given.market()?.into(), regions: Some(given.regions()?), ..OddsQuery::default() };
    let books = published.books_of(query.bookmakers.as_deref(), query.regions);
    let is_asked = |book: BookId| books.as_ref().is_none_or(|set| set.contains(book));
    let (mut events, mut bookmakers) = (0_u64, BTreeSet::new());
    for node in published.index().iter() {
        let mut records = node.records_of(&query.markets, is_asked).map(|record| record.bookmaker).peekable();
        events += u64::from(records.peek().is_some());
        bookmakers.extend(records);
    }
    Ok(document(&serde_json::json!({ "events": events, "bookmakers": bookmakers.len() })))
}

fn events(given: Given<'_>, view: &ViewContext) -> ViewResult {
    let shown = view.shown(given)?;
    let scope = EventScope { events: Some(given.events()?), ..EventScope::default() };
    let query = EventsQuery { status: None, scope, limit: Limit::DEFAULT, after: None };
    Ok(shown.board.events(view.key(shown.sport), &query))
}

fn scores(given: Given<'_>, view: &ViewContext) -> ViewResult {
    let shown = view.shown(given)?;
    let scope = EventScope { events: Some(given.events()?), ..EventScope::default() };
    let query = ScoresQuery { status: None, scope, limit: Limit::DEFAULT, after: None };
    Ok(shown.board.scores(view.key(shown.sport), &query))
}

/// The lines of the last hour.
fn sparklines_of(given: Given<'_>, context: &Context) -> ViewResult {
    let (world, sport) = (given.world()?, given.sport(context)?);
    let asked = sparklines::Asked { world, sport, market: given.market()?, format: given.format()? };
    let (world, now) = (context.boards.load_full(asked.world), now(context));
    let path = context.history.path(asked.world, asked.sport, sparklines::begin(now));
    // Without history there are no lines; the page shows the prices all the same.
    let path = path.unwrap_or_else(|error| {
        if !matches!(error, HistoryError::Gone) {
            tracing::warn!(%error, "failed to read the last hour of the log");
        }
        SportPath { since: now, state: SportFold::default(), changes: Vec::new() }
    });
    Ok(document(&sparklines(world.sport(asked.sport).published(), &path, asked, now)))
}

/// The last hour of the public interface, in columns: a rate, latencies, and answers that failed or were refused, each
/// as of the end of a step.
fn traffic(context: &Context) -> Arc<Body> {
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

/// The markets of a sport that have a price.
fn markets(given: Given<'_>, view: &ViewContext) -> ViewResult {
    let shown = view.shown(given)?;
    let coverage = shown.board.published().index().coverage();
    let markets: Vec<&str> = coverage.markets().iter().map(|market| market.key()).collect();
    Ok(document(&markets))
}

pub(super) fn document(value: &impl serde::Serialize) -> Arc<Body> {
    // These types have only keys that are texts, so writing them cannot fail.
    plain(serde_json::to_vec(value).unwrap_or_default())
}
