//! Fractions rounded to six decimals, which is how results leave this module.

use crate::model::number::{Scaled, parse_scaled};

/// A fraction in millionths. Equal results compare equal, and a sum of them is exact.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Millionths(i64);

impl Millionths {
    pub const ONE: Millionths = Millionths(1_000_000);

    pub const fn from_count(count: i64) -> Self {
        Millionths(count)
    }

    pub const fn count(self) -> i64 {
        self.0
    }

    /// Reads a number with at most six decimals.
    pub fn parse(text: &str) -> Option<Self> {
        match parse_scaled(text, 6)? {
            Scaled { value, exact: true } => Some(Millionths(value)),
            _ => None,
        }
    }

    /// Rounds half away from zero.
    #[expect(clippy::cast_possible_truncation, reason = "a result beyond the range saturates")]
    pub fn of(value: f64) -> Self {
        Millionths((value * 1e6).round() as i64)
    }

    /// Appends a JSON number with one to six decimals: `0.5`, `-0.012346`, `1.0`.
    pub fn write_json(self, out: &mut Vec<u8>) {
        if self.0 < 0 {
            out.push(b'-');
        }
        let count = self.0.unsigned_abs();
        out.extend_from_slice(itoa::Buffer::new().format(count / 1_000_000).as_bytes());
        let mut decimals = [b'0'; 6];
        let mut rest = count % 1_000_000;
        for digit in decimals.iter_mut().rev() {
            *digit += u8::try_from(rest % 10).unwrap_or_default();
            rest /= 10;
        }
        let shown = decimals.iter().rposition(|digit| *digit != b'0').map_or(1, |last| last + 1);
        out.push(b'.');
        out.extend_from_slice(&decimals[..shown]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn are_written_with_one_to_six_decimals() {
        for (value, text) in [
            (0.0, "0.0"),
            (1.0, "1.0"),
            (0.5, "0.5"),
            (-0.012_345_6, "-0.012346"),
            (0.000_001, "0.000001"),
            (-0.000_000_4, "0.0"),
            (12.25, "12.25"),
        ] {
            let mut out = Vec::new();
            Millionths::of(value).write_json(&mut out);
            assert_eq!(std::str::from_utf8(&out).unwrap(), text);
        }
    }
}
