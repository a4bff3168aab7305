//! Get Event and List Events.

use super::fixture::{EVENING, error, event, event_with, fields, moneyline, odds, remove, score, total, tournament};
use crate::harness::Service;

const AT: &str = "2026-11-14T23:38:50Z";

#[tokio::test]
async fn an_event_of_two_sides_has_no_title() {
    let service = Service::start().await;
    let lines = [
        event("mma", "m1", EVENING),
        total("mma", "m1", "betmgm", "total_rounds", "2.5"),
        moneyline("mma", "m1", "betmgm", -110, -110),
    ];
    service.ingest(&lines.concat()).await;
    let text = concat!(
        r#"{"id":"m1","sport_key":"mma","competition":"Cup","competition_key":"mma_mixed_martial_arts","#,
        r#""commence_time":"2026-11-15T02:00:00Z","#,
        r#""home_team":"Home m1","away_team":"Away m1","status":"scheduled","markets":["moneyline","total_rounds"]}"#
    );
    let one = service.get("/v1/sports/mma/events/m1").await;
    assert_eq!((one.status, one.text(), one.header("content-type")), (200, text, Some("application/json")));
    assert_eq!(service.get("/v1/sports/mma/events").await.text(), format!("[{text}]"), "the list is a bare array");
}

#[tokio::test]
async fn a_golf_event_has_a_title_and_null_sides() {
    let service = Service::start().await;
    let winners = r#"[{"name":"A. Ames","price":450}]"#;
    let lines =
        [tournament("g1", "The Open", "2026-11-19T06:35:00Z"), odds("golf", "g1", "betmgm", "outright", winners)];
    service.ingest(&lines.concat()).await;
    let text = concat!(
        r#"{"id":"g1","sport_key":"golf","title":"The Open","competition":"Tour","#,
        r#""competition_key":"golf_the_open_championship_winner","commence_time":"2026-11-19T06:35:00Z","#,
        r#""home_team":null,"away_team":null,"status":"scheduled","markets":["outright"]}"#
    );
    assert_eq!(service.get("/v1/sports/golf/events/g1").await.text(), text);
    assert_eq!(service.get("/v1/sports/golf/events").await.text(), format!("[{text}]"));
}

#[tokio::test]
async fn an_unknown_or_removed_event_is_404_event_not_found() {
    let service = Service::start().await;
    let lines = [
        event("mma", "m1", EVENING),
        moneyline("mma", "m1", "betmgm", -110, -110),
        event("mma", "m2", EVENING),
        moneyline("mma", "m2", "betmgm", -110, -110),
    ];
    service.ingest(&lines.concat()).await;
    for path in [
        "/v1/sports/mma/events/m3",
        "/v1/sports/boxing/events/m1",
        "/v1/sports/mma/events/M1",
        "/v1/sports/mma/events/%20",
    ] {
        assert_eq!(error(&service.get(path).await), (404, "event_not_found".into()), "{path}");
    }
    service.advance(5).await;
    service.ingest(&remove("mma", "m1")).await;
    assert_eq!(error(&service.get("/v1/sports/mma/events/m1").await), (404, "event_not_found".into()));
    for (list, name) in [("odds", "event_id"), ("scores", "event_id"), ("events", "id")] {
        assert_eq!(fields(&service.get(&format!("/v1/sports/mma/{list}")).await, name), ["m2"], "in no list at once");
    }
    let bouts = service.get("/v1/sports/mma/odds?group=bout").await;
    assert!(!bouts.text().contains("Home m1"), "{bouts:?}");
    let sports = service.get("/v1/sports").await;
    assert_eq!(sports.json()["sports"][0]["events"], 1);
}

#[tokio::test]
async fn event_ids_in_paths_are_percent_decoded() {
    let service = Service::start().await;
    service.ingest(&[event("mma", "a/b", EVENING), event("mma", "réunion+1", EVENING)].concat()).await;
    assert_eq!(service.get("/v1/sports/mma/events/a%2Fb").await.json()["id"], "a/b");
    assert_eq!(service.get("/v1/sports/mma/events/r%C3%A9union+1").await.json()["id"], "réunion+1");
    assert_eq!(service.get("/v1/sports/m%6Da/events/a%2fb/").await.json()["id"], "a/b");
    let list = service.get("/v1/sports/mma/events?event_ids=r%C3%A9union%2B1,a/b").await;
    assert_eq!(fields(&list, "id"), ["a/b", "réunion+1"]);
}

fn week() -> String {
    [
        event("tennis", "a", "2026-11-15T01:00:00Z"),
        event("tennis", "b", "2026-11-15T02:00:00Z"),
        event("tennis", "c", "2026-11-15T03:00:00Z"),
        event_with("tennis", "d", "2026-11-15T04:00:00Z", "cancelled"),
        event("tennis", "e", "2026-11-14T23:00:00Z"),
        score("tennis", "e", "live", 1, 0, AT),
        event("tennis", "f", "2026-11-14T20:00:00Z"),
        score("tennis", "f", "final", 2, 0, AT),
    ]
    .concat()
}

