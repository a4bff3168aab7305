//! The parameters of this interface and how their values are read.
//!
//! Lists are separated by commas; blanks around an item and empty items are ignored.

use crate::board::EventScope;
use crate::board::v4::{DateFormat, Extras, MarketsByKind, PricedBooks, Prices, Scoped};
use crate::http::exchange::error::{ApiError, Code};
use crate::http::exchange::query::{Parameter, Params};
use crate::http::exchange::values::{self, Round};
use crate::model::{
    BookId, Bookmakers, Market, MarketFamilies, MarketFilter, MarketKey, OddsFormat, Region, Regions, SportKind,
};

pub(super) const REGIONS: Parameter = Parameter::list("regions", values::REGIONS_TAKE);
pub(super) const BOOKMAKERS: Parameter =
    Parameter::list("bookmakers", "keys of bookmakers that /v1/books lists, separated by commas");
pub(super) const MARKETS: Parameter = Parameter::list(
    "markets",
    "market keys such as h2h, spreads, totals, outrights, alternate_spreads, h2h_q1 or player_points, separated by commas",
);
pub(super) const ODDS_FORMAT: Parameter = Parameter::new("oddsFormat", "decimal, american or fractional");
pub(super) const DATE_FORMAT: Parameter = Parameter::new("dateFormat", "iso or unix");
pub(super) const EVENT_IDS: Parameter = Parameter::list("eventIds", "up to 100 event ids, separated by commas");
pub(super) const COMMENCE_TIME_FROM: Parameter = Parameter::new("commenceTimeFrom", TIME);
pub(super) const COMMENCE_TIME_TO: Parameter = Parameter::new("commenceTimeTo", TIME);
pub(super) const DATE: Parameter = Parameter::new(
    "date",
    "a time such as 2026-11-14T23:39:00Z that is not in the future and not before history begins",
);
pub(super) const INCLUDE_LINKS: Parameter = Parameter::new("includeLinks", YES_OR_NO);
pub(super) const INCLUDE_SIDS: Parameter = Parameter::new("includeSids", YES_OR_NO);
pub(super) const INCLUDE_BET_LIMITS: Parameter = Parameter::new("includeBetLimits", YES_OR_NO);
pub(super) const INCLUDE_MULTIPLIERS: Parameter = Parameter::new("includeMultipliers", YES_OR_NO);
pub(super) const INCLUDE_ROTATION_NUMBERS: Parameter = Parameter::new("includeRotationNumbers", YES_OR_NO);
pub(super) const DAYS_FROM: Parameter = Parameter::new("daysFrom", "an integer from 1 to 3");
pub(super) const ALL: Parameter = Parameter::new("all", YES_OR_NO);

const TIME: &str = "a time such as 2026-11-14T23:39:00Z";
const YES_OR_NO: &str = "true or false";

/// The items of a list; `None` if there are none.
fn items<'p>(params: &'p Params<'_>, parameter: &'static Parameter) -> Option<Vec<&'p str>> {
    let items = params.get(parameter)?.split(',').map(str::trim).filter(|item| !item.is_empty());
    Some(items.collect::<Vec<_>>()).filter(|items| !items.is_empty())
}

/// Whose prices: the bookmakers that are named, or else those of the regions. One of the two must be sent; both are
/// validated.
pub(super) fn books(params: &Params<'_>, register: &Bookmakers) -> Result<PricedBooks, ApiError> {
    let named = items(params, &BOOKMAKERS).map(|keys| known_books(&keys, register)).transpose()?;
    let regions = items(params, &REGIONS).map(regions).transpose()?;
    match (named, regions) {
        (Some(books), _) => Ok(PricedBooks::named(books)),
        (None, Some(regions)) => Ok(PricedBooks::OfferedIn(regions)),
        (None, None) => {
            let message = format!("Send `regions` ({}) or `bookmakers`.", values::REGIONS_TAKE);
            Err(ApiError { param: Some(REGIONS.name.into()), ..ApiError::new(Code::MissingRegion, message) })
        }
    }
}

/// Bookmakers that are unknown here are left out: clients name those that they know from elsewhere. A list without any
/// known one is an error, as its answer could only be empty.
fn known_books(keys: &[&str], register: &Bookmakers) -> Result<Vec<BookId>, ApiError> {
    let known: Vec<BookId> = keys.iter().filter_map(|key| register.find(key)).collect();
    match keys.first() {
        Some(first) if known.is_empty() => Err(BOOKMAKERS.refuse(first)),
        _ => Ok(known),
    }
}

fn regions(names: Vec<&str>) -> Result<Regions, ApiError> {
    names.into_iter().map(|name| Region::parse(name).ok_or_else(|| REGIONS.refuse(name))).collect()
}

