//! The conversions described in the README, for every price in range.

use proptest::prelude::*;

use super::*;

fn written(price: Price, format: OddsFormat) -> String {
    let mut out = Vec::new();
    price.write_json(format, &mut out);
    String::from_utf8(out).unwrap()
}

fn decimal(text: &str) -> Price {
    Price::parse(text, OddsFormat::Decimal).unwrap()
}

/// Whether `n/d`, rounded or truncated to the decimals of `milli` (at least two), is `milli`.
fn shows_as((n, d): (u32, u32), milli: u32) -> bool {
    let unit = if milli.is_multiple_of(10) { 10 } else { 1 };
    let exact = 1000 * u64::from(n);
    let step = u64::from(unit) * u64::from(d);
    let target = u64::from((milli - 1000) / unit);
    exact / step == target || (2 * exact + step) / (2 * step) == target
}

#[test]
fn every_american_price_round_trips() {
    for value in (-100_000..=100_000_i64).filter(|value| value.abs() >= 100) {
        let price = Price::from_american(value).unwrap();
        let expected = if value == -100 { 100 } else { value };
        assert_eq!(written(price, OddsFormat::American), expected.to_string());
    }
}

#[test]
fn every_decimal_price_round_trips_and_its_fraction_reads_as_it() {
    let small = 1_001..=1_200_000_u64;
    let large = (1_200_000..=100_000_000).step_by(997);
    for milli in small.chain(large).chain([100_000_000]) {
        let price = Price::from_decimal_milli(milli).unwrap();
        assert_eq!(u64::from(price.decimal_milli()), milli);
        let (n, d) = price.written_fraction();
        assert_eq!(gcd(n.into(), d.into()), 1);
        assert!(shows_as((n, d), price.decimal_milli()), "{milli}: {n}/{d}");
    }
}

#[test]
fn decimal_price_has_one_to_three_decimals() {
    for (quoted, expected) in
        [("2", "2.0"), ("1.91", "1.91"), ("1.909", "1.909"), ("1.9099", "1.91"), ("100000", "100000.0")]
    {
        assert_eq!(written(decimal(quoted), OddsFormat::Decimal), expected);
    }
}

#[test]
fn decimals_become_the_fractions_that_bookmakers_write() {
    let pairs = [
        ("1.91", "10/11"),
        ("1.83", "5/6"),
        ("1.57", "4/7"),
        ("1.36", "4/11"),
        ("1.53", "8/15"),
        ("1.62", "8/13"),
        ("2.62", "13/8"),
        ("2.63", "13/8"),
        ("2.38", "11/8"),
        ("4.33", "10/3"),
        ("1.05", "1/20"),
        ("1.01", "1/100"),
        ("3.75", "11/4"),
        ("2.0", "1/1"),
        ("1.95", "20/21"),
        ("1.001", "1/1000"),
        ("1001", "1000/1"),
        ("2.75", "7/4"),
    ];
    for (quoted, fraction) in pairs {
        assert_eq!(written(decimal(quoted), OddsFormat::Fractional), format!("\"{fraction}\""), "{quoted}");
    }
}

#[test]
fn american_and_fractional_quotes_keep_their_exact_fraction() {
    let american = |value| Price::from_american(value).unwrap();
    assert_eq!(written(american(-110), OddsFormat::Fractional), "\"10/11\"");
    assert_eq!(written(american(-100), OddsFormat::Fractional), "\"1/1\"");
    assert_eq!(written(american(137), OddsFormat::Fractional), "\"137/100\"");
    let price = Price::parse("6/4", OddsFormat::Fractional).unwrap();
    assert_eq!(written(price, OddsFormat::Fractional), "\"3/2\"");
    assert_eq!(written(price, OddsFormat::American), "150");
    assert_eq!(written(price, OddsFormat::Decimal), "2.5");
}

