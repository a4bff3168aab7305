//! `/v4/sports`: every key that has events now. The list is the same for every key of a world, whatever the key is
//! restricted to.

use super::values::{self, ALL};
use crate::board::Boards;
use crate::board::render::json;
use crate::http::exchange::error::ApiError;
use crate::http::exchange::query::{Parameter, Params};
use crate::http::exchange::reply::Content;
use crate::model::{SportKind, World};

pub(crate) const PARAMETERS: &[Parameter] = &[ALL];

/// The bytes of a sport key, roughly.
const KEY_BYTES: usize = 176;

pub(crate) fn get(boards: &Boards, world: World, query: Option<&str>) -> Result<Content, ApiError> {
    let with_inactive = values::is_yes(&Params::read_leniently(query, PARAMETERS)?, &ALL)?;
    let board = boards.load(world);
    let named = boards.catalogue().sports().filter_map(|(id, sport)| Some((id, sport, sport.v4.as_ref()?)));
    let mut keys: Vec<_> = named
        .flat_map(|(id, sport, names)| {
            let competitions = board.sport(id).v4(names).competitions.iter();
            competitions.map(move |competition| (competition, names, sport.kind))
        })
        .filter(|(competition, ..)| with_inactive || competition.index.open_event_count() > 0)
        .collect();
    keys.sort_unstable_by(|(one, ..), (other, ..)| one.key.cmp(&other.key));
    let mut out = Vec::with_capacity(KEY_BYTES * keys.len() + 2);
    json::array(keys, &mut out, |(competition, names, kind), out| {
        out.extend_from_slice(b"{\"key\":");
        json::string(&competition.key, out);
        out.extend_from_slice(b",\"group\":");
        json::string(&names.group, out);
        out.extend_from_slice(b",\"title\":");
        json::string(&competition.title, out);
        out.extend_from_slice(b",\"description\":");
        json::string(&competition.description, out);
        let is_active = competition.index.open_event_count() > 0;
        out.extend_from_slice(if is_active { b",\"active\":true" } else { b",\"active\":false" });
        let has_outrights = kind == SportKind::Tournament;
        out.extend_from_slice(if has_outrights { b",\"has_outrights\":true}" } else { b",\"has_outrights\":false}" });
    });
    Ok(Content::once(out))
}
