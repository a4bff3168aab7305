//! What a key has used lately, by hour and by day, for people to look at. Quotas do not depend on it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::calendar::Dates;
use crate::keys::record::Usage;
use crate::model::Timestamp;

const HOUR_S: u32 = 3_600;
const DAY_HOURS: u32 = 24;
/// For how many hours and days use is kept, the current ones included.
pub const RECENT_HOURS: usize = 24;
pub const RECENT_DAYS: usize = 31;

/// Units used in each of the last hours and days, in UTC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecentUse {
    /// The latest hour with an entry, counted from 1970.
    pub last_hour: u32,
    /// By the hour modulo their number.
    pub hours: [u32; RECENT_HOURS],
    /// By the day modulo their number.
    pub days: [u32; RECENT_DAYS],
}

impl RecentUse {
    /// Adds units to the hour and the day of a time.
    pub(super) fn add(&mut self, units: u32, at: Timestamp) {
        let (hour, slot) = self.slots(at);
        *hour = hour.saturating_add(units);
        *slot = slot.saturating_add(units);
    }

    /// Takes back units of requests that were refunded.
    pub(super) fn take_back(&mut self, units: u32, at: Timestamp) {
        let (hour, slot) = self.slots(at);
        *hour = hour.saturating_sub(units);
        *slot = slot.saturating_sub(units);
    }

    fn slots(&mut self, at: Timestamp) -> (&mut u32, &mut u32) {
        let hour = at.unix() / HOUR_S;
        if self.last_hour.saturating_sub(hour) >= DAY_HOURS {
            // The clock was ahead by a day or more: what was counted then belongs to no hour.
            *self = RecentUse { last_hour: hour, ..RecentUse::default() };
        }
        self.move_to(hour);
        let day = hour / DAY_HOURS;
        (&mut self.hours[index(hour, RECENT_HOURS)], &mut self.days[index(day, RECENT_DAYS)])
    }

    /// Clears what is too old at an hour.
    fn move_to(&mut self, hour: u32) {
        let passed = |from: u32, to: u32, count: usize| from + 1..=to.min(from.saturating_add(as_u32(count)));
        for hour in passed(self.last_hour, hour, RECENT_HOURS) {
            self.hours[index(hour, RECENT_HOURS)] = 0;
        }
        for day in passed(self.last_hour / DAY_HOURS, hour / DAY_HOURS, RECENT_DAYS) {
            self.days[index(day, RECENT_DAYS)] = 0;
        }
        self.last_hour = self.last_hour.max(hour);
    }

    /// The last hours, by the time at which each begins, the oldest first.
    pub fn by_hour(mut self, now: Timestamp) -> impl Iterator<Item = (Timestamp, u32)> {
        let hour = now.unix() / HOUR_S;
        self.move_to(hour);
        let hours = (0..=hour).rev().take(RECENT_HOURS).collect::<Vec<_>>().into_iter().rev();
        hours.map(move |hour| (Timestamp::from_unix(hour * HOUR_S), self.hours[index(hour, RECENT_HOURS)]))
    }

    /// The last days, by the time at which each begins, the oldest first.
    pub fn by_day(mut self, now: Timestamp) -> impl Iterator<Item = (Timestamp, u32)> {
        let hour = now.unix() / HOUR_S;
        self.move_to(hour);
        let days = (0..=hour / DAY_HOURS).rev().take(RECENT_DAYS).collect::<Vec<_>>().into_iter().rev();
        days.map(move |day| (Timestamp::from_unix(day * DAY_HOURS * HOUR_S), self.days[index(day, RECENT_DAYS)]))
    }
}

/// Counts the units that a key uses. A request only increments a total. What was added since the last call is attributed to the
/// current hour and day when use is read or stored.
#[derive(Debug, Default)]
pub(super) struct UseRecorder {
    /// Units since the start, refunded ones taken back.
    total: AtomicU64,
    recorded: Mutex<Recorded>,
}

#[derive(Debug, Default)]
struct Recorded {
    /// What of the total is in `recent`.
    total: u64,
    /// Nothing for a key that was not used lately.
    recent: Option<Box<RecentUse>>,
    is_unstored: bool,
    /// Present in a cluster, where use is recorded by entries of the log that the nodes share.
    shared: Option<SharedUse>,
}

