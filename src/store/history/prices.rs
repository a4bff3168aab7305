//! Outcomes as bytes: whole, or as the difference to the same outcomes before.
//!
//! A price is written in the form in which it was quoted, so that it comes back exactly: American odds as their distance
//! from even money, decimal odds in thousandths, or in hundredths where that is exact, fractions as they are.

use super::texts::{Sides, TextNumbers, read_name};
use super::varint::{Cursor, put, put_signed};
use crate::model::{OddsFormat, Outcome, Point, Price, Record};
use crate::store::codec::Flaw;

use std::sync::Arc;

/// Every price is a whole number in its quoted form, and they all have the same form.
const FORM_AMERICAN: u8 = 0;
const FORM_DECIMAL: u8 = 1;
/// Each price has a byte for its form, and is a fraction.
const FORM_FRACTIONS: u8 = 2;
const FORM_MASK: u8 = 3;
const HAS_POINTS: u8 = 1 << 2;
/// Some outcomes have a point and others have none.
const MIXED_POINTS: u8 = 1 << 3;
const QUARTERS: u8 = 1 << 4;
const HUNDREDTHS: u8 = 1 << 5;

/// Points are nearly always whole, halves or quarters.
const QUARTER_MILLI: i32 = 250;
/// Decimal odds nearly always have two places.
const HUNDREDTH_MILLI: i64 = 10;

/// The number that stands for a price in its quoted form, if one does exactly.
fn number_of(price: Price) -> Option<i64> {
    shown_number(price).filter(|number| price_of(*number, price.quoted()) == Ok(price))
}

/// The number that a price is shown as in its quoted form.
#[inline]
fn shown_number(price: Price) -> Option<i64> {
    match price.quoted() {
        OddsFormat::American => Some(from_even(price.american().into())),
        OddsFormat::Decimal => Some(price.decimal_milli().into()),
        OddsFormat::Fractional => None,
    }
}

#[inline]
fn price_of(number: i64, quoted: OddsFormat) -> Result<Price, Flaw> {
    let price = match quoted {
        OddsFormat::American => Price::from_american(to_american(number)),
        OddsFormat::Decimal => Price::from_decimal_milli(u64::try_from(number).map_err(|_| Flaw::Malformed)?),
        OddsFormat::Fractional => return Err(Flaw::Malformed),
    };
    price.map_err(|_| Flaw::Invalid("one of its prices is invalid"))
}

/// American odds have a gap between -100 and 100. Without it a price that crosses even money moves by little.
#[inline]
fn from_even(american: i64) -> i64 {
    if american > 0 { american - 100 } else { american + 100 }
}

#[inline]
fn to_american(number: i64) -> i64 {
    if number >= 0 { number.saturating_add(100) } else { number.saturating_sub(100) }
}

/// The prices as numbers, if all of them have the same form and are whole in it.
fn numbers_of(outcomes: &[Outcome]) -> Option<(OddsFormat, Vec<i64>)> {
    let quoted = outcomes.first()?.price.quoted();
    let number = |outcome: &Outcome| number_of(outcome.price).filter(|_| outcome.price.quoted() == quoted);
    Some((quoted, outcomes.iter().map(number).collect::<Option<_>>()?))
}

fn is_in_hundredths(quoted: OddsFormat, numbers: &[i64]) -> bool {
    quoted == OddsFormat::Decimal && numbers.iter().all(|number| number % HUNDREDTH_MILLI == 0)
}

/// The outcomes with their names, whatever they were before.
pub(super) fn put_outcomes(sides: Sides<'_>, outcomes: &[Outcome], texts: &mut TextNumbers, out: &mut Vec<u8>) {
    let numbers = numbers_of(outcomes);
    let mut flags = match &numbers {
        Some((OddsFormat::American, _)) => FORM_AMERICAN,
        Some((OddsFormat::Decimal, _)) => FORM_DECIMAL,
        _ => FORM_FRACTIONS,
    };
    let scale = match &numbers {
        Some((quoted, numbers)) if is_in_hundredths(*quoted, numbers) => {
            flags |= HUNDREDTHS;
            HUNDREDTH_MILLI
        }
        _ => 1,
    };
    let points = || outcomes.iter().filter_map(|outcome| outcome.point);
    let with_point = points().count();
    if with_point > 0 {
        flags |= HAS_POINTS;
        flags |= if with_point < outcomes.len() { MIXED_POINTS } else { 0 };
        flags |= if points().all(|point| point.milli() % QUARTER_MILLI == 0) { QUARTERS } else { 0 };
    }
    out.push(flags);
    put(out, outcomes.len() as u64);
    for (at, outcome) in outcomes.iter().enumerate() {
        texts.put_name(sides, &outcome.name, out);
        match &numbers {
            Some((_, numbers)) => put_signed(out, numbers[at] / scale),
            None => put_fraction(outcome.price, out),
        }
        if flags & MIXED_POINTS != 0 {
            out.push(u8::from(outcome.point.is_some()));
        }
        if let Some(point) = outcome.point {
            let unit = if flags & QUARTERS != 0 { QUARTER_MILLI } else { 1 };
            put_signed(out, i64::from(point.milli() / unit));
        }
    }
}

pub(super) fn read_outcomes(
    sides: Sides<'_>,
    texts: &mut Vec<Arc<str>>,
    cursor: &mut Cursor<'_>,
) -> Result<Arc<[Outcome]>, Flaw> {
    let flags = cursor.byte()?;
    let count = cursor.count()?;
    if count == 0 || count > Record::OUTCOMES_MAX {
        return Err(Flaw::Invalid("it has no outcomes, or too many"));
    }
    let mut read = || read_outcome(flags, sides, texts, cursor);
    // Nearly all have two, which need no list on the way.
    if count == 2 {
        return Ok(Arc::from([read()?, read()?]));
    }
    let outcomes: Result<Vec<Outcome>, Flaw> = (0..count).map(|_| read()).collect();
    Ok(outcomes?.into())
}

