//! Bookmakers, events, scores and sources.

use super::{NumberNames, seconds, timestamp};
use crate::model::sport::is_key;
use crate::model::{
    Bookmaker, Contest, Event, EventId, EventOwner, EventStatus, Period, Regions, Score, ScoreStatus, SeenCompetition,
    Source, Timestamp,
};
use crate::store::codec::{
    BookRow, BookStanding, CompetitionRow, ContestRow, EventRow, Flaw, OwnerRow, ScoreRow, SourceRow,
};
use crate::store::id_maps::NamesByNumber;

impl BookRow {
    pub(in crate::store) fn of(book: &Bookmaker, standing: BookStanding) -> Self {
        BookRow { key: book.key.to_string(), title: book.title.to_string(), regions: book.regions.bits(), standing }
    }

    pub(in crate::store) fn bookmaker(self) -> Result<Bookmaker, Flaw> {
        if !is_key(&self.key) {
            return Err(Flaw::Invalid("its key is not one"));
        }
        let regions = Regions::from_bits(self.regions).ok_or(Flaw::Invalid("its regions are unknown"))?;
        Ok(Bookmaker { key: self.key.into(), title: self.title.into(), regions })
    }
}

impl EventRow {
    pub(in crate::store) fn of(event: &Event, owner: &EventOwner, names: &mut impl NumberNames) -> Self {
        EventRow {
            id: event.id.as_str().to_owned(),
            competition: names.number(&event.competition),
            competition_key: Some(names.number(&event.competition_key)),
            commence: event.commence.unix(),
            contest: match &event.contest {
                Contest::Sides { home, away } => {
                    ContestRow::Sides { home: names.number(home), away: names.number(away) }
                }
                Contest::Tournament { title } => ContestRow::Tournament { title: names.number(title) },
            },
            status: event.status as u8,
            changed: event.changed.unix(),
            owner: match owner {
                EventOwner::Unknown => OwnerRow::Unknown,
                EventOwner::Operator => OwnerRow::Operator,
                EventOwner::Feeder(name) => OwnerRow::Feeder { name: names.number(name) },
            },
        }
    }

    pub(in crate::store) fn owner(&self, names: &NamesByNumber) -> Result<EventOwner, Flaw> {
        Ok(match self.owner {
            OwnerRow::Unknown => EventOwner::Unknown,
            OwnerRow::Operator => EventOwner::Operator,
            OwnerRow::Feeder { name } => EventOwner::Feeder(names.get(name)?),
        })
    }

    pub(in crate::store) fn event_id(&self) -> Result<EventId, Flaw> {
        EventId::new(&self.id).ok_or(Flaw::Invalid("its id is not one"))
    }

    pub(in crate::store) fn event(self, names: &NamesByNumber) -> Result<Event, Flaw> {
        let status = EventStatus::ALL.get(usize::from(self.status)).copied();
        Ok(Event {
            id: self.event_id()?,
            competition: names.get(self.competition)?,
            competition_key: self.competition_key.map(|number| names.get(number)).transpose()?.unwrap_or_default(),
            commence: Timestamp::from_unix(self.commence),
            contest: match self.contest {
                ContestRow::Sides { home, away } => Contest::Sides { home: names.get(home)?, away: names.get(away)? },
                ContestRow::Tournament { title } => Contest::Tournament { title: names.get(title)? },
            },
            status: status.ok_or(Flaw::Invalid("its status is unknown"))?,
            changed: Timestamp::from_unix(self.changed),
        })
    }

    pub(in crate::store) fn name_numbers(&self) -> Vec<u32> {
        let mut numbers = match self.contest {
            ContestRow::Sides { home, away } => vec![self.competition, home, away],
            ContestRow::Tournament { title } => vec![self.competition, title],
        };
        numbers.extend(self.competition_key);
        if let OwnerRow::Feeder { name } = self.owner {
            numbers.push(name);
        }
        numbers
    }
}

impl CompetitionRow {
    pub(in crate::store) fn of(sport: u16, competition: &SeenCompetition) -> Self {
        CompetitionRow { sport, title: competition.title.to_string() }
    }
}

impl ScoreRow {
    pub(in crate::store) fn of(score: &Score, names: &mut impl NumberNames) -> Self {
        ScoreRow {
            status: score.status as u8,
            points: score.points,
            periods: score.periods.iter().map(|period| (period.number, period.home, period.away)).collect(),
            winner: score.winner.as_ref().map(|name| names.number(name)),
            updated: score.updated.unix(),
        }
    }

    pub(in crate::store) fn score(self, names: &NamesByNumber) -> Result<Score, Flaw> {
        if self.periods.len() > Score::PERIODS_MAX {
            return Err(Flaw::Invalid("it has too many periods"));
        }
        let status = ScoreStatus::ALL.get(usize::from(self.status)).copied();
        Ok(Score {
            status: status.ok_or(Flaw::Invalid("its status is unknown"))?,
            points: self.points,
            periods: self.periods.into_iter().map(|(number, home, away)| Period { number, home, away }).collect(),
            winner: self.winner.map(|number| names.get(number)).transpose()?,
            updated: Timestamp::from_unix(self.updated),
        })
    }
}

impl SourceRow {
    pub(in crate::store) fn of(source: &Source) -> Self {
        SourceRow {
            last_read: source.last_read.unix(),
            latency_ms: source.latency_ms,
            empty_since: seconds(source.empty_since),
        }
    }

    pub(in crate::store) fn source(&self) -> Source {
        Source {
            last_read: Timestamp::from_unix(self.last_read),
            latency_ms: self.latency_ms,
            empty_since: timestamp(self.empty_since),
        }
    }
}
