//! What can be asked of the lines of an event, and which of their points an answer has.

use std::iter::Peekable;
use std::num::NonZeroU32;

use crate::model::{EventLines, Line, LinePoint, OddsFormat, Outcome, Point, Timestamp};

/// Get Lines, apart from which bookmakers and markets it is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinesQuery {
    pub outcomes: OutcomeFilter,
    pub format: OddsFormat,
    pub from: Option<Timestamp>,
    pub to: Option<Timestamp>,
    /// The seconds between two points, instead of a point for each change.
    pub every: Option<NonZeroU32>,
    /// The most points of a line.
    pub limit: usize,
    /// The page before ended with the points of this second.
    pub after: Option<Timestamp>,
}

impl LinesQuery {
    /// From when and until when changes count for the answer, beside the last price before; `None` where all do.
    pub fn range(&self) -> (Option<Timestamp>, Option<Timestamp>) {
        // When the outcomes that are shown last changed may be long before the record did.
        let from = if self.outcomes == OutcomeFilter::default() { self.from.max(self.after) } else { None };
        // The last sample depends on whether the record closed for good.
        let to = if self.every.is_none() { self.to } else { None };
        (from, to)
    }
}

/// Which outcomes of a record are wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OutcomeFilter {
    pub name: Option<Box<str>>,
    pub description: Option<Box<str>>,
    pub point: Option<Point>,
}

impl OutcomeFilter {
    fn accepts(&self, outcome: &Outcome) -> bool {
        self.name.as_deref().is_none_or(|name| *name == *outcome.name)
            && self.description.as_deref().is_none_or(|wanted| outcome.name.description() == Some(wanted))
            && self.point.is_none_or(|point| outcome.point == Some(point))
    }

    pub(crate) fn pick<'o>(&self, outcomes: &'o [Outcome]) -> Vec<&'o Outcome> {
        outcomes.iter().filter(|outcome| self.accepts(outcome)).collect()
    }
}

/// One page of the lines of an event.
#[derive(Debug)]
pub struct LinesPage<'l> {
    pub lines: Vec<(&'l Line, Vec<ShownPoint<'l>>)>,
    /// The second after which the next page begins.
    pub next: Option<Timestamp>,
}

/// A point as an answer has it: no outcomes while the record is closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShownPoint<'l> {
    pub at: Timestamp,
    pub outcomes: Vec<&'l Outcome>,
}

/// The most that a page may have, of all lines together.
#[derive(Clone, Copy, Debug)]
pub struct PageMax {
    pub points: usize,
    pub outcomes: usize,
}

impl<'l> LinesPage<'l> {
    /// Lines without a point in the page are left out. `None` if there would be too much in it: as a few changes may be a great many
    /// samples, it ends there.
    pub fn of(lines: &'l EventLines, query: &LinesQuery, now: Timestamp, max: PageMax) -> Option<Self> {
        // All lines of a page end with the same second, so that one cursor goes on with all of them.
        let next = lines.lines.iter().filter_map(|line| cut_of(line, query, now)).min();
        let (mut page, mut left) = (Vec::new(), max);
        for line in &lines.lines {
            let shown = shown_points(line, &query.outcomes);
            let mut points = Vec::new();
            for (at, point) in points_of(&shown, query, now).take_while(|(at, _)| next.is_none_or(|next| *at <= next)) {
                left.points = left.points.checked_sub(1)?;
                left.outcomes = left.outcomes.checked_sub(point.outcomes.len())?;
                points.push(ShownPoint { at, outcomes: point.outcomes.clone() });
            }
            if !points.is_empty() {
                page.push((line, points));
            }
        }
        Some(LinesPage { lines: page, next })
    }

    pub fn point_count(&self) -> usize {
        self.lines.iter().map(|(_, points)| points.len()).sum()
    }
}

/// The second of the last point that a line may have in a page, if it has points after that.
fn cut_of(line: &Line, query: &LinesQuery, now: Timestamp) -> Option<Timestamp> {
    let shown = shown_points(line, &query.outcomes);
    let mut points = points_of(&shown, query, now);
    let (cut, _) = points.nth(query.limit - 1)?;
    points.any(|(at, _)| at > cut).then_some(cut)
}

