//! Get Lines: `/v1/sports/{sport_key}/events/{event_id}/lines`, what the prices of an event were.

use std::num::NonZeroU32;

use super::filters::{self, BOOKMAKER, MARKET, ODDS_FORMAT, REGION, REGIONS, TIME};
use crate::board::render;
use crate::board::{LinesPage, LinesQuery, OutcomeFilter, PageMax};
use crate::http::exchange::error::{ApiError, Code};
use crate::http::exchange::history::{LinesRead, Stop};
use crate::http::exchange::query::{Parameter, Params};
use crate::http::exchange::reply::Content;
use crate::http::exchange::service::{Authorized, SportView};
use crate::http::exchange::values::{self, AFTER, Round};
use crate::model::{EventId, OddsFormat, Point};

const NAME: Parameter = Parameter::new("name", "the name of an outcome");
const DESCRIPTION: Parameter = Parameter::new("description", "the description of an outcome, such as a player");
const POINT: Parameter = Parameter::new("point", "the point of an outcome, such as -3.5");
const FROM: Parameter = Parameter::new("from", TIME);
const TO: Parameter = Parameter::new("to", TIME);
const EVERY: Parameter = Parameter::new("every", "a length of time from 1s to 30d, such as 5m or 1h");
const LIMIT: Parameter = Parameter::new("limit", "an integer from 1 to 1000");

pub(crate) const PARAMETERS: &[Parameter] =
    &[MARKET, BOOKMAKER, REGIONS, REGION, NAME, DESCRIPTION, POINT, ODDS_FORMAT, FROM, TO, EVERY, LIMIT, AFTER];

const LIMIT_DEFAULT: usize = 200;
const LIMIT_MAX: usize = 1000;
const EVERY_MAX_S: u64 = 30 * 86_400;
/// The most outcomes in all points of an answer: about 12 MB.
const OUTCOMES_MAX: usize = 200_000;

pub(crate) fn get(authorized: &Authorized<'_>, view: &SportView<'_>, id: &str) -> Result<Content, Stop> {
    let (request, now) = (authorized.request, authorized.now);
    let params = Params::read(request.query, PARAMETERS)?;
    let query = read(&params)?;
    let read = LinesRead {
        access: view.access(),
        event: EventId::new(id).ok_or_else(no_such_event)?,
        bookmakers: filters::book_keys(view, &params)?,
        markets: filters::markets(view, &params)?,
        range: query.range(),
    };
    let (named, sport_key, encoding) =
        (filters::unknown_book(view, &params), view.sport.key.clone(), request.encoding());
    authorized.history_content(move |history| {
        let lines = history.lines(&read)?.ok_or_else(no_such_event)?;
        if let Some(key) = named.filter(|_| lines.lines.is_empty()) {
            return Err(BOOKMAKER.refuse(&key));
        }
        let max = PageMax { points: filters::ROWS_MAX, outcomes: OUTCOMES_MAX };
        let page = LinesPage::of(&lines, &query, now, max).ok_or_else(too_many)?;
        let body = render::lines(&lines, &page, &sport_key, &query, now);
        Ok(Content { rows: page.point_count(), ..Content::prepared(body, encoding) })
    })
}

fn no_such_event() -> ApiError {
    ApiError::new(Code::EventNotFound, "There is no history of such an event in this sport.")
}

fn too_many() -> ApiError {
    let message = format!(
        "This answer would have more than {} points or {OUTCOMES_MAX} outcomes: name fewer markets, one bookmaker or one \
         outcome, or send a smaller limit.",
        filters::ROWS_MAX
    );
    ApiError::new(Code::InvalidParameter, message)
}

fn read(params: &Params<'_>) -> Result<LinesQuery, ApiError> {
    let text = |parameter| params.get(parameter).map(Box::from);
    let (from, to) = (
        params.parse(&FROM, |text| values::time(text, Round::Down))?,
        params.parse(&TO, |text| values::time(text, Round::Down))?,
    );
    if let (Some(from), Some(to)) = (from, to)
        && to < from
    {
        return Err(TO.fault("is before `from`"));
    }
    Ok(LinesQuery {
        outcomes: OutcomeFilter {
            name: text(&NAME),
            description: text(&DESCRIPTION),
            point: params.parse(&POINT, Point::parse)?,
        },
        format: params.parse(&ODDS_FORMAT, OddsFormat::parse)?.unwrap_or(OddsFormat::American),
        from,
        to,
        every: params.parse(&EVERY, every)?,
        limit: params.parse(&LIMIT, limit)?.unwrap_or(LIMIT_DEFAULT),
        after: values::after(params)?.map(|cursor| cursor.commence),
    })
}

fn every(text: &str) -> Option<NonZeroU32> {
    let every = humantime::parse_duration(text).ok()?;
    let is_whole = every.subsec_nanos() == 0 && every.as_secs() <= EVERY_MAX_S;
    u32::try_from(every.as_secs()).ok().filter(|_| is_whole).and_then(NonZeroU32::new)
}

fn limit(text: &str) -> Option<usize> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|limit| is_plain && (1..=LIMIT_MAX).contains(limit))
}
