//! The opening and closing prices of events.

use serde_json::{Value, json};

use super::fixture::{closed, error, event, event_with, moneyline_at, remove, score, time};
use crate::harness::Service;

/// The day on which every test starts, and the next.
const DAY: &str = "/v1/sports/mma/closing?date=2026-11-14";
const NEXT_DAY: &str = "/v1/sports/mma/closing?date=2026-11-15";
/// When fights begin: ten minutes after the start of every test.
const COMMENCE: u32 = 600;

async fn price(service: &Service, event: &str, seconds: u32, american: i32) {
    service.go_to(seconds).await;
    service.ingest(&moneyline_at("mma", event, "betmgm", &time(seconds), american, -150)).await;
}

/// Event, price and age of the opening, price and age of the closing, reason.
async fn rows(service: &Service, path: &str) -> Vec<Value> {
    let answer = service.get(path).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let row = |row: &Value| {
        let price = |name: &str| row[name]["outcomes"][0]["price"].clone();
        let [opening, closing] = ["opening", "closing"].map(price);
        json!([row["event_id"], opening, row["opening_age_s"], closing, row["closing_age_s"], row["closing_reason"]])
    };
    answer.json().as_array().expect("rows").iter().map(row).collect()
}

#[tokio::test]
async fn the_shape_is_exact() {
    let service = Service::start().await;
    service.ingest(&event("mma", "m1", &time(COMMENCE))).await;
    price(&service, "m1", 0, 110).await;
    price(&service, "m1", 300, 120).await;
    service.go_to(COMMENCE).await;
    let answer = service.get(&format!("{DAY}&odds_format=decimal")).await;
    assert_eq!(
        answer.text(),
        concat!(
            r#"[{"event_id":"m1","sport_key":"mma","commence_time":"2026-11-14T23:49:00Z","bookmaker":"betmgm","#,
            r#""market":"moneyline","format":"decimal","opening":{"at":"2026-11-14T23:39:00Z","outcomes":["#,
            r#"{"name":"Home m1","price":2.1,"point":null},{"name":"Away m1","price":1.667,"point":null}]},"#,
            r#""opening_age_s":600,"closing":{"at":"2026-11-14T23:44:00Z","outcomes":["#,
            r#"{"name":"Home m1","price":2.2,"point":null},{"name":"Away m1","price":1.667,"point":null}]},"#,
            r#""closing_age_s":300,"closing_reason":"scheduled_start"}]"#
        )
    );
}

/// Each event has another end, and all of them are the same when they are read from the log, and when lines have been
/// written after a restart.
#[tokio::test]
async fn each_start_has_its_closing_price() {
    let service = Service::start().await;
    let fights = ["ahead", "cancelled", "closed", "delayed", "early", "live", "postponed", "removed", "silent"];
    let lines = fights.map(|fight| {
        [event("mma", fight, &time(COMMENCE)), moneyline_at("mma", fight, "betmgm", &time(0), 110, -150)].concat()
    });
    service.ingest(&lines.concat()).await;
    service.go_to(300).await;
    service.ingest(&closed("mma", "closed", "betmgm", "moneyline", &time(300))).await;
    price(&service, "early", 330, 120).await;
    service.go_to(400).await;
    service.ingest(&score("mma", "early", "live", 0, 0, &time(400))).await;
    price(&service, "early", 450, 130).await;
    service.ingest(&event_with("mma", "cancelled", &time(COMMENCE), "cancelled")).await;
    service.ingest(&event("mma", "delayed", &time(COMMENCE + 60))).await;
    price(&service, "delayed", 630, 140).await;
    price(&service, "silent", 631, 150).await;
    service.ingest(&remove("mma", "removed")).await;
    // First seen in play: no price was published before.
    service.ingest(&event_with("mma", "late", &time(COMMENCE), "live")).await;
    price(&service, "late", 650, 160).await;
    service.go_to(700).await;
    // After midnight UTC.
    service.ingest(&event("mma", "postponed", "2026-11-15T02:00:00Z")).await;
    service.ingest(&event("mma", "ahead", &time(1200))).await;
    service.go_to(720).await;
    let expected = vec![
        json!(["cancelled", 110, null, null, null, null]),
        json!(["closed", 110, 600, 110, 600, "market_closed"]),
        json!(["early", 110, 400, 120, 70, "started"]),
        json!(["late", 160, -60, null, null, "missing"]),
        json!(["live", 110, 600, 110, 600, "scheduled_start"]),
        json!(["removed", 110, 600, 110, 600, "scheduled_start"]),
        json!(["silent", 110, 600, 110, 600, "scheduled_start"]),
        json!(["delayed", 110, 660, 140, 30, "scheduled_start"]),
        json!(["ahead", 110, 1200, null, null, null]),
    ];
    assert_eq!(rows(&service, DAY).await, expected);
    let tomorrow = vec![json!(["postponed", 110, 8460, null, null, null])];
    assert_eq!(rows(&service, NEXT_DAY).await, tomorrow);
    // Seven hours on there is a keyframe, and with it lines.
    for _ in 0..7 {
        service.advance(3600).await;
    }
    let service = service.restart_now().await;
    let after = rows(&service, DAY).await;
    assert_eq!(after[..8], expected[..8]);
    assert_eq!(after[8], json!(["ahead", 110, 1200, 110, 1200, "scheduled_start"]), "it has begun since");
    let some = rows(&service, "/v1/sports/mma/closing?event_ids=early,postponed,nobody").await;
    assert_eq!(some, [expected[2].clone(), json!(["postponed", 110, 8460, 110, 8460, "scheduled_start"])]);
}

