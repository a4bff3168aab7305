//! Two worlds: sandbox keys read the simulator's, production keys the operator's.

use super::fixture::{EVENING, bookmaker, error, event, every_sport, fields, moneyline};
use crate::harness::{Service, schema};
use oddsbox::model::World;

/// Those of the simulator.
const SPORTS: [&str; 9] =
    ["mma", "boxing", "tennis", "american_football", "golf", "soccer", "basketball", "baseball", "ice_hockey"];

#[tokio::test]
async fn a_sandbox_key_reads_the_simulator_and_a_production_key_never_does() {
    let service = Service::start_with_sandbox().await;
    for sport in SPORTS {
        let sandbox = service.get_as(&service.sandbox, &format!("/v1/sports/{sport}/events")).await;
        assert!(!fields(&sandbox, "id").is_empty(), "{sport} is simulated");
        for list in ["odds?regions=us,uk,eu,au", "events", "scores"] {
            assert_eq!(service.get(&format!("/v1/sports/{sport}/{list}")).await.text(), "[]", "{sport}/{list}");
        }
    }
    let prices: usize = {
        let mut count = 0;
        for sport in SPORTS {
            count += fields(&service.get_as(&service.sandbox, &format!("/v1/sports/{sport}/odds")).await, "id").len();
        }
        count
    };
    assert!(prices > 50, "{prices}");
}

#[tokio::test]
async fn a_sandbox_key_never_sees_the_operators_data() {
    let service = Service::start_with_sandbox().await;
    let own = bookmaker("operators", "Operator's", r#"["us"]"#);
    service.ingest(&(own + &every_sport())).await;
    for path in ["/v1/sports/mma/odds?limit=500", "/v1/sports/mma/events?limit=500", "/v1/sports/mma/scores?limit=500"]
    {
        assert!(!service.get_as(&service.sandbox, path).await.text().contains("Home m1"), "{path}");
    }
    let event = service.get_as(&service.sandbox, "/v1/sports/mma/events/m1").await;
    assert_eq!(error(&event), (404, "event_not_found".into()));
    assert!(service.get("/v1/books").await.text().contains("operators"));
    assert!(!service.get_as(&service.sandbox, "/v1/books").await.text().contains("operators"));
    let odds = service.get_as(&service.sandbox, "/v1/sports/mma/odds?bookmaker=operators").await;
    assert_eq!((odds.status, odds.param()), (400, "bookmaker".into()));
}

#[tokio::test]
async fn status_and_sports_describe_the_keys_own_world() {
    let service = Service::start_with_sandbox().await;
    let status = service.get_as(&service.sandbox, "/v1/status").await.json();
    assert_eq!((status["status"].as_str(), status["sports_active"].as_u64()), (Some("ok"), Some(9)));
    assert_eq!(service.get("/v1/status").await.json()["sports_active"], 0);
    let sports = service.get_as(&service.sandbox, "/v1/sports").await.json();
    assert!(sports["sports"].as_array().unwrap().iter().all(|sport| sport["active"] == true));
    // A stale source of one world degrades that world only.
    let lines = [
        event("mma", "m1", EVENING),
        super::fixture::moneyline_at("mma", "m1", "betmgm", "2026-11-14T23:00:00Z", -110, -110),
    ];
    service.ingest(&lines.concat()).await;
    assert_eq!(service.get("/v1/status").await.json()["status"], "degraded");
    assert_eq!(service.get_as(&service.sandbox, "/v1/status").await.json()["status"], "ok");
}

#[tokio::test]
async fn the_same_id_in_both_worlds_is_two_events() {
    let service = Service::start_with_sandbox().await;
    service.ingest(&[event("mma", "m1", EVENING), moneyline("mma", "m1", "betmgm", -110, -110)].concat()).await;
    let other = event("mma", "m1", EVENING).replace("Home m1", "Sandy Box");
    service.ingest_report(World::Sandbox, &other).await;
    assert_eq!(service.get("/v1/sports/mma/events/m1").await.json()["home_team"], "Home m1");
    let sandbox = service.get_as(&service.sandbox, "/v1/sports/mma/events/m1").await;
    assert_eq!(sandbox.json()["home_team"], "Sandy Box");
}

#[tokio::test]
async fn demo_simulates_both_worlds_separately() {
    let service = Service::start_demo().await;
    for sport in SPORTS {
        let path = format!("/v1/sports/{sport}/events");
        let (live, sandbox) = (service.get(&path).await, service.get_as(&service.sandbox, &path).await);
        assert!(!fields(&live, "id").is_empty() && !fields(&sandbox, "id").is_empty(), "{sport}");
        assert_ne!(live.body, sandbox.body, "{sport}");
    }
}

#[tokio::test]
async fn status_says_that_a_live_world_is_simulated_and_only_then() {
    let service = Service::start_demo().await;
    let live = service.get("/v1/status").await;
    assert_eq!(live.json()["simulated"], true);
    let document = service.send("GET", "/openapi.json", &[]).await.json();
    schema::check(&document, &document["components"]["schemas"]["Status"], &live.json()).expect("as documented");
    assert_eq!(service.get_as(&service.sandbox, "/v1/status").await.json().get("simulated"), None);
    let service = Service::start_with_sandbox().await;
    assert_eq!(service.get("/v1/status").await.json().get("simulated"), None);
}
