//! The endpoints of `/v1`, one file each: parameters, content, JSON.

pub(crate) mod archive;
pub(crate) mod best;
pub(crate) mod books;
pub(crate) mod changes;
pub(crate) mod closing;
mod competitions;
mod derived;
pub(crate) mod edges;
pub(crate) mod events;
pub(crate) mod fair;
pub(crate) mod filters;
pub(crate) mod lines;
mod markets;
pub(crate) mod odds;
pub(crate) mod scores;
pub(crate) mod sports;
mod status;
mod usage;

use super::exchange::error::ApiError;
use super::exchange::history::Stop;
use super::exchange::reply::Content;
use super::exchange::route::Route;
use super::exchange::service::Authorized;
use super::stream;

/// The content of a route of this version.
pub(crate) fn get(authorized: &Authorized<'_>, route: &Route<'_>) -> Result<Content, Stop> {
    let Authorized { service, request, grant, now, .. } = *authorized;
    let (boards, query) = (&*service.boards, request.query);
    let view = |sport: &str| authorized.view(boards.catalogue().find(sport), sport);
    let content = match route {
        Route::Odds { sport } => return odds::get(authorized, view(sport)?),
        Route::Scores { sport } => return scores::get(authorized, view(sport)?),
        Route::Events { sport } => return events::get(authorized, view(sport)?),
        Route::Best { sport } => return best::get(authorized, view(sport)?),
        Route::Fair { sport } => return fair::get(authorized, view(sport)?),
        Route::Edges { sport } => return edges::get(authorized, view(sport)?),
        Route::Closing { sport } => return closing::get(authorized, &view(sport)?),
        Route::Stream => return stream::get(authorized),
        Route::Changes => return changes::get(authorized),
        Route::Archive { sport, hour } => return archive::get(authorized, &view(sport)?, hour),
        Route::Lines { sport, id } => return lines::get(authorized, &view(sport)?, id),
        Route::Event { sport, id } => events::get_one(&view(sport)?, id, query),
        Route::Sports => {
            authorized.check_open()?;
            sports::get(boards, grant.world(), now, query)
        }
        Route::Books => {
            authorized.check_open()?;
            books::get(boards, &service.kept_books, grant.world(), query)
        }
        Route::Markets => {
            authorized.check_open()?;
            markets::get(boards, grant.world(), query)
        }
        Route::Competitions { sport } => competitions::get(&view(sport)?, query),
        Route::Status => status::get(boards, grant, now, query),
        Route::Usage => usage::get(grant, authorized.moment, query),
        _ => Err(ApiError::not_found()),
    };
    Ok(content?)
}
