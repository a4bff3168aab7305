//! The shape of The Odds API, version 4: its clients work here by changing their base URL.
//!
//! Only names and shapes differ from `/v1`: keys, permissions, charges, boards and cached bodies are the same. Errors are
//! those of The Odds API: unknown parameters are ignored, an invalid value of a known one is 422 with a code of its own,
//! and an exhausted quota is 401.

pub(crate) mod events;
pub(crate) mod history;
pub(crate) mod odds;
pub(crate) mod sports;
mod values;

use super::exchange::error::{ApiError, Code};
use super::exchange::history::Stop;
use super::exchange::reply::{Content, Freshness};
use super::exchange::route::V4Route;
use super::exchange::service::{Authorized, SportView, WorldView};
use crate::board::v4::{ListQuery, Listed, Priced, PricedQuery};

/// The content of a route of this version.
pub(crate) fn get(authorized: &Authorized<'_>, route: &V4Route<'_>) -> Result<Content, Stop> {
    let Authorized { service, request, grant, now, .. } = *authorized;
    let (boards, query) = (&*service.boards, request.query);
    let view = |key: &str| {
        let catalogue = boards.catalogue();
        let is_known = catalogue.competition(key).is_some()
            || boards.load(grant.world()).register().competitions().get(key).is_some();
        let sport = catalogue.find_v4(key).filter(|(_, names)| is_known || names.can_be(key));
        authorized.view(sport.map(|(sport, _)| sport), key)
    };
    let content = match route {
        V4Route::Sports => {
            authorized.check_open()?;
            sports::get(boards, grant.world(), query)
        }
        V4Route::Upcoming => {
            authorized.check_open()?;
            odds::get_upcoming(&WorldView::new(boards, grant), query)
        }
        V4Route::PastOdds { sport, .. } => return history::get_odds(authorized, view(sport)?, sport),
        V4Route::PastEvents { sport } => return history::get_events(authorized, view(sport)?, sport),
        V4Route::PastEventOdds { sport, id } => return history::get_event(authorized, view(sport)?, sport, id),
        V4Route::Odds { sport } => odds::get(&view(sport)?, sport, query),
        V4Route::Scores { sport } => events::get_scores(&view(sport)?, sport, now, query),
        V4Route::Events { sport } => events::get(&view(sport)?, sport, query),
        V4Route::Participants { sport } => Ok(events::get_participants(&view(sport)?, sport)),
        V4Route::EventOdds { sport, id } => odds::get_event(&view(sport)?, sport, id, query),
        V4Route::EventMarkets { sport, id } => odds::get_markets(&view(sport)?, sport, id, query),
    };
    Ok(content?)
}

fn event_not_found() -> ApiError {
    ApiError::new(Code::EventNotFound, "There is no such event under this key, or it is over or was removed.")
}

/// Prices under a key, as they are published.
fn priced(view: &SportView<'_>, key: &str, what: Priced) -> Result<Content, ApiError> {
    let query = PricedQuery { key: key.into(), what };
    let seen = view.register().competitions();
    let body = view.board().v4_priced(view.sport, seen, &query).ok_or_else(event_not_found)?;
    Ok(Content::kept(body, Freshness::UntilRefresh))
}

/// Events and scores under a key, as they come.
fn listed(view: &SportView<'_>, key: &str, what: Listed) -> Content {
    let query = ListQuery { key: key.into(), what };
    let body = view.board().v4_listed(view.sport, view.register().competitions(), &query);
    Content::kept(body, Freshness::Revalidated)
}
