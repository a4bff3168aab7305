//! Parses a line: its type first, then the fields of that type, each checked on its own.

use std::borrow::Cow;
use std::sync::Arc;

use serde::Deserialize;

use super::field::{Field, Object, Raw};
use super::{LINE_BYTES_MAX, ParsedLine, Rejection, outcomes};
use crate::model::sport::is_competition_key;
use crate::model::{
    Bookmaker, Catalogue, ClosedNews, CompetitionNews, Contest, EventNews, EventStatus, MarketKey, News, OddsNews,
    Period, ReadNews, Reason, Region, Regions, Score, ScoreNews, ScoreStatus, SeenCompetition, Source, SourceNews,
    SportId, SportKind,
};

/// Every field of every type of line, unparsed: a line is scanned once, and fields that its type does not use are ignored.
/// Names are compared in this order, so those of odds lines come first.
#[derive(Deserialize)]
pub(super) struct RawLine<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Raw<'a>,
    #[serde(borrow)]
    sport: Raw<'a>,
    #[serde(borrow)]
    event: Raw<'a>,
    #[serde(borrow)]
    pub(super) bookmaker: Raw<'a>,
    #[serde(borrow)]
    market: Raw<'a>,
    #[serde(borrow)]
    last_update: Raw<'a>,
    #[serde(borrow)]
    format: Raw<'a>,
    #[serde(borrow)]
    outcomes: Raw<'a>,
    #[serde(borrow)]
    at: Raw<'a>,
    #[serde(borrow)]
    latency_ms: Raw<'a>,
    #[serde(borrow)]
    status: Raw<'a>,
    #[serde(borrow)]
    home_score: Raw<'a>,
    #[serde(borrow)]
    away_score: Raw<'a>,
    #[serde(borrow)]
    periods: Raw<'a>,
    #[serde(borrow)]
    winner: Raw<'a>,
    #[serde(borrow)]
    updated_at: Raw<'a>,
    #[serde(borrow)]
    id: Raw<'a>,
    #[serde(borrow)]
    competition: Raw<'a>,
    #[serde(borrow)]
    competition_key: Raw<'a>,
    #[serde(borrow)]
    competition_title: Raw<'a>,
    #[serde(borrow)]
    commence_time: Raw<'a>,
    #[serde(borrow)]
    home: Raw<'a>,
    #[serde(borrow)]
    away: Raw<'a>,
    #[serde(borrow)]
    title: Raw<'a>,
    #[serde(borrow)]
    key: Raw<'a>,
    #[serde(borrow)]
    regions: Raw<'a>,
    #[serde(borrow)]
    pub(super) as_of: Raw<'a>,
    #[serde(borrow)]
    pub(super) stale: Raw<'a>,
    #[serde(borrow)]
    empty_since: Raw<'a>,
    #[serde(borrow)]
    bookmaker_update: Raw<'a>,
}

#[derive(Deserialize)]
struct PeriodLine<'a> {
    #[serde(borrow)]
    number: Raw<'a>,
    #[serde(borrow)]
    home_score: Raw<'a>,
    #[serde(borrow)]
    away_score: Raw<'a>,
}

const SCORE_MAX: i32 = 1_000_000;
const LATENCY_MS_MAX: i32 = 3_600_000;

/// Reads one line, with or without its line end.
pub fn read(line: &[u8], catalogue: &Catalogue) -> Result<ParsedLine, Rejection> {
    read_parsed(&parse(line)?, catalogue)
}

pub(super) fn read_parsed(line: &RawLine<'_>, catalogue: &Catalogue) -> Result<ParsedLine, Rejection> {
    let kind = Field::new("type", line.kind).string()?;
    let news = match &*kind {
        "odds" => return line.odds(catalogue),
        "read" => News::Read(line.good_read(catalogue)?),
        "score" => line.dated(News::Score(line.score(catalogue)?))?,
        "event" => line.dated(News::Event(line.event_news(catalogue)?))?,
        "remove" => line.dated(News::Remove { sport: line.sport(catalogue)?.0, event: line.event_id()? })?,
        "bookmaker" => News::Bookmaker(line.declared_bookmaker()?),
        "closed" => News::Closed(line.closed(catalogue)?),
        "source" => News::Source(line.source(catalogue)?),
        "competition" => News::Competition(line.seen_competition(catalogue)?),
        "market" => News::Market(read_market(Field::new("key", line.key), catalogue, SportKind::HeadToHead)?),
        other => {
            let types = "event, odds, score, remove, bookmaker, read, closed, source, competition, market";
            let detail = format!("{other:?} is no type: {types}");
            return Err(Rejection::new(Reason::UnknownType, detail));
        }
    };
    Ok(ParsedLine { news, dropped: Vec::new() })
}

