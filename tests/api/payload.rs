//! Payloads of The Odds API: what goes in comes out of `/v4` with the same values, or is counted under a documented reason.

use std::collections::BTreeMap;

use oddsbox::admin::{AdminAccess, DataDir};
use oddsbox::ingest::{IngestOptions, IngestSummary, PayloadOptions};
use oddsbox::model::{OddsFormat, Reason, Region, Regions, World};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::fixture::{UPDATED, fields, payload_event};
use crate::harness::Service;

const GUIDE: &str = include_str!("../../src/http/docs/guide/feeds.md");
const BOOKS: [&str; 2] = ["betmgm", "newbook"];
const NBA: &str = "basketball_nba";
const MMA: &str = "mma_mixed_martial_arts";
const GOLF: &str = "golf_us_open_winner";

async fn access(service: &Service) -> AdminAccess {
    AdminAccess::server(&DataDir::new(service.data())).await.expect("a socket").expect("a server")
}

fn source(text: &str) -> mpsc::Receiver<std::io::Result<bytes::Bytes>> {
    let (sender, source) = mpsc::channel(1);
    sender.try_send(Ok(bytes::Bytes::copy_from_slice(text.as_bytes()))).expect("room for one piece");
    source
}

/// Ingests feed lines into the live world through the admin socket, valid or not.
pub async fn ingest_lines(service: &Service, lines: &str) -> IngestSummary {
    let options = IngestOptions { world: World::Live, strict: false };
    access(service).await.ingest(options, source(lines)).await.expect("a report")
}

/// Ingests a payload with decimal prices into the live world, as a request for the region us.
pub async fn ingest_payload(service: &Service, payload: &Value) -> IngestSummary {
    ingest_payload_as(service, payload, OddsFormat::Decimal).await
}

async fn ingest_payload_as(service: &Service, payload: &Value, format: OddsFormat) -> IngestSummary {
    let options = PayloadOptions {
        world: World::Live,
        strict: false,
        sport: None,
        odds_format: Some(format),
        regions: Regions::only(Region::Us),
    };
    access(service).await.ingest_payload(&options, source(&payload.to_string())).await.expect("a report")
}

/// The counts of a report.
pub fn reasons<const N: usize>(counts: [(&str, u64); N]) -> BTreeMap<String, u64> {
    counts.map(|(reason, count)| (reason.to_owned(), count)).into()
}

fn market(key: &str, outcomes: &Value) -> Value {
    json!({"key": key, "last_update": UPDATED, "outcomes": outcomes})
}

fn books(markets: &[Value]) -> Value {
    let book =
        |key: &str| json!({"key": key, "title": format!("Title of {key}"), "last_update": UPDATED, "markets": markets});
    json!(BOOKS.map(book))
}

/// More than 300 market keys of The Odds API.
fn market_keys() -> Vec<String> {
    let families = [
        "h2h",
        "spreads",
        "totals",
        "team_totals",
        "alternate_spreads",
        "alternate_totals",
        "alternate_team_totals",
        "h2h_3_way",
        "alternate_spreads_corners",
        "alternate_totals_cards",
        "btts",
        "draw_no_bet",
    ];
    let periods = [
        "",
        "_q1",
        "_q2",
        "_q3",
        "_q4",
        "_h1",
        "_h2",
        "_p1",
        "_p2",
        "_p3",
        "_s1",
        "_s2",
        "_1st_1_innings",
        "_1st_3_innings",
        "_1st_5_innings",
        "_1st_7_innings",
    ];
    let mut keys: Vec<String> = Vec::new();
    for family in families {
        keys.extend(periods.map(|period| [family, period].concat()));
    }
    for prefix in ["player", "batter", "pitcher"] {
        for name in ["points", "assists_rebounds", "1st_td", "of_our_own"] {
            for end in ["", "_alternate", "_q1", "_h2", "_q3_alternate", "_p1", "_1st_5_innings", "_s9", "_and_more"] {
                keys.push(format!("{prefix}_{name}{end}"));
            }
        }
    }
    keys.extend(["h2h_lay", "double_chance", "correct_score", "corners_1x2", "to_qualify"].map(str::to_owned));
    keys
}

