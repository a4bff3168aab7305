//! Against published values, and properties of any book.

use proptest::prelude::*;

use super::method::{Shin, power};
use super::*;
use crate::model::Price;

fn fair(method: FairMethod, implied: &[f64], winners: usize) -> (Vec<f64>, FairMethod) {
    let mut out = Vec::new();
    let book = WholeBook::new(implied, winners).expect("a whole book");
    let answered = method.append_fair(&book, &mut out).expect("a solution");
    (out, answered)
}

fn implied(decimals: &[f64]) -> Vec<f64> {
    decimals.iter().map(|decimal| 1.0 / decimal).collect()
}

fn assert_close(found: &[f64], expected: &[f64], within: f64) {
    assert_eq!(found.len(), expected.len());
    for (one, other) in found.iter().zip(expected) {
        assert!((one - other).abs() < within, "{found:?} is not {expected:?}");
    }
}

fn insiders(decimals: &[f64]) -> f64 {
    let implied = implied(decimals);
    Shin::new(&WholeBook::new(&implied, 1).expect("a whole book")).insiders()
}

#[test]
fn shin_has_the_published_values() {
    let three = [2.6, 2.4, 4.3];
    let (found, answered) = fair(FairMethod::Shin, &implied(&three), 1);
    assert_close(&found, &[0.372_994_060_3, 0.404_779_410_9, 0.222_226_528_7], 5e-11);
    assert_eq!(answered, FairMethod::Shin);
    assert_close(&[insiders(&three)], &[0.016_942_512_8], 5e-11);
    let two = [1.5, 2.74];
    let (found, _) = fair(FairMethod::Shin, &implied(&two), 1);
    assert_close(&found, &[0.650_851_581_5, 0.349_148_418_5], 5e-11);
    assert_close(&found, &fair(FairMethod::Additive, &implied(&two), 1).0, 1e-12);
    assert_close(&[insiders(&two)], &[0.031_727_285_4], 5e-11);
}

#[test]
fn methods_have_the_published_values() {
    let decimals = [2.7, 2.3, 4.4];
    let implied = implied(&decimals);
    let values = |method| fair(method, &implied, 1).0;
    assert_close(&values(FairMethod::Multiplicative), &[0.358_738_04, 0.421_127_26, 0.220_134_7], 5e-9);
    assert_close(&values(FairMethod::Power), &[0.359_171_1, 0.423_730_75, 0.217_098_15], 5e-9);
    assert_close(&values(FairMethod::Shin), &[0.359_343_92, 0.423_243_85, 0.217_412_23], 5e-9);
    assert_close(&[power(&WholeBook::new(&implied, 1).unwrap())], &[1.030_913_239_3], 5e-11);
    assert_close(&[insiders(&decimals)], &[0.016_236_442_9], 5e-11);
}

#[test]
fn negative_probabilities_are_another_methods_answer() {
    let implied = [0.87, 0.2, 0.1, 0.05, 0.02, 0.01];
    let (found, answered) = fair(FairMethod::Additive, &implied, 1);
    assert_eq!(answered, FairMethod::Multiplicative);
    assert_close(&found, &fair(FairMethod::Multiplicative, &implied, 1).0, 1e-15);
    let (found, answered) = fair(FairMethod::Shin, &implied, 1);
    assert_eq!(answered, FairMethod::Shin);
    let expected = [0.768_786_4, 0.147_486_4, 0.058_968_5, 0.020_021_4, 0.003_766_4, 0.000_970_9];
    assert_close(&found, &expected, 5e-8);
}

#[test]
fn book_without_a_margin_is_scaled() {
    for method in [FairMethod::Power, FairMethod::Shin] {
        let (found, answered) = fair(method, &[0.4, 0.5], 1);
        assert_eq!(answered, FairMethod::Multiplicative);
        assert_close(&found, &[4.0 / 9.0, 5.0 / 9.0], 1e-15);
        assert_eq!(fair(method, &[0.5, 0.5], 1).1, FairMethod::Multiplicative, "a sum of exactly one");
    }
    // Nearly certain to be among the two winners, in a book that sums to far less than two: no scaling makes that a probability.
    let book = [0.9, 0.3, 0.3];
    let mut out = Vec::new();
    assert_eq!(FairMethod::Power.append_fair(&WholeBook::new(&book, 2).unwrap(), &mut out), None);
    assert!(out.is_empty());
}

