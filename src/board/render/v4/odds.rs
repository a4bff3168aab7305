//! Events with their prices: those of a sport key, one of them, or those live now and next.

use crate::board::body::Body;
use crate::board::index::StatusFilter;
use crate::board::node::EventNode;
use crate::board::render;
use crate::board::snapshot::{Published, WorldBoard};
use crate::board::v4::{CompetitionView, Prices, Scoped, UpcomingQuery};
use crate::model::{Catalogue, SportKind};

use super::bookmakers::BookmakerWriter;
use super::upcoming::{UpcomingEvent, upcoming_events};
use super::{Heading, LIST_BYTES_MAX, no_rotation_numbers, open_priced_event, page, sides, write_page};

/// Every open event, priced or not. A key without events has an empty list.
pub(crate) fn odds(
    published: &Published,
    competition: Option<&CompetitionView>,
    kind: SportKind,
    prices: &Prices,
    scope: &Scoped,
) -> Body {
    let Some(competition) = competition else { return Body::new(&b"[]"[..], None) };
    let bookmakers = BookmakerWriter::new(published, kind, prices);
    let page = page(&competition.index, StatusFilter::Open.into(), scope, |_| true);
    let body = render::body(|out| {
        write_page(page, out, |node, out| write_event(node, competition.into(), &bookmakers, prices, out))
    });
    body.with_rows(bookmakers.written())
}

/// One event; without prices if they are not published yet.
pub(crate) fn event_odds(
    published: &Published,
    competition: &CompetitionView,
    node: &EventNode,
    kind: SportKind,
    prices: &Prices,
    is_published: bool,
) -> Body {
    let bookmakers = BookmakerWriter::new(published, kind, prices).of_one_event();
    let bookmakers = if is_published { bookmakers } else { bookmakers.blank() };
    let body = render::body(|out| {
        write_event(node, competition.into(), &bookmakers, prices, out);
        None
    });
    body.with_rows(bookmakers.written())
}

pub(crate) fn upcoming(world: &WorldBoard, catalogue: &Catalogue, query: &UpcomingQuery) -> Body {
    let mut events = upcoming_events(world, catalogue, query).into_iter();
    render::body(|out| {
        // Live events come before upcoming ones, so reaching the bound cuts off the latest.
        let within = |out: &Vec<u8>| out.len() < LIST_BYTES_MAX;
        out.push(b'[');
        while let Some(UpcomingEvent { sport, published, node, .. }) = events.next().filter(|_| within(out)) {
            if out.len() > 1 {
                out.push(b',');
            }
            let event = node.event();
            let seen = published.register().competitions().get(&event.competition_key);
            let title = seen.map_or(&event.competition, |competition| &competition.title);
            let heading = Heading { key: &event.competition_key, title };
            let bookmakers = BookmakerWriter::new(published, sport.kind, &query.prices);
            write_event(node, heading, &bookmakers, &query.prices, out);
        }
        out.push(b']');
        None
    })
}

fn write_event(
    node: &EventNode,
    heading: Heading<'_>,
    bookmakers: &BookmakerWriter<'_>,
    prices: &Prices,
    out: &mut Vec<u8>,
) {
    open_priced_event(node.event(), heading, prices.dates, out);
    sides(node.event(), out);
    if prices.extras.rotation_numbers {
        no_rotation_numbers(out);
    }
    bookmakers.close_event(node, out);
}