/// What all nodes of a cluster have used of a key, as far as their log has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SharedUse {
    pub usage: Usage,
    pub recent: RecentUse,
    pub last_used: Option<Timestamp>,
}

impl SharedUse {
    /// The same with what one of the nodes has used since.
    #[must_use]
    pub fn plus(mut self, units: u64, used: Timestamp, at: Timestamp) -> Self {
        let Dates { clock_day, clock_month, .. } = Dates::at(at);
        let Usage { day, day_used, month, month_used } = &mut self.usage;
        add_to_period((day, day_used), clock_day, units);
        add_to_period((month, month_used), clock_month, units);
        self.recent.add(u32::try_from(units).unwrap_or(u32::MAX), at);
        self.last_used = self.last_used.max(Some(used));
        self
    }
}

fn add_to_period((period, used): (&mut u32, &mut u64), now: u64, units: u64) {
    let now = u32::try_from(now).unwrap_or(u32::MAX);
    if now > *period {
        (*period, *used) = (now, 0);
    }
    *used = used.saturating_add(units);
}

impl UseRecorder {
    pub(super) fn count(&self, units: u64) {
        self.total.fetch_add(units, Ordering::Relaxed);
    }

    pub(super) fn refund(&self, units: u64) {
        self.total.fetch_sub(units, Ordering::Relaxed);
    }

    /// In a cluster, from what the log has.
    pub(super) fn shared(usage: Usage, last_used: Option<Timestamp>) -> Self {
        let shared = SharedUse { usage, last_used, ..SharedUse::default() };
        UseRecorder {
            recorded: Mutex::new(Recorded { shared: Some(shared), ..Recorded::default() }),
            ..Self::default()
        }
    }

    /// Continues from what was stored.
    pub(super) fn restore(&self, recent: RecentUse) {
        let mut recorded = self.recorded();
        match &mut recorded.shared {
            Some(shared) => shared.recent = recent,
            None => recorded.recent = Some(Box::new(recent)),
        }
    }

    /// The use up to now.
    pub(super) fn recent(&self, now: Timestamp) -> RecentUse {
        let recorded = self.recorded();
        if let Some(SharedUse { mut recent, .. }) = recorded.shared {
            let units = self.total.load(Ordering::Relaxed).saturating_sub(recorded.total);
            recent.add(u32::try_from(units).unwrap_or(u32::MAX), now);
            return recent;
        }
        drop(recorded);
        self.record(now).recent.as_deref().copied().unwrap_or_default()
    }

    pub(super) fn shared_use(&self) -> Option<SharedUse> {
        self.recorded().shared
    }

    pub(super) fn put_shared_use(&self, shared: SharedUse) {
        self.recorded().shared = Some(shared);
    }

    /// Takes what was used here since this was last called, to enter it in the log.
    pub(super) fn take_units(&self) -> u64 {
        let mut recorded = self.recorded();
        let total = self.total.load(Ordering::Relaxed).max(recorded.total);
        total - std::mem::replace(&mut recorded.total, total)
    }

    /// Units that were taken could not be entered.
    pub(super) fn keep_units(&self, units: u64) {
        let mut recorded = self.recorded();
        recorded.total = recorded.total.saturating_sub(units);
    }

    /// The use up to now, if it is not what was stored last; from then on it counts as stored.
    pub(super) fn take_unstored(&self, now: Timestamp) -> Option<RecentUse> {
        if self.shared_use().is_some() {
            return None;
        }
        let mut recorded = self.record(now);
        if !std::mem::take(&mut recorded.is_unstored) {
            return None;
        }
        recorded.recent.as_deref().copied()
    }

    /// What was taken could not be stored.
    pub(super) fn keep_unstored(&self) {
        self.recorded().is_unstored = true;
    }