#[tokio::test]
async fn the_list_takes_status_event_ids_commence_from_commence_to_and_limit() {
    let service = Service::start().await;
    service.ingest(&week()).await;
    for (query, ids) in [
        ("", "f e a b c d"),
        ("status=scheduled", "a b c"),
        ("status=live", "e"),
        ("status=final", "f"),
        ("status=cancelled", "d"),
        ("event_ids=d,a", "a d"),
        ("commence_from=2026-11-15T02:00:00Z", "b c d"),
        ("commence_from=2026-11-15T02:00:01Z", "c d"),
        ("commence_to=2026-11-15T02:00:00Z", "f e a b"),
        ("commence_to=2026-11-15T01:59:59Z", "f e a"),
        ("commence_from=2026-11-15T01:00:00Z&commence_to=2026-11-15T03:00:00Z", "a b c"),
        ("commence_from=2026-11-15T03:00:00%2B01:00", "b c d"),
        ("commence_from=2026-11-15T03:00:00Z&commence_to=2026-11-15T01:00:00Z", ""),
        ("commence_from=2026-11-15T01:00:00Z&event_ids=a,f&status=scheduled", "a"),
        ("limit=2", "f e"),
        ("status=scheduled&limit=1", "a"),
    ] {
        let answer = service.get(&format!("/v1/sports/tennis/events?{query}")).await;
        assert_eq!((answer.status, fields(&answer, "id").join(" ")), (200, ids.into()), "{query}");
    }
}

#[tokio::test]
async fn event_takes_the_status_of_its_score() {
    let service = Service::start().await;
    let status = async || service.get("/v1/sports/tennis/events/t1").await.json()["status"].as_str().map(str::to_owned);
    service.ingest(&event("tennis", "t1", EVENING)).await;
    assert_eq!(status().await.as_deref(), Some("scheduled"));
    service.ingest(&event_with("tennis", "t1", EVENING, "live")).await;
    assert_eq!(status().await.as_deref(), Some("live"));
    service.ingest(&score("tennis", "t1", "scheduled", 0, 0, "2026-11-14T23:38:51Z")).await;
    assert_eq!(status().await.as_deref(), Some("scheduled"));
    service.ingest(&score("tennis", "t1", "live", 1, 0, "2026-11-14T23:38:52Z")).await;
    assert_eq!(status().await.as_deref(), Some("live"));
    service.ingest(&event_with("tennis", "t1", EVENING, "scheduled")).await;
    assert_eq!(status().await.as_deref(), Some("live"), "an event line does not undo a score");
    service.ingest(&score("tennis", "t1", "final", 2, 0, "2026-11-14T23:38:53Z")).await;
    assert_eq!(status().await.as_deref(), Some("final"));
    let both = service.get("/v1/sports/tennis/scores?status=final").await;
    assert_eq!(fields(&both, "event_id"), ["t1"]);
}

#[tokio::test]
async fn a_cancelled_event_is_listed_without_markets_and_has_no_score() {
    let service = Service::start().await;
    let lines = [event("tennis", "t1", EVENING), moneyline("tennis", "t1", "betmgm", -110, -110)];
    service.ingest(&lines.concat()).await;
    service.ingest(&event_with("tennis", "t1", EVENING, "cancelled")).await;
    service.advance(30).await;
    let event = service.get("/v1/sports/tennis/events/t1").await.json();
    assert_eq!((event["status"].as_str(), event["markets"].to_string()), (Some("cancelled"), "[]".into()));
    assert_eq!(service.get("/v1/sports/tennis/scores").await.text(), "[]");
    assert_eq!(service.get("/v1/sports/tennis/odds").await.text(), "[]", "its markets close");
}

#[tokio::test]
async fn one_event_keeps_its_id_when_its_time_and_names_change() {
    let service = Service::start().await;
    let lines = [event("tennis", "t1", EVENING), moneyline("tennis", "t1", "betmgm", -110, -110)];
    service.ingest(&lines.concat()).await;
    let moved = event("tennis", "t1", "2026-11-16T02:00:00Z").replace("Home t1", "Newly Wed");
    service.ingest(&moved).await;
    let event = service.get("/v1/sports/tennis/events/t1").await.json();
    assert_eq!((&event["home_team"], &event["commence_time"]), (&"Newly Wed".into(), &"2026-11-16T02:00:00Z".into()));
    assert_eq!(fields(&service.get("/v1/sports/tennis/events").await, "id"), ["t1"]);
    service.advance(30).await;
    assert_eq!(fields(&service.get("/v1/sports/tennis/odds").await, "event_id"), ["t1"]);
}
