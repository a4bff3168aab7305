//! One event of the simulated world: its details, how it ends and every change of its score, all computed when it is
//! built. The state at a time is looked up; nothing is stepped.

use std::fmt;
use std::sync::Arc;

use super::fair::Side;
use super::markets::SimulatedMarket;
use super::noise::Seed;
use crate::model::{
    Contest, EventId, EventNews, EventStatus, News, Period, Score, ScoreNews, ScoreStatus, SportId, Timestamp,
};

/// How long events stay visible after they are over: the default retention of the service, so that a world that has
/// just been filled lists the same results as one that has run for days.
pub(super) const RETENTION: i64 = 72 * 3_600;

#[derive(Debug)]
pub(super) struct ScoreChange {
    pub at: i64,
    pub score: Score,
}

impl ScoreChange {
    /// The score of an event that is still live.
    pub(super) fn new(at: i64, points: Option<(i32, i32)>, periods: &[Period]) -> Self {
        let updated = second(at);
        let score = Score { status: ScoreStatus::Live, points, periods: periods.into(), winner: None, updated };
        ScoreChange { at, score }
    }

    pub(super) fn finished(mut self) -> Self {
        self.score.status = ScoreStatus::Final;
        self
    }
}

/// How an event ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    Played,
    Cancelled {
        at: i64,
    },
    /// Announced by mistake: deleted, and never announced again.
    Removed {
        at: i64,
    },
}

/// What a bookmaker knows when it makes a price.
#[derive(Clone, Copy, Debug)]
pub(super) struct FixtureView<'a> {
    pub at: i64,
    /// `None` before the start.
    pub score: Option<&'a Score>,
    /// The seed of the bookmaker's own opinion of this event.
    pub bias: Seed,
}

/// The fair chances of an event's markets.
pub(super) trait PriceModel: fmt::Debug + Send + Sync {
    fn markets(&self) -> &'static [SimulatedMarket];

    /// `None` while the market is closed.
    fn chances(&self, market: &SimulatedMarket, view: FixtureView<'_>) -> Option<Vec<Side>>;

    /// The least number of seconds between two prices of a bookmaker in play.
    fn interval(&self) -> i64 {
        15
    }
}

/// What is known of an event when it is announced.
#[derive(Debug)]
pub(super) struct Outline {
    pub seed: Seed,
    pub sport: SportId,
    pub competition: Arc<str>,
    /// `None` where the catalogue forms one from the name.
    pub competition_key: Option<Arc<str>>,
    pub contest: Contest,
    pub announced: i64,
    pub commence: i64,
    /// One event in so many is cancelled, and one in so many removed; none if it is zero.
    pub called_off_one_in: i64,
}

#[derive(Debug)]
pub(super) struct Fixture {
    pub outline: Outline,
    pub id: EventId,
    pub model: Box<dyn PriceModel>,
    ending: Ending,
    changes: Box<[ScoreChange]>,
}

impl Fixture {
    /// `None` if it is outside the range of [`Timestamp`], or has no score at all.
    pub(super) fn new(outline: Outline, changes: Vec<ScoreChange>, model: Box<dyn PriceModel>) -> Option<Self> {
        Timestamp::checked_from_unix(outline.commence)?;
        Timestamp::checked_from_unix(changes.last()?.at)?;
        let id = EventId::new(&outline.seed.identifier())?;
        let ending = ending(&outline);
        Some(Fixture { outline, id, model, ending, changes: changes.into() })
    }

    /// When the event is final, cancelled or removed.
    fn over_at(&self) -> i64 {
        match self.ending {
            Ending::Cancelled { at } | Ending::Removed { at } => at,
            Ending::Played => self.changes.last().map_or(self.outline.commence, |change| change.at),
        }
    }

    pub(super) fn is_removed(&self, at: i64) -> bool {
        matches!(self.ending, Ending::Removed { at: removed } if removed <= at)
    }

    pub(super) fn is_visible(&self, at: i64) -> bool {
        self.outline.announced <= at && at < self.over_at() + RETENTION && !self.is_removed(at)
    }

    /// Whether its markets can be open.
    pub(super) fn is_open(&self, at: i64) -> bool {
        self.outline.announced <= at && at < self.over_at()
    }

    pub(super) fn status(&self, at: i64) -> EventStatus {
        match self.ending {
            Ending::Cancelled { at: cancelled } if cancelled <= at => EventStatus::Cancelled,
            _ if at < self.outline.commence => EventStatus::Scheduled,
            _ if at < self.over_at() => EventStatus::Live,
            _ => EventStatus::Final,
        }
    }

    /// `None` before the start.
    pub(super) fn score(&self, at: i64) -> Option<&Score> {
        let next = self.changes.partition_point(|change| change.at <= at);
        next.checked_sub(1).map(|last| &self.changes[last].score)
    }

    /// Dated with the last change of its status.
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
            competition_key: self.outline.competition_key.clone(),
            competition_title: None,
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

    /// The seconds after `from`, up to `to`, at which the event or its score may change.
    pub(super) fn edges(&self, from: i64, to: i64) -> impl Iterator<Item = i64> {
        let first = self.changes.partition_point(|change| change.at <= from);
        let scored = self.changes[first..].iter().map(|change| change.at).take_while(move |at| *at <= to);
        let over = self.over_at();
        let once = [self.outline.announced, self.outline.commence, over, over + RETENTION];
        scored.chain(once.into_iter().filter(move |at| (from + 1..=to).contains(at)))
    }

    /// What changed about the event and its score after `since`, up to `now`.
    pub(super) fn news_between(&self, since: i64, now: i64, news: &mut Vec<News>) {
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

fn ending(outline: &Outline) -> Ending {
    let Outline { seed, announced, commence, called_off_one_in, .. } = outline;
    let at = |percent: i64| announced + (commence - announced) * percent / 100;
    if *called_off_one_in == 0 {
        return Ending::Played;
    }
    match seed.named("fate").below(*called_off_one_in) {
        0 => Ending::Cancelled { at: at(seed.named("cancelled").within(50, 95)) },
        1 => Ending::Removed { at: at(seed.named("removed").within(20, 80)) },
        _ => Ending::Played,
    }
}

/// The timestamp of a second, or the nearest one in range.
pub(super) fn second(at: i64) -> Timestamp {
    Timestamp::from_unix_ms(at.saturating_mul(1000))
}
