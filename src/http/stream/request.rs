//! What a client wants to follow: the parameters of the stream and of `/v1/changes`.

use std::sync::Arc;

use crate::board::{ChangeFilter, CompetitionKeys, FilterSpec};
use crate::http::exchange::error::{ApiError, Code};
use crate::http::exchange::history::Stop;
use crate::http::exchange::query::{Parameter, Params};
use crate::http::exchange::reply::Content;
use crate::http::exchange::service::Authorized;
use crate::http::exchange::values::{self, EVENT_IDS, LIMIT};
use crate::http::v1::filters::{
    self, COMPETITION, INCLUDE, MARKET, MARKETS_MAX, ODDS_FORMAT, REGION, REGIONS, REGIONS_DEFAULT, WantedMarket,
};
use crate::model::sport::{is_competition_key, is_key};
use crate::model::{Market, MarketFilter, OddsFormat, Position, SportSet, World};

const SPORTS: Parameter =
    Parameter::list("sports", "keys of sports that /v1/sports lists, separated by commas; without it, all sports");
const BOOKMAKER: Parameter = Parameter::list("bookmaker", "up to 100 keys of bookmakers, separated by commas");
const BOOKMAKERS_MAX: usize = 100;
const SNAPSHOT: Parameter = Parameter::new("snapshot", "true or false");
const SINCE: Parameter =
    Parameter::new("since", "a position: the id of an event of the stream, `x-position` of an answer, or `position`");

pub(crate) const PARAMETERS: &[Parameter] =
    &[SPORTS, COMPETITION, MARKET, BOOKMAKER, REGIONS, REGION, EVENT_IDS, ODDS_FORMAT, INCLUDE, SNAPSHOT, SINCE];
pub(crate) const CHANGES_PARAMETERS: &[Parameter] =
    &[SPORTS, COMPETITION, MARKET, BOOKMAKER, REGIONS, REGION, EVENT_IDS, ODDS_FORMAT, INCLUDE, SINCE, LIMIT];

/// A stream that a request asks for.
#[derive(Debug)]
pub(crate) struct StreamPlan {
    pub world: World,
    pub filter: Arc<ChangeFilter>,
    /// After what the client has seen.
    pub since: Option<Position>,
    pub wants_snapshot: bool,
    pub unmatched: Unmatched,
}

/// Names that match nothing now.
#[derive(Debug, Default)]
pub(crate) struct Unmatched {
    pub bookmakers: Vec<Box<str>>,
    pub competitions: Vec<Box<str>>,
}

/// The stream: `/v1/stream`. It has no content of its own.
pub(crate) fn get(authorized: &Authorized<'_>) -> Result<Content, Stop> {
    authorized.check_open()?;
    let params = Params::read(authorized.request.query, PARAMETERS)?;
    let (spec, unmatched) = read_filter(authorized, &params)?;
    let wants_snapshot = params.parse(&SNAPSHOT, |text| text.parse().ok())?.unwrap_or(true);
    let since = match authorized.request.headers.last_event_id() {
        Some(text) => Some(Position::parse(text).ok_or_else(|| {
            let message = "`Last-Event-ID` must be the id of an event of this stream. Leave it out to begin anew.";
            ApiError::invalid_parameter("Last-Event-ID", message.to_owned())
        })?),
        None => since(&params)?,
    };
    let filter = authorized.service.streams.filter(spec);
    let plan = StreamPlan { world: authorized.grant.world(), filter, since, wants_snapshot, unmatched };
    Err(Stop::Opens(Box::new(plan)))
}

pub(crate) fn since(params: &Params<'_>) -> Result<Option<Position>, ApiError> {
    params.parse(&SINCE, Position::parse)
}

/// A position that the log does not reach back to, or that is of another log.
pub(crate) fn position_gone() -> ApiError {
    let message = "The log does not have this position: it is too old, or of another log. Read the odds again, and go on \
                   from their `x-position`.";
    ApiError::new(Code::PositionGone, message)
}

/// What is followed, and which names of it match nothing now.
pub(crate) fn read_filter(
    authorized: &Authorized<'_>,
    params: &Params<'_>,
) -> Result<(FilterSpec, Unmatched), ApiError> {
    let mut unmatched = Unmatched::default();
    let sports = sports(authorized, params)?;
    let competitions = competitions(authorized, params, &mut unmatched)?;
    let events = values::event_ids(params, &EVENT_IDS)?;
    let FollowedMarkets { by_sport: markets, to_come: markets_to_come } = markets(authorized, params, sports)?;
    let bookmakers = bookmakers(authorized, params, &mut unmatched)?;
    let regions = filters::regions(params)?.or(bookmakers.is_none().then_some(REGIONS_DEFAULT));
    let format = params.parse(&ODDS_FORMAT, OddsFormat::parse)?.unwrap_or(OddsFormat::American);
    let with_event = filters::includes_event(params)?;
    let names_fields = events.is_some() || competitions.is_some();
    let hides = authorized.service.boards.catalogue().sports().filter(|(id, sport)| {
        let names_winners = markets.get(id.index()).is_some_and(|markets| markets.names(Market::OUTRIGHT));
        sport.hides_fields && !names_fields && !names_winners
    });
    let sides_only = hides.fold(SportSet::NONE, |sports, (id, _)| sports.with(id));
    let spec = FilterSpec {
        sports,
        sides_only,
        competitions,
        events,
        markets,
        markets_to_come,
        bookmakers,
        regions,
        format,
        with_event,
    };
    Ok((spec, unmatched))
}