/// The points of a line in the range of the query, each with its second.
fn points_of<'p, 'l>(
    shown: &'p [ShownPoint<'l>],
    query: &LinesQuery,
    now: Timestamp,
) -> impl Iterator<Item = (Timestamp, &'p ShownPoint<'l>)> {
    let (samples, changes) = if let Some(every) = query.every {
        (Some(Samples::new(shown, every, query, now)), None)
    } else {
        // The first point is the one in force at the beginning.
        let before = |from: Timestamp| shown.partition_point(|point| point.at <= from).saturating_sub(1);
        let first = query.from.map_or(0, before);
        (None, Some(shown.iter().skip(first).map(|point| (point.at, point))))
    };
    let (to, after) = (query.to, query.after);
    let is_in_range = move |at: Timestamp| to.is_none_or(|to| at <= to) && after.is_none_or(|after| at > after);
    samples.into_iter().flatten().chain(changes.into_iter().flatten()).filter(move |(at, _)| is_in_range(*at))
}

/// The points with the outcomes that are wanted, where these change.
fn shown_points<'l>(line: &'l Line, outcomes: &OutcomeFilter) -> Vec<ShownPoint<'l>> {
    let shown = |point: &'l LinePoint| {
        let outcomes = point.outcomes.as_ref().map(|all| outcomes.pick(all)).unwrap_or_default();
        ShownPoint { at: point.at, outcomes }
    };
    let mut points: Vec<ShownPoint<'l>> = line.points.iter().map(shown).collect();
    points.dedup_by(|next, last| next.outcomes == last.outcomes);
    let first = points.iter().position(|point| !point.outcomes.is_empty()).unwrap_or(points.len());
    points.split_off(first)
}

/// The value in force at each multiple of a length of time, counted from 1970 in UTC.
struct Samples<'p, 'l> {
    rest: Peekable<std::slice::Iter<'p, ShownPoint<'l>>>,
    in_force: Option<&'p ShownPoint<'l>>,
    at: u64,
    every: u64,
    end: u64,
}

impl<'p, 'l> Samples<'p, 'l> {
    /// From the first point on, or from the beginning of the query; until the record closed for good, or until now.
    fn new(points: &'p [ShownPoint<'l>], every: NonZeroU32, query: &LinesQuery, now: Timestamp) -> Self {
        let every = u64::from(every.get());
        let unix = |time: Timestamp| u64::from(time.unix());
        let first = points.first().map_or(u64::MAX, |point| unix(point.at));
        let from = query.from.map_or(first, unix).max(first);
        let from = query.after.map_or(from, |after| from.max(unix(after) + 1));
        let closed = points.last().filter(|last| last.outcomes.is_empty());
        let end = closed.map_or(unix(now), |last| unix(last.at).next_multiple_of(every));
        let end = query.to.map_or(end, |to| end.min(unix(to)));
        let at = if from == u64::MAX { from } else { from.next_multiple_of(every) };
        Samples { rest: points.iter().peekable(), in_force: None, at, every, end: end.min(unix(now)) }
    }
}

impl<'p, 'l> Iterator for Samples<'p, 'l> {
    type Item = (Timestamp, &'p ShownPoint<'l>);

