//! A whole simulated world: all endpoints agree with each other.

use std::collections::{BTreeMap, BTreeSet};

use super::fixture::{Key, key};
use crate::harness::Service;
use oddsbox::keys::KeyKind;
use serde_json::Value;

/// Those of the simulator.
const SPORTS: [&str; 9] =
    ["mma", "boxing", "tennis", "american_football", "golf", "soccer", "basketball", "baseball", "ice_hockey"];
const MARKETS: [&str; 11] = [
    "moneyline",
    "spread",
    "total_rounds",
    "total_points",
    "outright",
    "top5",
    "top10",
    "top20",
    "three_ball",
    "matchup",
    "round_leader",
];

const SUPER_BOWL: &str = "americanfootball_nfl_super_bowl_winner";
const ALL_REGIONS: &str = "regions=us,us2,us_dfs,us_ex,uk,eu,fr,se,au";

async fn sandbox() -> (Service, Key) {
    let service = Service::start_with_sandbox().await;
    let key = key(&service, KeyKind::Sandbox, |new| new.limits.burst_per_minute = 10_000).await;
    (service, key)
}

/// All records of a list, page by page.
async fn all(service: &Service, key: &Key, path: &str) -> Vec<Value> {
    let mut found = Vec::new();
    let mut at = Some(path.to_owned());
    while let Some(target) = at {
        let answer = service.get_as(&key.secret, &target).await;
        let Value::Array(page) = answer.json() else { panic!("{answer:?}") };
        found.extend(page);
        at = answer.header("link").map(|link| link[1..].split_once('>').unwrap().0.to_owned());
    }
    found
}

fn text<'v>(value: &'v Value, name: &str) -> &'v str {
    value[name].as_str().unwrap_or_else(|| panic!("no text {name} in {value}"))
}

/// `2026-11-14T23:39:00Z`, whole seconds.
fn is_time(text: &str) -> bool {
    let shape: String = text.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    shape == "0000-00-00T00:00:00Z"
}

#[tokio::test]
async fn markets_of_every_event_are_those_that_odds_has_and_sports_counts_the_same() {
    let (service, key) = sandbox().await;
    let sports = service.get_as(&key.secret, "/v1/sports").await.json();
    for (sport, listed) in SPORTS.into_iter().zip(sports["sports"].as_array().unwrap()) {
        let odds = all(&service, &key, &format!("/v1/sports/{sport}/odds?{ALL_REGIONS}&market=all&limit=500")).await;
        let events = all(&service, &key, &format!("/v1/sports/{sport}/events?limit=500")).await;
        let mut markets: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for record in &odds {
            markets.entry(text(record, "event_id")).or_default().insert(text(record, "market"));
        }
        for event in &events {
            let own = markets.remove(text(event, "id")).unwrap_or_default();
            let others = own.iter().copied().filter(|market| !MARKETS.contains(market));
            let in_order: Vec<&str> = MARKETS.into_iter().filter(|market| own.contains(market)).chain(others).collect();
            assert_eq!(event["markets"], serde_json::json!(in_order), "{event}");
            assert!(own.is_empty() || ["scheduled", "live"].contains(&text(event, "status")), "{event}");
        }
        assert!(markets.is_empty(), "{sport}: prices of no event: {markets:?}");
        // List Sports also counts futures, which American football lists only when asked.
        let hidden = match sport {
            "american_football" => {
                all(&service, &key, &format!("/v1/sports/{sport}/events?competition={SUPER_BOWL}")).await
            }
            _ => Vec::new(),
        };
        let is_open = |event: &&Value| ["scheduled", "live"].contains(&text(event, "status"));
        let open = events.iter().chain(&hidden).filter(is_open).count();
        let books: BTreeSet<&str> = odds.iter().map(|record| text(record, "bookmaker")).collect();
        assert_eq!(
            (text(listed, "key"), &listed["events"], &listed["books"]),
            (sport, &open.into(), &books.len().into())
        );
        assert!(open > 0 && !books.is_empty(), "{sport}");
    }
}

