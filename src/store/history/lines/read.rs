//! Reading the lines of one event: the stored blocks, and what the log has after them.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use redb::ReadTransaction;

use super::block::RecordNumbers;
use super::ends::RecordEnds;
use super::follow::Follower;
use super::rewrite::{LinesHead, Part};
use crate::model::{EventId, EventLines, Line, Market, World};
use crate::store::codec::Flaw;
use crate::store::history::fold::market_of;
use crate::store::history::read::LogError;
use crate::store::history::state::read_head;
use crate::store::table_keys::world_number;
use crate::store::tables::LINE_KEYS;

/// The lines of an event that are wanted. `None` if the log does not know the event.
pub(in crate::store::history) fn read_event_lines(
    txn: &ReadTransaction,
    (world, sport): (World, u16),
    id: &EventId,
    is_wanted: impl Fn(&str, Market) -> bool,
    is_closing: &AtomicBool,
) -> Result<Option<EventLines>, LogError> {
    let Some(head) = read_head(txn, world)? else { return Ok(None) };
    let key = (world_number(world), sport);
    let Some(part) = Part::after_lines(txn, key, &LinesHead::read(txn, world)?, head.next - 1)? else {
        return Ok(None);
    };
    let mut follower = Follower::new(txn, key, part, is_closing)?.only(id);
    follower.follow()?;
    if follower.event(id, None)?.is_none() {
        return Ok(None);
    }
    let Follower { keys, events, .. } = &follower;
    let Some(history) = events.get(id) else { return Ok(None) };
    let unknown =
        || LogError::Damaged { table: LINE_KEYS.name, row: id.to_string(), flaw: Flaw::Invalid("a key is missing") };
    let names = |(book, market): RecordNumbers| -> Result<(Arc<str>, Market), LogError> {
        let (book, market) = (keys.key(book).ok_or_else(unknown)?, keys.key(market).ok_or_else(unknown)?);
        Ok((Arc::clone(book), market_of(market).map_err(|_| unknown())?))
    };
    let mut lines = Vec::new();
    let is_wanted = |numbers: RecordNumbers| names(numbers).is_ok_and(|(book, market)| is_wanted(&book, market));
    for (numbers, mut points) in history.points(txn, key, is_wanted)? {
        let (bookmaker, market) = names(numbers)?;
        // After a part of the log that was lost, every record is repeated.
        points.dedup_by(|next, last| next.outcomes == last.outcomes);
        let Some(RecordEnds { opening, closing, is_closed }) = history.ends.records.get(&numbers).cloned() else {
            continue;
        };
        lines.push(Line { bookmaker, market, opening, closing, is_closed, points });
    }
    lines.sort_by(|one, other| {
        one.bookmaker.cmp(&other.bookmaker).then_with(|| one.market.cmp_in_records(other.market))
    });
    Ok(Some(EventLines { event: Arc::clone(&history.ends.event), start: history.ends.start, lines }))
}