#[inline]
fn read_outcome(
    flags: u8,
    sides: Sides<'_>,
    texts: &mut Vec<Arc<str>>,
    cursor: &mut Cursor<'_>,
) -> Result<Outcome, Flaw> {
    let scale = if flags & HUNDREDTHS != 0 { HUNDREDTH_MILLI } else { 1 };
    let name = read_name(sides, texts, cursor)?;
    let price = match flags & FORM_MASK {
        FORM_AMERICAN => price_of(cursor.signed()?, OddsFormat::American)?,
        FORM_DECIMAL => price_of(cursor.signed()?.saturating_mul(scale), OddsFormat::Decimal)?,
        FORM_FRACTIONS => read_fraction(cursor)?,
        _ => return Err(Flaw::Malformed),
    };
    let has_point = flags & HAS_POINTS != 0 && (flags & MIXED_POINTS == 0 || cursor.byte()? == 1);
    let point = has_point.then(|| read_point(flags, cursor)).transpose()?;
    Ok(Outcome { name, price, point })
}

#[inline]
fn read_point(flags: u8, cursor: &mut Cursor<'_>) -> Result<Point, Flaw> {
    let unit = if flags & QUARTERS != 0 { QUARTER_MILLI } else { 1 };
    let milli = cursor.small_signed::<i32>()?.checked_mul(unit).ok_or(Flaw::Malformed)?;
    Point::from_milli(milli).ok_or(Flaw::Invalid("one of its points is invalid"))
}

fn put_fraction(price: Price, out: &mut Vec<u8>) {
    let (profit, stake) = price.fraction();
    out.push(price.quoted() as u8);
    put(out, profit.into());
    put(out, stake.into());
}

fn read_fraction(cursor: &mut Cursor<'_>) -> Result<Price, Flaw> {
    let quoted = OddsFormat::ALL.get(usize::from(cursor.byte()?)).copied().ok_or(Flaw::Malformed)?;
    let (profit, stake) = (cursor.number()?, cursor.number()?);
    Price::from_fraction(profit, stake, quoted).map_err(|_| Flaw::Invalid("one of its prices is invalid"))
}

/// How new outcomes differ from those before. The flags fit two bits of the change's own byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Difference {
    /// Prices only.
    Prices,
    /// Prices and points.
    Points,
}

/// Writes the differences of prices, and of points if any has changed. Returns `None` and writes nothing if a difference
/// cannot be computed: the names differ, or the prices have another form.
pub(super) fn put_difference(before: &[Outcome], after: &[Outcome], out: &mut Vec<u8>) -> Option<(Difference, bool)> {
    let has_same_shape = before.len() == after.len()
        && before
            .iter()
            .zip(after)
            .all(|(one, other)| one.name == other.name && one.point.is_some() == other.point.is_some());
    let ((was, old), (is, new)) = (numbers_of(before)?, numbers_of(after)?);
    if !has_same_shape || was != is {
        return None;
    }
    let in_hundredths = is_in_hundredths(was, &old) && is_in_hundredths(is, &new);
    let scale = if in_hundredths { HUNDREDTH_MILLI } else { 1 };
    for (old, new) in old.iter().zip(&new) {
        put_signed(out, (new - old) / scale);
    }
    if before.iter().zip(after).all(|(one, other)| one.point == other.point) {
        return Some((Difference::Prices, in_hundredths));
    }
    for (one, other) in before.iter().zip(after) {
        if let (Some(one), Some(other)) = (one.point, other.point) {
            put_signed(out, i64::from(other.milli()) - i64::from(one.milli()));
        }
    }
    Some((Difference::Points, in_hundredths))
}

/// What [`put_difference`] wrote, applied to a copy.
pub(super) fn read_difference(
    before: &[Outcome],
    difference: (Difference, bool),
    cursor: &mut Cursor<'_>,
) -> Result<Arc<[Outcome]>, Flaw> {
    let mut outcomes: Arc<[Outcome]> = before.iter().cloned().collect();
    apply_difference(&mut outcomes, difference, cursor)?;
    Ok(outcomes)
}

/// Applies what [`put_difference`] wrote: in place, unless others have the outcomes too.
#[inline]
pub(super) fn apply_difference(
    outcomes: &mut Arc<[Outcome]>,
    (difference, in_hundredths): (Difference, bool),
    cursor: &mut Cursor<'_>,
) -> Result<(), Flaw> {
    let outcomes = Arc::make_mut(outcomes);
    let scale = if in_hundredths { HUNDREDTH_MILLI } else { 1 };
    for outcome in &mut *outcomes {
        let quoted = outcome.price.quoted();
        let moved = cursor.signed()?.checked_mul(scale).and_then(|by| shown_number(outcome.price)?.checked_add(by));
        outcome.price = price_of(moved.ok_or(Flaw::Malformed)?, quoted)?;
    }
    if difference == Difference::Points {
        for point in outcomes.iter_mut().filter_map(|outcome| outcome.point.as_mut()) {
            let milli =
                i64::from(point.milli()).checked_add(cursor.signed()?).and_then(|milli| i32::try_from(milli).ok());
            *point = milli.and_then(Point::from_milli).ok_or(Flaw::Invalid("one of its points is invalid"))?;
        }
    }
    Ok(())
}
