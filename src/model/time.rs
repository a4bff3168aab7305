//! Timestamps: whole seconds UTC, from 1970 to 2105.

use std::fmt;

use super::text::{digit, pair};

/// A whole second UTC in 32 bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(u32);

const MS_PER_SECOND: i64 = 1000;
const SECONDS_PER_DAY: u32 = 86_400;

impl Timestamp {
    pub const MAX: Timestamp = Timestamp(u32::MAX);

    pub const fn from_unix(seconds: u32) -> Self {
        Timestamp(seconds)
    }

    /// The second of a time in milliseconds, clamped to the range.
    pub fn from_unix_ms(ms: i64) -> Self {
        let seconds = ms.div_euclid(MS_PER_SECOND).max(0);
        Timestamp(u32::try_from(seconds).unwrap_or(u32::MAX))
    }

    /// `None` outside the range.
    pub fn checked_from_unix(seconds: i64) -> Option<Self> {
        u32::try_from(seconds).ok().map(Timestamp)
    }

    pub const fn unix(self) -> u32 {
        self.0
    }

    pub fn unix_ms(self) -> i64 {
        i64::from(self.0) * MS_PER_SECOND
    }

    #[must_use]
    pub const fn plus_seconds(self, seconds: u32) -> Self {
        Timestamp(self.0.saturating_add(seconds))
    }

    /// Seconds from `earlier` to this, or zero if `earlier` is later.
    pub const fn seconds_since(self, earlier: Timestamp) -> u32 {
        self.0.saturating_sub(earlier.0)
    }

    /// `2026-11-14T23:39:00Z`, without allocating.
    pub fn write(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.iso());
    }

    /// `2026-11-14T23:39:00.123Z` for the moment `unix_ms`.
    pub fn write_millis(unix_ms: i64, out: &mut Vec<u8>) {
        let seconds = Timestamp::from_unix_ms(unix_ms).iso();
        let ms = u32::try_from(unix_ms.rem_euclid(MS_PER_SECOND)).unwrap_or(0);
        out.extend_from_slice(&seconds[..19]);
        out.extend_from_slice(&[b'.', digit(ms / 100), digit(ms / 10), digit(ms), b'Z']);
    }

    /// `2026-11-14T23:39:00.123456Z` for the moment `unix_micros`.
    pub fn write_micros(unix_micros: i64, out: &mut Vec<u8>) {
        Timestamp::write_millis(unix_micros.div_euclid(MS_PER_SECOND), out);
        let micros = u32::try_from(unix_micros.rem_euclid(MS_PER_SECOND)).unwrap_or(0);
        out.pop();
        out.extend_from_slice(&[digit(micros / 100), digit(micros / 10), digit(micros), b'Z']);
    }

    /// `2026-11-14T23:39:00Z`.
    #[inline]
    pub(crate) fn iso(self) -> [u8; 20] {
        let (year, month, day) = civil(self.0 / SECONDS_PER_DAY);
        let second = self.0 % SECONDS_PER_DAY;
        let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
        let mut text = *b"0000-00-00T00:00:00Z";
        let pairs = [(0, year / 100), (2, year % 100), (5, month), (8, day), (11, hour), (14, minute), (17, second)];
        for (at, value) in pairs {
            text[at..at + 2].copy_from_slice(&pair(value));
        }
        text
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.iso();
        f.write_str(std::str::from_utf8(&text).unwrap_or_default())
    }
}

/// Year, month and day of a day counted from 1970-01-01, by Howard Hinnant's `civil_from_days`.
fn civil(days: u32) -> (u32, u32, u32) {
    let shifted = days + 719_468;
    let era = shifted / 146_097;
    let day_of_era = shifted % 146_097;
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + u32::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_iso_seconds_and_milliseconds() {
        let mut out = Vec::new();
        Timestamp::from_unix(1_794_699_540).write(&mut out);
        out.push(b' ');
        Timestamp::write_millis(1_794_699_540_007, &mut out);
        assert_eq!(out, b"2026-11-14T23:39:00Z 2026-11-14T23:39:00.007Z");
    }

    #[test]
    fn agrees_with_a_calendar_library_on_every_day() {
        for day in 0..=(u32::MAX / SECONDS_PER_DAY) {
            let at = Timestamp::from_unix(day * SECONDS_PER_DAY);
            let theirs = jiff::Timestamp::from_second(i64::from(at.unix())).unwrap();
            assert_eq!(at.to_string(), theirs.to_string());
        }
    }

    #[test]
    fn times_outside_the_range_are_clamped() {
        assert_eq!(Timestamp::from_unix_ms(-1), Timestamp::from_unix(0));
        assert_eq!(Timestamp::from_unix_ms(i64::MAX), Timestamp::MAX);
        assert_eq!(Timestamp::checked_from_unix(-1), None);
    }
}