pub(in crate::ingest) fn unknown_market(key: &str, catalogue: &Catalogue) -> Rejection {
    let nearest = catalogue.markets().nearest(key, std::iter::empty());
    let hint = nearest.map_or_else(String::new, |nearest| format!("; the nearest is {nearest}"));
    Rejection::new(Reason::UnknownMarket, format!("{key:?} does not read as a market{hint}"))
}

fn read_market(field: Field<'_>, catalogue: &Catalogue, kind: SportKind) -> Result<MarketKey, Rejection> {
    let key = field.string()?;
    catalogue.markets().read(&key, kind).ok_or_else(|| unknown_market(&key, catalogue))
}

/// `derived` is the key that the catalogue has for the competition's name. It may have other letters, and an export gives
/// it like any other.
fn read_competition_key<'c>(
    field: Field<'_>,
    catalogue: &Catalogue,
    sport: SportId,
    derived: impl FnOnce() -> Cow<'c, str>,
) -> Result<Arc<str>, Rejection> {
    let key = field.string()?;
    let is_of_sport = catalogue[sport].v4.as_ref().is_none_or(|names| names.has(&key));
    if (is_competition_key(&key) && is_of_sport) || key == derived() {
        return Ok((*key).into());
    }
    Err(field.takes("a competition's key that begins with the sport's, such as soccer_epl"))
}

pub(super) fn parse(line: &[u8]) -> Result<RawLine<'_>, Rejection> {
    if line.len() > LINE_BYTES_MAX {
        let detail = format!("a line has at most {LINE_BYTES_MAX} bytes, this one {}", line.len());
        return Err(Rejection::new(Reason::LineTooLong, detail));
    }
    let bad_json = |detail: String| Rejection::new(Reason::BadJson, detail);
    let text = std::str::from_utf8(line).map_err(|error| bad_json(error.to_string()))?;
    if !text.trim_start().starts_with('{') {
        return Err(bad_json("a line is one JSON object".to_owned()));
    }
    match serde_json::from_str::<Object<RawLine<'_>>>(text) {
        Ok(Object(line)) => Ok(line),
        // Every field accepts any JSON value, so the only error left is a duplicate field.
        Err(error) if error.is_data() => Err(Rejection::new(Reason::BadField, error.to_string())),
        Err(error) => Err(bad_json(error.to_string())),
    }
}

/// What to send instead of a sport that does not exist.
fn unknown_sport(key: &str, catalogue: &Catalogue) -> String {
    match catalogue.find_v4(key) {
        Some((sport, _)) => {
            let sport = &catalogue[sport].key;
            format!(
                "{key:?} is a competition: send \"sport\":\"{sport}\" and, with an event, \"competition_key\":{key:?}"
            )
        }
        None => catalogue.unknown_sport(key).to_string(),
    }
}

