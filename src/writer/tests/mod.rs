//! Shared by the tests of the writer: a writer on its own file, and news for it.

mod imported;
mod lanes;
mod lines;
mod log;
mod owners;
mod polls;
mod retention;
mod undo;

use std::sync::Arc;

use tempfile::TempDir;

use super::{Writer, WriterOptions};
use crate::clock::Clock;
use crate::config::catalogue;
use crate::keys::{KeyKind, Limits, NewKey};
use crate::model::{
    Contest, EventId, EventNews, EventStatus, Market, News, OddsFormat, OddsNews, Outcome, Price, SportId, Timestamp,
    World,
};
use crate::store::{Store, StoreOptions};

const NOW_MS: i64 = 1_794_657_600_000;
const WORLD: World = World::Live;

fn now() -> Timestamp {
    Timestamp::from_unix_ms(NOW_MS)
}

/// A writer on an empty file, which is gone with the directory.
fn open() -> (TempDir, Writer) {
    let directory = tempfile::tempdir().unwrap();
    let writer = open_in(&directory, NOW_MS);
    (directory, writer)
}

/// A writer on the file of a directory, at a given time.
fn open_in(directory: &TempDir, unix_ms: i64) -> Writer {
    let catalogue = Arc::new(catalogue::builtin());
    let path = directory.path().join("oddsbox.redb");
    let store = Store::open(&path, Arc::clone(&catalogue), StoreOptions::default()).unwrap();
    Writer::open(store, catalogue, Clock::manual(unix_ms), WriterOptions::default()).unwrap().writer
}

fn tennis(writer: &Writer) -> SportId {
    writer.catalogue.find("tennis").unwrap()
}

fn event_id(id: &str) -> EventId {
    EventId::new(id).unwrap()
}

fn event(sport: SportId, id: &str) -> News {
    News::Event(EventNews {
        sport,
        id: event_id(id),
        competition: "Open".into(),
        competition_key: None,
        competition_title: None,
        commence: now().plus_seconds(3600),
        contest: Contest::Sides { home: "home".into(), away: "away".into() },
        status: EventStatus::Scheduled,
    })
}

fn outcome(name: &str, price: &str) -> Outcome {
    Outcome { name: name.into(), price: Price::parse(price, OddsFormat::Decimal).unwrap(), point: None }
}

/// The moneyline of an event; without prices it is closed.
fn odds(sport: SportId, id: &str, bookmaker: &str, prices: Option<[&str; 2]>) -> News {
    let outcomes = prices.map(|[home, away]| vec![outcome("home", home), outcome("away", away)]);
    News::Odds(OddsNews {
        sport,
        event: event_id(id),
        bookmaker: bookmaker.into(),
        market: Market::MONEYLINE.into(),
        last_update: now(),
        bookmaker_update: None,
        outcomes: outcomes.unwrap_or_default().into(),
    })
}

fn new_key(name: &str) -> NewKey {
    let limits = Limits { burst_per_minute: 60, per_day: Some(500), per_month: None, streams: 10 };
    NewKey {
        kind: KeyKind::Sandbox,
        name: name.into(),
        groups: Vec::new(),
        limits,
        expires: None,
        approved_by: None,
        self_service: false,
    }
}