#[tokio::test]
async fn odds_records_are_in_order_unique_and_of_the_right_types() {
    let (service, key) = sandbox().await;
    for sport in SPORTS {
        let path = format!("/v1/sports/{sport}/odds?regions=us,uk,eu,au&limit=500");
        let events = all(&service, &key, &format!("/v1/sports/{sport}/events?limit=500")).await;
        let begins: BTreeMap<&str, &str> =
            events.iter().map(|event| (text(event, "id"), text(event, "commence_time"))).collect();
        let american = all(&service, &key, &path).await;
        let place = |record: &Value| ["event_id", "bookmaker", "market"].map(|name| text(record, name).to_owned());
        let order: Vec<_> = american.iter().map(|record| (begins[text(record, "event_id")], place(record))).collect();
        assert!(order.is_sorted_by(|one, other| one < other), "{sport}: commence, event, bookmaker, market");
        let ids: BTreeSet<&str> = american.iter().map(|record| text(record, "id")).collect();
        assert_eq!(ids.len(), american.len(), "{sport}");
        for record in &american {
            assert!(is_time(text(record, "last_update")) && text(record, "sport_key") == sport, "{record}");
            let outcomes = record["outcomes"].as_array().unwrap();
            let market = text(record, "market");
            let has_point = ["spread", "total_rounds", "total_points"].contains(&market);
            let group = match market {
                "three_ball" => 3,
                "matchup" => 2,
                _ => 1,
            };
            assert!(!outcomes.is_empty() && outcomes.len() % group == 0, "{record}");
            for outcome in outcomes {
                let price = outcome["price"].as_i64().unwrap();
                assert!(!(-100..100).contains(&price), "{record}");
                assert_eq!(outcome["point"].is_number(), has_point, "{record}");
                assert_eq!(outcome["point"].is_null(), !has_point, "{record}");
            }
        }
        for (format, is_price) in [
            ("decimal", (|price: &Value| price.as_f64().is_some_and(|price| price > 1.0)) as fn(&Value) -> bool),
            ("fractional", |price: &Value| price.as_str().is_some_and(|text| text.contains('/'))),
        ] {
            let other = all(&service, &key, &format!("{path}&odds_format={format}")).await;
            assert!(other.iter().map(place).eq(american.iter().map(place)), "{sport} {format}");
            let mut prices = other.iter().flat_map(|record| record["outcomes"].as_array().unwrap());
            assert!(prices.all(|outcome| is_price(&outcome["price"])), "{sport} {format}");
        }
    }
}

#[tokio::test]
async fn every_event_that_is_not_cancelled_has_the_score_of_its_status() {
    let (service, key) = sandbox().await;
    for sport in SPORTS {
        let is_fight = ["mma", "boxing"].contains(&sport);
        let mut events = all(&service, &key, &format!("/v1/sports/{sport}/events?limit=500")).await;
        events.retain(|event| event["status"] != "cancelled");
        let scores = all(&service, &key, &format!("/v1/sports/{sport}/scores?limit=500")).await;
        assert_eq!(scores.len(), events.len(), "{sport}");
        for (event, score) in events.iter().zip(&scores) {
            for (of_event, of_score) in
                [("id", "event_id"), ("status", "status"), ("home_team", "home_team"), ("away_team", "away_team")]
            {
                assert_eq!(event[of_event], score[of_score], "{event} {score}");
            }
            assert!(is_time(text(event, "commence_time")) && is_time(text(score, "updated_at")), "{event} {score}");
            let has_field = sport == "golf" || text(event, "competition_key").ends_with("_winner");
            assert_eq!(event.get("title").is_some(), has_field, "{event}");
            assert_eq!(event["home_team"].is_null(), has_field, "{event}");
            assert_eq!(score["home_score"].is_null(), has_field, "{score}");
            let is_final = score["status"] == "final";
            assert!(score.get("winner").is_none() || (is_fight && is_final), "{score}");
            if is_fight && !is_final {
                assert_eq!((&score["home_score"], &score["away_score"]), (&0.into(), &0.into()), "{score}");
            }
            if score["status"] == "scheduled" {
                assert_eq!(score["periods"], serde_json::json!([]), "{score}");
            }
        }
    }
}

#[tokio::test]
async fn bouts_hold_the_moneylines_of_the_bare_array() {
    let (service, key) = sandbox().await;
    for sport in ["mma", "boxing"] {
        let bare = all(&service, &key, &format!("/v1/sports/{sport}/odds?market=moneyline&limit=500")).await;
        let grouped =
            service.get_as(&key.secret, &format!("/v1/sports/{sport}/odds?group=bout&limit=500")).await.json();
        let mut records = bare.iter();
        for bout in grouped["bouts"].as_array().unwrap() {
            for book in bout["books"].as_array().unwrap() {
                let record = records.next().unwrap();
                assert_eq!((&book["book"], &book["last_update"]), (&record["bookmaker"], &record["last_update"]));
                let pair = |outcome: &Value| (outcome["name"].clone(), outcome["price"].clone());
                let pairs =
                    |holder: &Value| holder["outcomes"].as_array().unwrap().iter().map(pair).collect::<Vec<_>>();
                assert_eq!(pairs(book), pairs(record));
            }
        }
        assert_eq!(records.count(), 0, "{sport}");
    }
}
