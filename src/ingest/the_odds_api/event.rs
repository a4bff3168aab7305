//! Parses one event of a payload, with its prices or its score.

use std::sync::Arc;

use serde::Deserialize;

use super::Payload;
use super::payload::PayloadContext;
use super::{book, score};
use crate::ingest::wire::Rejection;
use crate::ingest::wire::field::{Field, Raw};
use crate::model::sport::is_competition_key;
use crate::model::{Contest, EventNews, EventStatus, News, Reason, SportId};

/// An event with prices, with a score, or with neither.
#[derive(Deserialize)]
pub(super) struct EventLine<'a> {
    #[serde(borrow)]
    pub(super) id: Raw<'a>,
    #[serde(borrow)]
    sport_key: Raw<'a>,
    #[serde(borrow)]
    sport_title: Raw<'a>,
    #[serde(borrow)]
    commence_time: Raw<'a>,
    #[serde(borrow)]
    home_team: Raw<'a>,
    #[serde(borrow)]
    away_team: Raw<'a>,
    #[serde(borrow)]
    bookmakers: Raw<'a>,
    #[serde(borrow)]
    completed: Raw<'a>,
    #[serde(borrow)]
    scores: Raw<'a>,
    #[serde(borrow)]
    last_update: Raw<'a>,
}

impl EventLine<'_> {
    /// The event itself.
    pub(super) fn event(&self, context: &PayloadContext<'_>) -> Result<EventNews, Rejection> {
        let (sport, competition_key) = self.sport(context)?;
        let id = Field::new("id", self.id).event_id()?;
        let commence = Field::new("commence_time", self.commence_time).time()?;
        let title: Arc<str> = Field::new("sport_title", self.sport_title).text()?.as_ref().into();
        let names = context.ask.catalogue[sport].v4.as_ref();
        let competition: Arc<str> = names.map_or(&*title, |names| names.competition(&title)).into();
        let contest = self.contest(&competition)?;
        let competition_title = Some(title);
        // These payloads have no status: an event that has begun is live until a score completes it.
        let status = if commence <= context.ask.now { EventStatus::Live } else { EventStatus::Scheduled };
        Ok(EventNews { sport, id, competition, competition_key, competition_title, commence, contest, status })
    }

    /// Adds the event and everything in it to the payload.
    pub(super) fn read_into(&self, event: EventNews, context: &PayloadContext<'_>, payload: &mut Payload) {
        let completed = Field::new("completed", self.completed);
        let list = Field::new("scores", self.scores);
        let updated = Field::new("last_update", self.last_update);
        let score = score::read(completed, list, updated, &event, context);
        let is_over = matches!(&score, Ok(score) if score.is_over);
        let status = if is_over { EventStatus::Final } else { event.status };
        payload.push(News::Event(EventNews { status, ..event.clone() }));
        let bookmakers = Field::new("bookmakers", self.bookmakers);
        if bookmakers.is_given() {
            book::read_all(bookmakers, &event, context, payload);
        }
        match score {
            Ok(score) => {
                if let Some(news) = score.news {
                    payload.push(News::Score(news));
                }
            }
            Err(rejection) => payload.reject_current(rejection),
        }
    }

    /// The sport, and the key that the payload has for it.
    fn sport(&self, context: &PayloadContext<'_>) -> Result<(SportId, Option<Arc<str>>), Rejection> {
        let field = Field::new("sport_key", self.sport_key);
        let asked = context.ask.sport;
        if !field.is_given() {
            let missing = "\"sport_key\" is missing, and no --sport says what this is";
            let sport = asked.ok_or_else(|| Rejection::new(Reason::MissingField, missing))?;
            return Ok((sport, None));
        }
        let key = field.string()?;
        match context.ask.catalogue.find_v4(&key) {
            _ if !is_competition_key(&key) => Err(field.takes("a key of a to z, 0 to 9 and _")),
            Some((sport, _)) if asked.is_none_or(|asked| asked == sport) => Ok((sport, Some((*key).into()))),
            Some(_) => Err(Rejection::new(Reason::UnknownSport, format!("{key:?} is of another sport than --sport"))),
            None => Err(Rejection::new(Reason::UnknownSport, context.ask.catalogue.unknown_sport(&key).to_string())),
        }
    }

    /// An event without sides has a field.
    fn contest(&self, competition: &Arc<str>) -> Result<Contest, Rejection> {
        let (home, away) = (Field::new("home_team", self.home_team), Field::new("away_team", self.away_team));
        if !home.is_given() && !away.is_given() {
            return Ok(Contest::Tournament { title: Arc::clone(competition) });
        }
        Ok(Contest::Sides { home: home.text()?.as_ref().into(), away: away.text()?.as_ref().into() })
    }
}
