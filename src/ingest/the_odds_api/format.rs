//! How prices are quoted, where only they themselves can tell: a negative price is American, one that is no whole
//! number is decimal. A payload that shows neither may be either.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::PayloadError;
use crate::ingest::wire::field::{Raw, unquote};
use crate::model::OddsFormat;
use crate::model::number::{Scaled, parse_scaled};

#[derive(Deserialize)]
struct EventPrices<'a> {
    #[serde(borrow, default)]
    bookmakers: Option<Vec<BookPrices<'a>>>,
}

#[derive(Deserialize)]
struct BookPrices<'a> {
    #[serde(borrow, default)]
    markets: Option<Vec<MarketPrices<'a>>>,
}

#[derive(Deserialize)]
struct MarketPrices<'a> {
    #[serde(borrow, default)]
    outcomes: Option<Vec<OutcomePrice<'a>>>,
}

#[derive(Deserialize)]
struct OutcomePrice<'a> {
    #[serde(borrow)]
    price: Raw<'a>,
}

/// What the prices of all events together show; `None` if there is not one price.
pub(super) fn shown(events: &[&RawValue]) -> Result<Option<OddsFormat>, PayloadError> {
    let (mut any, mut negative, mut broken) = (false, false, false);
    for event in events {
        // An event that cannot be read shows nothing, and is turned away later.
        let Ok(event) = serde_json::from_str::<EventPrices<'_>>(event.get()) else { continue };
        let markets = event.bookmakers.iter().flatten().flat_map(|book| book.markets.iter().flatten());
        for price in markets.flat_map(|market| market.outcomes.iter().flatten()).filter_map(|outcome| outcome.price) {
            any = true;
            let text = unquote(price.get()).unwrap_or(price.get().into());
            if let Some(Scaled { value, exact }) = parse_scaled(text.trim(), 0) {
                negative |= value < 0;
                broken |= !exact;
            }
        }
    }
    match (negative, broken) {
        _ if !any => Ok(None),
        (true, false) => Ok(Some(OddsFormat::American)),
        (false, true) => Ok(Some(OddsFormat::Decimal)),
        (true, true) => Err(PayloadError::FormatMixed),
        (false, false) => Err(PayloadError::FormatUnknown),
    }
}
