//! Openings and closing prices, each from the log alone and after every step was written into the lines.

use std::time::Duration;

use super::*;
use crate::model::{PricedAt, Score, ScoreNews, ScoreStatus, Start};

const MINUTE: u32 = 60;

/// One tennis match, which is to begin in an hour.
struct Match {
    _directory: TempDir,
    clock: Clock,
    writer: Writer,
    writes_lines: bool,
}

impl Match {
    fn new(writes_lines: bool) -> Self {
        let (directory, clock) = (tempfile::tempdir().unwrap(), Clock::manual(NOW_MS));
        let catalogue = Arc::new(catalogue::builtin());
        let path = directory.path().join("oddsbox.redb");
        let store = Store::open(&path, Arc::clone(&catalogue), StoreOptions::default()).unwrap();
        let writer = Writer::open(store, catalogue, clock.clone(), WriterOptions::default()).unwrap().writer;
        let mut new = Match { _directory: directory, clock, writer, writes_lines };
        new.news(vec![event(tennis(&new.writer), "a")]);
        new
    }

    fn news(&mut self, news: Vec<News>) {
        assert_eq!(self.writer.ingest(WORLD, news, true).unwrap().rejected(), 0);
        self.writer.tick();
        if self.writes_lines {
            // A keyframe is due after some hours.
            let later = self.clock.now().timestamp().plus_seconds(7 * 3600);
            while self.writer.keep_history(later).unwrap() {}
            assert!(self.writer.store.log_without_lines().unwrap().is_none());
        }
    }

    /// Goes to a minute before the start that was announced first, or after it.
    fn at(&mut self, minute: i64) -> &mut Self {
        let at = start_ms() + minute * 60_000;
        let wait = u64::try_from(at - self.clock.now().unix_ms).unwrap();
        self.clock.advance(Duration::from_millis(wait));
        self
    }

    fn price(&mut self, price: &str) -> &mut Self {
        self.quote(Some([price, "1.5"]))
    }

    fn close(&mut self) -> &mut Self {
        self.quote(None)
    }

    fn quote(&mut self, prices: Option<[&str; 2]>) -> &mut Self {
        let News::Odds(news) = odds(tennis(&self.writer), "a", "betmgm", prices) else { panic!("no odds") };
        self.news(vec![News::Odds(OddsNews { last_update: self.clock.now().timestamp(), ..news })]);
        self
    }

    fn schedule(&mut self, minute: u32) -> &mut Self {
        self.announce(start().plus_seconds(minute * MINUTE), EventStatus::Scheduled)
    }

    fn announce(&mut self, commence: Timestamp, status: EventStatus) -> &mut Self {
        let News::Event(news) = event(tennis(&self.writer), "a") else { panic!("no event") };
        self.news(vec![News::Event(EventNews { commence, status, ..news })]);
        self
    }

    fn remove(&mut self) -> &mut Self {
        let remove = News::Remove { sport: tennis(&self.writer), event: event_id("a") };
        self.news(vec![remove]);
        self
    }

    fn live(&mut self) -> &mut Self {
        let updated = self.clock.now().timestamp();
        let score =
            Score { status: ScoreStatus::Live, points: Some((1, 0)), periods: [].into(), winner: None, updated };
        self.news(vec![News::Score(ScoreNews { sport: tennis(&self.writer), event: event_id("a"), score })]);
        self
    }

    /// How the event began, and the closing price with its minute and whether it had closed.
    fn closing(&self) -> (Start, Option<(i64, String)>, bool) {
        let lines = self.writer.history().lines(WORLD, tennis(&self.writer), &event_id("a"), |_, _| true);
        let mut lines = lines.unwrap().unwrap();
        assert_eq!(lines.lines.len(), 1);
        let line = lines.lines.remove(0);
        (lines.start, line.closing.as_ref().map(minute_and_price), line.is_closed)
    }

    fn opening(&self) -> (i64, String) {
        let lines = self.writer.history().lines(WORLD, tennis(&self.writer), &event_id("a"), |_, _| true);
        minute_and_price(&lines.unwrap().unwrap().lines[0].opening)
    }
}

fn start() -> Timestamp {
    now().plus_seconds(3600)
}

fn start_ms() -> i64 {
    start().unix_ms()
}

fn minute_and_price(priced: &PricedAt) -> (i64, String) {
    let milli = priced.outcomes[0].price.decimal_milli();
    ((priced.at.unix_ms() - start_ms()) / 60_000, format!("{:.2}", f64::from(milli) / 1000.0))
}

fn scheduled(minute: u32) -> Start {
    Start::Scheduled(start().plus_seconds(minute * MINUTE))
}

fn in_both_ways(test: impl Fn(Match)) {
    test(Match::new(false));
    test(Match::new(true));
}

fn priced(minute: i64, price: &str) -> (i64, String) {
    (minute, price.to_owned())
}

