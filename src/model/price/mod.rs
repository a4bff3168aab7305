//! Prices: the exact profit per unit staked, and every conversion between American, decimal and fractional form.
//!
//! All rounding of prices is done here. A price keeps the format it was quoted in and is served unchanged in that
//! format; the other two are derived by the rules in the README. Nothing here allocates, and only fair prices use floats.

mod fair;
mod fraction;

use std::fmt;

pub use fair::FairPrice;

use super::number::{Scaled, parse_scaled, write_milli};
use super::text::{FixedBuffer, append};

/// The formats in which prices are quoted and served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum OddsFormat {
    American,
    Decimal,
    Fractional,
}

impl OddsFormat {
    pub const ALL: [OddsFormat; 3] = [OddsFormat::American, OddsFormat::Decimal, OddsFormat::Fractional];

    pub const fn key(self) -> &'static str {
        match self {
            OddsFormat::American => "american",
            OddsFormat::Decimal => "decimal",
            OddsFormat::Fractional => "fractional",
        }
    }

    pub fn parse(text: &str) -> Option<OddsFormat> {
        OddsFormat::ALL.into_iter().find(|format| format.key() == text)
    }
}

impl fmt::Display for OddsFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.key())
    }
}

/// Why a text is not a valid price.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum PriceError {
    #[error("the price is not a number")]
    NotANumber,
    #[error("an American price is a whole number")]
    NotWhole,
    #[error("an American price is never between -100 and 100")]
    InsideHundred,
    #[error("a fractional price is two whole numbers above zero, as in 10/11")]
    BadFraction,
    #[error("the price is below 1.001 in decimal")]
    TooShort,
    #[error("the price is above 100000 in decimal")]
    TooLong,
}

/// A betting price: `profit / stake` in lowest terms, and the format it was quoted in.
///
/// Invariant: its decimal form lies between 1.001 and 100000, and a price quoted in decimal has at most three places.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Price {
    profit: u32,
    stake: u32,
    quoted: OddsFormat,
}

const DECIMAL_MILLI_MIN: u64 = 1_001;
const DECIMAL_MILLI_MAX: u64 = 100_000_000;
/// The same bounds in American form: a profit of half a thousandth rounds to 1.001.
const AMERICAN_MIN: i64 = -200_000;
const AMERICAN_MAX: i64 = 9_999_900;

/// The greatest divisor that a number has in common with 100, by its remainder. History is read price by price, and nearly
/// all are in hundredths or thousandths.
const COMMON_WITH_100: [u32; 100] = common_divisors();
const COMMON_WITH_1000: [u32; 1000] = common_divisors();

#[expect(clippy::cast_possible_truncation, reason = "a divisor of 100 or 1000")]
const fn common_divisors<const WITH: usize>() -> [u32; WITH] {
    let mut divisors = [0; WITH];
    let mut remainder = 0;
    while remainder < WITH {
        divisors[remainder] = gcd(remainder as u64, WITH as u64) as u32;
        remainder += 1;
    }
    divisors
}

impl Price {
    /// Parses a price as a feed writes it: the text of a JSON number, or of a string such as `10/11`.
    pub fn parse(text: &str, format: OddsFormat) -> Result<Self, PriceError> {
        match format {
            OddsFormat::American => Self::parse_american(text),
            OddsFormat::Decimal => Self::parse_decimal(text),
            OddsFormat::Fractional => Self::parse_fraction(text),
        }
    }

    fn parse_american(text: &str) -> Result<Self, PriceError> {
        match parse_scaled(text, 0) {
            None => Err(PriceError::NotANumber),
            Some(Scaled { exact: false, .. }) => Err(PriceError::NotWhole),
            Some(Scaled { value, .. }) => Self::from_american(value),
        }
    }

    #[inline]
    pub fn from_american(value: i64) -> Result<Self, PriceError> {
        let too_far = if value < 0 { PriceError::TooShort } else { PriceError::TooLong };
        let size = u32::try_from(value.unsigned_abs()).map_err(|_| too_far)?;
        let divisor = COMMON_WITH_100[size as usize % 100];
        let (profit, stake) = match value {
            AMERICAN_MIN..=-100 => (100, size),
            100..=AMERICAN_MAX => (size, 100),
            -99..100 => return Err(PriceError::InsideHundred),
            _ => return Err(too_far),
        };
        Ok(Price { profit: profit / divisor, stake: stake / divisor, quoted: OddsFormat::American })
    }

    /// More than three decimals are rounded half up, as responses have at most three.
    fn parse_decimal(text: &str) -> Result<Self, PriceError> {
        let scaled = parse_scaled(text, 3).ok_or(PriceError::NotANumber)?;
        Self::from_decimal_milli(u64::try_from(scaled.value).map_err(|_| PriceError::TooShort)?)
    }

