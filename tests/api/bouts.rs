//! The grouped shape of fight sports.

use std::time::Duration;

use super::fixture::{EVENING, bookmaker, error, event, every_sport, moneyline, odds, read, strings, total};
use crate::harness::Service;

const PATH: &str = "/v1/sports/mma/odds?group=bout";

#[tokio::test]
async fn the_grouped_shape_is_exact() {
    let service = Service::start().await;
    service.clock.advance(Duration::from_millis(7));
    let lines = [
        event("mma", "m1", EVENING),
        moneyline("mma", "m1", "fanduel", 120, -140),
        moneyline("mma", "m1", "draftkings", -110, 150),
        total("mma", "m1", "draftkings", "total_rounds", "2.5"),
        event("mma", "m2", "2026-11-15T01:00:00Z"),
        moneyline("mma", "m2", "draftkings", 300, -400),
        read("mma", "fanduel", "2026-11-14T23:38:55Z", 42),
    ];
    service.ingest(&lines.concat()).await;
    let answer = service.get(PATH).await;
    assert_eq!(
        answer.text(),
        concat!(
            r#"{"sport":"mma","generated_at":"2026-11-14T23:39:00.007Z","sources":["#,
            r#"{"book":"draftkings","last_update":"2026-11-14T23:38:30Z","stale":false,"latency_ms":0},"#,
            r#"{"book":"fanduel","last_update":"2026-11-14T23:38:55Z","stale":false,"latency_ms":42}],"#,
            r#""bouts":[{"home":"Home m2","away":"Away m2","commence_time":"2026-11-15T01:00:00Z","books":["#,
            r#"{"book":"draftkings","last_update":"2026-11-14T23:38:30Z","outcomes":["#,
            r#"{"name":"Home m2","price":300},{"name":"Away m2","price":-400}]}]},"#,
            r#"{"home":"Home m1","away":"Away m1","commence_time":"2026-11-15T02:00:00Z","books":["#,
            r#"{"book":"draftkings","last_update":"2026-11-14T23:38:30Z","outcomes":["#,
            r#"{"name":"Home m1","price":-110},{"name":"Away m1","price":150}]},"#,
            r#"{"book":"fanduel","last_update":"2026-11-14T23:38:30Z","outcomes":["#,
            r#"{"name":"Home m1","price":120},{"name":"Away m1","price":-140}]}]}]}"#
        )
    );
}

#[tokio::test]
async fn group_takes_only_bout_and_only_for_fight_sports() {
    let service = Service::start().await;
    service.ingest(&every_sport()).await;
    for (sport, status) in [("mma", 200), ("boxing", 200), ("tennis", 400), ("american_football", 400), ("golf", 400)] {
        let answer = service.get(&format!("/v1/sports/{sport}/odds?group=bout")).await;
        assert_eq!(answer.status, status, "{sport}");
        if status == 400 {
            assert_eq!((answer.code(), answer.param()), ("invalid_parameter".into(), "group".into()));
        }
    }
    for group in ["fight", "bouts", "BOUT", "event"] {
        let answer = service.get(&format!("/v1/sports/mma/odds?group={group}")).await;
        assert_eq!((error(&answer), answer.param()), ((400, "invalid_parameter".into()), "group".into()));
    }
}

#[tokio::test]
async fn without_group_every_sport_returns_the_bare_array() {
    let service = Service::start().await;
    service.ingest(&every_sport()).await;
    for sport in ["mma", "boxing", "tennis", "american_football", "golf"] {
        let answer = service.get(&format!("/v1/sports/{sport}/odds")).await;
        assert!(answer.json().is_array(), "{sport}: {answer:?}");
    }
}

fn card() -> String {
    let mut lines = String::new();
    for id in ["m1", "m2", "m3"] {
        lines += &event("mma", id, EVENING);
        for book in ["betmgm", "fanduel", "coral"] {
            lines += &moneyline("mma", id, book, -110, 150);
        }
    }
    lines + &event("mma", "m4", EVENING) + &total("mma", "m4", "betmgm", "total_rounds", "2.5")
}

