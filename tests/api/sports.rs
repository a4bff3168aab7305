//! List Sports.

use super::fixture::{EVENING, closed, event, event_with, every_sport, moneyline, odds, restricted, score, tournament};
use crate::harness::Service;

#[tokio::test]
async fn the_five_sports_with_their_groups_and_nothing_in_them() {
    let service = Service::start().await;
    assert_eq!(
        service.get("/v1/sports").await.text(),
        concat!(
            r#"{"sports":[{"key":"mma","title":"MMA","group":"combat","active":false,"events":0,"books":0},"#,
            r#"{"key":"boxing","title":"Boxing","group":"combat","active":false,"events":0,"books":0},"#,
            r#"{"key":"tennis","title":"Tennis","group":"tennis","active":false,"events":0,"books":0},"#,
            r#"{"key":"american_football","title":"American Football","group":"american_football","active":false,"events":0,"books":0},"#,
            r#"{"key":"golf","title":"Golf","group":"golf","active":false,"events":0,"books":0}]}"#
        )
    );
}

#[tokio::test]
async fn events_are_those_scheduled_or_live_and_books_those_with_a_price_in_any_region() {
    let service = Service::start().await;
    let lines = [
        event("tennis", "a", EVENING),
        event_with("tennis", "b", EVENING, "live"),
        event("tennis", "c", EVENING),
        score("tennis", "c", "live", 1, 0, "2026-11-14T23:38:00Z"),
        event_with("tennis", "d", EVENING, "cancelled"),
        event("tennis", "e", EVENING),
        score("tennis", "e", "final", 2, 0, "2026-11-14T23:38:00Z"),
        moneyline("tennis", "a", "fanduel", -110, -110),
        moneyline("tennis", "a", "coral", -110, -110),
        moneyline("tennis", "b", "neds", -110, -110),
        moneyline("tennis", "b", "coral", -110, -110),
        moneyline("tennis", "b", "pinnacle", -110, -110),
        closed("tennis", "b", "pinnacle", "moneyline", "2026-11-14T23:38:40Z"),
    ];
    service.ingest(&lines.concat()).await;
    let answer = service.get("/v1/sports").await;
    let text = r#"{"key":"tennis","title":"Tennis","group":"tennis","active":true,"events":3,"books":3}"#;
    assert!(answer.text().contains(text), "{answer:?}");
}

#[tokio::test]
async fn active_is_false_when_every_source_is_stale_or_there_is_none() {
    let service = Service::start().await;
    let active = async || {
        let json = service.get("/v1/sports").await.json();
        (json["sports"][2]["active"].clone(), json["sports"][4]["active"].clone())
    };
    assert_eq!(active().await, (false.into(), false.into()), "no source");
    let field = r#"[{"name":"A. Ames","price":450}]"#;
    let lines = [
        event("tennis", "t1", EVENING),
        moneyline("tennis", "t1", "fanduel", -110, -110),
        super::fixture::moneyline_at("tennis", "t1", "betmgm", "2026-11-14T23:38:59Z", -110, -110),
        tournament("g1", "The Open", EVENING),
        odds("golf", "g1", "betmgm", "outright", field),
    ];
    service.ingest(&lines.concat()).await;
    assert_eq!(active().await, (true.into(), true.into()));
    // By time alone: the older sources were last read at 23:38:30.
    service.pass(91);
    assert_eq!(active().await, (true.into(), false.into()), "one of two sources is fresh");
    service.pass(60);
    assert_eq!(active().await, (false.into(), false.into()));
    let odds = service.get("/v1/sports/tennis/odds").await;
    assert_eq!(super::fixture::records(&odds).len(), 2, "stale prices are still served");
}

#[tokio::test]
async fn the_list_is_not_filtered_by_a_restriction_to_groups() {
    let service = Service::start().await;
    service.ingest(&every_sport()).await;
    let key = restricted(&service, &["golf"]).await.secret;
    assert_eq!(service.get_as(&key, "/v1/sports").await.body, service.get("/v1/sports").await.body);
    assert_eq!(service.get_as(&key, "/v1/books").await.body, service.get("/v1/books").await.body);
}

#[tokio::test]
async fn the_list_is_computed_per_request() {
    let service = Service::start().await;
    service.ingest(&every_sport()).await;
    service.advance(5).await;
    service.ingest(&event("mma", "m2", EVENING)).await;
    assert_eq!(service.get("/v1/sports").await.json()["sports"][0]["events"], 2);
}
