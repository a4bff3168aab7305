//! List Competitions: `/v1/sports/{sport_key}/competitions`, those that this world has had an event of.

use std::collections::BTreeMap;

use crate::board::render::json;
use crate::http::exchange::error::ApiError;
use crate::http::exchange::query::Params;
use crate::http::exchange::reply::Content;
use crate::http::exchange::service::SportView;

/// What a competition takes, about.
const COMPETITION_BYTES: usize = 96;

pub(crate) fn get(view: &SportView<'_>, query: Option<&str>) -> Result<Content, ApiError> {
    Params::read(query, &[])?;
    let mut open: BTreeMap<&str, usize> = BTreeMap::new();
    for node in view.board().current().iter().filter(|node| !node.event().status.is_over()) {
        *open.entry(&node.event().competition_key).or_default() += 1;
    }
    let seen = view.register().competitions();
    let of_sport = seen.iter().filter(|(_, competition)| competition.sport == view.id());
    let mut out = Vec::with_capacity(COMPETITION_BYTES * seen.len() + 2);
    json::array(of_sport, &mut out, |(key, competition), out| {
        out.extend_from_slice(b"{\"key\":");
        json::string(key, out);
        out.extend_from_slice(b",\"title\":");
        json::string(&competition.title, out);
        out.extend_from_slice(b",\"sport_key\":");
        json::string(&view.sport.key, out);
        out.extend_from_slice(b",\"events\":");
        json::integer(open.get(&**key).copied().unwrap_or(0), out);
        out.push(b'}');
    });
    Ok(Content::once(out))
}
