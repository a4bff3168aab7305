//! Polls of a scope in parts: each closes records of its event and its markets, and nothing else.

use super::*;
use crate::model::MarketKey;
use crate::writer::{Poll, PollPart, PollScope};

fn scope(key: &str) -> PollScope {
    PollScope { world: WORLD, feed: "feed".into(), key: key.into() }
}

/// A price of a market that is none of the eleven.
fn prop(sport: SportId, event: &str, bookmaker: &str, market: &str) -> News {
    let News::Odds(news) = odds(sport, event, bookmaker, Some(["1.5", "2.5"])) else { panic!("no odds") };
    News::Odds(OddsNews { market: MarketKey::New(market.into()), ..news })
}

/// Polls the event markets of an event, or everything of a scope; how many records that closed.
fn poll(writer: &mut Writer, key: &str, part: Option<(&str, &[&str])>, news: Vec<News>) -> u64 {
    let keys = |markets: &[&str]| markets.iter().map(|market| Box::from(*market)).collect();
    let part = part.map(|(event, markets)| PollPart { event: event_id(event), markets: keys(markets) });
    let (sport, at, has_more, budget) = (tennis(writer), now(), false, None);
    let poll = Poll { scope: scope(key), part, sport, news, at, latency_ms: 0, stale_after_s: 300, has_more, budget };
    let report = writer.poll(poll).unwrap();
    assert_eq!(report.news.rejected(), 0);
    report.closed
}

fn open_records(writer: &Writer) -> Vec<String> {
    let sport = tennis(writer);
    let state = &writer.worlds[WORLD.index()];
    let index = &state.sports[sport.index()].current;
    let mut records = Vec::new();
    for node in index.iter() {
        for record in node.records() {
            let book = state.register.bookmakers().key(record.bookmaker);
            records.push(format!("{} {book} {}", node.event().id, record.market));
        }
    }
    records.sort();
    records
}

const PROPS: &[&str] = &["player_aces", "player_games"];

/// A writer with odds of two events, and props of both from polls of the same feed.
fn filled() -> (TempDir, Writer) {
    let (directory, mut writer) = open();
    let sport = tennis(&writer);
    let both = Some(["1.5", "2.5"]);
    let news =
        vec![event(sport, "a"), event(sport, "b"), odds(sport, "a", "betmgm", both), odds(sport, "b", "betmgm", both)];
    assert_eq!(poll(&mut writer, "cup", None, news), 0);
    for id in ["a", "b"] {
        let news = PROPS.iter().map(|market| prop(sport, id, "betmgm", market)).collect();
        assert_eq!(poll(&mut writer, "cup/events", Some((id, PROPS)), news), 0);
    }
    assert_eq!(open_records(&writer).len(), 6);
    (directory, writer)
}

#[test]
fn poll_of_an_event_closes_only_what_it_asked_for() {
    let (directory, mut writer) = filled();
    let sport = tennis(&writer);
    // Only one of the two markets was asked for: what it does not say of the other changes nothing.
    assert_eq!(poll(&mut writer, "cup/events", Some(("a", &PROPS[..1])), Vec::new()), 1);
    let left = [
        "a betmgm moneyline",
        "a betmgm player_games",
        "b betmgm moneyline",
        "b betmgm player_aces",
        "b betmgm player_games",
    ];
    assert_eq!(open_records(&writer), left);
    writer.flush().unwrap();
    drop(writer);

    let mut writer = open_in(&directory, NOW_MS);
    assert_eq!(open_records(&writer), left, "the same after a restart");
    let news = vec![prop(sport, "a", "betmgm", "player_aces")];
    assert_eq!(poll(&mut writer, "cup/events", Some(("a", PROPS)), news), 1, "the other market of the event");
    assert_eq!(poll(&mut writer, "cup/events", Some(("b", PROPS)), Vec::new()), 2);
    assert_eq!(open_records(&writer), ["a betmgm moneyline", "a betmgm player_aces", "b betmgm moneyline"]);
}

#[test]
fn poll_of_a_competition_does_not_close_event_markets() {
    let (_directory, mut writer) = filled();
    assert_eq!(poll(&mut writer, "cup", None, Vec::new()), 2);
    let left = ["a betmgm player_aces", "a betmgm player_games", "b betmgm player_aces", "b betmgm player_games"];
    assert_eq!(open_records(&writer), left);
}

#[test]
fn events_and_markets_that_are_no_longer_requested_are_closed() {
    let (directory, mut writer) = filled();
    let keys = |markets: &[&str]| markets.iter().map(|market| Box::from(*market)).collect::<Vec<Box<str>>>();
    let events = [event_id("a")];
    assert_eq!(writer.retain_polled(&scope("cup/events"), &events, &keys(PROPS)).unwrap(), 2, "those of b");
    assert_eq!(writer.retain_polled(&scope("cup/events"), &events, &keys(PROPS)).unwrap(), 0);
    assert_eq!(writer.retain_polled(&scope("cup/events"), &events, &keys(&PROPS[..1])).unwrap(), 1);
    let left = ["a betmgm moneyline", "a betmgm player_aces", "b betmgm moneyline"];
    assert_eq!(open_records(&writer), left);
    writer.flush().unwrap();
    drop(writer);
    assert_eq!(open_records(&open_in(&directory, NOW_MS)), left, "the same after a restart");
}

#[test]
fn scope_has_nothing_of_an_event_that_was_removed_since() {
    let (directory, mut writer) = open();
    let sport = tennis(&writer);
    let priced = || vec![event(sport, "a"), odds(sport, "a", "betmgm", Some(["1.5", "2.5"]))];
    assert_eq!(poll(&mut writer, "cup", None, priced()), 0);
    let removed = News::Remove { sport, event: event_id("a") };
    assert_eq!(writer.ingest(WORLD, vec![removed], false).unwrap().changed, 1);
    assert_eq!(poll(&mut writer, "other", None, priced()), 0);
    drop(writer);

    let mut writer = open_in(&directory, NOW_MS);
    assert_eq!(poll(&mut writer, "other", None, vec![event(sport, "a")]), 1, "only the second scope had it");
    assert_eq!(open_records(&writer), [""; 0]);
}