/// A fight that began, was abandoned and is to be repeated: its prices in play are no closing prices of the repeat.
#[tokio::test]
async fn prices_in_play_never_count() {
    let service = Service::start().await;
    service.ingest(&event("mma", "m1", &time(COMMENCE))).await;
    price(&service, "m1", 0, 110).await;
    price(&service, "m1", 660, 200).await;
    service.ingest(&score("mma", "m1", "live", 0, 0, &time(660))).await;
    price(&service, "m1", 720, 300).await;
    service.go_to(780).await;
    assert_eq!(rows(&service, DAY).await, [json!(["m1", 110, 600, 110, 600, "scheduled_start"])]);
    service.ingest(&closed("mma", "m1", "betmgm", "moneyline", &time(780))).await;
    service.go_to(840).await;
    service.ingest(&score("mma", "m1", "scheduled", 0, 0, &time(840))).await;
    service.ingest(&event("mma", "m1", &time(1200))).await;
    service.go_to(1230).await;
    assert_eq!(rows(&service, DAY).await, [json!(["m1", 110, 1200, null, null, "missing"])]);
}

#[tokio::test]
async fn requests_name_a_day_or_events() {
    let service = Service::start().await;
    service.ingest(&event("mma", "m1", &time(COMMENCE))).await;
    price(&service, "m1", 0, 110).await;
    for (query, param) in [
        ("", "date"),
        ("?date=2026-11-14&event_ids=m1", "date"),
        ("?date=14.11.2026", "date"),
        ("?date=2026-11-14T00:00:00Z", "date"),
        ("?date=2026-02-30", "date"),
        ("?date=2026-11-14&bookmaker=nobody", "bookmaker"),
        ("?date=2026-11-14&limit=5", "limit"),
    ] {
        let answer = service.get(&format!("/v1/sports/mma/closing{query}")).await;
        assert_eq!((error(&answer), &*answer.param()), ((400, "invalid_parameter".into()), param), "{query}");
    }
    for (query, count) in [
        ("date=2026-11-14", 1),
        ("date=1970-01-01", 0),
        ("date=2026-11-13", 0),
        ("date=2026-11-14&regions=uk", 0),
        ("date=2026-11-14&market=total_rounds", 0),
        ("event_ids=m1&bookmaker=betmgm", 1),
        ("event_ids=m2", 0),
    ] {
        assert_eq!(rows(&service, &format!("/v1/sports/mma/closing?{query}")).await.len(), count, "{query}");
    }
    assert_eq!(rows(&service, "/v1/sports/golf/closing?date=2026-11-14").await.len(), 0);
}
