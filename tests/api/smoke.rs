//! One feed line in, one response out.

use crate::harness::Service;

const BOUT: &str = r#"
{"type":"event","sport":"mma","id":"ufc1","competition":"UFC 400","commence_time":"2026-11-15T02:00:00Z","home":"Ana Ruiz","away":"Bea Holt","status":"scheduled"}
{"type":"odds","sport":"mma","event":"ufc1","bookmaker":"draftkings","market":"moneyline","last_update":"2026-11-14T23:38:30Z","format":"american","outcomes":[{"name":"Ana Ruiz","price":-110},{"name":"Bea Holt","price":-110}]}
"#;

#[tokio::test]
async fn ingested_price_is_served() {
    let service = Service::start().await;
    service.ingest(BOUT).await;
    let answer = service.get("/v1/sports/mma/odds").await;
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(
        answer.text(),
        concat!(
            r#"[{"id":"ID","sport_key":"mma","event_id":"ufc1","bookmaker":"draftkings","market":"moneyline","#,
            r#""format":"american","last_update":"2026-11-14T23:38:30Z","outcomes":["#,
            r#"{"name":"Ana Ruiz","price":-110,"point":null},{"name":"Bea Holt","price":-110,"point":null}]}]"#
        )
        .replace("ID", answer.json()[0]["id"].as_str().unwrap())
    );
}
