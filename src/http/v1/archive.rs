//! Get Archive: `/v1/sports/{sport_key}/archive/{hour}`, what changed of a sport in an hour, as lines of JSON.
//!
//! The lines are the events of the stream with their positions, of all bookmakers and markets unless some are named, and with
//! prices as they were quoted.

use std::sync::Arc;

use http::HeaderValue;
use jiff::civil::DateTime;

use super::filters::{self, BOOKMAKER, MARKET};
use crate::board::{Body, ChangeEntry, ChangeFilter, FilterSpec};
use crate::http::exchange::error::{ApiError, Code};
use crate::http::exchange::history::{EntriesRead, History, HourRead, HourRun, Stop};
use crate::http::exchange::query::{Parameter, Params};
use crate::http::exchange::reply::{Content, Freshness};
use crate::http::exchange::service::{Authorized, SportView};
use crate::model::{MarketFilter, OddsFormat, SportSet, Timestamp};

pub(crate) const PARAMETERS: &[Parameter] = &[MARKET, BOOKMAKER];

const NDJSON: HeaderValue = HeaderValue::from_static("application/x-ndjson");
const HOUR_S: u32 = 3_600;
const HOUR_TAKES: &str = "a UTC hour such as 2026-11-14T23";

pub(crate) fn get(authorized: &Authorized<'_>, view: &SportView<'_>, hour: &str) -> Result<Content, Stop> {
    let params = Params::read(authorized.request.query, PARAMETERS)?;
    let start = hour_start(hour).ok_or_else(|| {
        ApiError::invalid_parameter("hour", format!("The last part of the path must be {HOUR_TAKES}."))
    })?;
    if start.unix().saturating_add(HOUR_S) > authorized.now.unix() {
        return Err(ApiError::new(Code::NotFound, "The archive has an hour once it is over.").into());
    }
    let read = HourRead { access: view.access(), start };
    let filter = ChangeFilter::new(filter(authorized, view, &params)?);
    let (boards, encoding) = (Arc::clone(&authorized.service.boards), authorized.request.encoding());
    let named = filters::unknown_book(view, &params);
    authorized.history_content(move |history| {
        let hour = history.hour(read)?;
        let register = Arc::clone(boards.load(read.access.world()).register());
        let (mut out, mut records, mut lists) = (Vec::new(), 0, 0);
        for run in &hour.runs {
            for_each_entry(history, read, *run, |entry| {
                let counts = entry.write_lines(&filter, &register, run.epoch, &mut out);
                records += counts.records;
                lists += counts.lists;
                if records + lists > filters::ROWS_MAX { Err(too_many()) } else { Ok(()) }
            })?;
        }
        if let Some(key) = named.filter(|_| records == 0) {
            return Err(BOOKMAKER.refuse(&key));
        }
        let content = Content::prepared(Body::new(out, None), encoding);
        let freshness = Freshness::of_past(hour.permanence);
        Ok(Content { rows: records + lists, freshness, media_type: NDJSON, ..content })
    })
}

fn for_each_entry(
    history: &dyn History,
    hour: HourRead,
    HourRun { epoch, first: mut from, end: to }: HourRun,
    mut each: impl FnMut(&ChangeEntry) -> Result<(), ApiError>,
) -> Result<(), ApiError> {
    while from < to {
        let read = EntriesRead { world: hour.access.world(), epoch, from, to, oldest: Timestamp::default() };
        let entries = history.entries(read)?;
        let before = from;
        for entry in entries.iter().filter(|entry| (before..to).contains(&entry.sequence)) {
            each(entry)?;
            from = entry.sequence + 1;
        }
        if from == before {
            return Err(ApiError::internal());
        }
    }
    Ok(())
}

/// Everything of the sport, unless markets or a bookmaker are named.
fn filter(authorized: &Authorized<'_>, view: &SportView<'_>, params: &Params<'_>) -> Result<FilterSpec, ApiError> {
    let markets = match params.get(&MARKET) {
        Some(_) => filters::markets(view, params)?,
        None => MarketFilter::All,
    };
    let count = authorized.service.boards.catalogue().sport_ids().count();
    Ok(FilterSpec {
        sports: SportSet::NONE.with(view.access().sport()),
        sides_only: SportSet::NONE,
        competitions: None,
        events: None,
        markets: vec![markets; count].into(),
        markets_to_come: Box::default(),
        bookmakers: params.get(&BOOKMAKER).map(|key| [key.into()].into()),
        regions: None,
        format: OddsFormat::American,
        with_event: false,
    })
}

fn too_many() -> ApiError {
    let most = filters::ROWS_MAX;
    let message = format!("This hour has more than {most} changes: name one bookmaker, or some markets.");
    ApiError::new(Code::InvalidParameter, message)
}

/// The time at which `2026-11-14T23` begins.
fn hour_start(text: &str) -> Option<Timestamp> {
    let shape = |(at, byte): (usize, u8)| match at {
        4 | 7 => byte == b'-',
        10 => byte == b'T',
        _ => byte.is_ascii_digit(),
    };
    if text.len() != 13 || !text.bytes().enumerate().all(shape) {
        return None;
    }
    let time: DateTime = format!("{text}:00").parse().ok()?;
    let unix = time.to_zoned(jiff::tz::TimeZone::UTC).ok()?.timestamp().as_second();
    Timestamp::checked_from_unix(unix)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hours_are_read_exactly() {
        let start = hour_start("2026-11-14T23").unwrap();
        assert_eq!(String::from_utf8_lossy(&start.iso()), "2026-11-14T23:00:00Z");
        for text in
            ["", "2026-11-14", "2026-11-14T24", "2026-13-14T00", "2026-11-14t23", "2026-11-14T23:00", "2026-11-14T+3"]
        {
            assert_eq!(hour_start(text), None, "{text}");
        }
    }
}