#[test]
fn closing_price_is_the_last_before_the_scheduled_start() {
    in_both_ways(|mut game| {
        game.at(-40).price("2.0").at(-20).price("2.1").at(-1).price("2.2");
        assert_eq!(game.closing(), (Start::Ahead, Some(priced(-1, "2.20")), false));
        game.at(1).price("2.9");
        assert_eq!(game.closing(), (scheduled(0), Some(priced(-1, "2.20")), false));
        game.at(2).live().at(3).price("5.0").close();
        assert_eq!(game.closing(), (scheduled(0), Some(priced(-1, "2.20")), false));
        assert_eq!(game.opening(), priced(-40, "2.00"));
    });
}

#[test]
fn price_at_the_start_is_not_before_it() {
    in_both_ways(|mut game| {
        game.at(-10).price("2.0").at(0).price("2.1");
        assert_eq!(game.closing(), (scheduled(0), Some(priced(-10, "2.00")), false));
    });
}

#[test]
fn early_start_ends_the_line_when_it_is_seen_live() {
    in_both_ways(|mut game| {
        game.at(-40).price("2.0").at(-10).live().at(-5).price("3.0");
        let began = Start::Live(Timestamp::from_unix_ms(start_ms() - 600_000));
        assert_eq!(game.closing(), (began, Some(priced(-40, "2.00")), false));
    });
}

#[test]
fn delayed_start_moves_the_end_of_the_line() {
    in_both_ways(|mut game| {
        game.at(-40).price("2.0").at(-10).schedule(60).at(30).price("2.3").at(61).price("9.0");
        assert_eq!(game.closing(), (scheduled(60), Some(priced(30, "2.30")), false));
    });
}

#[test]
fn delay_that_is_announced_late_counts_the_prices_in_between() {
    in_both_ways(|mut game| {
        game.at(-40).price("2.0").at(5).price("2.1");
        assert_eq!(game.closing(), (scheduled(0), Some(priced(-40, "2.00")), false));
        game.at(10).schedule(60);
        assert_eq!(game.closing(), (Start::Ahead, Some(priced(5, "2.10")), false));
        game.at(61).price("9.0");
        assert_eq!(game.closing(), (scheduled(60), Some(priced(5, "2.10")), false));
    });
}

#[test]
fn prices_of_a_live_event_never_count_even_if_it_is_scheduled_again() {
    in_both_ways(|mut game| {
        game.at(-40).price("2.0").at(-20).live().at(-15).price("7.0").at(-12).remove().at(-10).schedule(60);
        assert_eq!(game.closing(), (Start::Ahead, None, true));
        game.at(20).price("2.4").at(61).price("9.0");
        assert_eq!(game.closing(), (scheduled(60), Some(priced(20, "2.40")), false));
    });
}

#[test]
fn postponed_event_has_no_closing_price_until_its_new_start() {
    in_both_ways(|mut game| {
        game.at(-40).price("2.0").at(-10).announce(start(), EventStatus::Cancelled);
        assert_eq!((game.closing().0, game.closing().1), (Start::Cancelled, None));
        game.at(10).schedule(60);
        assert_eq!((game.closing().0, game.closing().1), (Start::Ahead, Some(priced(-40, "2.00"))));
        game.at(20).price("2.1").at(61).price("9.0");
        assert_eq!(game.closing(), (scheduled(60), Some(priced(20, "2.10")), false));
    });
}

#[test]
fn bookmaker_that_closed_before_keeps_its_last_price() {
    in_both_ways(|mut game| {
        game.at(-40).price("2.0").at(-30).close().at(5).price("8.0");
        assert_eq!(game.closing(), (scheduled(0), Some(priced(-40, "2.00")), true));
    });
}

#[test]
fn bookmaker_that_opened_after_the_start_has_no_closing_price() {
    in_both_ways(|mut game| {
        game.at(5).price("8.0").at(10).price("9.0");
        assert_eq!(game.closing(), (scheduled(0), None, false));
        assert_eq!(game.opening(), priced(5, "8.00"));
    });
}

#[test]
fn first_sight_shortly_before_the_start_is_opening_and_closing() {
    in_both_ways(|mut game| {
        game.at(-10).price("2.0");
        assert_eq!((game.opening(), game.closing().1), (priced(-10, "2.00"), Some(priced(-10, "2.00"))));
    });
}

#[test]
fn removal_closes_the_line_and_history_stays() {
    in_both_ways(|mut game| {
        game.at(-40).price("2.0").at(-20).remove();
        assert_eq!(game.closing(), (Start::Ahead, Some(priced(-40, "2.00")), true));
        let lines = game.writer.history().lines(WORLD, tennis(&game.writer), &event_id("a"), |_, _| true);
        let points: Vec<bool> =
            lines.unwrap().unwrap().lines[0].points.iter().map(|point| point.outcomes.is_some()).collect();
        assert_eq!(points, [true, false]);
        game.at(-10).announce(start(), EventStatus::Scheduled).at(-5).price("3.0");
        assert_eq!(game.closing(), (Start::Ahead, Some(priced(-5, "3.00")), false));
    });
}
