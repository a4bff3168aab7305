//! What is entered in the log, and what is kept of it.

use std::time::Duration;

use super::*;
use crate::store::{HistoryError, LogHead, SportFold};
use crate::writer::HistoryOptions;

pub(super) const HOUR: Duration = Duration::from_secs(3600);

/// A writer whose clock the test moves.
pub(super) fn open_on(directory: &TempDir, clock: &Clock, history: HistoryOptions) -> Writer {
    open_with(directory, clock, history, StoreOptions::default())
}

pub(super) fn open_with(directory: &TempDir, clock: &Clock, history: HistoryOptions, options: StoreOptions) -> Writer {
    let catalogue = Arc::new(catalogue::builtin());
    let path = directory.path().join("oddsbox.redb");
    let store = Store::open(&path, Arc::clone(&catalogue), options).unwrap();
    let options = WriterOptions { history, ..WriterOptions::default() };
    Writer::open(store, catalogue, clock.clone(), options).unwrap().writer
}

pub(super) fn fresh(history: HistoryOptions) -> (TempDir, Clock, Writer) {
    let (directory, clock) = (tempfile::tempdir().unwrap(), Clock::manual(NOW_MS));
    let writer = open_on(&directory, &clock, history);
    (directory, clock, writer)
}

fn quote(sport: SportId, price: &str, at: Timestamp) -> News {
    let News::Odds(news) = odds(sport, "a", "betmgm", Some([price, "1.5"])) else { panic!("no odds") };
    News::Odds(OddsNews { last_update: at, ..news })
}

/// Ingests a price as of the clock and lets the next tick publish it.
pub(super) fn publish_in(writer: &mut Writer, clock: &Clock, sport: SportId, price: &str) {
    let news = quote(sport, price, clock.now().timestamp());
    assert_eq!(writer.ingest(WORLD, vec![news], false).unwrap().rejected(), 0);
    clock.advance(Duration::from_secs(30));
    writer.tick();
}

pub(super) fn publish(writer: &mut Writer, clock: &Clock, price: &str) {
    publish_in(writer, clock, tennis(writer), price);
}

pub(super) fn head(writer: &Writer) -> LogHead {
    writer.history().head(WORLD).unwrap()
}

/// The first price of the only record.
pub(super) fn price_in(state: &SportFold) -> Option<String> {
    let event = state.events().next()?;
    let (_, _, price) = state.records(event).next()?;
    Some(format!("{:.2}", f64::from(price.outcomes[0].price.decimal_milli()) / 1000.0))
}

pub(super) fn price_of(writer: &Writer, sport: SportId, at: Timestamp) -> Result<Option<String>, HistoryError> {
    writer.history().as_of(WORLD, sport, at).map(|(_, state)| price_in(&state))
}

pub(super) fn price_at(writer: &Writer, at: Timestamp) -> Result<Option<String>, HistoryError> {
    price_of(writer, tennis(writer), at)
}

pub(super) fn begin(writer: &mut Writer) {
    let news = vec![event(tennis(writer), "a")];
    writer.ingest(WORLD, news, true).unwrap();
}

#[test]
fn tick_that_another_node_planned_is_not_planned_again() {
    let clock = Clock::manual(NOW_MS);
    let directories = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let [mut one, mut other] = directories.each_ref().map(|at| open_on(at, &clock, HistoryOptions::default()));
    begin(&mut other);
    clock.advance(Duration::from_secs(31));
    let planned = one.plan_publication(clock.now().unix_ms).unwrap();
    assert!(planned.is_tick);
    other.publish(&planned).unwrap();
    clock.advance(Duration::from_secs(8));
    other.ingest(WORLD, vec![quote(tennis(&other), "2.0", clock.now().timestamp())], false).unwrap();
    clock.advance(Duration::from_secs(3));
    // A sport that was quiet may be due at once, but as of now.
    let next = other.plan_publication(clock.now().unix_ms);
    assert!(next.is_none_or(|next| !next.is_tick && next.at > now().plus_seconds(38)));
    clock.advance(Duration::from_secs(20));
    assert!(other.plan_publication(clock.now().unix_ms).is_some_and(|next| next.is_tick));
}

/// Does whatever upkeep finds to do.
pub(super) fn keep(writer: &mut Writer, clock: &Clock) {
    let mut steps = 0;
    while writer.keep_history(clock.now().timestamp()).unwrap() {
        steps += 1;
        assert!(steps < 10_000, "the upkeep does not end");
    }
}

#[test]
fn price_that_was_committed_and_not_published_is_logged_by_the_next_start() {
    let (directory, clock, mut writer) = fresh(HistoryOptions::default());
    begin(&mut writer);
    publish(&mut writer, &clock, "2.0");
    clock.advance(Duration::from_secs(5));
    writer.ingest(WORLD, vec![quote(tennis(&writer), "2.5", clock.now().timestamp())], false).unwrap();
    let before = head(&writer);
    assert_eq!(price_at(&writer, Timestamp::MAX).unwrap().as_deref(), Some("2.00"));
    drop(writer);
    clock.advance(Duration::from_secs(7));
    let writer = open_on(&directory, &clock, HistoryOptions::default());
    let after = head(&writer);
    assert_eq!((after.epoch, after.next), (before.epoch, before.next + 1), "one entry, of the same epoch");
    assert_eq!(price_at(&writer, Timestamp::MAX).unwrap().as_deref(), Some("2.50"));
    drop(writer);
    let writer = open_on(&directory, &clock, HistoryOptions::default());
    assert_eq!(head(&writer), after, "a start with nothing to say enters nothing");
}

#[test]
fn confirmed_price_is_not_a_change_and_keeps_the_time_of_the_last_one() {
    let (_directory, clock, mut writer) = fresh(HistoryOptions::default());
    begin(&mut writer);
    let first = clock.now().timestamp();
    publish(&mut writer, &clock, "2.0");
    let before = head(&writer);
    publish(&mut writer, &clock, "2.0");
    assert_eq!(head(&writer), before);
    let (_, state) = writer.history().as_of(WORLD, tennis(&writer), Timestamp::MAX).unwrap();
    let event = state.events().next().unwrap();
    assert_eq!(state.records(event).next().unwrap().2.last_update, first);
    let shown = writer.boards().load_full(WORLD);
    let node = shown.sport(tennis(&writer)).published().index().get("a").unwrap();
    assert_eq!(node.records()[0].last_update, first.plus_seconds(30), "readers see the confirmation");
}

#[test]
fn ticks_are_the_boundaries_that_were_due() {
    let (_directory, clock, mut writer) = fresh(HistoryOptions::default());
    begin(&mut writer);
    clock.advance(Duration::from_millis(12_400));
    publish(&mut writer, &clock, "2.0");
    let (found, _) = writer.history().as_of(WORLD, tennis(&writer), Timestamp::MAX).unwrap();
    assert_eq!(found.at, now().plus_seconds(30), "and not the moment of the publication");
    clock.advance(Duration::from_secs(40));
    writer.ingest(WORLD, vec![quote(tennis(&writer), "3.0", clock.now().timestamp())], true).unwrap();
    let (next, _) = writer.history().as_of(WORLD, tennis(&writer), Timestamp::MAX).unwrap();
    assert_eq!(next.at, now().plus_seconds(83), "a quiet sport publishes at once: rounded up");
    assert_eq!((next.previous, found.next), (Some(found.at), None));
}
