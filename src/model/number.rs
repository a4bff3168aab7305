//! Exact reading and writing of decimal numbers: text to scaled integers, without floating point.

use super::text::{FixedBuffer, digit};

/// A number times a power of ten, rounded half away from zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Scaled {
    pub value: i64,
    /// Whether no rounding was needed.
    pub exact: bool,
}

/// More digits than any price needs, but few enough that the arithmetic below cannot overflow.
const DIGITS_MAX: u32 = 30;

/// Parses a JSON number (a leading `+` is tolerated) as `number × 10^places`. `None` if it is not a number, or is too
/// large or too long to be a price.
pub(crate) fn parse_scaled(text: &str, places: i32) -> Option<Scaled> {
    let (negative, unsigned) = split_sign(text.as_bytes());
    let (digits, exponent) = match unsigned.iter().position(|byte| matches!(byte, b'e' | b'E')) {
        Some(at) => (&unsigned[..at], parse_exponent(&unsigned[at + 1..])?),
        None => (unsigned, 0),
    };
    let (mantissa, decimals) = parse_mantissa(digits)?;
    let (magnitude, exact) = shift(mantissa, exponent - decimals + places)?;
    let magnitude = i64::try_from(magnitude).ok()?;
    Some(Scaled { value: if negative { -magnitude } else { magnitude }, exact })
}

/// Whether the number is negative, and the text after its sign.
fn split_sign(text: &[u8]) -> (bool, &[u8]) {
    match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] | rest => (false, rest),
    }
}

/// The digits as one integer, and the number of decimals.
fn parse_mantissa(digits: &[u8]) -> Option<(u128, i32)> {
    let point = digits.iter().position(|byte| *byte == b'.');
    let (whole, fraction) = match point {
        Some(at) => (&digits[..at], &digits[at + 1..]),
        None => (digits, &[][..]),
    };
    if whole.is_empty() || (point.is_some() && fraction.is_empty()) {
        return None;
    }
    let mut mantissa: u128 = 0;
    let mut significant = 0;
    for byte in whole.iter().chain(fraction) {
        if !byte.is_ascii_digit() {
            return None;
        }
        significant += u32::from(mantissa != 0 || *byte != b'0');
        if significant > DIGITS_MAX {
            return None;
        }
        mantissa = mantissa * 10 + u128::from(byte - b'0');
    }
    Some((mantissa, i32::try_from(fraction.len()).ok()?))
}

fn parse_exponent(text: &[u8]) -> Option<i32> {
    let (negative, digits) = split_sign(text);
    if !(1..=3).contains(&digits.len()) || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let value = digits.iter().fold(0, |value, byte| value * 10 + i32::from(byte - b'0'));
    Some(if negative { -value } else { value })
}

/// `mantissa × 10^power`, rounded half up, and whether that was exact.
fn shift(mantissa: u128, power: i32) -> Option<(u128, bool)> {
    if mantissa == 0 {
        return Some((0, true));
    }
    let factor = 10u128.checked_pow(power.unsigned_abs());
    if power >= 0 {
        return Some((mantissa.checked_mul(factor?)?, true));
    }
    // A divisor that overflows 128 bits is more than twice any mantissa of thirty digits, so the result rounds to zero.
    let Some(divisor) = factor else { return Some((0, false)) };
    let (quotient, rest) = (mantissa / divisor, mantissa % divisor);
    Some((quotient + u128::from(rest >= divisor - rest), rest == 0))
}

/// Writes thousandths as a decimal with one to three places: `2.0`, `1.91`, `1.909`.
#[inline]
pub(crate) fn write_milli(milli: u32, buffer: &mut FixedBuffer<'_>) {
    let (whole, fraction) = (milli / 1000, milli % 1000);
    buffer.put_number(whole);
    let first = digit(fraction / 100);
    match fraction {
        f if f % 100 == 0 => buffer.put(&[b'.', first]),
        f if f % 10 == 0 => buffer.put(&[b'.', first, digit(fraction / 10)]),
        _ => buffer.put(&[b'.', first, digit(fraction / 10), digit(fraction)]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, places: i32) -> Option<(i64, bool)> {
        parse_scaled(text, places).map(|scaled| (scaled.value, scaled.exact))
    }

    #[test]
    fn reads_numbers_exactly() {
        assert_eq!(read("1.91", 3), Some((1910, true)));
        assert_eq!(read("1.9105", 3), Some((1911, false)));
        assert_eq!(read("-0.0005", 3), Some((-1, false)));
        assert_eq!(read("2e2", 3), Some((200_000, true)));
        assert_eq!(read("1.5E-1", 3), Some((150, true)));
        assert_eq!(read("0.000000000000000000000000000000000000000000000001", 3), Some((0, false)));
        assert_eq!(read("1e-400", 3), Some((0, false)));
        assert_eq!(read("0e999", 3), Some((0, true)));
    }

    #[test]
    fn rejects_malformed_and_too_long_numbers() {
        for text in
            ["", "-", ".", "1.", ".5", "1..2", "1e", "1e+", "NaN", "inf", "0x10", "1e9999", "1e300", " 1", "1,5"]
        {
            assert_eq!(read(text, 3), None, "{text}");
        }
        assert_eq!(read(&"9".repeat(31), 3), None);
    }
}