    /// From thousandths: 1910 is 1.91.
    #[inline]
    pub fn from_decimal_milli(milli: u64) -> Result<Self, PriceError> {
        match milli {
            ..DECIMAL_MILLI_MIN => Err(PriceError::TooShort),
            DECIMAL_MILLI_MIN..=DECIMAL_MILLI_MAX => {
                let profit = u32::try_from(milli - 1000).map_err(|_| PriceError::TooLong)?;
                let divisor = COMMON_WITH_1000[profit as usize % 1000];
                Ok(Price { profit: profit / divisor, stake: 1000 / divisor, quoted: OddsFormat::Decimal })
            }
            _ => Err(PriceError::TooLong),
        }
    }

    fn parse_fraction(text: &str) -> Result<Self, PriceError> {
        let whole = |text: &str| match parse_scaled(text, 0) {
            Some(Scaled { value, exact: true }) if value > 0 => Ok(value.unsigned_abs()),
            _ => Err(PriceError::BadFraction),
        };
        let (profit, stake) = text.split_once('/').ok_or(PriceError::BadFraction)?;
        Self::from_fraction(whole(profit)?, whole(stake)?, OddsFormat::Fractional)
    }

    /// The base constructor: reduces the fraction and checks the bounds.
    pub fn from_fraction(profit: u64, stake: u64, quoted: OddsFormat) -> Result<Self, PriceError> {
        if profit == 0 || stake == 0 {
            return Err(PriceError::BadFraction);
        }
        let divisor = gcd(profit, stake);
        let (profit, stake) = (profit / divisor, stake / divisor);
        let decimal_milli = 1000 + round_half_up(u128::from(profit) * 1000, u128::from(stake));
        if decimal_milli < u128::from(DECIMAL_MILLI_MIN) {
            return Err(PriceError::TooShort);
        }
        if u128::from(profit) > u128::from(DECIMAL_MILLI_MAX / 1000 - 1) * u128::from(stake) {
            return Err(PriceError::TooLong);
        }
        match (u32::try_from(profit), u32::try_from(stake)) {
            (Ok(profit), Ok(stake)) => Ok(Price { profit, stake, quoted }),
            _ => Err(PriceError::BadFraction),
        }
    }

    /// The fractions that bookmakers traditionally quote, as profit and stake, shortest price first.
    pub const fn ladder() -> &'static [(u32, u32)] {
        &fraction::LADDER
    }

    /// The chance that the price gives its outcome, with the bookmaker's margin: stake by return.
    pub fn chance(self) -> f64 {
        let (profit, stake) = self.fraction();
        f64::from(stake) / (f64::from(profit) + f64::from(stake))
    }

    /// Profit and stake in lowest terms.
    pub const fn fraction(self) -> (u32, u32) {
        (self.profit, self.stake)
    }

    #[inline]
    pub const fn quoted(self) -> OddsFormat {
        self.quoted
    }

    /// A profit of 1 or more is positive, below 1 negative; even money is 100.
    #[inline]
    pub fn american(self) -> i32 {
        let (profit, stake) = (u64::from(self.profit), u64::from(self.stake));
        let rounded = |n: u64, d: u64| i32::try_from((200 * n + d) / (2 * d)).unwrap_or(i32::MAX);
        if profit >= stake {
            return rounded(profit, stake);
        }
        match rounded(stake, profit) {
            100 => 100,
            below_even => -below_even,
        }
    }

    /// In thousandths, rounded half up.
    #[inline]
    pub fn decimal_milli(self) -> u32 {
        let (profit, stake) = (u64::from(self.profit), u64::from(self.stake));
        1000 + u32::try_from((2000 * profit + stake) / (2 * stake)).unwrap_or(u32::MAX - 1000)
    }

    /// The fraction to serve: the exact one, or for a decimal quote the one that a bookmaker would write.
    pub fn written_fraction(self) -> (u32, u32) {
        match self.quoted {
            OddsFormat::American | OddsFormat::Fractional => self.fraction(),
            OddsFormat::Decimal => fraction::of_decimal(self.decimal_milli() - 1000),
        }
    }

    /// `"4294967295/4294967295"`.
    pub(crate) const JSON_MAX: usize = 23;

    /// Writes the price as a JSON value: `-110`, `1.91`, `"10/11"`.
    #[inline]
    pub(crate) fn put_json(self, format: OddsFormat, buffer: &mut FixedBuffer<'_>) {
        match format {
            OddsFormat::American => {
                let american = self.american();
                if american < 0 {
                    buffer.put(b"-");
                }
                buffer.put_number(american.unsigned_abs());
            }
            OddsFormat::Decimal => write_milli(self.decimal_milli(), buffer),
            OddsFormat::Fractional => {
                let (profit, stake) = self.written_fraction();
                buffer.put(b"\"");
                buffer.put_number(profit);
                buffer.put(b"/");
                buffer.put_number(stake);
                buffer.put(b"\"");
            }
        }
    }

    /// Appends the price as a JSON value.
    pub fn write_json(self, format: OddsFormat, out: &mut Vec<u8>) {
        append::<{ Self::JSON_MAX }>(out, |buffer| self.put_json(format, buffer));
    }
}

impl fmt::Debug for Price {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{} ({})", self.profit, self.stake, self.quoted)
    }
}

fn round_half_up(n: u128, d: u128) -> u128 {
    (2 * n + d) / (2 * d)
}

const fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests;
