//! `/v1/changes`: the log by polling.

use serde_json::{Value, json};

use super::fixture::{EVENING, closed, event, every_sport, fields, moneyline_at, remove, score, time};
use crate::harness::{START, Service};

async fn position(service: &Service) -> String {
    let answer = service.get("/v1/changes").await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()["position"].as_str().expect("a position").to_owned()
}

fn without_position(mut changes: Value) -> Value {
    changes.as_object_mut().expect("an object").remove("position");
    changes
}

#[tokio::test]
async fn without_a_position_it_has_nothing_but_the_current_one() {
    let service = Service::start().await;
    service.ingest(&every_sport()).await;
    let answer = service.get("/v1/changes").await;
    let odds = service.get("/v1/sports/mma/odds").await;
    assert_eq!(answer.json()["position"], odds.header("x-position").unwrap());
    assert_eq!(
        without_position(answer.json()),
        json!({"records": [], "closed": [], "events": [], "scores": [], "removed": [], "more": false})
    );
}

#[tokio::test]
async fn changes_are_the_last_state_of_what_changed_since() {
    let service = Service::start().await;
    service.ingest(&every_sport()).await;
    let since = position(&service).await;
    service.ingest(&moneyline_at("mma", "m1", "draftkings", START, -120, 100)).await;
    service.advance(30).await;
    service.ingest(&moneyline_at("mma", "m1", "draftkings", &time(30), -130, 110)).await;
    service.ingest(&closed("tennis", "t1", "fanduel", "moneyline", &time(30))).await;
    service.ingest(&score("american_football", "f1", "live", 7, 0, &time(30))).await;
    service.ingest(&event("boxing", "b2", EVENING)).await;
    service.ingest(&remove("boxing", "b1")).await;
    service.advance(30).await;
    let changes = service.get(&format!("/v1/changes?since={since}")).await;
    let odds = service.get("/v1/sports/mma/odds?market=moneyline").await;
    let body = changes.json();
    assert_eq!(body["records"], odds.json());
    assert_eq!(body["closed"].as_array().unwrap().len(), 1);
    let live = service.get("/v1/sports/american_football/events").await.json();
    let added = service.get("/v1/sports/boxing/events").await.json();
    assert_eq!(body["events"], json!([live[0], added[0]]));
    assert_eq!(body["scores"], service.get("/v1/sports/american_football/scores").await.json());
    assert_eq!(body["removed"], json!([{"id": "b1", "sport_key": "boxing", "status": "removed"}]));
    assert_eq!(body["more"], false);
    assert_eq!(body["position"], odds.header("x-position").unwrap());

    // The same by filter, in another format, and after a restart, when it is read from the log.
    let query = format!("/v1/changes?since={since}&sports=mma,tennis&odds_format=decimal");
    let filtered = service.get(&query).await.json();
    let decimal = service.get("/v1/sports/mma/odds?market=moneyline&odds_format=decimal").await;
    assert_eq!(filtered["records"], decimal.json());
    assert_eq!((&filtered["events"], &filtered["closed"]), (&json!([]), &body["closed"]));
    let key = service.live.clone();
    let service = service.restart_now().await;
    assert_eq!(service.get_as(&key, &query).await.json(), filtered);
    assert_eq!(service.get_as(&key, &format!("/v1/changes?since={since}")).await.json(), body);
}

#[tokio::test]
async fn pages_lead_to_the_end() {
    let service = Service::start().await;
    service.ingest(&every_sport()).await;
    let since = position(&service).await;
    for at in 0..7 {
        service.ingest(&event("tennis", &format!("n{at}"), EVENING)).await;
    }
    let mut ids = Vec::new();
    let mut position = since;
    let mut pages = 0;
    loop {
        let page = service.get(&format!("/v1/changes?since={position}&limit=2")).await;
        let body = page.json();
        ids.extend(super::fixture::strings(&body["events"], "id"));
        body["position"].as_str().expect("a position").clone_into(&mut position);
        pages += 1;
        if body["more"] == false {
            break;
        }
    }
    assert_eq!((ids.len(), pages), (7, 4));
    assert_eq!(ids, fields(&service.get("/v1/sports/tennis/events").await, "id")[..7].to_vec());
}

#[tokio::test]
async fn position_that_the_log_does_not_have_is_gone() {
    let service = Service::start().await;
    service.ingest(&every_sport()).await;
    let own = position(&service).await;
    let later = own.replacen('.', ".9", 1);
    let sandbox = service.get_as(&service.sandbox, "/v1/changes").await.json()["position"].as_str().unwrap().to_owned();
    for gone in ["0123456789abcdef.1.0", &later, &sandbox] {
        let answer = service.get(&format!("/v1/changes?since={gone}")).await;
        assert_eq!((answer.status, answer.code().as_str()), (410, "position_gone"), "{gone}");
    }
    for malformed in ["x", "0123456789abcdef.1", "1.1.1"] {
        let answer = service.get(&format!("/v1/changes?since={malformed}")).await;
        assert_eq!((answer.status, answer.param().as_str()), (400, "since"), "{malformed}");
    }
    assert_eq!(service.get(&format!("/v1/changes?since={own}&snapshot=true")).await.status, 400);
    assert_eq!(service.get("/v1/changes?limit=501").await.param(), "limit");
}