    fn record(&self, now: Timestamp) -> MutexGuard<'_, Recorded> {
        let mut recorded = self.recorded();
        let total = self.total.load(Ordering::Relaxed);
        let units = |more: u64, less: u64| u32::try_from(more - less).unwrap_or(u32::MAX);
        let before = std::mem::replace(&mut recorded.total, total);
        if total != before {
            recorded.is_unstored = true;
            let recent = recorded.recent.get_or_insert_default();
            if total > before {
                recent.add(units(total, before), now);
            } else {
                recent.take_back(units(before, total), now);
            }
        }
        recorded
    }

    fn recorded(&self) -> MutexGuard<'_, Recorded> {
        self.recorded.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn as_u32(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

fn index(number: u32, count: usize) -> usize {
    number as usize % count
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(hour: u32) -> Timestamp {
        Timestamp::from_unix(hour * HOUR_S + 17)
    }

    proptest! {
        /// Held against a plain list of what was used.
        #[test]
        fn hours_and_days_are_sums_of_what_was_used_in_them(steps in prop::collection::vec((0_u32..60, 0_u32..1_000), 1..60)) {
            let mut recent = RecentUse::default();
            let (mut hour, mut all) = (480_000, Vec::new());
            for (wait, units) in steps {
                hour += wait;
                recent.add(units, at(hour));
                all.push((hour, units));
            }
            let sum = |is_in: &dyn Fn(u32) -> bool| all.iter().filter(|(hour, _)| is_in(*hour)).map(|(_, units)| units).sum::<u32>();
            let hours: Vec<_> = recent.by_hour(at(hour)).collect();
            prop_assert_eq!(hours.len(), RECENT_HOURS);
            for (start, used) in hours {
                prop_assert_eq!(used, sum(&|hour| hour == start.unix() / HOUR_S));
            }
            let days: Vec<_> = recent.by_day(at(hour)).collect();
            prop_assert_eq!(days.len(), RECENT_DAYS);
            for (start, used) in days {
                prop_assert_eq!(used, sum(&|hour| hour / DAY_HOURS == start.unix() / HOUR_S / DAY_HOURS));
            }
        }
    }

    #[test]
    fn hours_that_have_passed_since_are_empty() {
        let mut recent = RecentUse::default();
        recent.add(5, at(480_000));
        assert_eq!(recent.by_hour(at(480_003)).map(|(_, used)| used).sum::<u32>(), 5);
        assert_eq!(recent.by_hour(at(480_024)).map(|(_, used)| used).sum::<u32>(), 0);
        assert_eq!(recent.by_day(at(480_024)).map(|(_, used)| used).sum::<u32>(), 5);
        assert_eq!(recent.by_day(at(480_000 + 31 * 24)).map(|(_, used)| used).sum::<u32>(), 0);
    }

    #[test]
    fn clock_that_was_ahead_leaves_nothing_behind() {
        let mut recent = RecentUse::default();
        recent.add(5, at(500_000));
        recent.add(7, at(480_000));
        assert_eq!(recent.by_hour(at(480_000)).map(|(_, used)| used).sum::<u32>(), 7);
        assert_eq!(recent.by_day(at(480_000)).map(|(_, used)| used).sum::<u32>(), 7);
    }

    #[test]
    fn use_is_stored_once_after_it_changed() {
        let recorder = UseRecorder::default();
        assert_eq!(recorder.take_unstored(at(480_000)), None);
        recorder.count(3);
        assert_eq!(recorder.recent(at(480_000)).by_hour(at(480_000)).last().map(|(_, used)| used), Some(3));
        let stored = recorder.take_unstored(at(480_001)).expect("it was used");
        assert_eq!(recorder.take_unstored(at(480_001)), None);
        recorder.keep_unstored();
        assert_eq!(recorder.take_unstored(at(480_001)), Some(stored));
        recorder.refund(1);
        let recent = recorder.take_unstored(at(480_000)).expect("it changed");
        assert_eq!(recent.by_day(at(480_000)).map(|(_, used)| used).sum::<u32>(), 2);
    }

    #[test]
    fn refunded_units_are_taken_back() {
        let mut recent = RecentUse::default();
        recent.add(5, at(480_000));
        recent.take_back(2, at(480_000));
        assert_eq!(recent.by_hour(at(480_000)).last(), Some((Timestamp::from_unix(480_000 * HOUR_S), 3)));
    }
}