impl RawLine<'_> {
    pub(super) fn sport(&self, catalogue: &Catalogue) -> Result<(SportId, SportKind), Rejection> {
        let key = Field::new("sport", self.sport).string()?;
        match catalogue.find(&key) {
            Some(id) => Ok((id, catalogue[id].kind)),
            None => Err(Rejection::new(Reason::UnknownSport, unknown_sport(&key, catalogue))),
        }
    }

    fn event_id(&self) -> Result<crate::model::EventId, Rejection> {
        Field::new("event", self.event).event_id()
    }

    fn event_news(&self, catalogue: &Catalogue) -> Result<EventNews, Rejection> {
        let (sport, kind) = self.sport(catalogue)?;
        let id = Field::new("id", self.id).event_id()?;
        let competition: Arc<str> = Field::new("competition", self.competition).text()?.as_ref().into();
        let contest = self.contest(kind)?;
        let given = Field::new("competition_key", self.competition_key);
        let derived = || catalogue.competition_key(sport, &competition, &contest);
        let competition_key =
            if given.is_given() { Some(read_competition_key(given, catalogue, sport, derived)?) } else { None };
        Ok(EventNews {
            sport,
            id,
            competition_key,
            competition_title: self.competition_title()?,
            commence: Field::new("commence_time", self.commence_time).time()?,
            status: Field::new("status", self.status)
                .one_of(EventStatus::parse, &EventStatus::ALL.map(EventStatus::key))?,
            competition,
            contest,
        })
    }

    fn seen_competition(&self, catalogue: &Catalogue) -> Result<CompetitionNews, Rejection> {
        let (sport, _) = self.sport(catalogue)?;
        let title: Arc<str> = Field::new("title", self.title).text()?.as_ref().into();
        let derived = || match &catalogue[sport].v4 {
            Some(names) => {
                let name = names.competition(&title);
                names.key_of(name, &Contest::Tournament { title: name.into() })
            }
            None => Cow::Borrowed(&*catalogue[sport].key),
        };
        let key = read_competition_key(Field::new("key", self.key), catalogue, sport, derived)?;
        Ok(CompetitionNews { key, competition: SeenCompetition { sport, title } })
    }

    fn competition_title(&self) -> Result<Option<Arc<str>>, Rejection> {
        let given = Field::new("competition_title", self.competition_title);
        if given.is_given() { Ok(Some(given.text()?.as_ref().into())) } else { Ok(None) }
    }

    /// An event with a title has a field, any other has two sides.
    fn contest(&self, kind: SportKind) -> Result<Contest, Rejection> {
        let (home, away) = (Field::new("home", self.home), Field::new("away", self.away));
        let title = Field::new("title", self.title);
        let has_sides = home.is_given() || away.is_given();
        if title.is_given() || (kind == SportKind::Tournament && !has_sides) {
            home.absent("an event with a title has no sides")?;
            away.absent("an event with a title has no sides")?;
            return Ok(Contest::Tournament { title: title.text()?.as_ref().into() });
        }
        Ok(Contest::Sides { home: home.text()?.as_ref().into(), away: away.text()?.as_ref().into() })
    }

    fn odds(&self, catalogue: &Catalogue) -> Result<ParsedLine, Rejection> {
        let (sport, _) = self.sport(catalogue)?;
        let event = self.event_id()?;
        let bookmaker = Arc::from(Field::new("bookmaker", self.bookmaker).key()?.as_ref());
        let market = self.market(catalogue, sport)?;
        let last_update = Field::new("last_update", self.last_update).time()?;
        let list = Field::new("outcomes", self.outcomes);
        let (outcomes, dropped) = outcomes::read(list, Field::new("format", self.format), &market)?;
        let own = Field::new("bookmaker_update", self.bookmaker_update);
        let bookmaker_update = if own.is_given() { Some(own.time()?) } else { None };
        let news = News::Odds(OddsNews { sport, event, bookmaker, market, last_update, bookmaker_update, outcomes });
        Ok(ParsedLine { news: self.dated(news)?, dropped })
    }

    /// The news as of the moment that the line gives, if it gives one.
    fn dated(&self, news: News) -> Result<News, Rejection> {
        let as_of = Field::new("as_of", self.as_of);
        if as_of.is_given() { Ok(News::AsOf(as_of.time()?, Box::new(news))) } else { Ok(news) }
    }

    fn closed(&self, catalogue: &Catalogue) -> Result<ClosedNews, Rejection> {
        let (sport, _) = self.sport(catalogue)?;
        Ok(ClosedNews {
            sport,
            event: self.event_id()?,
            bookmaker: Field::new("bookmaker", self.bookmaker).key()?.as_ref().into(),
            market: self.market(catalogue, sport)?,
            at: Field::new("at", self.at).time()?,
        })
    }

    /// A source has the fields of a read, and the time since when it has no price.
    fn source(&self, catalogue: &Catalogue) -> Result<SourceNews, Rejection> {
        let ReadNews { sport, bookmaker, at, latency_ms } = self.good_read(catalogue)?;
        let empty = Field::new("empty_since", self.empty_since);
        let empty_since = if empty.is_given() { Some(empty.time()?) } else { None };
        Ok(SourceNews { sport, bookmaker, source: Source { last_read: at, latency_ms, empty_since } })
    }

    /// In the service's own names or in those of The Odds API.
    fn market(&self, catalogue: &Catalogue, sport: SportId) -> Result<MarketKey, Rejection> {
        read_market(Field::new("market", self.market), catalogue, catalogue[sport].kind)
    }

    fn score(&self, catalogue: &Catalogue) -> Result<ScoreNews, Rejection> {
        let (sport, kind) = self.sport(catalogue)?;
        let event = self.event_id()?;
        let status =
            Field::new("status", self.status).one_of(ScoreStatus::parse, &ScoreStatus::ALL.map(ScoreStatus::key))?;
        let score = Score {
            status,
            points: self.points()?,
            periods: self.periods(kind)?,
            winner: self.winner(kind, status)?,
            updated: Field::new("updated_at", self.updated_at).time()?,
        };
        Ok(ScoreNews { sport, event, score })
    }

    /// Whether there are sides to have points is known only from the event, so the writer checks that.
    fn points(&self) -> Result<Option<(i32, i32)>, Rejection> {
        let (home, away) = (Field::new("home_score", self.home_score), Field::new("away_score", self.away_score));
        if !home.is_given() && !away.is_given() {
            return Ok(None);
        }
        Ok(Some((home.whole(0..=SCORE_MAX)?, away.whole(0..=SCORE_MAX)?)))
    }

    fn periods(&self, kind: SportKind) -> Result<Box<[Period]>, Rejection> {
        let list = Field::new("periods", self.periods);
        if !list.is_given() {
            return Ok(Box::default());
        }
        let lines: Vec<Object<PeriodLine<'_>>> = list.list()?;
        if lines.len() > Score::PERIODS_MAX {
            return Err(list.takes(format_args!("at most {} periods", Score::PERIODS_MAX)));
        }
        let mut periods: Vec<Period> = Vec::with_capacity(lines.len());
        for Object(line) in lines {
            let period = line.period(kind)?;
            if periods.last().is_some_and(|last| last.number >= period.number) {
                return Err(list.takes("periods in the order of their numbers"));
            }
            periods.push(period);
        }
        Ok(periods.into())
    }

    fn winner(&self, kind: SportKind, status: ScoreStatus) -> Result<Option<Arc<str>>, Rejection> {
        let winner = Field::new("winner", self.winner);
        if kind != SportKind::Fight {
            winner.absent("only a fight has a winner")?;
        } else if status != ScoreStatus::Final {
            winner.absent("only a final score has a winner")?;
        }
        if winner.is_given() { Ok(Some(winner.text()?.as_ref().into())) } else { Ok(None) }
    }

    fn declared_bookmaker(&self) -> Result<Bookmaker, Rejection> {
        let key = Field::new("key", self.key).key()?;
        let title = Field::new("title", self.title).text()?;
        let field = Field::new("regions", self.regions);
        let names: Vec<std::borrow::Cow<'_, str>> = field.list()?;
        let regions: Option<Regions> = names.iter().map(|name| Region::parse(name)).collect();
        match regions {
            Some(regions) if !regions.is_empty() => {
                Ok(Bookmaker { key: key.as_ref().into(), title: title.as_ref().into(), regions })
            }
            _ => Err(field.takes("at least one of us, us2, us_dfs, us_ex, uk, eu, fr, se, au")),
        }
    }

    fn good_read(&self, catalogue: &Catalogue) -> Result<ReadNews, Rejection> {
        let latency = Field::new("latency_ms", self.latency_ms);
        let latency_ms = if latency.is_given() { latency.whole(0..=LATENCY_MS_MAX)?.unsigned_abs() } else { 0 };
        Ok(ReadNews {
            sport: self.sport(catalogue)?.0,
            bookmaker: Field::new("bookmaker", self.bookmaker).key()?.as_ref().into(),
            at: Field::new("at", self.at).time()?,
            latency_ms,
        })
    }
}

impl PeriodLine<'_> {
    /// A round of golf may be written relative to par, and so be below zero.
    fn period(&self, kind: SportKind) -> Result<Period, Rejection> {
        let lowest = if kind == SportKind::Tournament { -SCORE_MAX } else { 0 };
        let number = Field::new("periods.number", self.number).whole(1..=i32::from(u16::MAX))?;
        Ok(Period {
            number: u16::try_from(number).unwrap_or(u16::MAX),
            home: Field::new("periods.home_score", self.home_score).whole(lowest..=SCORE_MAX)?,
            away: Field::new("periods.away_score", self.away_score).whole(lowest..=SCORE_MAX)?,
        })
    }
}