/// Takes the items of a list in turn.
struct Turns(usize);

impl Turns {
    fn next<T: Clone>(&mut self, items: &[T]) -> T {
        self.0 += 1;
        items[self.0 % items.len()].clone()
    }
}

const NAMES: [&str; 11] = [
    "Over",
    "Under",
    " Blank before",
    "Blank after  ",
    "Ångström 東京 🏀",
    "e\u{301} decomposed",
    "O'Neil \"The King\" Jr.",
    "back\\slash/slash",
    "no\u{a0}break",
    "\u{200b}zero width",
    "Draw",
];
const DESCRIPTIONS: [Option<&str>; 5] =
    [None, Some("LeBron James"), Some(" Nikola Jokić "), Some("\"Quoted\" & <tagged>"), None];

/// Outcomes of a market with every kind of name, price and point in turn.
fn outcomes(key: &str, format: OddsFormat, turns: &mut Turns) -> Value {
    let has_point = key.contains("spreads") || key.contains("totals");
    let has_none = ["h2h", "outrights"].contains(&key);
    let american =
        [-100_000, -10_000, -1_501, -250, -110, -101, 100, 101, 105, 333, 12_345, 9_999_900].map(|price| json!(price));
    let decimal = [1.001, 1.01, 1.05, 1.909, 1.91, 2.0, 2.5, 3.75, 17.125, 1000.0, 2001.0, 99_999.999, 100_000.0]
        .map(|price| json!(price));
    let points = [-0.0, 0.0, 0.25, -0.75, 1.125, -3.5, 44.0, 212.5, -100.25, 99_999.875];
    let one = |_| {
        let mut outcome = json!({"name": turns.next(&NAMES)});
        let price = match format {
            OddsFormat::American => turns.next(&american),
            _ => turns.next(&decimal),
        };
        outcome["price"] = price;
        if let Some(description) = turns.next(&DESCRIPTIONS) {
            outcome["description"] = json!(description);
        }
        if has_point || (!has_none && turns.0.is_multiple_of(3)) {
            outcome["point"] = json!(turns.next(&points));
        }
        outcome
    };
    (0..7).map(one).collect()
}

/// Three sports, one event with more than 300 markets.
fn generated(format: OddsFormat) -> Value {
    let mut turns = Turns(0);
    let mut of = |keys: &[String]| {
        let markets: Vec<Value> = keys.iter().map(|key| market(key, &outcomes(key, format, &mut turns))).collect();
        books(&markets)
    };
    let some = |keys: &[&str]| keys.iter().map(|key| (*key).to_owned()).collect::<Vec<_>>();
    let mut open =
        payload_event("g1", GOLF, "US Open Winner", of(&some(&["outrights", "outrights_lay", "top5", "round_leader"])));
    open["home_team"] = json!(null);
    open["away_team"] = json!(null);
    json!([
        payload_event("n1", NBA, "NBA", of(&market_keys())),
        payload_event("m1", MMA, "MMA", of(&some(&["h2h", "spreads", "totals", "alternate_totals", "h2h_lay"]))),
        open,
    ])
}

/// The markets of an event that `/v4` has, by bookmaker and key, in the format of the payload.
async fn served(service: &Service, event: &Value, format: OddsFormat) -> BTreeMap<(String, String), Value> {
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let path = format!("/v4/sports/{}/events/{}", text(&event["sport_key"]), text(&event["id"]));
    let listed = service.get(&format!("{path}/markets?bookmakers={}", BOOKS.join(","))).await.json();
    let mut keys: Vec<String> = Vec::new();
    for book in listed["bookmakers"].as_array().expect("a list") {
        keys.extend(fields_of(&book["markets"], "key"));
    }
    keys.sort();
    keys.dedup();
    let mut found = BTreeMap::new();
    for keys in keys.chunks(40) {
        let query = format!("bookmakers={}&markets={}&oddsFormat={format}", BOOKS.join(","), keys.join(","));
        let answer = service.get(&format!("{path}/odds?{query}")).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        for book in answer.json()["bookmakers"].as_array().expect("a list") {
            for market in book["markets"].as_array().expect("a list") {
                let is_new =
                    found.insert((text(&book["key"]), text(&market["key"])), market["outcomes"].clone()).is_none();
                assert!(is_new, "{} has {} twice", book["key"], market["key"]);
            }
        }
    }
    found
}

