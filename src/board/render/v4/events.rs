//! Events without prices.

use crate::board::body::Body;
use crate::board::index::StatusFilter;
use crate::board::render;
use crate::board::v4::{CompetitionView, DateFormat, Scoped};

use super::{no_rotation_numbers, open_event, page, sides, write_page};

/// The open events of a key.
pub(crate) fn events(
    competition: Option<&CompetitionView>,
    dates: DateFormat,
    scope: &Scoped,
    rotation_numbers: bool,
) -> Body {
    let Some(competition) = competition else { return Body::new(&b"[]"[..], None) };
    let page = page(&competition.index, StatusFilter::Open.into(), scope, |_| true);
    render::body(|out| {
        write_page(page, out, |node, out| {
            open_event(node.event(), competition.into(), dates, out);
            sides(node.event(), out);
            if rotation_numbers {
                no_rotation_numbers(out);
            }
            out.push(b'}');
        })
    })
}
