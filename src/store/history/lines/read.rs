//! Reading the lines of one event, or the openings and closing prices of several: what is stored, and what the log has after it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use redb::ReadTransaction;

use super::block::RecordNumbers;
use super::ends::{EventEnds, RecordEnds};
use super::event::stored_ends;
use super::follow::Follower;
use super::keys::LineKeys;
use super::tail::{Tail, Tails};
use crate::model::{EventId, EventLines, Line, LinePoint, Market, Timestamp};
use crate::store::codec::Flaw;
use crate::store::history::read::LogError;
use crate::store::table_keys::LogNumber;
use crate::store::tables::{LINE_DAYS, LINE_KEYS};

/// The most outcomes that are read at once, over all changes: about 128 MiB.
const OUTCOMES_MAX: usize = 4_000_000;

/// Which changes of an event's lines are wanted. Others may come with them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LineRange {
    /// Those after it, and the last one before.
    pub from: Option<Timestamp>,
    pub to: Option<Timestamp>,
}

/// The lines of an event that are wanted. `None` if the log does not know the event.
pub(in crate::store::history) fn read_event_lines(
    txn: &ReadTransaction,
    sport: (LogNumber, u16),
    id: &EventId,
    (is_wanted, range): (impl Fn(&str, Market) -> bool, LineRange),
    kept: KeptTails<'_>,
) -> Result<Option<EventLines>, LogError> {
    let lines = kept.tails.with(txn, sport, (kept.rewrites, kept.is_closing), |tail| {
        event_lines_after(txn, sport, id, (&is_wanted, range), (tail, kept.is_closing))
    })?;
    Ok(lines.flatten())
}

/// The ends of logs that are in memory.
#[derive(Clone, Copy, Debug)]
pub(in crate::store::history) struct KeptTails<'r> {
    pub(in crate::store::history) tails: &'r Tails,
    /// See `HistoryReader::rewrites`.
    pub(in crate::store::history) rewrites: u64,
    pub(in crate::store::history) is_closing: &'r AtomicBool,
}

fn event_lines_after(
    txn: &ReadTransaction,
    sport: (u8, u16),
    id: &EventId,
    (is_wanted, range): (&impl Fn(&str, Market) -> bool, LineRange),
    (tail, is_closing): (&Tail, &AtomicBool),
) -> Result<Option<EventLines>, LogError> {
    let only = BTreeSet::from([id.clone()]);
    let is_wanted =
        |numbers: RecordNumbers| names(&tail.keys, numbers).is_ok_and(|(book, market)| is_wanted(book, market));
    let follower = Follower::new(txn, sport, (&tail.start, &tail.keys), is_closing);
    let mut follower = follower.read(tail, Some(&only), is_wanted)?;
    if follower.event(id, None)?.is_none() {
        return Ok(None);
    }
    let Follower { keys, events, .. } = &follower;
    let Some(history) = events.get(id) else { return Ok(None) };
    let mut points = history.points(txn, sport, (is_wanted, range), OUTCOMES_MAX)?;
    // After a part of the log that was lost, every record is repeated.
    for points in points.values_mut() {
        points.dedup_by(|next, last| next.outcomes == last.outcomes);
    }
    event_lines(&history.ends, keys, is_wanted, |numbers| points.remove(&numbers).unwrap_or_default()).map(Some)
}

/// Which events the openings and closing prices are wanted of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EndsOf {
    Events(BTreeSet<EventId>),
    /// Those that start on a UTC day, counted from 1970.
    Day(u32),
}

/// The openings and closing prices of events, in the order of their start: lines without points. If there are more than
/// `lines_max` lines, not all of them.
pub(in crate::store::history) fn read_ends(
    txn: &ReadTransaction,
    sport: (LogNumber, u16),
    of: &EndsOf,
    (is_wanted, lines_max): (impl Fn(&str, Market) -> bool, usize),
    kept: KeptTails<'_>,
) -> Result<Vec<EventLines>, LogError> {
    let found = kept.tails.with(txn, sport, (kept.rewrites, kept.is_closing), |tail| {
        ends_after(txn, sport, of, (&is_wanted, lines_max), (tail, kept.is_closing))
    })?;
    Ok(found.unwrap_or_default())
}

