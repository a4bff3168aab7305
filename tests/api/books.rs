//! List Bookmakers.

use super::fixture::{EVENING, bookmaker, event, fields, moneyline, records};
use crate::harness::Service;
use oddsbox::config::catalogue;

#[tokio::test]
async fn books_lists_every_covered_bookmaker_with_its_regions() {
    let service = Service::start().await;
    let answer = service.get("/v1/books").await;
    assert!(answer.text().starts_with(r#"[{"key":"atg_se","title":"ATG","regions":["se"]},"#), "{answer:?}");
    for text in [
        r#"{"key":"draftkings","title":"DraftKings","regions":["us"]}"#,
        r#"{"key":"betonlineag","title":"BetOnline.ag","regions":["us","eu"]}"#,
        r#"{"key":"williamhill","title":"William Hill (UK)","regions":["uk","eu"]}"#,
    ] {
        assert!(answer.text().contains(text), "{text}");
    }
    let keys = fields(&answer, "key");
    assert_eq!(keys.len(), catalogue::builtin().bookmakers().len());
    assert!(keys.is_sorted(), "in the order of their keys");
}

#[tokio::test]
async fn a_bookmaker_line_adds_to_the_list_or_changes_it() {
    let service = Service::start().await;
    service.ingest(&bookmaker("newbook", "New \\\"N\\\" Book", r#"["au","us"]"#)).await;
    let answer = service.get("/v1/books").await;
    let text = r#"{"key":"newbook","title":"New \"N\" Book","regions":["us","au"]}"#;
    assert!(answer.text().contains(text), "{answer:?}");
    service.ingest(&bookmaker("newbook", "Newer", r#"["eu"]"#)).await;
    let answer = service.get("/v1/books").await;
    assert!(answer.text().contains(r#"{"key":"newbook","title":"Newer","regions":["eu"]}"#), "{answer:?}");
    assert_eq!(fields(&answer, "key").iter().filter(|key| *key == "newbook").count(), 1);
}

#[tokio::test]
async fn changed_regions_of_a_bookmaker_apply_at_the_tick() {
    let service = Service::start().await;
    let lines = [
        bookmaker("newbook", "New", r#"["us"]"#),
        event("mma", "m1", EVENING),
        moneyline("mma", "m1", "newbook", -110, -110),
    ];
    service.ingest(&lines.concat()).await;
    assert_eq!(records(&service.get("/v1/sports/mma/odds").await).len(), 1);
    service.advance(5).await;
    service.ingest(&bookmaker("newbook", "New", r#"["uk"]"#)).await;
    assert_eq!(records(&service.get("/v1/sports/mma/odds").await).len(), 1, "the payload waits for the tick");
    service.advance(25).await;
    assert_eq!(records(&service.get("/v1/sports/mma/odds").await).len(), 0);
    assert_eq!(records(&service.get("/v1/sports/mma/odds?regions=uk").await).len(), 1);
}