#[test]
fn american_rounds_half_away_from_zero_and_never_lands_inside_a_hundred() {
    assert_eq!(decimal("2.005").american(), 101, "100.5 away from zero");
    assert_eq!(decimal("1.999").american(), 100, "-100.1 rounds to -100, which is written 100");
    assert_eq!(decimal("1.91").american(), -110);
    assert_eq!(decimal("1.001").american(), -100_000);
    assert_eq!(decimal("100000").american(), 9_999_900);
}

#[test]
fn invalid_price_is_rejected() {
    use OddsFormat::{American, Decimal, Fractional};
    let cases = [
        ("1.0", Decimal, PriceError::TooShort),
        ("1.0004", Decimal, PriceError::TooShort),
        ("-3", Decimal, PriceError::TooShort),
        ("100000.001", Decimal, PriceError::TooLong),
        ("NaN", Decimal, PriceError::NotANumber),
        ("inf", Decimal, PriceError::NotANumber),
        ("99", American, PriceError::InsideHundred),
        ("-99", American, PriceError::InsideHundred),
        ("0", American, PriceError::InsideHundred),
        ("110.5", American, PriceError::NotWhole),
        ("-200001", American, PriceError::TooShort),
        ("9999901", American, PriceError::TooLong),
        ("0/1", Fractional, PriceError::BadFraction),
        ("1/0", Fractional, PriceError::BadFraction),
        ("-1/2", Fractional, PriceError::BadFraction),
        ("1.5", Fractional, PriceError::BadFraction),
        ("1/2001", Fractional, PriceError::TooShort),
        ("100000/1", Fractional, PriceError::TooLong),
    ];
    for (text, format, error) in cases {
        assert_eq!(Price::parse(text, format), Err(error), "{text} {format}");
    }
    assert_eq!(decimal("1.0005").decimal_milli(), 1001, "valid after rounding to three decimals");
    assert!(Price::from_american(-200_000).is_ok());
}

proptest! {
    #[test]
    fn no_text_panics(text in "\\PC{0,40}", number in "[-+]?[0-9]{0,40}(\\.[0-9]{0,40})?([eE][-+]?[0-9]{0,5})?", fraction in "[0-9]{0,25}/[0-9]{0,25}") {
        for text in [text, number, fraction] {
            for format in OddsFormat::ALL {
                if let Ok(price) = Price::parse(&text, format) {
                    for format in OddsFormat::ALL {
                        prop_assert!(!written(price, format).is_empty());
                    }
                    prop_assert!(price.american().abs() >= 100);
                    prop_assert!((1001..=100_000_000).contains(&price.decimal_milli()));
                }
            }
        }
    }

    #[test]
    fn fraction_round_trips_in_lowest_terms(n in 1..=10_000_000_u64, d in 1..=10_000_u64, k in 1..=1000_u64) {
        if let Ok(price) = Price::parse(&format!("{}/{}", n * k, d * k), OddsFormat::Fractional) {
            let g = gcd(n, d);
            prop_assert_eq!(written(price, OddsFormat::Fractional), format!("\"{}/{}\"", n / g, d / g));
        }
    }

    #[test]
    fn american_and_decimal_prices_are_their_fractions(american in -300_000..=11_000_000_i64, milli in 1_001..=100_000_000_u64) {
        let (profit, stake) = if american < 0 { (100, american.unsigned_abs()) } else { (american.unsigned_abs(), 100) };
        if american.abs() >= 100 {
            prop_assert_eq!(Price::from_american(american), Price::from_fraction(profit, stake, OddsFormat::American));
        }
        let fraction = Price::from_fraction(milli - 1000, 1000, OddsFormat::Decimal);
        prop_assert_eq!(Price::from_decimal_milli(milli), fraction);
    }

    #[test]
    fn decimal_price_round_trips(milli in 1_001..=100_000_000_u64) {
        let price = Price::from_decimal_milli(milli).unwrap();
        let text = written(price, OddsFormat::Decimal);
        prop_assert_eq!(Price::parse(&text, OddsFormat::Decimal), Ok(price));
        prop_assert!(shows_as(price.written_fraction(), price.decimal_milli()));
    }
}