fn ends_after(
    txn: &ReadTransaction,
    key: (u8, u16),
    of: &EndsOf,
    (is_wanted, lines_max): (&impl Fn(&str, Market) -> bool, usize),
    (tail, is_closing): (&Tail, &AtomicBool),
) -> Result<Vec<EventLines>, LogError> {
    let only = match of {
        EndsOf::Events(ids) => Some(ids),
        EndsOf::Day(_) => None,
    };
    let is_wanted =
        |numbers: RecordNumbers| names(&tail.keys, numbers).is_ok_and(|(book, market)| is_wanted(book, market));
    let follower = Follower::new(txn, key, (&tail.start, &tail.keys), is_closing);
    let mut follower = follower.read(tail, only, is_wanted)?;
    let days = txn.open_table(LINE_DAYS.definition)?;
    let mut stored = Vec::new();
    match of {
        EndsOf::Events(ids) => ids.iter().try_for_each(|id| follower.event(id, None).map(|_| ()))?,
        EndsOf::Day(day) => {
            follower.begin_unwritten()?;
            for row in days.range((key.0, key.1, *day, 0)..=(key.0, key.1, *day, u32::MAX))? {
                stored.push(row?.0.value().3);
            }
        }
    }
    let Follower { keys, events, .. } = &follower;
    let mut found = Vec::new();
    let mut count = 0;
    let mut put = |ends: &EventEnds| -> Result<bool, LogError> {
        let lines = event_lines(ends, keys, is_wanted, |_| Vec::new())?;
        count += lines.lines.len();
        found.push(lines);
        Ok(count <= lines_max)
    };
    let is_of_day = |ends: &EventEnds| !matches!(of, EndsOf::Day(day) if *day != ends.day());
    let mut goes_on = true;
    for history in events.values().filter(|history| is_of_day(&history.ends)) {
        goes_on = goes_on && put(&history.ends)?;
    }
    for number in stored {
        let ends = stored_ends(txn, (key.0, key.1, number))?;
        goes_on = goes_on && (events.contains_key(&ends.event.id) || put(&ends)?);
        if !goes_on {
            break;
        }
    }
    found.sort_by(|one, other| (one.event.commence, &one.event.id).cmp(&(other.event.commence, &other.event.id)));
    Ok(found)
}

fn names(keys: &LineKeys, (book, market): RecordNumbers) -> Result<(&Arc<str>, Market), LogError> {
    let unknown = |number: u32| LogError::Damaged {
        table: LINE_KEYS.name,
        row: number.to_string(),
        flaw: Flaw::Invalid("it is missing"),
    };
    let bookmaker = keys.key(book).ok_or_else(|| unknown(book))?;
    Ok((bookmaker, keys.market(market).ok_or_else(|| unknown(market))?))
}

/// The lines of an event that are wanted, with the points that `points` has of each.
fn event_lines(
    ends: &EventEnds,
    keys: &LineKeys,
    is_wanted: impl Fn(RecordNumbers) -> bool,
    mut points: impl FnMut(RecordNumbers) -> Vec<LinePoint>,
) -> Result<EventLines, LogError> {
    let mut lines = Vec::new();
    for (numbers, record) in ends.records.iter().filter(|(numbers, _)| is_wanted(**numbers)) {
        let (bookmaker, market) = names(keys, *numbers)?;
        let bookmaker = Arc::clone(bookmaker);
        let RecordEnds { opening, closing, is_closed } = record.clone();
        lines.push(Line { bookmaker, market, opening, closing, is_closed, points: points(*numbers) });
    }
    lines.sort_by(|one, other| {
        one.bookmaker.cmp(&other.bookmaker).then_with(|| one.market.cmp_in_records(other.market))
    });
    let EventEnds { first_change: since, source, start, .. } = *ends;
    Ok(EventLines { event: Arc::clone(&ends.event), since, source, start, lines })
}
