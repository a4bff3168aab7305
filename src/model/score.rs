//! Scores and their periods.

use std::sync::Arc;

use super::event::EventStatus;
use super::time::Timestamp;

/// One period: a set, a quarter, a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Period {
    pub number: u16,
    pub home: i32,
    pub away: i32,
}

/// The status of a scored event; a cancelled event has no score.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ScoreStatus {
    Scheduled,
    Live,
    Final,
}

impl ScoreStatus {
    pub const ALL: [ScoreStatus; 3] = [ScoreStatus::Scheduled, ScoreStatus::Live, ScoreStatus::Final];

    pub const fn event_status(self) -> EventStatus {
        match self {
            ScoreStatus::Scheduled => EventStatus::Scheduled,
            ScoreStatus::Live => EventStatus::Live,
            ScoreStatus::Final => EventStatus::Final,
        }
    }

    pub fn of_event(status: EventStatus) -> Option<ScoreStatus> {
        ScoreStatus::ALL.into_iter().find(|own| own.event_status() == status)
    }

    pub const fn key(self) -> &'static str {
        self.event_status().key()
    }

    pub fn parse(text: &str) -> Option<ScoreStatus> {
        ScoreStatus::of_event(EventStatus::parse(text)?)
    }
}

/// The latest score of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Score {
    pub status: ScoreStatus,
    /// Home and away; `None` for a tournament.
    pub points: Option<(i32, i32)>,
    /// For a tournament, the leader's and the runner-up's total of each round.
    pub periods: Box<[Period]>,
    /// The winning fighter; only for fights that are over and not drawn.
    pub winner: Option<Arc<str>>,
    pub updated: Timestamp,
}

impl Score {
    pub const PERIODS_MAX: usize = 64;
}
