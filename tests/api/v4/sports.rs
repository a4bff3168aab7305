//! `/v4/sports`: the list of sport keys.

use crate::api::fixture::{EVENING, event, event_with, every_sport, fields, restricted};
use crate::harness::Service;

#[tokio::test]
async fn sports_with_an_open_event_are_listed_in_order() {
    let service = Service::start().await;
    assert_eq!(service.get("/v4/sports").await.text(), "[]", "nothing is on");
    let all = service.get("/v4/sports?all=true").await;
    let keys = fields(&all, "key");
    assert!(keys.len() > 170 && keys.is_sorted(), "every one of the catalogue: {keys:?}");
    assert!(keys.iter().any(|key| key == "soccer_epl"), "{keys:?}");
    assert!(fields(&all, "active").iter().all(|active| active == "false"));
    service.ingest(&every_sport()).await;
    let sports = service.get("/v4/sports/").await;
    assert_eq!(
        sports.text(),
        concat!(
            r#"[{"key":"americanfootball_nfl","group":"American Football","title":"NFL","description":"US Football","active":true,"has_outrights":false},"#,
            r#"{"key":"boxing_boxing","group":"Boxing","title":"Boxing","description":"Boxing Bouts","active":true,"has_outrights":false},"#,
            r#"{"key":"golf_the_open_championship_winner","group":"Golf","title":"The Open Winner","description":"2026 Winner","active":true,"has_outrights":true},"#,
            r#"{"key":"mma_mixed_martial_arts","group":"Mixed Martial Arts","title":"MMA","description":"Mixed Martial Arts","active":true,"has_outrights":false},"#,
            r#"{"key":"tennis_cup","group":"Tennis","title":"Cup","description":"Cup","active":true,"has_outrights":false}]"#,
        )
    );
    assert_eq!(service.get("/v4/sports?all=false&page=2").await.body, sports.body, "what is unknown is passed over");
}

#[tokio::test]
async fn competition_is_listed_while_it_has_open_events() {
    let service = Service::start().await;
    service.ingest(&[event("tennis", "t1", EVENING), event("tennis", "t2", EVENING)].concat()).await;
    assert_eq!(fields(&service.get("/v4/sports").await, "key"), ["tennis_cup"]);
    service.ingest(&event_with("tennis", "t1", EVENING, "final")).await;
    assert_eq!(fields(&service.get("/v4/sports").await, "key"), ["tennis_cup"]);
    service.ingest(&event_with("tennis", "t2", EVENING, "cancelled")).await;
    assert_eq!(service.get("/v4/sports").await.text(), "[]");
    let all = service.get("/v4/sports?all=True").await.text().to_owned();
    let out_of_season = r#"{"key":"tennis_cup","group":"Tennis","title":"Cup","description":"Cup","active":false,"has_outrights":false}"#;
    assert!(all.contains(out_of_season), "{all}");
}

#[tokio::test]
async fn the_list_is_the_same_for_a_restricted_key() {
    let service = Service::start().await;
    service.ingest(&every_sport()).await;
    let golf = restricted(&service, &["golf"]).await.secret;
    assert_eq!(service.get_as(&golf, "/v4/sports").await.body, service.get("/v4/sports").await.body);
}