#[test]
fn margin_counts_winners() {
    let margin = |implied: &[f64], winners| WholeBook::new(implied, winners).unwrap().margin();
    let one = margin(&[0.55, 0.55], 1);
    assert_close(&[one.overround(), one.hold()], &[0.1, 1.0 - 1.0 / 1.1], 1e-12);
    let two = margin(&[0.8, 0.8, 0.6], 2);
    assert_close(&[two.overround(), two.hold()], &[0.1, 1.0 - 1.0 / 1.1], 1e-12);
    assert!(WholeBook::new(&[0.5, 0.5], 2).is_none(), "every outcome wins");
    assert!(WholeBook::new(&[0.5, 0.5], 0).is_none());
    assert!(WholeBook::new(&[0.5, 1.0], 1).is_none());
}

#[test]
fn consensus_is_the_rescaled_median() {
    let mut out = Vec::new();
    let mut consensus = Consensus::default();
    assert!(!consensus.append(&[0.5, 0.5, 0.6, 0.4], 2, 1.0, &mut out), "two bookmakers make none");
    assert!(consensus.append(&[0.5, 0.3, 0.2, 0.6, 0.3, 0.1, 0.4, 0.2, 0.4], 3, 1.0, &mut out));
    assert_close(&out, &[0.5, 0.3, 0.2], 1e-12);
    out.clear();
    assert!(consensus.append(&[0.5, 0.5, 0.6, 0.4, 0.52, 0.48, 0.54, 0.46], 2, 1.0, &mut out));
    assert_close(&out, &[0.53, 0.47], 1e-12);
}

#[test]
fn stakes_return_the_same_whichever_wins() {
    let prices = [210, 105].map(|decimal| Price::from_decimal_milli(decimal * 10).unwrap());
    let longer = Price::from_decimal_milli(2200).unwrap();
    assert!(Arbitrage::new(&prices, 1).unwrap().edge < Millionths::from_count(0));
    let found = Arbitrage::new(&[prices[0], longer], 1).unwrap();
    assert_eq!(found.edge, Millionths::from_count(74_419));
    assert_eq!(found.stakes, [511_628, 488_372].map(Millionths::from_count));
    assert!((expected_value(prices[0], 0.5) - 0.05).abs() < 1e-12);
}

/// Any book, by the number of its outcomes and of those that win.
fn books() -> impl Strategy<Value = (Vec<f64>, usize)> {
    (prop::collection::vec(0.01..1.0_f64, 2..40), 1..5_usize, 0.8..1.5_f64).prop_map(|(weights, winners, ratio)| {
        let winners = winners.min(weights.len() - 1);
        let sum: f64 = weights.iter().sum();
        let target = ratio * f64::from(u32::try_from(winners).expect("few"));
        (weights.iter().map(|weight| (weight * target / sum).min(0.99)).collect(), winners)
    })
}

proptest! {
    #[test]
    fn probabilities_sum_to_the_winners((implied, winners) in books()) {
        let book = WholeBook::new(&implied, winners).unwrap();
        for method in FairMethod::ALL {
            let mut out = Vec::new();
            let Some(answered) = method.append_fair(&book, &mut out) else { continue };
            let sum: f64 = out.iter().sum();
            prop_assert!((sum - book.winners()).abs() < 1e-9, "{method} {sum}");
            prop_assert!(out.iter().all(|fair| *fair > 0.0 && *fair < 1.0));
            if book.margin().is_positive() && matches!(method, FairMethod::Power | FairMethod::Shin) {
                prop_assert_eq!(answered, method);
            }
            // The order of outcomes by price is their order by probability.
            for (at, fair) in out.iter().enumerate() {
                prop_assert!(out.iter().zip(&implied).all(|(other, one)| implied[at] < *one || *fair >= other - 1e-12));
            }
        }
    }

    #[test]
    fn margins_are_never_negative_for_an_outcome((implied, winners) in books()) {
        let book = WholeBook::new(&implied, winners).unwrap();
        prop_assume!(book.margin().is_positive());
        for method in FairMethod::ALL {
            let mut out = Vec::new();
            method.append_fair(&book, &mut out).unwrap();
            prop_assert!(out.iter().zip(&implied).all(|(fair, implied)| *fair <= implied + 1e-12), "{method}");
        }
    }

    #[test]
    fn stakes_sum_to_one(millis in prop::collection::vec(1_010..50_000_u64, 2..60)) {
        let prices: Vec<Price> = millis.iter().map(|milli| Price::from_decimal_milli(*milli).unwrap()).collect();
        let found = Arbitrage::new(&prices, 1).unwrap();
        prop_assert_eq!(found.stakes.iter().map(|stake| stake.count()).sum::<i64>(), 1_000_000);
        prop_assert!(found.stakes.iter().all(|stake| stake.count() > 0));
    }
}
