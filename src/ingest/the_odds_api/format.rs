//! Detects how the prices of a payload are quoted: a negative price is American, a price with a fraction is decimal. A
//! payload that has neither may be either.

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

/// The format of the prices of all events; `None` if there is no price.
pub(super) fn shown(events: &[&RawValue]) -> Result<Option<OddsFormat>, PayloadError> {
    let (mut any, mut negative, mut broken) = (false, false, false);
    for event in events {
        // An invalid event shows nothing, and is rejected later.
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