fn sports(authorized: &Authorized<'_>, params: &Params<'_>) -> Result<SportSet, ApiError> {
    let catalogue = authorized.service.boards.catalogue();
    let Some(list) = params.get(&SPORTS) else {
        let readable = catalogue.sport_ids().filter(|sport| authorized.grant.for_sport(*sport).is_ok());
        return Ok(readable.fold(SportSet::NONE, SportSet::with));
    };
    let mut sports = SportSet::NONE;
    for key in list.split(',') {
        if !is_key(key) {
            return Err(SPORTS.refuse(key));
        }
        sports = sports.with(authorized.access(catalogue.find(key), key)?.sport());
    }
    Ok(sports)
}

/// A key that no world has had may come: it is only reported.
fn competitions(
    authorized: &Authorized<'_>,
    params: &Params<'_>,
    unmatched: &mut Unmatched,
) -> Result<Option<CompetitionKeys>, ApiError> {
    let Some(list) = params.get(&COMPETITION) else { return Ok(None) };
    let world = authorized.service.boards.load(authorized.grant.world());
    let mut keys: Vec<Box<str>> = Vec::new();
    for key in list.split(',') {
        if !is_competition_key(key) || keys.len() == CompetitionKeys::MAX {
            return Err(COMPETITION.refuse(key));
        }
        if world.register().competitions().get(key).is_none() {
            unmatched.competitions.push(key.into());
        }
        keys.push(key.into());
    }
    Ok(Some(CompetitionKeys::new(keys)))
}

fn bookmakers(
    authorized: &Authorized<'_>,
    params: &Params<'_>,
    unmatched: &mut Unmatched,
) -> Result<Option<Box<[Box<str>]>>, ApiError> {
    let Some(list) = params.get(&BOOKMAKER) else { return Ok(None) };
    let world = authorized.service.boards.load(authorized.grant.world());
    let mut keys: Vec<Box<str>> = list.split(',').map(Box::from).collect();
    keys.sort_unstable();
    keys.dedup();
    if keys.len() > BOOKMAKERS_MAX || !keys.iter().all(|key| is_key(key)) {
        return Err(BOOKMAKER.refuse(list));
    }
    unmatched.bookmakers =
        keys.iter().filter(|key| world.register().bookmakers().find(key).is_none()).cloned().collect();
    Ok(Some(keys.into()))
}

/// The markets that are followed.
struct FollowedMarkets {
    /// For each sport of the catalogue.
    by_sport: Box<[MarketFilter]>,
    /// The keys of those that have not had a price yet.
    to_come: Box<[Box<str>]>,
}

fn markets(authorized: &Authorized<'_>, params: &Params<'_>, sports: SportSet) -> Result<FollowedMarkets, ApiError> {
    let catalogue = authorized.service.boards.catalogue();
    let world = authorized.service.boards.load(authorized.grant.world());
    let of_each = |filter: &MarketFilter| {
        let by_sport = catalogue.sport_ids().map(|_| filter.clone()).collect();
        FollowedMarkets { by_sport, to_come: Box::default() }
    };
    let list = match params.get(&MARKET) {
        None => return Ok(of_each(&MarketFilter::Featured)),
        Some(filters::EVERY_MARKET) => return Ok(of_each(&MarketFilter::All)),
        Some(list) => list,
    };
    if list.split(',').count() > MARKETS_MAX {
        return Err(MARKET.fault("has more than 20 keys: use all"));
    }
    let mut to_come: Vec<Box<str>> = Vec::new();
    let mut by_sport = Vec::new();
    for (id, sport) in catalogue.sports() {
        let mut found = Vec::new();
        for key in list.split(',').filter(|_| sports.contains(id)) {
            match filters::market((catalogue, world.register()), key, sport.kind)? {
                WantedMarket::Known(market) => found.push(market),
                WantedMarket::ToCome(key) => to_come.push(key),
            }
        }
        by_sport.push(MarketFilter::only(found));
    }
    to_come.sort_unstable();
    to_come.dedup();
    Ok(FollowedMarkets { by_sport: by_sport.into(), to_come: to_come.into() })
}
