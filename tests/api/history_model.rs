//! Random lives of a service: what it answers about a time is what it answered at that time, after restarts too, and what
//! another service answers that has imported its history.

use oddsbox::model::World;
use serde_json::Value;

use super::fixture::{closed, event_of, event_with, moneyline_at, remove, score, time, total};
use super::history_io::{export, export_world, import_lines};
use crate::harness::Service;
use crate::process::seed::{Random, short_or_long};

const BOOKS: [&str; 3] = ["draftkings", "betmgm", "fanduel"];
const PATHS: [&str; 5] = [
    "/v1/sports/tennis/odds?regions=us,uk&limit=500",
    "/v1/sports/tennis/odds?market=all&odds_format=decimal&bookmaker=betmgm&limit=500",
    "/v1/sports/tennis/odds?competition=tennis_one&limit=500",
    "/v1/sports/tennis/events?limit=500",
    "/v1/sports/tennis/scores?limit=500",
];
const EVENTS: usize = 5;

fn below(random: &mut Random, bound: usize) -> usize {
    usize::try_from(random.below(bound as u64)).expect("a small number")
}

/// One change at a time of the life.
fn change(random: &mut Random, now_s: u32, price: i32) -> String {
    let (id, at) = (format!("e{}", below(random, EVENTS)), time(now_s));
    let book = BOOKS[below(random, BOOKS.len())];
    let start = time(600 + 60 * u32::try_from(below(random, 8)).expect("a small number"));
    match below(random, 13) {
        0 | 1 => event_with("tennis", &id, &start, ["scheduled", "live", "cancelled"][below(random, 3)]),
        2 => event_of(["tennis_one", "tennis_two"][below(random, 2)], &id),
        3 => remove("tennis", &id),
        4 => score("tennis", &id, ["live", "final"][below(random, 8) / 7], price, 0, &at),
        5 => closed("tennis", &id, book, "moneyline", &at),
        6 => total("tennis", &id, book, "total_points", "20.5"),
        _ => moneyline_at("tennis", &id, book, &at, price, -price),
    }
}

/// An answer without the times of confirmations, which no log has.
fn without_confirmations(text: &str) -> String {
    let mut value: Value = serde_json::from_str(text).expect("JSON");
    for record in value.as_array_mut().expect("a list") {
        let record = record.as_object_mut().expect("an object");
        record.remove("last_update");
        record.remove("bookmaker_last_update");
    }
    value.to_string()
}

fn as_of(path: &str, at: &str) -> String {
    format!("{path}&as_of={at}")
}

/// Everything that is known of the past, with the statuses and without what differs between two services.
async fn past(service: &Service, key: &str, times: &[u32], paths: &[&str]) -> Vec<String> {
    let lines = (0..EVENTS).map(|event| format!("/v1/sports/tennis/events/e{event}/lines?market=all&limit=1000"));
    let closing = (0..EVENTS).map(|event| format!("/v1/sports/tennis/closing?event_ids=e{event}&market=all"));
    let boards = times.iter().flat_map(|at| paths.iter().map(|path| as_of(path, &time(*at))));
    answers(service, key, lines.chain(closing).chain(boards)).await
}

async fn answers(service: &Service, key: &str, paths: impl Iterator<Item = String>) -> Vec<String> {
    let mut all = Vec::new();
    for path in paths {
        let answer = service.get_as(key, &path).await;
        let tick = answer.header("x-as-of").unwrap_or_default();
        let links = answer.header("link").unwrap_or_default();
        let error = if answer.status == 200 { String::new() } else { answer.code() };
        let body = if answer.status == 200 { answer.text() } else { "" };
        all.push(format!("{path}: {} {error} {tick} {links} {body}", answer.status));
    }
    all
}

