//! A plain model of lines: all entries of the log, read one after the other into lists.

use std::collections::BTreeMap;
use std::sync::Arc;

use oddsbox::model::{Event, EventId, EventLines, EventStatus, Outcome, PricedAt, SportId, Start, Timestamp, World};
use oddsbox::store::{EndsOf, HistoryReader, LoggedChange};

type Outcomes = Arc<[Outcome]>;

#[derive(Default)]
struct ModelLine {
    /// `None` from when it closed.
    points: Vec<(Timestamp, Option<Outcomes>)>,
    closing: Option<PricedAt>,
    is_closed: bool,
}

impl ModelLine {
    fn open(&self) -> Option<&Outcomes> {
        self.points.last()?.1.as_ref()
    }

    /// The last price, whether it is still open or not.
    fn last_price(&self) -> Option<PricedAt> {
        let (at, outcomes) = self.points.iter().rev().find(|(_, outcomes)| outcomes.is_some())?;
        Some(PricedAt { at: *at, outcomes: Arc::clone(outcomes.as_ref()?) })
    }
}

struct ModelEvent {
    event: Arc<Event>,
    start: Start,
    /// Since it was last ahead.
    was_live: bool,
    lines: BTreeMap<(String, &'static str), ModelLine>,
    last: Timestamp,
}

impl ModelEvent {
    fn put(&mut self, event: &Arc<Event>, at: Timestamp) {
        if self.start == Start::Ahead && at >= self.event.commence {
            self.start = Start::Scheduled(self.event.commence);
        }
        self.event = Arc::clone(event);
        let was = self.start;
        self.start = match (event.status, was) {
            (EventStatus::Cancelled, _) => Start::Cancelled,
            (EventStatus::Scheduled, _) if event.commence > at => Start::Ahead,
            (_, Start::Live(_) | Start::Scheduled(_)) => was,
            (EventStatus::Live | EventStatus::Final, _) if event.commence > at => Start::Live(at),
            _ => Start::Scheduled(event.commence),
        };
        for line in self.lines.values_mut() {
            match (was, self.start) {
                (_, Start::Cancelled) => line.closing = None,
                (Start::Cancelled | Start::Scheduled(_), Start::Ahead) if !self.was_live => {
                    line.closing = line.last_price();
                    line.is_closed = line.open().is_none();
                }
                (Start::Live(_) | Start::Cancelled | Start::Scheduled(_), Start::Ahead) => {
                    line.closing = line.open().map(|outcomes| PricedAt { at, outcomes: Arc::clone(outcomes) });
                    line.is_closed = line.open().is_none();
                }
                _ => {}
            }
        }
        let is_live = matches!(event.status, EventStatus::Live | EventStatus::Final);
        self.was_live = self.start != Start::Ahead && (self.was_live || is_live);
    }

    fn price(&mut self, key: (String, &'static str), at: Timestamp, outcomes: Option<Outcomes>) {
        // A publication that was due just before another change comes after it.
        self.last = self.last.max(at);
        let at = self.last;
        if self.start == Start::Ahead && at >= self.event.commence {
            self.start = Start::Scheduled(self.event.commence);
        }
        let line = self.lines.entry(key).or_default();
        line.points.push((at, outcomes.clone()));
        if self.start == Start::Ahead {
            line.is_closed = outcomes.is_none();
            line.closing = outcomes.map(|outcomes| PricedAt { at, outcomes }).or(line.closing.take());
        }
    }
}

fn model(history: &HistoryReader, world: World, sport: SportId) -> BTreeMap<EventId, ModelEvent> {
    let mut events: BTreeMap<EventId, ModelEvent> = BTreeMap::new();
    let mut last_tick = None;
    for entry in history.entries_after(world.into(), 0, 100_000).expect("all entries") {
        let changes: Vec<_> =
            entry.sports.into_iter().filter(|(of, _)| *of == sport).flat_map(|(_, all)| all).collect();
        last_tick = changes.iter().fold(last_tick, |last, change| match change {
            LoggedChange::Tick(tick) => Some(tick.at),
            _ => last,
        });
        let at = last_tick.map_or(entry.at, |tick| entry.at.max(tick));
        for change in changes {
            match change {
                LoggedChange::Event(event, ..) => {
                    let new = || ModelEvent {
                        event: Arc::clone(&event),
                        start: Start::Cancelled,
                        was_live: false,
                        lines: BTreeMap::new(),
                        last: Timestamp::default(),
                    };
                    events.entry(event.id.clone()).or_insert_with(new).put(&event, at);
                }
                LoggedChange::Score(..) => {}
                LoggedChange::Removed(event) => {
                    let event = events.get_mut(&event.id).expect("an event that was there");
                    let open = event.lines.iter().filter(|(_, line)| line.open().is_some());
                    for key in open.map(|(key, _)| key.clone()).collect::<Vec<_>>() {
                        event.price(key, at, None);
                    }
                }
                LoggedChange::Tick(tick) => {
                    for record in tick.records {
                        let event = events.get_mut(&record.event.id).expect("an event that is there");
                        let key = (record.bookmaker.to_string(), record.market.key());
                        event.price(key, tick.at, record.price.map(|price| price.outcomes));
                    }
                }
            }
        }
    }
    events
}

/// The lines of every event are those of the model, and so are the openings and closing prices of every day's events.
pub fn check(history: &HistoryReader, world: World, sport: SportId) {
    let mut days: BTreeMap<u32, Vec<EventLines>> = BTreeMap::new();
    for (id, event) in model(history, world, sport) {
        let found = history.lines(world, sport, &id, |_, _| true).expect("lines").expect("an event that is known");
        assert_eq!((found.event.commence, found.event.status), (event.event.commence, event.event.status), "{id}");
        assert_eq!(found.start, event.start, "{id}");
        assert_eq!(found.lines.len(), event.lines.len(), "{id}");
        let start = event.start.time(&event.event).unwrap_or(event.event.commence);
        let mut ends = found.clone();
        ends.lines.iter_mut().for_each(|line| line.points.clear());
        days.entry(start.unix() / 86_400).or_default().push(ends);
        for line in found.lines {
            let model = &event.lines[&(line.bookmaker.to_string(), line.market.key())];
            let points: Vec<_> = line.points.into_iter().map(|point| (point.at, point.outcomes)).collect();
            assert_eq!(points, model.points, "{id} {} {}", line.bookmaker, line.market.key());
            let opening = (line.opening.at, Some(line.opening.outcomes));
            assert_eq!(opening, model.points[0], "{id}");
            assert_eq!((line.closing, line.is_closed), (model.closing.clone(), model.is_closed), "{id}");
        }
    }
    for (day, mut expected) in days {
        expected.sort_by_key(|ends| (ends.event.commence, ends.event.id.clone()));
        let every = |of: &EndsOf| history.ends(world, sport, of, (|_: &str, _| true, usize::MAX)).expect("ends");
        assert_eq!(every(&EndsOf::Day(day)), expected, "{day}");
        let ids = expected.iter().map(|ends| ends.event.id.clone()).collect();
        assert_eq!(every(&EndsOf::Events(ids)), expected, "{day}");
    }
    let unknown = EventId::new("unknown").expect("an id");
    assert_eq!(history.lines(world, sport, &unknown, |_, _| true).expect("lines"), None);
}
