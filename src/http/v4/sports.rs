//! `/v4/sports`: every competition that has events now, with `all=true` every one that the catalogue lists as well. The
//! list is the same for every key of a world, whatever the key is restricted to.

use std::collections::BTreeMap;

use super::values::{self, ALL};
use crate::board::Boards;
use crate::board::render::json;
use crate::http::exchange::error::ApiError;
use crate::http::exchange::query::{Parameter, Params};
use crate::http::exchange::reply::Content;
use crate::model::{Competition, World};

pub(crate) const PARAMETERS: &[Parameter] = &[ALL];

/// The bytes of a sport key, roughly.
const KEY_BYTES: usize = 176;

pub(crate) fn get(boards: &Boards, world: World, query: Option<&str>) -> Result<Content, ApiError> {
    let with_inactive = values::is_yes(&Params::read_leniently(query, PARAMETERS)?, &ALL)?;
    let (board, catalogue) = (boards.load(world), boards.catalogue());
    let seen = board.register().competitions();
    let mut rows: BTreeMap<&str, Row<'_>> = BTreeMap::new();
    for (id, sport) in catalogue.sports() {
        let Some(names) = &sport.v4 else { continue };
        let group = &*names.group;
        for view in board.sport(id).v4(seen).competitions.iter() {
            let is_active = view.index.open_event_count() > 0;
            let has_field = view.index.iter().all(|node| node.event().title().is_some());
            rows.insert(&view.key, Row { group, title: &view.title, description: &view.title, is_active, has_field });
        }
    }
    for listed in catalogue.competitions() {
        let Some((_, names)) = catalogue.find_v4(&listed.key) else { continue };
        let Competition { title, has_field, .. } = listed;
        let row = Row { group: &names.group, title, description: title, is_active: false, has_field: *has_field };
        rows.entry(&listed.key).or_insert(row).description = &listed.description;
    }
    let mut out = Vec::with_capacity(KEY_BYTES * rows.len() + 2);
    json::array(rows.into_iter().filter(|(_, row)| with_inactive || row.is_active), &mut out, write_row);
    Ok(Content::once(out))
}

/// What is listed of a key.
struct Row<'a> {
    group: &'a str,
    title: &'a str,
    description: &'a str,
    is_active: bool,
    has_field: bool,
}

fn write_row((key, row): (&str, Row<'_>), out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"key\":");
    json::string(key, out);
    out.extend_from_slice(b",\"group\":");
    json::string(row.group, out);
    out.extend_from_slice(b",\"title\":");
    json::string(row.title, out);
    out.extend_from_slice(b",\"description\":");
    json::string(row.description, out);
    out.extend_from_slice(if row.is_active { b",\"active\":true" } else { b",\"active\":false" });
    out.extend_from_slice(if row.has_field { b",\"has_outrights\":true}" } else { b",\"has_outrights\":false}" });
}
