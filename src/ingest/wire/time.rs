//! Parses the times of feeds: RFC 3339 with any offset. The plain UTC form, which nearly every line has, is parsed here;
//! everything else by jiff.

use crate::model::Timestamp;

const SECONDS_PER_DAY: i64 = 86_400;

/// Fractions of a second are cut. `None` if it is no time, or one outside the range.
pub(super) fn parse(text: &str) -> Option<Timestamp> {
    plain(text.as_bytes()).or_else(|| {
        let moment: jiff::Timestamp = text.parse().ok()?;
        Timestamp::checked_from_unix(moment.as_millisecond().div_euclid(1000))
    })
}

/// Exactly `YYYY-MM-DDTHH:MM:SSZ`, on a day that the calendar has.
fn plain(text: &[u8]) -> Option<Timestamp> {
    let text: &[u8; 20] = text.try_into().ok()?;
    if [text[4], text[7], text[10], text[13], text[16], text[19]] != *b"--T::Z" {
        return None;
    }
    let year = number(&text[..4])?;
    let (month, day) = (number(&text[5..7])?, number(&text[8..10])?);
    let (hour, minute, second) = (number(&text[11..13])?, number(&text[14..16])?, number(&text[17..19])?);
    // Days past the 28th are left to the library, which knows the months.
    if !(1..=12).contains(&month) || !(1..=28).contains(&day) || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let seconds = days(year, month, day) * SECONDS_PER_DAY + hour * 3600 + minute * 60 + second;
    Timestamp::checked_from_unix(seconds)
}

fn number(digits: &[u8]) -> Option<i64> {
    digits.iter().try_fold(0, |value, byte| byte.is_ascii_digit().then(|| value * 10 + i64::from(byte - b'0')))
}

/// Days from 1970-01-01, by Howard Hinnant's `days_from_civil`; for years from 0 on.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let shifted = if month <= 2 { year - 1 } else { year };
    let era = shifted.div_euclid(400);
    let year_of_era = shifted.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unix(text: &str) -> Option<u32> {
        parse(text).map(Timestamp::unix)
    }

    #[test]
    fn reads_offsets_and_cuts_fractions() {
        assert_eq!(unix("2026-11-14T23:39:00Z"), Some(1_794_699_540));
        assert_eq!(unix("2026-11-15T01:39:00+02:00"), Some(1_794_699_540));
        assert_eq!(unix("2026-11-14T23:39:00.999Z"), Some(1_794_699_540));
        assert_eq!(unix("2028-02-29T00:00:00Z"), Some(1_835_395_200));
    }

    #[test]
    fn refuses_what_is_no_time_or_out_of_range() {
        for text in [
            "",
            "now",
            "2026-11-14",
            "2026-11-14T23:39:00",
            "2026-02-30T00:00:00Z",
            "2026-13-01T00:00:00Z",
            "2026-11-14T24:00:00Z",
            "1969-12-31T23:59:59Z",
            "1969-12-31T23:59:59.5Z",
            "2107-01-01T00:00:00Z",
            "0000-01-01T00:00:00Z",
        ] {
            assert_eq!(unix(text), None, "{text}");
        }
    }

    #[test]
    fn agrees_with_the_library_on_every_day() {
        for day in 0..(u32::MAX / 86_400) {
            let at = Timestamp::from_unix(day * 86_400 + day * 7919 % 86_400);
            assert_eq!(parse(&at.to_string()), Some(at));
        }
    }
}
