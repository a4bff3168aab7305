//! The parameters that several endpoints take, how their values are read, and the link to the next page.

use http::HeaderValue;

use super::error::ApiError;
use super::percent::write_url_part;
use super::query::{self, Parameter, Params};
use super::request_headers::RequestParts;
use crate::board::{AsOf, Cursor, EventIds, Limit};
use crate::model::{EventId, Timestamp};

pub(crate) const LIMIT: Parameter = Parameter::new("limit", "an integer from 1 to 500");
pub(crate) const AS_OF: Parameter = Parameter::new(
    "as_of",
    "a time such as 2026-11-14T23:39:00Z that is not in the future (the + of an offset is written %2B)",
);
pub(crate) const AFTER: Parameter = Parameter::new("after", "what the Link header of the page before has, unchanged");
/// As the end of the sentence "`regions` takes …".
pub(crate) const REGIONS_TAKE: &str = "us, us2, us_dfs, us_ex, uk, eu, fr, se and au, separated by commas";
pub(crate) const EVENT_IDS: Parameter = Parameter::list("event_ids", "up to 100 event ids, separated by commas");

/// Anything but 1 to 500 is rejected, never clamped: a client that sends 1000 would take 500 results for all.
pub(crate) fn limit(params: &Params<'_>) -> Result<Limit, ApiError> {
    limit_or(params, Limit::DEFAULT)
}

pub(crate) fn limit_or(params: &Params<'_>, default: Limit) -> Result<Limit, ApiError> {
    let parse = |text: &str| {
        let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
        Limit::new(text.parse().ok().filter(|_| is_plain)?)
    };
    Ok(params.parse(&LIMIT, parse)?.unwrap_or(default))
}

/// A position in any list: a list of events begins after the event that it names.
pub(crate) fn after(params: &Params<'_>) -> Result<Option<Cursor>, ApiError> {
    params.parse(&AFTER, Cursor::parse)
}

/// `<…>; rel="next"` (RFC 8288): the same path and query with `after` replaced.
pub(crate) fn next_link(request: &RequestParts<'_>, cursor: &Cursor) -> Option<HeaderValue> {
    link_after(request, &cursor.to_text())
}

/// The same with a cursor of any kind.
pub(crate) fn link_after(request: &RequestParts<'_>, cursor: &str) -> Option<HeaderValue> {
    link_replacing(request, &[(AFTER.name, Some(cursor))])
}

/// The same with any parameters replaced.
pub(crate) fn link_replacing(request: &RequestParts<'_>, replaced: &[(&str, Option<&str>)]) -> Option<HeaderValue> {
    let mut link = Vec::with_capacity(256);
    write_link(request, replaced, "next", &mut link);
    HeaderValue::from_maybe_shared(bytes::Bytes::from(link)).ok()
}

/// The links of a page as of a time: to the next page of the same moment, and to the publications before and after it.
pub(crate) fn links_as_of(request: &RequestParts<'_>, next: Option<&Cursor>, as_of: &AsOf) -> Option<HeaderValue> {
    let mut links = Vec::with_capacity(512);
    let mut write = |time: Timestamp, cursor: Option<&Cursor>, relation| {
        if !links.is_empty() {
            links.extend_from_slice(b", ");
        }
        let (time, cursor) = (time.to_string(), cursor.map(Cursor::to_text));
        write_link(request, &[(AS_OF.name, Some(&time)), (AFTER.name, cursor.as_deref())], relation, &mut links);
    };
    if next.is_some() {
        write(as_of.at, next, "next");
    }
    if let Some(previous) = as_of.previous {
        write(previous, None, "prev-archive");
    }
    if let Some(next) = as_of.next {
        write(next, None, "next-archive");
    }
    (!links.is_empty()).then(|| HeaderValue::from_maybe_shared(bytes::Bytes::from(links)).ok())?
}

/// The path and query of the request, with some parameters replaced or left out. A key in the query is left out too:
/// links end up in logs.
fn write_link(request: &RequestParts<'_>, replaced: &[(&str, Option<&str>)], relation: &str, out: &mut Vec<u8>) {
    out.push(b'<');
    write_url_part(request.path, out);
    let names: Vec<&str> = replaced.iter().map(|(name, _)| *name).collect();
    let mut separator = b'?';
    for piece in query::pieces_without(request.query.unwrap_or_default(), &names) {
        out.push(separator);
        write_url_part(piece, out);
        separator = b'&';
    }
    for (name, value) in replaced.iter().filter_map(|(name, value)| Some((name, (*value)?))) {
        out.push(separator);
        out.extend_from_slice(name.as_bytes());
        out.push(b'=');
        out.extend_from_slice(value.as_bytes());
        separator = b'&';
    }
    out.extend_from_slice(b">; rel=\"");
    out.extend_from_slice(relation.as_bytes());
    out.push(b'"');
}

