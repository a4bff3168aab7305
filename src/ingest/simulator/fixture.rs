//! One event of the simulated world: who meets when, what becomes of it, and the whole course of its score, known from
//! the start. What stands at a time is read off; nothing is ever stepped.

use std::fmt;
use std::sync::Arc;

use super::fair::Side;
use super::noise::Dice;
use crate::model::{Contest, EventId, EventNews, EventStatus, Market, News, Score, ScoreNews, SportId, Timestamp};

/// Events stay in sight for so long after they are over: as long as the default retention, so that a world that has
/// just been filled lists the same results as one that has run for days.
pub(super) const AFTERGLOW: i64 = 72 * 3_600;

/// A moment at which the score changes.
#[derive(Debug)]
pub(super) struct Beat {
    pub at: i64,
    pub score: Score,
}

/// What becomes of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Played,
    Cancelled {
        at: i64,
    },
    /// Announced by mistake: it goes without a trace and never comes back.
    Removed {
        at: i64,
    },
}

/// What a bookmaker looks at when it makes a price.
#[derive(Clone, Copy, Debug)]
pub(super) struct View<'a> {
    pub at: i64,
    /// `None` before the start.
    pub score: Option<&'a Score>,
    /// The bookmaker's own leaning in this event.
    pub lean: Dice,
}

/// How a kind of event is priced.
pub(super) trait Play: fmt::Debug + Send + Sync {
    fn markets(&self) -> &'static [Market];

    /// The true chances as the view shows them; `None` while the market is closed.
    fn fair(&self, market: Market, view: View<'_>) -> Option<Vec<Side>>;

    /// How often a price may move in play, in seconds.
    fn pace(&self) -> i64 {
        15
    }
}

/// What is known of an event when it is announced.
#[derive(Debug)]
pub(super) struct Outline {
    pub dice: Dice,
    pub sport: SportId,
    pub competition: Arc<str>,
    pub contest: Contest,
    pub announced: i64,
    pub commence: i64,
    /// One event in so many is cancelled, and one in so many removed; none if it is zero.
    pub mishaps: i64,
}

#[derive(Debug)]
pub(super) struct Fixture {
    pub outline: Outline,
    pub id: EventId,
    pub play: Box<dyn Play>,
    fate: Fate,
    beats: Box<[Beat]>,
}

impl Fixture {
    /// `None` if it would lie outside the time that the service knows, or has no course at all.
    pub(super) fn new(outline: Outline, beats: Vec<Beat>, play: Box<dyn Play>) -> Option<Self> {
        Timestamp::checked_from_unix(outline.commence)?;
        Timestamp::checked_from_unix(beats.last()?.at)?;
        let id = EventId::new(&outline.dice.identifier())?;
        let fate = fate(&outline);
        Some(Fixture { outline, id, play, fate, beats: beats.into() })
    }

    /// When the event is over, one way or the other.
    fn over_at(&self) -> i64 {
        match self.fate {
            Fate::Cancelled { at } | Fate::Removed { at } => at,
            Fate::Played => self.beats.last().map_or(self.outline.commence, |beat| beat.at),
        }
    }

    pub(super) fn is_removed(&self, at: i64) -> bool {
        matches!(self.fate, Fate::Removed { at: removed } if removed <= at)
    }

    /// Whether the world shows the event.
    pub(super) fn is_visible(&self, at: i64) -> bool {
        self.outline.announced <= at && at < self.over_at() + AFTERGLOW && !self.is_removed(at)
    }

    /// Whether its markets can be open.
    pub(super) fn is_open(&self, at: i64) -> bool {
        self.outline.announced <= at && at < self.over_at()
    }

    pub(super) fn is_live(&self, at: i64) -> bool {
        self.status(at) == EventStatus::Live
    }

    pub(super) fn status(&self, at: i64) -> EventStatus {
        match self.fate {
            Fate::Cancelled { at: cancelled } if cancelled <= at => EventStatus::Cancelled,
            _ if at < self.outline.commence => EventStatus::Scheduled,
            _ if at < self.over_at() => EventStatus::Live,
            _ => EventStatus::Final,
        }
    }

    /// `None` before the start.
    pub(super) fn score(&self, at: i64) -> Option<&Score> {
        let next = self.beats.partition_point(|beat| beat.at <= at);
        next.checked_sub(1).map(|last| &self.beats[last].score)
    }

    /// Dated with the last change of its status, as an event shows when it changed.
    pub(super) fn event_news(&self, at: i64) -> News {
        let status = self.status(at);
        let changed = match status {
            EventStatus::Scheduled => self.outline.announced,
            EventStatus::Live => self.outline.commence,
            EventStatus::Final | EventStatus::Cancelled => self.over_at(),
        };
        let news = News::Event(EventNews {
            sport: self.outline.sport,
            id: self.id.clone(),
            competition: Arc::clone(&self.outline.competition),
            commence: second(self.outline.commence),
            contest: self.outline.contest.clone(),
            status,
        });
        News::AsOf(second(changed), Box::new(news))
    }

    /// Nothing before the start, and nothing for an event that was never played.
    pub(super) fn score_news(&self, at: i64) -> Option<News> {
        if self.status(at) == EventStatus::Cancelled {
            return None;
        }
        let score = self.score(at)?.clone();
        let updated = score.updated;
        let news = News::Score(ScoreNews { sport: self.outline.sport, event: self.id.clone(), score });
        Some(News::AsOf(updated, Box::new(news)))
    }

    /// What changed about the event and its score after `since`, up to `now`.
    pub(super) fn changes(&self, since: i64, now: i64, news: &mut Vec<News>) {
        let known = self.is_visible(since);
        if !self.is_visible(now) {
            if known {
                news.push(News::Remove { sport: self.outline.sport, event: self.id.clone() });
            }
            return;
        }
        if !known || self.status(since) != self.status(now) {
            news.push(self.event_news(now));
        }
        if !known || self.score(since) != self.score(now) {
            news.extend(self.score_news(now));
        }
    }
}

fn fate(outline: &Outline) -> Fate {
    let Outline { dice, announced, commence, mishaps, .. } = outline;
    let at = |percent: i64| announced + (commence - announced) * percent / 100;
    if *mishaps == 0 {
        return Fate::Played;
    }
    match dice.of("fate").below(*mishaps) {
        0 => Fate::Cancelled { at: at(dice.of("cancelled").within(50, 95)) },
        1 => Fate::Removed { at: at(dice.of("removed").within(20, 80)) },
        _ => Fate::Played,
    }
}

/// A second that is known to lie in range; the nearest one otherwise.
pub(super) fn second(at: i64) -> Timestamp {
    Timestamp::from_unix_ms(at.saturating_mul(1000))
}
