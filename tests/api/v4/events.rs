//! `/v4/sports/{sport}/events` and `/participants`.

use super::{GOLF, MMA, TENNIS};
use crate::api::fixture::{EVENING, event, event_with, every_sport, fields};
use crate::harness::Service;

#[tokio::test]
async fn events_lists_open_events_without_prices_immediately() {
    let service = Service::start().await;
    service.ingest(&every_sport()).await;
    assert_eq!(
        service.get(&format!("{MMA}/events")).await.text(),
        concat!(
            r#"[{"id":"m1","sport_key":"mma_mixed_martial_arts","sport_title":"MMA","#,
            r#""commence_time":"2026-11-15T02:00:00Z","home_team":"Home m1","away_team":"Away m1"}]"#
        )
    );
    let golf = service.get(&format!("{GOLF}/events/?dateFormat=unix")).await;
    assert_eq!(
        golf.text(),
        concat!(
            r#"[{"id":"g1","sport_key":"golf_the_open_championship_winner","sport_title":"The Open Winner","#,
            r#""commence_time":1794708000,"home_team":null,"away_team":null}]"#
        )
    );
    service.ingest(&event("mma", "m2", EVENING)).await;
    assert_eq!(fields(&service.get(&format!("{MMA}/events")).await, "id"), ["m1", "m2"], "no tick is waited for");
    service.ingest(&event_with("mma", "m1", EVENING, "final")).await;
    assert_eq!(fields(&service.get(&format!("{MMA}/events")).await, "id"), ["m2"]);
}

#[tokio::test]
async fn participants_are_the_sides_or_the_field() {
    let service = Service::start().await;
    service.ingest(&every_sport()).await;
    let mma = service.get(&format!("{MMA}/participants")).await;
    assert_eq!(fields(&mma, "full_name"), ["Away m1", "Home m1"]);
    assert!(fields(&mma, "id").iter().all(|id| id.starts_with("par_") && id.len() == 36));
    let golf = service.get(&format!("{GOLF}/participants/")).await;
    assert_eq!(fields(&golf, "full_name"), ["A. Ames", "B. Bohn"]);
    // The same name has the same id, also in another competition and another service.
    let other = Service::start().await;
    other.ingest(&event("tennis", "t1", EVENING).replace("\"Cup\"", "\"Other\"")).await;
    let names = |answer| (fields(answer, "id"), fields(answer, "full_name"));
    assert_eq!(
        names(&other.get("/v4/sports/tennis_other/participants").await),
        names(&service.get(&format!("{TENNIS}/participants")).await)
    );
}
