//! List Sports: `/v1/sports`. The list is the same for every key of a world, whatever the key is restricted to.

use crate::board::render::json;
use crate::board::{Boards, SportBoard};
use crate::http::exchange::error::ApiError;
use crate::http::exchange::query::Params;
use crate::http::exchange::reply::Content;
use crate::model::{Sport, Timestamp, World};

/// The bytes of a sport, roughly.
const SPORT_BYTES: usize = 128;

pub(crate) fn get(boards: &Boards, world: World, now: Timestamp, query: Option<&str>) -> Result<Content, ApiError> {
    Params::read(query, &[])?;
    Ok(Content::once(document(boards, world, now)))
}

/// The list itself.
pub(crate) fn document(boards: &Boards, world: World, now: Timestamp) -> Vec<u8> {
    let catalogue = boards.catalogue();
    let board = boards.load(world);
    let mut out = Vec::with_capacity(SPORT_BYTES * catalogue.sport_count());
    out.extend_from_slice(b"{\"sports\":");
    let listed = catalogue.sports().filter(|(id, _)| board.lists(*id));
    json::array(listed, &mut out, |(id, sport), out| write_sport(sport, board.sport(id), now, out));
    out.push(b'}');
    out
}

fn write_sport(sport: &Sport, board: &SportBoard, now: Timestamp, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"key\":");
    json::string(&sport.key, out);
    out.extend_from_slice(b",\"title\":");
    json::string(&sport.title, out);
    out.extend_from_slice(b",\"group\":");
    json::string(&sport.group, out);
    out.extend_from_slice(if board.is_active(now) { b",\"active\":true" } else { b",\"active\":false" });
    out.extend_from_slice(b",\"events\":");
    json::integer(board.open_event_count(), out);
    out.extend_from_slice(b",\"books\":");
    json::integer(board.book_count(), out);
    out.push(b'}');
}
