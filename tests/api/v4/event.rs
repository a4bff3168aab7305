//! `/v4/sports/{sport}/events/{eventId}/odds` and `/markets`.

use super::{MMA, NFL, error};
use crate::api::fixture::{EVENING, event, event_with, every_sport, moneyline, remove};
use crate::harness::Service;

#[tokio::test]
async fn event_is_served_with_its_prices_or_its_markets() {
    let service = Service::start().await;
    service.ingest(&every_sport()).await;
    let head = concat!(
        r#"{"id":"m1","sport_key":"mma_mixed_martial_arts","sport_title":"MMA","commence_time":"2026-11-15T02:00:00Z","#,
        r#""home_team":"Home m1","away_team":"Away m1","bookmakers":[{"key":"draftkings","title":"DraftKings","markets":["#,
    );
    let odds = service.get(&format!("{MMA}/events/m1/odds?regions=us&oddsFormat=american")).await;
    let h2h = concat!(
        r#"{"key":"h2h","last_update":"2026-11-14T23:38:30Z","outcomes":["#,
        r#"{"name":"Home m1","price":-110},{"name":"Away m1","price":-110}]}]}]}"#
    );
    assert_eq!(odds.text(), format!("{head}{h2h}"));
    let markets = service.get(&format!("{MMA}/events/m1/markets/?bookmakers=draftkings")).await;
    let both = concat!(
        r#"{"key":"h2h","last_update":"2026-11-14T23:38:30Z"},"#,
        r#"{"key":"totals","last_update":"2026-11-14T23:38:30Z"}]}]}"#
    );
    assert_eq!(markets.text(), format!("{head}{both}"));
    let none = service.get(&format!("{MMA}/events/m1/markets?regions=uk&dateFormat=unix")).await.json();
    assert_eq!((none["bookmakers"].to_string(), &none["commence_time"]), ("[]".into(), &1_794_708_000.into()));
}

#[tokio::test]
async fn unknown_finished_or_removed_event_is_404() {
    let service = Service::start().await;
    service.ingest(&[every_sport(), event_with("mma", "over", EVENING, "final")].concat()).await;
    for path in [
        format!("{MMA}/events/nobody/odds?regions=us"),
        format!("{MMA}/events/over/odds?regions=us"),
        format!("{MMA}/events/f1/odds?regions=us"),
        format!("{NFL}/events/m1/markets?regions=us"),
        format!("{MMA}/events/a%20b/markets?regions=us"),
    ] {
        assert_eq!(error(&service.get(&path).await), (404, "EVENT_NOT_FOUND".into()), "{path}");
    }
    let path = format!("{MMA}/events/m1/odds?regions=us");
    assert_eq!(service.get(&path).await.status, 200);
    service.ingest(&remove("mma", "m1")).await;
    assert_eq!(service.get(&path).await.status, 404);
}

#[tokio::test]
async fn an_event_is_known_before_its_prices_are_published() {
    let service = Service::start().await;
    service.ingest(&every_sport()).await;
    service.ingest(&[event("mma", "new", EVENING), moneyline("mma", "new", "betmgm", -110, -110)].concat()).await;
    for of_event in ["odds", "markets"] {
        let path = format!("{MMA}/events/new/{of_event}?regions=us");
        let json = service.get(&path).await.json();
        assert_eq!((&json["id"], json["bookmakers"].to_string()), (&"new".into(), "[]".into()), "{of_event}");
    }
    service.advance(30).await;
    let json = service.get(&format!("{MMA}/events/new/odds?regions=us")).await.json();
    assert_eq!(json["bookmakers"][0]["key"], "betmgm");
}
