//! Feed lines for each sport, and shorthands used by many tests.

use oddsbox::keys::issue::NewKey;
use oddsbox::keys::{KeyKind, Limits};
use serde_json::{Value, json};

use crate::harness::{Answer, START_MS, Service};

/// The update time of the prices in these lines: half a minute before the start of every test.
pub const UPDATED: &str = "2026-11-14T23:38:30Z";

/// When most events in these lines begin.
pub const EVENING: &str = "2026-11-15T02:00:00Z";

/// So many seconds after the start of every test.
pub fn time(seconds: u32) -> String {
    let unix = START_MS / 1000 + i64::from(seconds);
    jiff::Timestamp::from_second(unix).expect("a time").to_string()
}

/// A match of two sides, `Home <id>` and `Away <id>`.
pub fn event(sport: &str, id: &str, commence: &str) -> String {
    event_with(sport, id, commence, "scheduled")
}

pub fn event_with(sport: &str, id: &str, commence: &str, status: &str) -> String {
    format!(
        r#"{{"type":"event","sport":"{sport}","id":"{id}","competition":"Cup","commence_time":"{commence}","home":"Home {id}","away":"Away {id}","status":"{status}"}}"#
    ) + "\n"
}

/// A tennis match of a competition.
pub fn event_of(competition: &str, id: &str) -> String {
    event("tennis", id, EVENING)
        .replace(r#""competition":"Cup""#, &format!(r#""competition":"Cup","competition_key":"{competition}""#))
}

pub fn tournament(id: &str, title: &str, commence: &str) -> String {
    format!(
        r#"{{"type":"event","sport":"golf","id":"{id}","competition":"Tour","commence_time":"{commence}","title":"{title}","status":"scheduled"}}"#
    ) + "\n"
}

/// American prices of one bookmaker; `outcomes` is the JSON array.
pub fn odds(sport: &str, event: &str, book: &str, market: &str, outcomes: &str) -> String {
    odds_at(sport, event, book, market, UPDATED, outcomes)
}

pub fn odds_at(sport: &str, event: &str, book: &str, market: &str, at: &str, outcomes: &str) -> String {
    odds_in("american", sport, event, book, market, at, outcomes)
}

pub fn odds_in(format: &str, sport: &str, event: &str, book: &str, market: &str, at: &str, outcomes: &str) -> String {
    format!(
        r#"{{"type":"odds","sport":"{sport}","event":"{event}","bookmaker":"{book}","market":"{market}","last_update":"{at}","format":"{format}","outcomes":{outcomes}}}"#
    ) + "\n"
}

/// A price for each side of an event.
pub fn moneyline(sport: &str, event: &str, book: &str, home: i32, away: i32) -> String {
    moneyline_at(sport, event, book, UPDATED, home, away)
}

pub fn moneyline_at(sport: &str, event: &str, book: &str, at: &str, home: i32, away: i32) -> String {
    let sides = format!(r#"[{{"name":"Home {event}","price":{home}}},{{"name":"Away {event}","price":{away}}}]"#);
    odds_at(sport, event, book, "moneyline", at, &sides)
}

/// Prices over and under a line.
pub fn total(sport: &str, event: &str, book: &str, market: &str, point: &str) -> String {
    let sides =
        format!(r#"[{{"name":"Over","price":-105,"point":{point}}},{{"name":"Under","price":-115,"point":{point}}}]"#);
    odds(sport, event, book, market, &sides)
}

pub fn closed(sport: &str, event: &str, book: &str, market: &str, at: &str) -> String {
    odds_at(sport, event, book, market, at, "[]")
}

pub fn remove(sport: &str, event: &str) -> String {
    format!(r#"{{"type":"remove","sport":"{sport}","event":"{event}"}}"#) + "\n"
}

pub fn read(sport: &str, book: &str, at: &str, latency_ms: u32) -> String {
    format!(r#"{{"type":"read","sport":"{sport}","bookmaker":"{book}","at":"{at}","latency_ms":{latency_ms}}}"#) + "\n"
}

pub fn bookmaker(key: &str, title: &str, regions: &str) -> String {
    format!(r#"{{"type":"bookmaker","key":"{key}","title":"{title}","regions":{regions}}}"#) + "\n"
}

/// A score without periods.
pub fn score(sport: &str, event: &str, status: &str, home: i32, away: i32, at: &str) -> String {
    score_with(sport, event, status, home, away, at, "")
}

/// A score; `more` has further fields, each with a leading comma.
pub fn score_with(sport: &str, event: &str, status: &str, home: i32, away: i32, at: &str, more: &str) -> String {
    format!(
        r#"{{"type":"score","sport":"{sport}","event":"{event}","status":"{status}","home_score":{home},"away_score":{away},"updated_at":"{at}"{more}}}"#
    ) + "\n"
}

/// One event with at least one price in each sport: `m1` and `b1` (fights), `t1`, `f1`, `g1`.
pub fn every_sport() -> String {
    let golf = r#"[{"name":"A. Ames","price":450},{"name":"B. Bohn","price":900}]"#;
    [
        event("mma", "m1", EVENING),
        moneyline("mma", "m1", "draftkings", -110, -110),
        total("mma", "m1", "draftkings", "total_rounds", "2.5"),
        event("boxing", "b1", EVENING),
        moneyline("boxing", "b1", "draftkings", -200, 170),
        event("tennis", "t1", EVENING),
        moneyline("tennis", "t1", "fanduel", 120, -140),
        event("american_football", "f1", EVENING),
        total("american_football", "f1", "betmgm", "total_points", "44.5"),
        tournament("g1", "The Open", EVENING),
        odds("golf", "g1", "draftkings", "outright", golf),
    ]
    .concat()
}

/// An event of a payload of The Odds API, `Home <id>` against `Away <id>`; `bookmakers` may be null.
pub fn payload_event(id: &str, sport_key: &str, sport_title: &str, bookmakers: Value) -> Value {
    json!({
        "id": id, "sport_key": sport_key, "sport_title": sport_title, "commence_time": EVENING,
        "home_team": format!("Home {id}"), "away_team": format!("Away {id}"), "bookmakers": bookmakers,
    })
}

/// Every path under `/v1` that returns 200 once [`every_sport`] is ingested.
pub const ROUTES: [&str; 9] = [
    "/v1/sports",
    "/v1/books",
    "/v1/status",
    "/v1/sports/mma/odds",
    "/v1/sports/mma/scores",
    "/v1/sports/mma/events",
    "/v1/sports/mma/events/m1",
    "/v1/sports/mma/competitions",
    "/v1/markets",
];

/// One field of each element of an array.
pub fn fields(answer: &Answer, name: &str) -> Vec<String> {
    strings(&answer.json(), name)
}

pub fn strings(array: &Value, name: &str) -> Vec<String> {
    let Value::Array(items) = array else { panic!("not an array: {array}") };
    items.iter().map(|item| item[name].as_str().map_or_else(|| item[name].to_string(), str::to_owned)).collect()
}

/// Event, bookmaker and market of each odds record, in order.
pub fn records(answer: &Answer) -> Vec<String> {
    let json = answer.json();
    let Value::Array(items) = &json else { panic!("not an array: {answer:?}") };
    let text = |item: &Value, name: &str| item[name].as_str().unwrap_or("?").to_owned();
    items.iter().map(|item| ["event_id", "bookmaker", "market"].map(|name| text(item, name)).join(" ")).collect()
}

/// The price of the first outcome of the first record, as JSON text.
pub fn first_price(answer: &Answer) -> String {
    answer.json()[0]["outcomes"][0]["price"].to_string()
}

/// Status and error code.
pub fn error(answer: &Answer) -> (u16, String) {
    (answer.status, answer.code())
}

pub fn message(answer: &Answer) -> String {
    answer.json()["error"]["message"].as_str().unwrap_or_default().to_owned()
}

/// A new key: its secret and its id.
pub struct Key {
    pub secret: String,
    pub id: String,
}

pub async fn key(service: &Service, kind: KeyKind, change: impl FnOnce(&mut NewKey)) -> Key {
    let issued = service.issue(kind, change).await;
    Key { secret: issued.secret.expose().to_owned(), id: issued.key.id().as_str().to_owned() }
}

/// A production key with these limits.
pub async fn limited(service: &Service, burst: u32, day: Option<u64>, month: Option<u64>) -> Key {
    let limits = Limits { burst_per_minute: burst, per_day: day, per_month: month, streams: 10 };
    key(service, KeyKind::Production, |new| new.limits = limits).await
}

/// A production key restricted to groups of sports.
pub async fn restricted(service: &Service, groups: &[&str]) -> Key {
    key(service, KeyKind::Production, |new| new.groups = groups.iter().map(|group| (*group).into()).collect()).await
}