/// A text that can be no event's id matches nothing and is left out; an empty one is a mistake.
pub(crate) fn event_ids(params: &Params<'_>, named: &'static Parameter) -> Result<Option<EventIds>, ApiError> {
    let parse = |text: &str| {
        let mut ids = Vec::new();
        for (at, id) in text.split(',').enumerate() {
            if id.is_empty() || at == EventIds::MAX {
                return None;
            }
            ids.extend(EventId::new(id));
        }
        Some(EventIds::new(ids))
    };
    params.parse(named, parse)
}

/// The time as of which a request asks.
pub(crate) fn as_of(params: &Params<'_>, now: Timestamp) -> Result<Option<Timestamp>, ApiError> {
    let time = params.parse(&AS_OF, |text| time(text, Round::Down))?;
    if time.is_some_and(|time| time > now) {
        return Err(AS_OF.fault("is in the future"));
    }
    Ok(time)
}

/// How a time between two whole seconds is rounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Round {
    Down,
    Up,
}

/// A point in time as RFC 3339 writes it, with any offset. Before the first and after the last second that an event can
/// commence in, it is as good as that second.
pub(crate) fn time(text: &str, round: Round) -> Option<Timestamp> {
    let moment: jiff::Timestamp = text.parse().ok()?;
    let below = moment.as_nanosecond().div_euclid(1_000_000_000);
    let has_fraction = moment.as_nanosecond().rem_euclid(1_000_000_000) != 0;
    let second = below + i128::from(has_fraction && round == Round::Up);
    Some(Timestamp::from_unix(u32::try_from(second.max(0)).unwrap_or(u32::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: &[Parameter] = &[LIMIT, AFTER, EVENT_IDS];

    fn params(query: &str) -> Params<'_> {
        Params::read(Some(query), ALL).unwrap()
    }

    #[test]
    fn a_limit_is_from_1_to_500() {
        assert_eq!(limit(&params("")).unwrap(), Limit::DEFAULT);
        for (query, value) in [("limit=1", 1), ("limit=500", 500), ("limit=007", 7)] {
            assert_eq!(limit(&params(query)).unwrap().get(), value);
        }
        for query in
            ["limit=0", "limit=501", "limit=-1", "limit=%2B5", "limit=5.0", "limit=x", "limit=99999999999999999999"]
        {
            assert_eq!(limit(&params(query)).unwrap_err().param.as_deref(), Some("limit"), "{query}");
        }
    }

    #[test]
    fn up_to_a_hundred_ids() {
        let count = |query: &str| event_ids(&params(query), &EVENT_IDS).map(|ids| ids.map(|ids| ids.iter().count()));
        assert_eq!(count(""), Ok(None));
        assert_eq!(count("event_ids=a,b,a"), Ok(Some(2)));
        assert_eq!(count("event_ids=a%20b"), Ok(Some(0)));
        let ids: Vec<String> = (0..101).map(|id| id.to_string()).collect();
        assert_eq!(count(&format!("event_ids={}", ids[..100].join(","))), Ok(Some(100)));
        assert!(count(&format!("event_ids={}", ids.join(","))).is_err());
        assert!(count("event_ids=a,,b").is_err());
    }

    #[test]
    fn a_cursor_fits_its_page() {
        let cursor = Cursor { commence: Timestamp::from_unix(5), event: EventId::new("e").unwrap(), record: None };
        let query = format!("after={}", cursor.to_text());
        assert_eq!(after(&params(&query)), Ok(Some(cursor)));
        assert!(after(&params("after=zz")).is_err());
    }

    #[test]
    fn times_have_an_offset_and_round_to_seconds() {
        let unix = |text: &str, round| time(text, round).map(Timestamp::unix);
        assert_eq!(unix("2026-11-14T23:39:00Z", Round::Down), Some(1_794_699_540));
        assert_eq!(unix("2026-11-15T01:39:00+02:00", Round::Down), Some(1_794_699_540));
        assert_eq!(unix("2026-11-14T23:39:00.5Z", Round::Down), Some(1_794_699_540));
        assert_eq!(unix("2026-11-14T23:39:00.5Z", Round::Up), Some(1_794_699_541));
        assert_eq!(unix("1019-03-23T19:54:53Z", Round::Down), Some(0));
        assert_eq!(unix("2200-01-01T00:00:00Z", Round::Up), Some(u32::MAX));
        for text in ["2026-11-14", "2026-11-14T23:39:00", "1794699540"] {
            assert_eq!(time(text, Round::Down), None, "{text}");
        }
    }
}
