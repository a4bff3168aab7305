//! The price at which a bet on an outcome of some probability is fair. Nobody quoted it, so each format is rounded from the
//! probability itself.

use super::{DECIMAL_MILLI_MAX, DECIMAL_MILLI_MIN, OddsFormat, fraction};
use crate::model::number::write_milli;
use crate::model::text::append;

/// A price without a margin.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FairPrice {
    /// In thousandths, as a decimal price.
    decimal_milli: u32,
    american: i32,
}

impl FairPrice {
    /// `None` where the price would be outside of what prices can be.
    #[expect(clippy::cast_possible_truncation, reason = "the bounds are checked")]
    #[expect(clippy::cast_sign_loss, reason = "the bounds are checked")]
    pub fn of(probability: f64) -> Option<Self> {
        let milli = (1000.0 / probability).round();
        if !(0.0..1.0).contains(&probability) || !milli.is_finite() {
            return None;
        }
        let decimal_milli = u64::try_from(milli as i64).ok()?;
        if !(DECIMAL_MILLI_MIN..=DECIMAL_MILLI_MAX).contains(&decimal_milli) {
            return None;
        }
        let profit = (1.0 - probability) / probability;
        let american = match profit {
            1.0.. => (100.0 * profit).round() as i32,
            _ => match (100.0 / profit).round() as i32 {
                100 => 100,
                below_even => -below_even,
            },
        };
        Some(FairPrice { decimal_milli: milli as u32, american })
    }

    /// Appends the price as a JSON value: `-110`, `1.91`, `"10/11"`.
    pub fn write_json(self, format: OddsFormat, out: &mut Vec<u8>) {
        match format {
            OddsFormat::American => out.extend_from_slice(itoa::Buffer::new().format(self.american).as_bytes()),
            OddsFormat::Decimal => append::<16>(out, |buffer| write_milli(self.decimal_milli, buffer)),
            OddsFormat::Fractional => {
                let (profit, stake) = fraction::of_decimal(self.decimal_milli - 1000);
                append::<{ super::Price::JSON_MAX }>(out, |buffer| {
                    buffer.put(b"\"");
                    buffer.put_number(profit);
                    buffer.put(b"/");
                    buffer.put_number(stake);
                    buffer.put(b"\"");
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::model::Price;

    fn written(probability: f64) -> [String; 3] {
        OddsFormat::ALL.map(|format| {
            let mut out = Vec::new();
            FairPrice::of(probability).unwrap().write_json(format, &mut out);
            String::from_utf8(out).unwrap()
        })
    }

    #[test]
    fn each_format_is_rounded_from_the_probability() {
        assert_eq!(written(0.5), ["100", "2.0", "\"1/1\""]);
        assert_eq!(written(0.523_809_523_8), ["-110", "1.909", "\"10/11\""]);
        assert_eq!(written(0.99), ["-9900", "1.01", "\"1/100\""], "not -10000, as 1.01 would be");
        assert_eq!(written(0.4), ["150", "2.5", "\"3/2\""]);
        for probability in [0.0, 1.0, -0.1, 1.1, 0.999_999, 0.000_000_1, f64::NAN] {
            assert_eq!(FairPrice::of(probability), None, "{probability}");
        }
    }

    proptest! {
        /// As a price of the same chance that somebody quoted.
        #[test]
        fn agrees_with_quoted_prices(american in prop_oneof![100..20_000_i64, -20_000..-100_i64]) {
            let price = Price::from_american(american).unwrap();
            let fair = FairPrice::of(price.chance()).unwrap();
            prop_assert_eq!(fair.american, price.american());
            prop_assert!(fair.decimal_milli.abs_diff(price.decimal_milli()) <= 1);
        }
    }
}
