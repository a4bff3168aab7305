//! About how many bytes of memory entries take: as they are, and with all that can be rendered of them.

use super::entry::{PriceChange, SportEntry, TickEntry};
use crate::model::{Event, OddsFormat, Outcome, Record};

pub(super) const ENTRY: usize = 256;
const LIST_CHANGE: usize = 600;
const SOURCE: usize = 48;
/// The counters of an `Arc`, and what the allocator rounds up.
const SHARED: usize = 24;

/// About the most that a record, an event and an outcome are as JSON, without their names.
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

/// The most that all forms of the records of an entry take.
pub(super) fn of_all_forms(sports: &[SportEntry]) -> usize {
    let changes = sports.iter().flat_map(SportEntry::ticks).flat_map(|tick| &tick.records);
    changes.map(|change| forms_of(&change.event, change.record.as_deref())).sum()
}

fn forms_of(event: &Event, record: Option<&Record>) -> usize {
    let formats = OddsFormat::ALL.len();
    let ends = 2 * formats * size_of::<usize>();
    let Some(record) = record else { return ends };
    let of_outcome = |outcome: &Outcome| OUTCOME_JSON + outcome.name.as_stored().len();
    let plain = RECORD_JSON + event.id.as_str().len() + record.outcomes.iter().map(of_outcome).sum::<usize>();
    let names = [Some(&event.competition), Some(&event.competition_key), event.title(), event.home(), event.away()];
    let about = EVENT_JSON + names.into_iter().flatten().map(|name| name.len()).sum::<usize>();
    ends + formats * (2 * plain + about)
}
