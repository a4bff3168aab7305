//! UTC days and months as numbers, counted from 1970-01-01, and when each of them ends.
//!
//! Runs on every charge, so it is plain arithmetic; the tests compare every representable day with a calendar library.

use crate::clock::Moment;
use crate::model::Timestamp;

const SECONDS_PER_DAY: u64 = 86_400;

/// The day and month of a moment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dates {
    pub(super) second: u32,
    /// The day and the month that requests are counted in: the clock's, unless it was far ahead before (see `quota`).
    pub(super) day: u64,
    pub(super) month: u64,
    pub(super) clock_day: u64,
    pub(super) clock_month: u64,
}

impl Dates {
    /// By the steady clock, which cannot be set while the process runs.
    pub(super) fn of(now: Moment) -> Self {
        Dates::at(now.steady_timestamp())
    }

    pub(super) fn at(time: Timestamp) -> Self {
        let second = time.unix();
        let day = u64::from(second) / SECONDS_PER_DAY;
        let month = month_of(day);
        Dates { second, day, month, clock_day: day, clock_month: month }
    }

    /// Whether requests are counted in a later period than the clock's.
    pub(super) fn is_behind(&self) -> bool {
        self.day > self.clock_day || self.month > self.clock_month
    }

    /// Whether a day is so far ahead that only a wrong clock can have entered it.
    pub(super) fn is_far_day(&self, day: u64) -> bool {
        day > self.clock_day + 1
    }

    pub(super) fn is_far_month(&self, month: u64) -> bool {
        first_day_of(month) > self.clock_day + 1
    }

    /// Seconds until a day ends. The day may not have begun yet, if the clock has been set back.
    pub(super) fn until_day_ends(&self, day: u64) -> u32 {
        self.until_day_begins(self.clock_day + day.saturating_sub(self.day) + 1)
    }

    /// Seconds until a month ends.
    pub(super) fn until_month_ends(&self, month: u64) -> u32 {
        self.until_day_begins(first_day_of(self.clock_month + month.saturating_sub(self.month) + 1))
    }

    fn until_day_begins(&self, day: u64) -> u32 {
        let left = (day * SECONDS_PER_DAY).saturating_sub(self.second.into());
        u32::try_from(left).unwrap_or(u32::MAX)
    }
}

/// The first day of a month. Years are counted from March, so that a leap day is the last day of its year.
fn first_day_of(month: u64) -> u64 {
    const MONTHS_FROM_MARCH_OF_YEAR_0: u64 = 1970 * 12 - 2;
    const DAYS_FROM_MARCH_OF_YEAR_0: u64 = 719_468;
    let months = month + MONTHS_FROM_MARCH_OF_YEAR_0;
    let (year, month_of_year) = (months / 12, months % 12);
    let days_of_years = 365 * year + year / 4 - year / 100 + year / 400;
    days_of_years + (153 * month_of_year + 2) / 5 - DAYS_FROM_MARCH_OF_YEAR_0
}

/// The month that a day falls in. The estimate by the mean length of a month is never too high; the loop corrects it
/// where it is too low.
fn month_of(day: u64) -> u64 {
    let mut month = day * 400 / 12_175;
    while first_day_of(month + 1) <= day {
        month += 1;
    }
    month
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dates(second: u32) -> Dates {
        Dates::of(Moment::unset(Timestamp::from_unix(second).unix_ms(), 0))
    }

    #[test]
    fn agrees_with_a_calendar_library_on_every_day() {
        for day in 0..u32::MAX / 86_400 {
            let dates = dates(day * 86_400 + 86_399);
            let theirs = jiff::Timestamp::from_second(dates.second.into()).unwrap().to_zoned(jiff::tz::TimeZone::UTC);
            let months = (i64::from(theirs.year()) - 1970) * 12 + i64::from(theirs.month()) - 1;
            let rest_of_month = i64::from(theirs.days_in_month()) - i64::from(theirs.day());
            assert_eq!((dates.day, i64::try_from(dates.month).unwrap()), (day.into(), months));
            assert_eq!(dates.until_day_ends(dates.day), 1);
            assert_eq!(i64::from(dates.until_month_ends(dates.month)), rest_of_month * 86_400 + 1);
        }
    }

    #[test]
    fn day_ends_at_midnight() {
        let midnight = dates(20_000 * 86_400);
        assert_eq!(midnight.day, 20_000);
        assert_eq!(midnight.until_day_ends(20_000), 86_400);
        assert_eq!(midnight.until_day_ends(20_001), 2 * 86_400, "a day ahead of the clock");
        assert_eq!(dates(20_000 * 86_400 - 1).day, 19_999);
        assert!(dates(u32::MAX).until_month_ends(dates(u32::MAX).month) > 0);
    }
}