fn fields_of(list: &Value, name: &str) -> Vec<String> {
    super::fixture::strings(list, name)
}

/// Whether an outcome has the same values. Numbers are compared as such: 2 is 2.0, and -0.0 is 0.0.
fn is_same(sent: &Value, served: &Value) -> bool {
    let number = |outcome: &Value, name: &str| outcome[name].as_f64();
    sent["name"] == served["name"]
        && sent["description"] == served["description"]
        && number(sent, "price") == number(served, "price")
        && number(sent, "point") == number(served, "point")
}

/// Asserts that every outcome of a payload is served with the same values.
async fn assert_served(service: &Service, payload: &Value, format: OddsFormat) {
    for event in payload.as_array().expect("a list") {
        let mut found = served(service, event, format).await;
        for book in event["bookmakers"].as_array().expect("a list") {
            for market in book["markets"].as_array().expect("a list") {
                let [book, key] = [&book["key"], &market["key"]].map(|key| key.as_str().expect("a key").to_owned());
                let outcomes =
                    found.remove(&(book.clone(), key.clone())).unwrap_or_else(|| panic!("{book} lacks {key}"));
                let sent = market["outcomes"].as_array().expect("a list");
                let outcomes = outcomes.as_array().expect("a list");
                assert_eq!(sent.len(), outcomes.len(), "{book} {key}");
                for (sent, served) in sent.iter().zip(outcomes) {
                    assert!(is_same(sent, served), "{book} {key}: {sent} became {served}");
                }
            }
        }
        assert!(found.is_empty(), "nobody sent {found:?}");
    }
}

#[tokio::test]
async fn every_outcome_of_a_payload_is_served_with_the_same_values() {
    assert!(market_keys().len() > 300);
    for format in [OddsFormat::Decimal, OddsFormat::American] {
        let service = Service::start().await;
        let payload = generated(format);
        let report = ingest_payload_as(&service, &payload, format).await;
        assert_eq!((report.rejected, report.dropped_outcomes), (0, 0), "{report:?}");
        assert_served(&service, &payload, format).await;
        let service = service.restart_now().await;
        assert_served(&service, &payload, format).await;
    }
}

#[tokio::test]
async fn names_of_sides_keep_their_blanks() {
    let service = Service::start().await;
    let mut event = payload_event("n1", NBA, "NBA", books(&[]));
    event["home_team"] = json!(" Home ");
    event["away_team"] = json!("Away  Team ");
    event["completed"] = json!(true);
    event["scores"] = json!([{"name": "Away  Team ", "score": "90"}, {"name": "Home", "score": "101"}]);
    let report = ingest_payload(&service, &json!([event])).await;
    assert_eq!(report.rejected, 0, "{report:?}");
    let one = service.get("/v1/sports/basketball/events/n1").await.json();
    assert_eq!((&one["home_team"], &one["away_team"]), (&event["home_team"], &event["away_team"]));
    let scores = service.get("/v1/sports/basketball/scores").await;
    assert_eq!((fields(&scores, "home_score"), fields(&scores, "away_score")), (vec!["101".into()], vec!["90".into()]));
}

