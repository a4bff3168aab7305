//! `/v4/sports/upcoming/odds`: live and upcoming events.

use super::error;
use crate::api::fixture::{EVENING, event, event_with, every_sport, fields, moneyline, restricted, tournament};
use crate::harness::Service;

const PATH: &str = "/v4/sports/upcoming/odds?regions=us";

#[tokio::test]
async fn upcoming_has_live_events_and_the_next_eight_across_sports() {
    let service = Service::start().await;
    let mut lines = vec![
        event_with("tennis", "live", "2026-11-14T22:00:00Z", "live"),
        event_with("mma", "early", "2026-11-20T22:00:00Z", "live"),
        event("boxing", "begun", "2026-11-14T23:30:00Z"),
        event_with("boxing", "over", "2026-11-14T21:00:00Z", "final"),
        tournament("g1", "The Open", "2026-11-15T00:00:00Z"),
        moneyline("mma", "early", "betmgm", -110, -110),
        moneyline("tennis", "live", "betmgm", 150, -170),
        moneyline("boxing", "begun", "coral", 150, -170),
    ];
    lines.extend((1..=6).map(|n| event("mma", &format!("m{n}"), &format!("2026-11-15T0{n}:00:00Z"))));
    lines.extend((1..=6).map(|n| event("american_football", &format!("f{n}"), &format!("2026-11-15T0{n}:30:00Z"))));
    service.ingest(&lines.concat()).await;
    service.advance(30).await;
    let answer = service.get(PATH).await;
    let expected = ["live", "begun", "g1", "m1", "f1", "m2", "f2", "m3", "f3", "m4", "early"];
    assert_eq!(fields(&answer, "id"), expected);
    let json = answer.json();
    assert_eq!((&json[0]["sport_key"], &json[0]["sport_title"]), (&"tennis_cup".into(), &"Cup".into()));
    assert_eq!(json[0]["bookmakers"][0]["markets"][0]["outcomes"][0]["price"], 2.5);
    assert_eq!(json[1]["bookmakers"].to_string(), "[]", "its bookmaker is in another region");
    assert_eq!(fields(&service.get(&format!("{PATH}&eventIds=m6,g1")).await, "id"), ["g1", "m6"]);
    let late = service.get(&format!("{PATH}&commenceTimeFrom=2026-11-15T06:00:00Z")).await;
    assert_eq!(fields(&late, "id"), ["m6", "f6", "early"]);
}

#[tokio::test]
async fn totals_are_of_rounds_in_fights_and_of_points_elsewhere() {
    let service = Service::start().await;
    service.ingest(&every_sport()).await;
    let json = service.get(&format!("{PATH}&markets=totals")).await.json();
    let points: Vec<String> = json
        .as_array()
        .unwrap()
        .iter()
        .map(|event| event["bookmakers"][0]["markets"][0]["outcomes"][0]["point"].to_string())
        .collect();
    assert_eq!(points, ["null", "44.5", "null", "2.5", "null"], "b1, f1, g1, m1, t1");
}

#[tokio::test]
async fn a_restricted_key_sees_its_groups_only() {
    let service = Service::start().await;
    service.ingest(&every_sport()).await;
    assert_eq!(fields(&service.get(PATH).await, "id"), ["b1", "f1", "g1", "m1", "t1"]);
    let combat = restricted(&service, &["combat"]).await.secret;
    assert_eq!(fields(&service.get_as(&combat, PATH).await, "id"), ["b1", "m1"]);
    let others = restricted(&service, &["golf", "tennis"]).await.secret;
    assert_eq!(fields(&service.get_as(&others, PATH).await, "id"), ["g1", "t1"]);
    assert_eq!(fields(&service.get(PATH).await, "id"), ["b1", "f1", "g1", "m1", "t1"]);
}

#[tokio::test]
async fn upcoming_is_unchanged_until_any_sport_publishes() {
    let service = Service::start().await;
    service.ingest(&every_sport()).await;
    let first = service.get(PATH).await;
    service.ingest(&moneyline("mma", "m1", "betmgm", 300, -400)).await;
    assert_eq!(service.get(PATH).await.body, first.body, "mma published a moment ago");
    service.advance(30).await;
    assert!(service.get(PATH).await.text().contains("betmgm"));
    service.ingest(&crate::api::fixture::remove("mma", "m1")).await;
    assert_eq!(fields(&service.get(PATH).await, "id"), ["b1", "f1", "g1", "t1"], "a removed event is gone at once");
}

#[tokio::test]
async fn upcoming_needs_regions_and_is_valid_for_odds_only() {
    let service = Service::start().await;
    service.ingest(&event("mma", "m1", EVENING)).await;
    assert_eq!(error(&service.get("/v4/sports/upcoming/odds").await), (422, "MISSING_REGION".into()));
    for list in ["scores", "events", "participants"] {
        let answer = service.get(&format!("/v4/sports/upcoming/{list}")).await;
        assert_eq!(error(&answer), (404, "UNKNOWN_SPORT".into()), "{list}");
    }
}
