//! About how many bytes of memory entries take: as they are, and with what is rendered of them.

use super::entry::{PriceChange, SportEntry, TickEntry};
use crate::model::{Event, Outcome, Record};

pub(super) const ENTRY: usize = 256;
const LIST_CHANGE: usize = 600;
const SOURCE: usize = 48;
/// The counters of an `Arc`, and what the allocator rounds up.
const SHARED: usize = 24;

/// About the most that a publication, a record, an event and an outcome are as JSON, without their names.
const TICK_JSON: usize = 240;
const RECORD_JSON: usize = 200;
const EVENT_JSON: usize = 120;
const OUTCOME_JSON: usize = 64;

/// What is kept of a sport before anything is rendered.
pub(super) fn of_sport(sport: &SportEntry) -> usize {
    sport.lists.len() * LIST_CHANGE + sport.ticks().map(of_tick).sum::<usize>()
}

fn of_tick(tick: &TickEntry) -> usize {
    tick.sources.len() * SOURCE + tick.records.iter().map(of_change).sum::<usize>()
}

fn of_change(change: &PriceChange) -> usize {
    size_of::<PriceChange>() + change.record.as_deref().map_or(0, of_record)
}

fn of_record(record: &Record) -> usize {
    let of_outcome = |outcome: &Outcome| size_of::<Outcome>() + SHARED + outcome.name.as_stored().len();
    size_of::<Record>() + SHARED + record.outcomes.iter().map(of_outcome).sum::<usize>()
}

/// The most that the prices of an entry take in one form.
pub(super) fn of_a_form(sports: &[SportEntry]) -> usize {
    let of_change = |change: &PriceChange| {
        size_of::<usize>() + change.record.as_deref().map_or(0, |record| json_of(&change.event, record))
    };
    let of_tick = |tick: &TickEntry| TICK_JSON + tick.records.iter().map(of_change).sum::<usize>();
    sports.iter().flat_map(SportEntry::ticks).map(of_tick).sum()
}

fn json_of(event: &Event, record: &Record) -> usize {
    let of_outcome = |outcome: &Outcome| OUTCOME_JSON + outcome.name.as_stored().len();
    let names = [Some(&event.competition), Some(&event.competition_key), event.title(), event.home(), event.away()];
    let about = EVENT_JSON + names.into_iter().flatten().map(|name| name.len()).sum::<usize>();
    RECORD_JSON + event.id.as_str().len() + about + record.outcomes.iter().map(of_outcome).sum::<usize>()
}
