//! The parameters of this interface and how their values are read.
//!
//! Lists are separated by commas; blanks around an item and empty items are ignored.

use crate::board::v4::{DateFormat, Extras, MarketsByKind, PricedBooks, Prices, Scoped};
use crate::http::exchange::error::{ApiError, Code};
use crate::http::exchange::query::{Parameter, Params};
use crate::http::exchange::values::{self, Round};
use crate::model::{BookId, Bookmakers, Market, OddsFormat, Region, Regions, SportKind};

pub(super) const REGIONS: Parameter = Parameter::list("regions", "us, uk, eu and au, separated by commas");
pub(super) const BOOKMAKERS: Parameter =
    Parameter::list("bookmakers", "keys of bookmakers that /v1/books lists, separated by commas");
pub(super) const MARKETS: Parameter = Parameter::list(
    "markets",
    "h2h, spreads, totals, outrights, top5, top10, top20, three_ball, matchup and round_leader, separated by \
            commas",
);
pub(super) const ODDS_FORMAT: Parameter = Parameter::new("oddsFormat", "decimal, american or fractional");
pub(super) const DATE_FORMAT: Parameter = Parameter::new("dateFormat", "iso or unix");
pub(super) const EVENT_IDS: Parameter = Parameter::list("eventIds", "up to 100 event ids, separated by commas");
pub(super) const COMMENCE_TIME_FROM: Parameter = Parameter::new("commenceTimeFrom", TIME);
pub(super) const COMMENCE_TIME_TO: Parameter = Parameter::new("commenceTimeTo", TIME);
pub(super) const INCLUDE_LINKS: Parameter = Parameter::new("includeLinks", YES_OR_NO);
pub(super) const INCLUDE_SIDS: Parameter = Parameter::new("includeSids", YES_OR_NO);
pub(super) const INCLUDE_BET_LIMITS: Parameter = Parameter::new("includeBetLimits", YES_OR_NO);
pub(super) const DAYS_FROM: Parameter = Parameter::new("daysFrom", "an integer from 1 to 3");
pub(super) const ALL: Parameter = Parameter::new("all", YES_OR_NO);

const TIME: &str = "a time such as 2026-11-14T23:39:00Z";
const YES_OR_NO: &str = "true or false";

/// Regions of The Odds API in which no bookmaker here is offered: they are accepted, and match nothing.
const REGIONS_ELSEWHERE: [&str; 5] = ["us2", "us_dfs", "us_ex", "fr", "se"];

/// Lay markets of The Odds API, which are not stored: they are accepted, and match nothing.
const LAY_MARKETS: [&str; 2] = ["h2h_lay", "outrights_lay"];

const KINDS: [SportKind; 3] = [SportKind::HeadToHead, SportKind::Fight, SportKind::Tournament];

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
            let message = "Send `regions` (us, uk, eu and au, separated by commas) or `bookmakers`.";
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
    let ours = names.into_iter().filter(|name| !REGIONS_ELSEWHERE.contains(name));
    ours.map(|name| Region::parse(name).ok_or_else(|| REGIONS.refuse(name))).collect()
}

/// Who wins, unless other markets are named.
fn markets(params: &Params<'_>) -> Result<MarketsByKind, ApiError> {
    let mut markets = MarketsByKind::default();
    let Some(named) = items(params, &MARKETS) else {
        return Ok(KINDS.into_iter().fold(markets, |markets, kind| {
            markets.with(kind, if kind == SportKind::Tournament { Market::Outright } else { Market::Moneyline })
        }));
    };
    for name in named.into_iter().filter(|name| !LAY_MARKETS.contains(name)) {
        for kind in KINDS {
            let market = Market::parse_alias(name, kind).ok_or_else(|| MARKETS.refuse(name))?;
            markets = markets.with(kind, market);
        }
    }
    Ok(markets)
}

pub(super) fn prices(params: &Params<'_>, register: &Bookmakers) -> Result<Prices, ApiError> {
    Ok(Prices {
        books: books(params, register)?,
        markets: markets(params)?,
        format: params.parse(&ODDS_FORMAT, OddsFormat::parse)?.unwrap_or(OddsFormat::Decimal),
        dates: dates(params)?,
        extras: Extras {
            links: is_yes(params, &INCLUDE_LINKS)?,
            sids: is_yes(params, &INCLUDE_SIDS)?,
            bet_limits: is_yes(params, &INCLUDE_BET_LIMITS)?,
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
    let scope = Scoped {
        events: values::event_ids(params, &EVENT_IDS)?,
        commence_from: params.parse(&COMMENCE_TIME_FROM, |text| values::time(text, Round::Up))?,
        commence_to: params.parse(&COMMENCE_TIME_TO, |text| values::time(text, Round::Down))?,
        after: values::after(params)?,
    };
    if let (Some(from), Some(to)) = (scope.commence_from, scope.commence_to)
        && to < from
    {
        let message = "`commenceTimeTo` is before `commenceTimeFrom`.";
        return Err(ApiError::new(Code::InvalidTimeRange, message));
    }
    Ok(scope)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: &[Parameter] = &[REGIONS, BOOKMAKERS, MARKETS];

    fn read(query: &'static str) -> Params<'static> {
        Params::read_leniently(Some(query), KNOWN).unwrap()
    }

    #[test]
    fn regions_of_elsewhere_match_nothing_and_others_are_refused() {
        let none = Bookmakers::default();
        let asked = |query| books(&read(query), &none);
        let us = PricedBooks::OfferedIn(Regions::only(Region::Us));
        assert_eq!(asked("regions=us"), Ok(us.clone()));
        assert_eq!(asked("regions=us2,us,%20us,"), Ok(us));
        assert_eq!(asked("regions=us2"), Ok(PricedBooks::OfferedIn(Regions::NONE)));
        for query in ["", "regions=", "regions=,", "bookmakers="] {
            assert_eq!(asked(query).unwrap_err().code, Code::MissingRegion, "{query}");
        }
        for (query, param) in [("regions=us,mars", "regions"), ("regions=us&bookmakers=nobody", "bookmakers")] {
            assert_eq!(asked(query).unwrap_err().param.as_deref(), Some(param), "{query}");
        }
    }

    #[test]
    fn markets_depend_on_the_kind_of_sport() {
        let asked = |query| markets(&read(query));
        let default = asked("").unwrap();
        assert!(default.of(SportKind::Fight).contains(Market::Moneyline));
        assert!(default.of(SportKind::Tournament).contains(Market::Outright));
        assert!(!default.of(SportKind::Tournament).contains(Market::Moneyline));
        assert_eq!(asked("markets=").unwrap(), default);
        let totals = asked("markets=totals,h2h_lay").unwrap();
        assert!(totals.of(SportKind::Fight).contains(Market::TotalRounds));
        assert!(totals.of(SportKind::HeadToHead).contains(Market::TotalPoints));
        assert!(!totals.of(SportKind::HeadToHead).contains(Market::Moneyline));
        assert_eq!(asked("markets=h2h_lay").unwrap(), MarketsByKind::default());
        assert_eq!(asked("markets=h2h,player_points").unwrap_err().param.as_deref(), Some("markets"));
    }
}