#[tokio::test]
async fn the_grouped_shape_honours_bookmaker_regions_event_ids_and_limit() {
    let service = Service::start().await;
    service.ingest(&card()).await;
    for (query, bouts, books) in [
        ("", "m1 m2 m3", "betmgm fanduel"),
        ("&regions=uk", "m1 m2 m3", "coral"),
        ("&region=uk", "m1 m2 m3", "coral"),
        ("&regions=us,uk", "m1 m2 m3", "betmgm coral fanduel"),
        ("&bookmaker=coral", "m1 m2 m3", "coral"),
        ("&bookmaker=fanduel&event_ids=m3,m1", "m1 m3", "fanduel"),
        ("&event_ids=m2", "m2", "betmgm fanduel"),
        ("&limit=2", "m1 m2", "betmgm fanduel"),
        ("&limit=1&regions=uk", "m1", "coral"),
        ("&market=moneyline", "m1 m2 m3", "betmgm fanduel"),
        ("&market=h2h", "m1 m2 m3", "betmgm fanduel"),
    ] {
        let json = service.get(&format!("{PATH}{query}")).await.json();
        let homes: Vec<String> = bouts.split(' ').map(|id| format!("Home {id}")).collect();
        assert_eq!(strings(&json["bouts"], "home"), homes, "{query}: the limit counts bouts");
        assert_eq!(strings(&json["bouts"][0]["books"], "book").join(" "), books, "{query}");
    }
    let without = service.get(&format!("{PATH}&bookmaker=skybet")).await.json();
    assert_eq!(without["bouts"], serde_json::json!([]));
}

#[tokio::test]
async fn the_grouped_shape_honours_odds_format() {
    let service = Service::start().await;
    service.ingest(&card()).await;
    for (format, prices) in [
        ("american", r#"[{"name":"Home m1","price":-110},{"name":"Away m1","price":150}]"#),
        ("decimal", r#"[{"name":"Home m1","price":1.909},{"name":"Away m1","price":2.5}]"#),
        ("fractional", r#"[{"name":"Home m1","price":"10/11"},{"name":"Away m1","price":"3/2"}]"#),
    ] {
        let answer = service.get(&format!("{PATH}&odds_format={format}")).await;
        assert!(answer.text().contains(prices), "{answer:?}");
    }
}

#[tokio::test]
async fn the_grouped_shape_carries_the_moneyline_and_no_other_market() {
    let service = Service::start().await;
    service.ingest(&card()).await;
    let answer = service.get(PATH).await;
    assert!(!answer.text().contains("Over"), "{answer:?}");
    let other = service.get(&format!("{PATH}&market=total_rounds")).await;
    assert_eq!((error(&other), other.param()), ((400, "invalid_parameter".into()), "market".into()));
}

#[tokio::test]
async fn bout_includes_a_draw_outcome() {
    let service = Service::start().await;
    let three = r#"[{"name":"Home b1","price":-200},{"name":"Draw","price":2000},{"name":"Away b1","price":170}]"#;
    service
        .ingest(&[event("boxing", "b1", EVENING), odds("boxing", "b1", "betmgm", "moneyline", three)].concat())
        .await;
    let json = service.get("/v1/sports/boxing/odds?group=bout").await.json();
    assert_eq!(strings(&json["bouts"][0]["books"][0]["outcomes"], "name"), ["Home b1", "Draw", "Away b1"]);
}

#[tokio::test]
async fn a_fight_sport_without_prices_has_the_grouped_shape_too() {
    let service = Service::start().await;
    let answer = service.get(PATH).await;
    assert_eq!(answer.text(), r#"{"sport":"mma","generated_at":"2026-11-14T23:39:00.000Z","sources":[],"bouts":[]}"#);
}

#[tokio::test]
async fn stale_is_true_without_a_successful_read_and_prices_stay() {
    let service = Service::start().await;
    let lines = [
        bookmaker("newbook", "New Book", r#"["us"]"#),
        event("mma", "m1", EVENING),
        moneyline("mma", "m1", "newbook", -110, 150),
        moneyline("mma", "m1", "betmgm", -110, 150),
    ];
    service.ingest(&lines.concat()).await;
    service.advance(120).await;
    service.ingest(&read("mma", "betmgm", "2026-11-14T23:41:00Z", 9)).await;
    service.advance(30).await;
    let json = service.get(PATH).await.json();
    assert_eq!(strings(&json["sources"], "book"), ["betmgm", "newbook"]);
    assert_eq!(strings(&json["sources"], "stale"), ["false", "true"]);
    assert_eq!(strings(&json["bouts"][0]["books"], "book"), ["betmgm", "newbook"], "a stale book is still served");
}
