//! Events with a field under `/v4` in a sport whose other events have two sides, and the reverse.

use crate::api::fixture::{EVENING, event, every_sport, moneyline, odds, strings};
use crate::harness::Service;

const SUPER_BOWL: &str = "/v4/sports/americanfootball_nfl_super_bowl_winner";

/// The default was once chosen by sport, so that the futures of `american_football` came without a price.
#[tokio::test]
async fn default_market_follows_the_event_not_its_sport() {
    let service = Service::start().await;
    let winner = concat!(
        r#"{"type":"event","sport":"american_football","id":"sb","competition":"NFL Super Bowl Winner","#,
        r#""competition_key":"americanfootball_nfl_super_bowl_winner","title":"NFL Super Bowl Winner","#,
        r#""commence_time":"2027-02-14T23:30:00Z","status":"scheduled"}"#,
        "\n"
    );
    let field = r#"[{"name":"Buffalo Bills","price":600},{"name":"Chicago Bears","price":5000}]"#;
    let lines = [
        every_sport(),
        winner.into(),
        odds("american_football", "sb", "draftkings", "outright", field),
        moneyline("american_football", "f1", "draftkings", -110, -110),
        event("golf", "g2", EVENING),
        moneyline("golf", "g2", "draftkings", -120, 100),
    ];
    service.ingest(&lines.concat()).await;
    for (path, market, price) in [
        (format!("{SUPER_BOWL}/odds?regions=us"), "outrights", 7.0),
        (format!("{SUPER_BOWL}/odds?regions=us&markets="), "outrights", 7.0),
        (format!("{SUPER_BOWL}/events/sb/odds?regions=us"), "outrights", 7.0),
        ("/v4/sports/upcoming/odds?regions=us&eventIds=sb".into(), "outrights", 7.0),
        ("/v4/sports/upcoming/odds?regions=us&eventIds=f1".into(), "h2h", 1.909),
        ("/v4/sports/upcoming/odds?regions=us&eventIds=g2".into(), "h2h", 1.833),
        ("/v4/sports/upcoming/odds?regions=us&eventIds=g1".into(), "outrights", 5.5),
    ] {
        let json = service.get(&path).await.json();
        let event = json.get(0).unwrap_or(&json);
        let markets = &event["bookmakers"][0]["markets"];
        assert_eq!(strings(markets, "key"), [market], "{path}");
        assert_eq!(markets[0]["outcomes"][0]["price"], price, "{path}");
    }
    let named = service.get(&format!("{SUPER_BOWL}/odds?regions=us&markets=h2h")).await.json();
    assert_eq!(named[0]["bookmakers"].to_string(), "[]", "named markets are not replaced");
}
