//! Parses the score of an event: a list of names and numbers, in any order, the numbers mostly as strings.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::payload::PayloadContext;
use crate::ingest::wire::Rejection;
use crate::ingest::wire::field::{Field, Object, Raw, unquote};
use crate::model::{Contest, EventNews, EventStatus, Reason, Score, ScoreNews, ScoreStatus};

const SCORE_MAX: i64 = 1_000_000;

#[derive(Deserialize)]
struct SideLine<'a> {
    #[serde(borrow)]
    name: Raw<'a>,
    #[serde(borrow)]
    score: Raw<'a>,
}

/// What a payload says of the course of an event.
#[derive(Debug, Default)]
pub(super) struct EventScore {
    /// Over, whether or not a score is known.
    pub(super) is_over: bool,
    pub(super) news: Option<ScoreNews>,
}

pub(super) fn read(
    completed: Field<'_>,
    list: Field<'_>,
    updated: Field<'_>,
    event: &EventNews,
    context: &PayloadContext<'_>,
) -> Result<EventScore, Rejection> {
    let is_over = match completed.raw.map(RawValue::get) {
        None | Some("false") => false,
        Some("true") => true,
        Some(_) => return Err(completed.takes("true or false")),
    };
    let points = match &event.contest {
        Contest::Sides { home, away } => points(list, home, away)?,
        // The scores of a tournament have no two sides; only its end is reported.
        Contest::Tournament { .. } => None,
    };
    let is_reported = points.is_some() || (is_over && matches!(event.contest, Contest::Tournament { .. }));
    if !is_reported {
        return Ok(EventScore { is_over, news: None });
    }
    let status = match event.status {
        _ if is_over => ScoreStatus::Final,
        EventStatus::Scheduled => ScoreStatus::Scheduled,
        _ => ScoreStatus::Live,
    };
    let updated = if updated.is_given() { updated.time()? } else { context.at };
    let score = Score { status, points, periods: Box::default(), winner: None, updated };
    let news = ScoreNews { sport: event.sport, event: event.id.clone(), score };
    Ok(EventScore { is_over, news: Some(news) })
}

/// Home's and away's score by their names; `None` where there is none yet, or none was kept.
fn points(list: Field<'_>, home: &str, away: &str) -> Result<Option<(i32, i32)>, Rejection> {
    if !list.is_given() {
        return Ok(None);
    }
    let sides: Vec<Object<SideLine<'_>>> = list.list()?;
    let (mut ours, mut theirs) = (None, None);
    for Object(side) in &sides {
        let name = Field::new("scores.name", side.name).text()?;
        let score = Field::new("scores.score", side.score);
        // Some feeds pad a name here and not there.
        let points = if name.trim() == home.trim() {
            &mut ours
        } else if name.trim() == away.trim() {
            &mut theirs
        } else {
            let detail = format!("\"scores\" names {name:?}, who is neither side");
            return Err(Rejection::new(Reason::BadField, detail));
        };
        *points = if score.is_given() { Some(number(score)?) } else { None };
    }
    match (ours, theirs) {
        (Some(ours), Some(theirs)) => Ok(Some((ours, theirs))),
        (None, None) => Ok(None),
        _ => Err(Rejection::new(Reason::MissingField, "\"scores\" has the score of one side only")),
    }
}

fn number(field: Field<'_>) -> Result<i32, Rejection> {
    let json = field.json()?;
    let text = unquote(json).unwrap_or(json.into());
    let number = text.trim().parse::<i64>().ok().filter(|number| (0..=SCORE_MAX).contains(number));
    number.and_then(|number| i32::try_from(number).ok()).ok_or_else(|| field.takes("a whole number, or null"))
}