/// What cannot be served unchanged is not changed but left out, and counted.
#[tokio::test]
async fn what_is_left_out_of_a_payload_is_counted_under_a_documented_reason() {
    let service = Service::start().await;
    let two = |price: Value| json!([{"name": "A", "price": price}, {"name": "B", "price": 1.5}]);
    let named = |name: &str| json!([{"name": name, "price": 1.5}]);
    let pointed = |point: Value| json!([{"name": "A", "price": 1.5, "point": point}]);
    let many: Value = (0..501).map(|number| json!({"name": number.to_string(), "price": 1.5})).collect();
    let dropped = [
        (two(json!(1.0)), "price_too_short"),
        (two(json!(1.0004)), "price_too_short"),
        (two(json!(100_001)), "price_too_long"),
        (two(json!(-3)), "price_too_short"),
        (two(json!("n/a")), "price_not_a_number"),
        (two(json!(null)), "missing_field"),
    ];
    let rejected = [
        ("h2h_q1", named("Tab\there"), "bad_field"),
        ("h2h_q2", named(""), "bad_field"),
        ("h2h_q3", named("   "), "bad_field"),
        ("h2h_q4", named(&"x".repeat(201)), "bad_field"),
        ("spreads", pointed(json!(0.0001)), "bad_field"),
        ("totals", pointed(json!(null)), "missing_field"),
        ("h2h", pointed(json!(1.5)), "bad_field"),
        ("outrights", many, "bad_field"),
        ("winning_margin", named("A"), "unknown_market"),
        ("H2H", named("A"), "unknown_market"),
    ];
    let mut markets: Vec<Value> = rejected.iter().map(|(key, outcomes, _)| market(key, outcomes)).collect();
    let keys: Vec<String> = (1..=dropped.len()).map(|number| format!("player_points_s{number}")).collect();
    markets.extend(keys.iter().zip(&dropped).map(|(key, (outcomes, _))| market(key, outcomes)));
    let mut payload = json!([payload_event("n1", NBA, "NBA", books(&markets))]);
    payload[0]["bookmakers"].as_array_mut().expect("a list").truncate(1);
    let report = ingest_payload(&service, &payload).await;

    let count = |reasons: &mut dyn Iterator<Item = &str>| {
        let mut counts: BTreeMap<String, u64> = BTreeMap::new();
        reasons.for_each(|reason| *counts.entry(reason.to_owned()).or_default() += 1);
        counts
    };
    assert_eq!(report.rejected_by_reason, count(&mut rejected.iter().map(|(.., reason)| *reason)));
    assert_eq!(report.dropped_outcomes_by_reason, count(&mut dropped.iter().map(|(_, reason)| *reason)));
    let found = served(&service, &payload[0], OddsFormat::Decimal).await;
    assert_eq!(found.keys().map(|(_, key)| key.clone()).collect::<Vec<_>>(), keys);
    assert!(found.values().all(|outcomes| *outcomes == json!([{"name": "B", "price": 1.5}])), "{found:?}");
}

#[test]
fn every_reason_is_in_the_guide() {
    let missing: Vec<&str> =
        Reason::ALL.iter().map(|reason| reason.key()).filter(|key| !GUIDE.contains(&format!("`{key}`"))).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[tokio::test]
async fn spreads_and_lay_prices_of_a_fight_are_accepted() {
    let service = Service::start().await;
    let spread =
        json!([{"name": "Home m1", "price": 1.9, "point": -3.5}, {"name": "Away m1", "price": 1.9, "point": 3.5}]);
    let lay = json!([{"name": "Home m1", "price": 2.1}, {"name": "Away m1", "price": 2.2}]);
    let markets = [
        market("spreads", &spread),
        market("h2h_lay", &lay),
        market("totals", &json!([{"name": "Over", "price": 1.9, "point": 2.5}])),
    ];
    let report = ingest_payload(&service, &json!([payload_event("m1", MMA, "MMA", books(&markets[..]))])).await;
    assert_eq!((report.accepted, report.rejected), (9, 0), "{report:?}");
    let own = service.get("/v1/sports/mma/odds?bookmaker=betmgm").await;
    assert_eq!(fields(&own, "market"), ["spread", "total_rounds"]);
    let lay = service.get("/v1/sports/mma/odds?bookmaker=betmgm&market=h2h_lay").await;
    assert_eq!(fields(&lay, "market"), ["moneyline_lay"]);
    let v4 = service.get(&format!("/v4/sports/{MMA}/odds?bookmakers=betmgm&markets=spreads,totals")).await.json();
    assert_eq!(fields_of(&v4[0]["bookmakers"][0]["markets"], "key"), ["spreads", "totals"]);
    assert_eq!(v4[0]["bookmakers"][0]["markets"][0]["outcomes"], spread);
}
