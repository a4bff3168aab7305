//! Answers in the shape of The Odds API, version 4.
//!
//! A list ends after [`EVENTS_MAX`] events or the first event past [`LIST_BYTES_MAX`], whichever comes first, and then
//! carries a `Link` to the rest. The Odds API has no pages; its lists stay far below both bounds.

use std::sync::Arc;

use crate::board::index::{Filter, Index};
use crate::board::node::EventNode;
use crate::board::query::{Cursor, Limit};
use crate::board::select::{self, Scope};
use crate::board::v4::{CompetitionView, DateFormat, Scoped};
use crate::model::{Contest, Event, Timestamp};

use super::json;

mod bookmakers;
mod events;
mod markets;
mod odds;
mod participants;
mod scores;
mod upcoming;

pub(crate) use events::events;
pub(crate) use markets::event_markets;
pub(crate) use odds::{event_odds, odds, upcoming};
pub(crate) use participants::participants;
pub(crate) use scores::scores;

const EVENTS_MAX: usize = Limit::MAX as usize;
const LIST_BYTES_MAX: usize = 4 << 20;

/// The sport key and title that the events of an answer are listed under.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Heading<'a> {
    key: &'a str,
    title: &'a str,
}

impl<'a> From<&'a CompetitionView> for Heading<'a> {
    fn from(competition: &'a CompetitionView) -> Self {
        Heading { key: &competition.key, title: &competition.title }
    }
}

/// One page of a competition's events, and where the next begins.
fn page<'a>(
    index: &'a Index,
    filter: Filter<'_>,
    scope: &Scoped,
    accept: impl Fn(&EventNode) -> bool,
) -> (Vec<&'a Arc<EventNode>>, Option<Cursor>) {
    let scope = Scope::new(filter, &scope.events, scope.after.as_ref());
    select::events(index, &scope, EVENTS_MAX, accept)
}

/// Writes the events of a page, up to the bound on bytes.
fn write_page(
    (page, next): (Vec<&Arc<EventNode>>, Option<Cursor>),
    out: &mut Vec<u8>,
    mut write: impl FnMut(&EventNode, &mut Vec<u8>),
) -> Option<Cursor> {
    out.push(b'[');
    let mut last: Option<&EventNode> = None;
    for node in page {
        if let Some(last) = last {
            if out.len() >= LIST_BYTES_MAX {
                out.push(b']');
                return Some(Cursor::at_event(last));
            }
            out.push(b',');
        }
        write(node, out);
        last = Some(node);
    }
    out.push(b']');
    next
}

/// `{"id":"…","sport_key":"…","sport_title":"…","commence_time":…`, left open for what follows.
fn open_event(event: &Event, heading: Heading<'_>, dates: DateFormat, out: &mut Vec<u8>) {
    open_id(event, out);
    heading_and_time(event, heading, dates, out);
}

/// The same with `"has_outrights":true` after the id of a tournament, as The Odds API marks priced events with a field.
fn open_priced_event(event: &Event, heading: Heading<'_>, dates: DateFormat, out: &mut Vec<u8>) {
    open_id(event, out);
    if matches!(event.contest, Contest::Tournament { .. }) {
        out.extend_from_slice(b",\"has_outrights\":true");
    }
    heading_and_time(event, heading, dates, out);
}

fn open_id(event: &Event, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"id\":");
    json::string(event.id.as_str(), out);
}

fn heading_and_time(event: &Event, heading: Heading<'_>, dates: DateFormat, out: &mut Vec<u8>) {
    out.extend_from_slice(b",\"sport_key\":");
    json::string(heading.key, out);
    out.extend_from_slice(b",\"sport_title\":");
    json::string(heading.title, out);
    out.extend_from_slice(b",\"commence_time\":");
    time(event.commence, dates, out);
}

/// `,"home_team":…,"away_team":…`
fn sides(event: &Event, out: &mut Vec<u8>) {
    out.extend_from_slice(b",\"home_team\":");
    json::optional_string(event.home().map(|name| &**name), out);
    out.extend_from_slice(b",\"away_team\":");
    json::optional_string(event.away().map(|name| &**name), out);
}

/// `,"home_rotation":null,"away_rotation":null`: they are not stored.
fn no_rotation_numbers(out: &mut Vec<u8>) {
    out.extend_from_slice(b",\"home_rotation\":null,\"away_rotation\":null");
}

pub(crate) fn time(at: Timestamp, dates: DateFormat, out: &mut Vec<u8>) {
    match dates {
        DateFormat::Unix => json::integer(at.unix(), out),
        DateFormat::Iso => {
            out.push(b'"');
            at.write(out);
            out.push(b'"');
        }
    }
}