async fn live(random: &mut Random) {
    let mut service = Service::start().await;
    let key = service.live.clone();
    // A competition can be named once it has had an event.
    service.ingest(&[event_of("tennis_one", "e0"), event_of("tennis_two", "e1")].concat()).await;
    let (mut then, mut times, mut now_s, mut price) = (Vec::new(), Vec::new(), 0, 100);
    for _ in 0..25 {
        // What comes in the second of an answer may not be in it.
        service.advance(1).await;
        for _ in 0..below(random, 4) {
            price += 1;
            let at = now_s + u32::try_from(below(random, 30)).expect("a small number");
            // What is about an event that does not exist is rejected, as it should be.
            service.ingest_report(World::Live, &change(random, at, price)).await;
        }
        now_s += 30;
        service.advance(29).await;
        if below(random, 12) == 0 {
            service = service.restart_now().await;
        }
        for path in PATHS {
            let answer = service.get_as(&key, path).await;
            then.push((as_of(path, &time(now_s)), without_confirmations(answer.text())));
        }
        times.push(now_s);
    }
    service.advance(30).await;
    for (path, then) in &then {
        let now = service.get_as(&key, path).await;
        // Before the first publication there is no history.
        if now.status == 410 {
            assert_eq!(then, "[]", "{path}");
            continue;
        }
        assert_eq!((now.status, &without_confirmations(now.text())), (200, then), "{path}");
    }
    let text = export(&service, None, None).await;
    let other = Service::start().await;
    other.clock.set_unix_ms(service.clock.now().unix_ms);
    let report = import_lines(&other, &text).await;
    assert_eq!((report.rejected, report.written), (0, true), "{:?}", report.examples);
    assert_eq!(export(&other, None, None).await, text);
    let (own, imported) = (past(&service, &key, &times, &PATHS).await, past(&other, &other.live, &times, &PATHS).await);
    for (own, imported) in own.iter().zip(&imported) {
        assert_eq!(own, imported);
    }
    assert_eq!(own.len(), imported.len());
    go_on(&other, &export_world(&service).await, (random, now_s, price)).await;
}

/// After an import, a service goes on from the same prices: a third service that has imported the history of both has the
/// same prices, and the same lines in an export.
async fn go_on(service: &Service, world: &str, (random, mut now_s, mut price): (&mut Random, u32, i32)) {
    let (mut times, border_s) = (Vec::new(), now_s);
    if below(random, 4) > 0 {
        service.ingest_report(World::Live, world).await;
    }
    // What it has from the import ends with its first publication.
    let first = moneyline_at("tennis", "first", "betmgm", &time(now_s), 100, -100);
    service.ingest(&[event_of("tennis_one", "first"), first].concat()).await;
    now_s += 30;
    service.advance(30).await;
    for _ in 0..6 {
        service.advance(1).await;
        price += 1;
        service.ingest_report(World::Live, &change(random, now_s, price)).await;
        now_s += 30;
        service.advance(29).await;
        times.push(now_s);
    }
    service.advance(30).await;
    let text = export(service, None, None).await;
    let third = Service::start().await;
    third.clock.set_unix_ms(service.clock.now().unix_ms);
    let report = import_lines(&third, &text).await;
    assert_eq!((report.rejected, report.written), (0, true), "{:?}\n{text}", report.examples);
    // Lines of one second may be in another order. A source that the first publication has fresh and the next one of that second
    // stale has not changed in the end.
    let is_kept = |line: &&str| !line.starts_with(r#"{"type":"stale""#);
    let sorted =
        |text: &str| text.lines().filter(is_kept).map(str::to_owned).collect::<std::collections::BTreeSet<_>>();
    let again = export(&third, None, None).await;
    let (once, again) = (sorted(&text), sorted(&again));
    let missing: Vec<&String> = once.difference(&again).collect();
    let added: Vec<&String> = again.difference(&once).collect();
    assert!(missing.is_empty() && added.is_empty(), "missing {missing:#?}, added {added:#?}\n{text}");
    // That an event was there again is no change of it in the other's history.
    let odds = &PATHS[..3];
    let own = past(service, &service.live, &times, odds).await;
    let imported = past(&third, &third.live, &times, odds).await;
    for (own, imported) in own.iter().zip(&imported) {
        let is_about = |id: usize| own.contains(&format!("/e{id}/lines")) || own.contains(&format!("event_ids=e{id}&"));
        if !(0..EVENTS).any(|id| is_about(id) && scheduled_again(&text, &format!("e{id}"), border_s)) {
            assert_eq!(own, imported, "{text}");
        }
    }
}

/// Whether an event that had begun or was cancelled is scheduled again later: neither of two logs knows which of the prices
/// of the other count as the last before that start.
fn scheduled_again(text: &str, id: &str, border_s: u32) -> bool {
    let border = time(border_s);
    let (mut was_scheduled, mut commence) = (true, Value::from("9"));
    for line in text.lines() {
        let line: Value = serde_json::from_str(line).expect("JSON");
        if line["type"] != "event" || line["id"] != id {
            continue;
        }
        let (is_scheduled, at) = (line["status"] == "scheduled", line["as_of"].as_str());
        let was_ahead = was_scheduled && commence.as_str() > at;
        if at > Some(&border) && is_scheduled && !was_ahead {
            return true;
        }
        (was_scheduled, commence) = (is_scheduled, line["commence_time"].clone());
    }
    false
}

#[tokio::test]
async fn past_is_what_it_was() {
    let mut random = Random::new();
    for _ in 0..short_or_long(4, 300) {
        live(&mut random).await;
    }
}
