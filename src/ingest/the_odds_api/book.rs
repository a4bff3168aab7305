//! Parses the bookmakers of an event and their markets: one record for each valid market.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::payload::PayloadContext;
use super::{Payload, PayloadError};
use crate::ingest::wire::field::{Field, Object, Raw};
use crate::ingest::wire::{Rejection, outcomes, unknown_market};
use crate::model::{EventNews, MarketKey, News, OddsNews, Reason, Timestamp};

#[derive(Deserialize)]
struct BookLine<'a> {
    #[serde(borrow)]
    key: Raw<'a>,
    #[serde(borrow)]
    title: Raw<'a>,
    #[serde(borrow)]
    last_update: Raw<'a>,
    #[serde(borrow)]
    markets: Raw<'a>,
}

#[derive(Deserialize)]
struct MarketLine<'a> {
    #[serde(borrow)]
    key: Raw<'a>,
    #[serde(borrow)]
    last_update: Raw<'a>,
    #[serde(borrow)]
    outcomes: Raw<'a>,
}

/// Parses the records of an event; an invalid one is rejected alone.
pub(super) fn read_all(list: Field<'_>, event: &EventNews, context: &PayloadContext<'_>, payload: &mut Payload) {
    let books: Vec<&RawValue> = match list.list() {
        Ok(books) => books,
        Err(rejection) => return payload.reject_current(rejection),
    };
    let mut records = EventRecords { event, context, payload, seen: BTreeSet::new() };
    for raw in books {
        if let Err(rejection) = records.read_book(raw) {
            records.payload.reject_current(rejection);
        }
    }
}

/// The records of an event while they are parsed.
struct EventRecords<'p, 'c> {
    event: &'p EventNews,
    context: &'p PayloadContext<'c>,
    payload: &'p mut Payload,
    /// Each bookmaker has one record of a market.
    seen: BTreeSet<(Arc<str>, MarketKey)>,
}

impl EventRecords<'_, '_> {
    /// An error rejects the bookmaker as a whole.
    fn read_book(&mut self, raw: &RawValue) -> Result<(), Rejection> {
        let book: BookLine<'_> = object(raw, "bookmaker")?;
        let key = Field::new("bookmakers.key", book.key).key()?;
        let title = Field::new("bookmakers.title", book.title);
        let title = if title.is_given() { Some(title.text()?) } else { None };
        let own = Field::new("bookmakers.last_update", book.last_update);
        let updated = if own.is_given() { Some(own.time()?) } else { None };
        let markets: Vec<&RawValue> = Field::new("bookmakers.markets", book.markets).list()?;
        let listed = self.payload.bookmakers.entry(key.as_ref().into()).or_default();
        if let Some(title) = title {
            *listed = Some(title.into());
        }
        let bookmaker: Arc<str> = key.as_ref().into();
        for raw in markets {
            if let Err(rejection) = self.read_market(raw, &bookmaker, updated) {
                let detail = format!("{bookmaker} on {}: {}", self.event.id, rejection.detail);
                self.payload.reject_current(Rejection::new(rejection.reason, detail));
            }
        }
        Ok(())
    }

    fn read_market(
        &mut self,
        raw: &RawValue,
        bookmaker: &Arc<str>,
        updated: Option<Timestamp>,
    ) -> Result<(), Rejection> {
        let (line, context): (MarketLine<'_>, _) = (object(raw, "market")?, self.context);
        let (key, catalogue) = (Field::new("markets.key", line.key).string()?, context.ask.catalogue);
        let market = catalogue.markets().read(&key, catalogue[self.event.sport].kind);
        let market = market.ok_or_else(|| unknown_market(&key, catalogue))?;
        let last_update = Field::new("markets.last_update", line.last_update);
        let last_update = if last_update.is_given() { last_update.time()? } else { updated.unwrap_or(context.at) };
        let format =
            || context.format.ok_or_else(|| Rejection::new(Reason::BadField, PayloadError::FormatUnknown.to_string()));
        let (outcomes, dropped) = outcomes::read_as(Field::new("outcomes", line.outcomes), format, &market)?;
        if !self.seen.insert((Arc::clone(bookmaker), market.clone())) {
            return Err(Rejection::new(Reason::BadField, format!("lists {key} again: the first is used")));
        }
        for outcome in &dropped {
            self.payload.dropped.add(outcome.reason, 1);
        }
        let (sport, event) = (self.event.sport, self.event.id.clone());
        let bookmaker = Arc::clone(bookmaker);
        let bookmaker_update = updated.filter(|updated| *updated != last_update);
        let news = OddsNews { sport, event, bookmaker, market, last_update, bookmaker_update, outcomes };
        self.payload.push(News::Odds(news));
        Ok(())
    }
}

fn object<'a, T: Deserialize<'a>>(raw: &'a RawValue, what: &str) -> Result<T, Rejection> {
    let read = serde_json::from_str::<Object<T>>(raw.get());
    read.map(|Object(value)| value).map_err(|error| Rejection::new(Reason::BadJson, format!("no {what}: {error}")))
}
