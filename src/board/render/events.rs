//! Events: one, and the list.

use crate::board::body::Body;
use crate::board::index::StatusFilter;
use crate::board::node::EventNode;
use crate::board::query::EventsQuery;
use crate::board::select::{self, Scope};
use crate::board::snapshot::SportBoard;
use crate::model::{Event, Market};

use super::json;

pub(crate) fn events(board: &SportBoard, sport_key: &str, query: &EventsQuery) -> Body {
    let filter = query.status.map_or(StatusFilter::Any, StatusFilter::Is).into();
    let scope = Scope::new(filter, &query.scope, query.after.as_ref());
    let (page, next) = select::events(board.current(), &scope, query.limit.get(), |_| true);
    super::body(|out| {
        json::array(page, out, |node, out| write_node(board, node, sport_key, out));
        next
    })
}

pub(crate) fn event(board: &SportBoard, node: &EventNode, sport_key: &str) -> Body {
    super::body(|out| {
        write_node(board, node, sport_key, out);
        None
    })
}

fn write_node(board: &SportBoard, node: &EventNode, sport_key: &str, out: &mut Vec<u8>) {
    // The markets that Get Odds serves now: published prices, not those that wait for the next tick.
    let priced = board.published().index().get(node.event().id.as_str());
    write_event(node.event(), priced.map(|node| node.markets()).unwrap_or_default(), sport_key, out);
}

/// An event with the markets that have a price.
pub(crate) fn write_event(
    event: &Event,
    markets: impl IntoIterator<Item = Market>,
    sport_key: &str,
    out: &mut Vec<u8>,
) {
    out.extend_from_slice(b"{\"id\":");
    json::string(event.id.as_str(), out);
    out.extend_from_slice(b",\"sport_key\":");
    json::string(sport_key, out);
    out.push(b',');
    write_about(event, out);
    out.extend_from_slice(b",\"status\":");
    json::string(event.status.key(), out);
    out.extend_from_slice(b",\"markets\":");
    json::array(markets, out, |market, out| json::string(market.key(), out));
    out.push(b'}');
}

/// `,"event":{…}`: what `include=event` adds to a record or a row.
pub(crate) fn included_event(event: &Event, out: &mut Vec<u8>) {
    out.extend_from_slice(b",\"event\":{");
    write_about(event, out);
    out.push(b'}');
}

/// The fields that say what an event is: its names, competition and start.
fn write_about(event: &Event, out: &mut Vec<u8>) {
    if let Some(title) = event.title() {
        out.extend_from_slice(b"\"title\":");
        json::string(title, out);
        out.push(b',');
    }
    out.extend_from_slice(b"\"competition\":");
    json::string(&event.competition, out);
    out.extend_from_slice(b",\"competition_key\":");
    json::string(&event.competition_key, out);
    out.extend_from_slice(b",\"commence_time\":\"");
    event.commence.write(out);
    out.extend_from_slice(b"\",\"home_team\":");
    json::optional_string(event.home().map(|name| &**name), out);
    out.extend_from_slice(b",\"away_team\":");
    json::optional_string(event.away().map(|name| &**name), out);
}