    fn next(&mut self) -> Option<Self::Item> {
        if self.at > self.end {
            return None;
        }
        while let Some(point) = self.rest.next_if(|point| u64::from(point.at.unix()) <= self.at) {
            self.in_force = Some(point);
        }
        let at = Timestamp::from_unix(u32::try_from(self.at).ok()?);
        self.at += self.every;
        Some((at, self.in_force?))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::model::{Contest, Event, EventId, EventStatus, Market, Price, PricedAt, Start, StartSource};

    fn at(seconds: u32) -> Timestamp {
        Timestamp::from_unix(1_790_000_000 + seconds)
    }

    /// A record with a price for each second that is named, closed at those that are negative.
    fn lines(seconds: &[i32]) -> EventLines {
        let outcomes = |second: u32| -> Arc<[Outcome]> {
            let price = Price::from_american(100 + i64::from(second)).unwrap();
            [Outcome { name: "Home".into(), price, point: None }].into()
        };
        let point = |second: &i32| {
            let second_at = second.unsigned_abs();
            LinePoint { at: at(second_at), outcomes: (*second > 0).then(|| outcomes(second_at)) }
        };
        let points: Vec<LinePoint> = seconds.iter().map(point).collect();
        let opening = PricedAt { at: points[0].at, outcomes: points[0].outcomes.clone().unwrap() };
        let event = Arc::new(Event {
            id: EventId::new("a").unwrap(),
            competition: "Open".into(),
            competition_key: "open".into(),
            commence: at(9_000),
            contest: Contest::Tournament { title: "Open".into() },
            status: EventStatus::Scheduled,
            changed: at(0),
        });
        let line =
            Line { bookmaker: "b".into(), market: Market::OUTRIGHT, opening, closing: None, is_closed: false, points };
        EventLines {
            event,
            since: Timestamp::default(),
            source: StartSource::Ahead,
            start: Start::Ahead,
            lines: vec![line],
        }
    }

    /// The fewest points that a reader of history may hand out for a range.
    fn only_in(range: (Option<Timestamp>, Option<Timestamp>), mut lines: EventLines) -> EventLines {
        let points = &mut lines.lines[0].points;
        let is_priced_by = |point: &LinePoint, from: Timestamp| point.at <= from && point.outcomes.is_some();
        let first = range.0.and_then(|from| points.iter().rposition(|point| is_priced_by(point, from)));
        points.drain(..first.unwrap_or(0));
        points.retain(|point| range.1.is_none_or(|to| point.at <= to));
        lines
    }

    #[test]
    fn page_has_at_most_what_it_may_have() {
        let (outcomes, format) = (OutcomeFilter::default(), OddsFormat::American);
        let query =
            LinesQuery { outcomes, format, from: None, to: None, every: NonZeroU32::new(1), limit: 1000, after: None };
        let lines = lines(&[10]);
        let page = |points, outcomes| LinesPage::of(&lines, &query, at(29), PageMax { points, outcomes });
        assert_eq!(page(20, 20).unwrap().point_count(), 20);
        assert!(page(19, 20).is_none());
        assert!(page(20, 19).is_none());
    }

    #[test]
    fn answer_depends_on_nothing_outside_its_range() {
        let times = [None, Some(5), Some(10), Some(25), Some(40), Some(47), Some(200)].map(|second| second.map(at));
        let all = [&[10, 20, 30, 40, 50, 60][..], &[10, 20, -30, 50, -60], &[10, -20, -40, 45], &[10, 10, 30, 30]];
        let cubed = times.map(|from| times.map(|to| times.map(|after| (from, to, after))));
        let is_valid =
            |(from, to, _): &(Option<Timestamp>, Option<Timestamp>, Option<Timestamp>)| to.is_none() || from <= to;
        for (from, to, after) in cubed.into_iter().flatten().flatten().filter(is_valid) {
            for (seconds, every) in all.into_iter().flat_map(|seconds| [(seconds, None), (seconds, NonZeroU32::new(7))])
            {
                let (outcomes, format) = (OutcomeFilter::default(), OddsFormat::American);
                let query = LinesQuery { outcomes, format, from, to, every, limit: 3, after };
                let (whole, part) = (lines(seconds), only_in(query.range(), lines(seconds)));
                let shown = |lines: &EventLines| {
                    let page = LinesPage::of(lines, &query, at(100), PageMax { points: 99, outcomes: 99 }).unwrap();
                    let prices =
                        |point: &ShownPoint<'_>| point.outcomes.iter().map(|one| one.price).collect::<Vec<_>>();
                    let points = page.lines.iter().flat_map(|(_, points)| points);
                    (page.next, points.map(|point| (point.at, prices(point))).collect::<Vec<_>>())
                };
                assert_eq!(shown(&part), shown(&whole), "{seconds:?} {query:?}");
            }
        }
    }
}