/// Who wins, unless other markets are named. A key that reads and that nobody has priced matches nothing.
fn markets(params: &Params<'_>, families: &MarketFamilies) -> Result<MarketsByKind, ApiError> {
    let Some(named) = items(params, &MARKETS) else {
        return Ok(MarketsByKind::new(|kind| match kind {
            SportKind::Tournament => Market::OUTRIGHT.into(),
            _ => Market::MONEYLINE.into(),
        }));
    };
    if let Some(unreadable) = named.iter().find(|name| families.read(name, SportKind::HeadToHead).is_none()) {
        return Err(MARKETS.refuse(unreadable));
    }
    Ok(MarketsByKind::new(|kind| {
        let known = named.iter().filter_map(|name| match families.read(name, kind) {
            Some(MarketKey::Known(market)) => Some(market),
            _ => None,
        });
        MarketFilter::only(known.collect())
    }))
}

pub(super) fn prices(
    params: &Params<'_>,
    register: &Bookmakers,
    families: &MarketFamilies,
) -> Result<Prices, ApiError> {
    Ok(Prices {
        books: books(params, register)?,
        markets: markets(params, families)?,
        format: params.parse(&ODDS_FORMAT, OddsFormat::parse)?.unwrap_or(OddsFormat::Decimal),
        dates: dates(params)?,
        extras: Extras {
            links: is_yes(params, &INCLUDE_LINKS)?,
            sids: is_yes(params, &INCLUDE_SIDS)?,
            bet_limits: is_yes(params, &INCLUDE_BET_LIMITS)?,
            multipliers: is_yes(params, &INCLUDE_MULTIPLIERS)?,
            rotation_numbers: is_yes(params, &INCLUDE_ROTATION_NUMBERS)?,
        },
    })
}

pub(super) fn dates(params: &Params<'_>) -> Result<DateFormat, ApiError> {
    let parse = |text: &str| match text {
        "iso" => Some(DateFormat::Iso),
        "unix" => Some(DateFormat::Unix),
        _ => None,
    };
    Ok(params.parse(&DATE_FORMAT, parse)?.unwrap_or_default())
}

/// In any case of letters: some languages write their own.
pub(super) fn is_yes(params: &Params<'_>, parameter: &'static Parameter) -> Result<bool, ApiError> {
    let parse = |text: &str| match text {
        _ if text.eq_ignore_ascii_case("true") => Some(true),
        _ if text.eq_ignore_ascii_case("false") => Some(false),
        _ => None,
    };
    Ok(params.parse(parameter, parse)?.unwrap_or(false))
}

pub(super) fn scope(params: &Params<'_>) -> Result<Scoped, ApiError> {
    let events = EventScope {
        events: values::event_ids(params, &EVENT_IDS)?,
        commence_from: params.parse(&COMMENCE_TIME_FROM, |text| values::time(text, Round::Up))?,
        commence_to: params.parse(&COMMENCE_TIME_TO, |text| values::time(text, Round::Down))?,
        ..EventScope::default()
    };
    if let (Some(from), Some(to)) = (events.commence_from, events.commence_to)
        && to < from
    {
        let message = "`commenceTimeTo` is before `commenceTimeFrom`.";
        return Err(ApiError::new(Code::InvalidTimeRange, message));
    }
    Ok(Scoped { events, after: values::after(params)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: &[Parameter] = &[REGIONS, BOOKMAKERS, MARKETS];

    fn read(query: &'static str) -> Params<'static> {
        Params::read_leniently(Some(query), KNOWN).unwrap()
    }

    #[test]
    fn unknown_regions_and_bookmakers_are_refused() {
        let none = Bookmakers::default();
        let asked = |query| books(&read(query), &none);
        let us = Regions::only(Region::Us);
        assert_eq!(asked("regions=us"), Ok(PricedBooks::OfferedIn(us)));
        assert_eq!(asked("regions=us2,us,%20us,"), Ok(PricedBooks::OfferedIn(us.with(Region::Us2))));
        for query in ["", "regions=", "regions=,", "bookmakers="] {
            assert_eq!(asked(query).unwrap_err().code, Code::MissingRegion, "{query}");
        }
        for (query, param) in [("regions=us,mars", "regions"), ("regions=us&bookmakers=nobody", "bookmakers")] {
            assert_eq!(asked(query).unwrap_err().param.as_deref(), Some(param), "{query}");
        }
    }

    #[test]
    fn markets_depend_on_the_kind_of_sport() {
        let catalogue = crate::config::catalogue::builtin();
        let asked = |query| markets(&read(query), catalogue.markets());
        let default = asked("").unwrap();
        assert!(default.of(SportKind::Fight).accepts(Market::MONEYLINE));
        assert!(default.of(SportKind::Tournament).accepts(Market::OUTRIGHT));
        assert!(!default.of(SportKind::Tournament).accepts(Market::MONEYLINE));
        assert_eq!(asked("markets=").unwrap(), default);
        let totals = asked("markets=totals,h2h_lay").unwrap();
        assert!(totals.of(SportKind::Fight).accepts(Market::TOTAL_ROUNDS));
        assert!(totals.of(SportKind::HeadToHead).accepts(Market::TOTAL_POINTS));
        assert!(!totals.of(SportKind::HeadToHead).accepts(Market::MONEYLINE));
        assert!(asked("markets=h2h,player_points,player_never_seen").is_ok());
        assert_eq!(asked("markets=h2h,handicaps").unwrap_err().param.as_deref(), Some("markets"));
    }
}
