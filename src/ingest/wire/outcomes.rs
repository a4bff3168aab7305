//! Parses the outcomes of an odds line. An invalid price drops its outcome, or its group where the market has groups, and
//! the rest of the record is kept; anything else that is invalid rejects the line.

use serde::Deserialize;

use super::field::{Field, Object, Raw, unquote};
use super::{DroppedOutcome, Rejection};
use crate::model::{Market, MarketKey, OddsFormat, Outcome, OutcomeName, Point, Price, Reason, Record};

const FORMATS: [&str; 3] = ["american", "decimal", "fractional"];

#[derive(Deserialize)]
struct OutcomeLine<'a> {
    #[serde(borrow)]
    name: Raw<'a>,
    #[serde(borrow)]
    description: Raw<'a>,
    #[serde(borrow)]
    price: Raw<'a>,
    #[serde(borrow)]
    point: Raw<'a>,
    /// Present only where it differs from the line's.
    #[serde(borrow)]
    format: Raw<'a>,
}

/// The outcomes that are kept, and those that were dropped. Never empty where the line has outcomes: a record of which
/// nothing is left is an error, not a closed market.
pub(super) fn read(
    list: Field<'_>,
    format: Field<'_>,
    market: &MarketKey,
) -> Result<(Box<[Outcome]>, Vec<DroppedOutcome>), Rejection> {
    read_as(list, || read_format(format), market)
}

/// The same with a format that is not in the line itself; it is needed only where there is an outcome.
pub(in crate::ingest) fn read_as(
    list: Field<'_>,
    format: impl FnOnce() -> Result<OddsFormat, Rejection>,
    market: &MarketKey,
) -> Result<(Box<[Outcome]>, Vec<DroppedOutcome>), Rejection> {
    let lines: Vec<Object<OutcomeLine<'_>>> = list.list()?;
    if lines.is_empty() {
        return Ok((Box::default(), Vec::new()));
    }
    let featured = match market {
        MarketKey::Known(market) => Some(*market),
        MarketKey::New(_) => None,
    };
    let size = featured.and_then(|market| market.settlement().group).unwrap_or(1);
    if lines.len() > Record::OUTCOMES_MAX {
        return Err(list.takes(format_args!("at most {} outcomes", Record::OUTCOMES_MAX)));
    }
    if !lines.len().is_multiple_of(size) {
        return Err(list.takes(format_args!("a multiple of {size} outcomes in the market {}", market.as_str())));
    }
    let format = format()?;
    let mut kept = Vec::with_capacity(lines.len());
    let mut dropped = Vec::new();
    for group in lines.chunks(size) {
        read_group(group, format, featured, &mut kept, &mut dropped)?;
    }
    match dropped.first() {
        Some(first) if kept.is_empty() => Err(nothing_left(first, lines.len())),
        _ => Ok((kept.into(), dropped)),
    }
}

fn nothing_left(first: &DroppedOutcome, given: usize) -> Rejection {
    let detail = format!("none of the {given} outcomes has a price that can be taken; first {:?}", first.name);
    Rejection::new(first.reason, detail)
}

/// Takes a group as a whole or not at all, so that the groups after it keep their places.
fn read_group(
    lines: &[Object<OutcomeLine<'_>>],
    format: OddsFormat,
    market: Option<Market>,
    kept: &mut Vec<Outcome>,
    dropped: &mut Vec<DroppedOutcome>,
) -> Result<(), Rejection> {
    let start = kept.len();
    let mut names = Vec::new();
    let mut fault = None;
    for Object(line) in lines {
        let name = Field::new("outcomes.name", line.name).text()?;
        let description = Field::new("outcomes.description", line.description);
        let description = if description.is_given() { Some(description.text()?) } else { None };
        let point = read_point(Field::new("outcomes.point", line.point), market)?;
        match read_price(line, format)? {
            Ok(price) => kept.push(Outcome { name: OutcomeName::new(&name, description.as_deref()), price, point }),
            Err(reason) => {
                fault.get_or_insert(reason);
                names.push(Box::from(name));
            }
        }
    }
    if let Some(reason) = fault {
        names.extend(kept.drain(start..).map(|outcome| Box::from(&*outcome.name)));
        dropped.extend(names.into_iter().map(|name| DroppedOutcome { name, reason }));
    }
    Ok(())
}

fn read_format(field: Field<'_>) -> Result<OddsFormat, Rejection> {
    field.one_of(OddsFormat::parse, &FORMATS)
}

/// The outer error is the line's, the inner one the outcome's.
fn read_price(line: &OutcomeLine<'_>, format: OddsFormat) -> Result<Result<Price, Reason>, Rejection> {
    let own = Field::new("outcomes.format", line.format);
    let format = if own.is_given() { read_format(own)? } else { format };
    let Some(raw) = line.price else { return Ok(Err(Reason::MissingField)) };
    let json = raw.get();
    let price = match unquote(json) {
        Some(text) => Price::parse(text.trim(), format),
        None => Price::parse(json, format),
    };
    Ok(price.map_err(Reason::from))
}

/// Featured markets have a point or they do not; in any other it is up to the feed.
fn read_point(field: Field<'_>, market: Option<Market>) -> Result<Option<Point>, Rejection> {
    match market.and_then(Market::has_point) {
        Some(false) => return field.absent("this market has no line").map(|()| None),
        None if !field.is_given() => return Ok(None),
        _ => {}
    }
    if let Some(point) = Point::parse(field.json()?) {
        Ok(Some(point))
    } else {
        Err(field.takes("a number of at most three decimals"))
    }
}
