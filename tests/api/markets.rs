//! Market keys: filters, aliases, order, draws and groups of outcomes.

use super::fixture::{
    EVENING, closed, error, event, every_sport, fields, moneyline, odds, records, strings, total, tournament,
};
use crate::harness::Service;
use oddsbox::model::World;

const MARKETS: [&str; 11] = [
    "moneyline",
    "spread",
    "total_rounds",
    "total_points",
    "outright",
    "top5",
    "top10",
    "top20",
    "three_ball",
    "matchup",
    "round_leader",
];

fn football() -> String {
    let spread = r#"[{"name":"Home f1","price":-110,"point":-3.5},{"name":"Away f1","price":-110,"point":3.5}]"#;
    [
        event("american_football", "f1", EVENING),
        total("american_football", "f1", "betmgm", "total_points", "44.5"),
        odds("american_football", "f1", "betmgm", "spread", spread),
        moneyline("american_football", "f1", "betmgm", -160, 140),
    ]
    .concat()
}

/// A tournament with every golf market, in reverse order.
fn golf() -> String {
    let outcomes = |count: usize| {
        let one = |number: usize| format!(r#"{{"name":"P{number}","price":{}}}"#, 200 + 50 * number);
        format!("[{}]", (0..count).map(one).collect::<Vec<_>>().join(","))
    };
    let market = |key: &str| odds("golf", "g1", "draftkings", key, &outcomes(6));
    let markets = ["round_leader", "matchup", "three_ball", "top20", "top10", "top5", "outright"].map(market);
    tournament("g1", "The Open", EVENING) + &markets.concat()
}

#[tokio::test]
async fn market_filters_to_one_key_and_accepts_aliases() {
    let service = Service::start().await;
    service.ingest(&(every_sport() + &football() + &golf())).await;
    for (sport, asked, market) in [
        ("mma", "moneyline", "moneyline"),
        ("mma", "h2h", "moneyline"),
        ("mma", "total_rounds", "total_rounds"),
        ("mma", "totals", "total_rounds"),
        ("american_football", "h2h", "moneyline"),
        ("american_football", "spread", "spread"),
        ("american_football", "spreads", "spread"),
        ("american_football", "totals", "total_points"),
        ("american_football", "total_points", "total_points"),
        ("golf", "outrights", "outright"),
        ("golf", "top20", "top20"),
        ("golf", "round_leader", "round_leader"),
    ] {
        let answer = service.get(&format!("/v1/sports/{sport}/odds?market={asked}")).await;
        assert_eq!(fields(&answer, "market"), [market], "{sport} {asked}: answers carry the service's own keys");
    }
}

#[tokio::test]
async fn a_market_that_the_sport_does_not_have_is_200_and_an_empty_array() {
    let service = Service::start().await;
    service.ingest(&every_sport()).await;
    for (sport, has) in [("mma", "moneyline total_rounds"), ("golf", "outright"), ("tennis", "moneyline")] {
        for market in MARKETS {
            let answer = service.get(&format!("/v1/sports/{sport}/odds?market={market}")).await;
            let expected: &[&str] = if has.split(' ').any(|own| own == market) { &[market] } else { &[] };
            assert_eq!(
                (answer.status, fields(&answer, "market")),
                (200, expected.iter().map(|key| (*key).into()).collect())
            );
        }
    }
    assert_eq!(service.get("/v1/sports/golf/odds?market=total_rounds").await.text(), "[]");
    assert_eq!(service.get("/v1/sports/golf/odds?market=h2h").await.text(), "[]");
}

#[tokio::test]
async fn an_unknown_market_or_bookmaker_is_400() {
    let service = Service::start().await;
    for (name, value) in [
        ("market", "money_line"),
        ("market", "Moneyline"),
        ("market", "moneyline,%20spread"),
        ("bookmaker", "nobody"),
        ("bookmaker", "DraftKings"),
        ("bookmaker", "draftkings,fanduel"),
    ] {
        let answer = service.get(&format!("/v1/sports/mma/odds?{name}={value}")).await;
        assert_eq!((error(&answer), answer.param()), ((400, "invalid_parameter".into()), name.into()), "{value}");
    }
}

#[tokio::test]
async fn markets_of_an_event_are_those_with_a_price_now_in_the_order_of_the_table() {
    let service = Service::start().await;
    service.ingest(&(football() + &golf())).await;
    let markets = async |path: &str| {
        let json = service.get(path).await.json();
        json["markets"].as_array().unwrap().iter().map(|key| key.as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(
        markets("/v1/sports/golf/events/g1").await,
        ["outright", "top5", "top10", "top20", "three_ball", "matchup", "round_leader"]
    );
    let football_path = "/v1/sports/american_football/events/f1";
    assert_eq!(markets(football_path).await, ["moneyline", "spread", "total_points"]);

    let at = "2026-11-14T23:38:40Z";
    service.ingest(&closed("american_football", "f1", "betmgm", "spread", at)).await;
    service.advance(30).await;
    assert_eq!(markets(football_path).await, ["moneyline", "total_points"]);
    let list = service.get("/v1/sports/american_football/events").await;
    assert!(list.text().contains(r#""markets":["moneyline","total_points"]"#), "{list:?}");
}

#[tokio::test]
async fn market_closes_only_for_the_bookmaker_that_closed_it() {
    let service = Service::start().await;
    let lines = [
        event("mma", "m1", EVENING),
        moneyline("mma", "m1", "betmgm", -110, -110),
        moneyline("mma", "m1", "fanduel", -110, -110),
    ];
    service.ingest(&lines.concat()).await;
    service.ingest(&closed("mma", "m1", "betmgm", "moneyline", "2026-11-14T23:38:40Z")).await;
    service.advance(30).await;
    assert_eq!(records(&service.get("/v1/sports/mma/odds").await), ["m1 fanduel moneyline"]);
    let event = service.get("/v1/sports/mma/events/m1").await;
    assert_eq!(event.json()["markets"][0], "moneyline", "somebody still prices it");
}

#[tokio::test]
async fn a_draw_is_an_ordinary_outcome_wherever_the_feed_puts_it() {
    let service = Service::start().await;
    let three = r#"[{"name":"Draw","price":2000},{"name":"Away b1","price":170},{"name":"Home b1","price":-200}]"#;
    service
        .ingest(&[event("boxing", "b1", EVENING), odds("boxing", "b1", "betmgm", "moneyline", three)].concat())
        .await;
    let answer = service.get("/v1/sports/boxing/odds").await;
    assert!(
        answer.text().contains(
            r#""outcomes":[{"name":"Draw","price":2000,"point":null},{"name":"Away b1","price":170,"point":null},{"name":"Home b1","price":-200,"point":null}]"#
        ),
        "{answer:?}"
    );
}

#[tokio::test]
async fn three_ball_and_matchup_are_one_record_in_the_order_of_the_feed() {
    let service = Service::start().await;
    let outcomes = |names: &[&str]| {
        let one = |name: &&str| format!(r#"{{"name":"{name}","price":180}}"#);
        format!("[{}]", names.iter().map(one).collect::<Vec<_>>().join(","))
    };
    let (balls, pairs) = (["Z", "B", "M", "C", "A", "Y"], ["Q", "P", "B", "A"]);
    let lines = [
        tournament("g1", "The Open", EVENING),
        odds("golf", "g1", "betmgm", "three_ball", &outcomes(&balls)),
        odds("golf", "g1", "betmgm", "matchup", &outcomes(&pairs)),
    ];
    service.ingest(&lines.concat()).await;
    for (market, names) in [("three_ball", &balls[..]), ("matchup", &pairs)] {
        let json = service.get(&format!("/v1/sports/golf/odds?market={market}")).await.json();
        assert_eq!(json.as_array().map(Vec::len), Some(1));
        assert_eq!(strings(&json[0]["outcomes"], "name"), names);
    }
}

#[tokio::test]
async fn fights_have_rounds_and_other_sports_have_points() {
    let service = Service::start().await;
    service.ingest(&every_sport()).await;
    let sides = r#"[{"name":"Home m1","price":-110,"point":-3.5},{"name":"Away m1","price":-110,"point":3.5}]"#;
    service.ingest(&odds("mma", "m1", "betmgm", "spread", sides)).await;
    service.ingest(&odds("boxing", "b1", "betmgm", "spread", sides)).await;
    service.advance(30).await;
    assert!(records(&service.get("/v1/sports/mma/odds").await).contains(&"m1 betmgm spread".to_owned()));
    let v4 = "/v4/sports/mma_mixed_martial_arts/odds?regions=us&markets=spreads";
    assert!(service.get(v4).await.text().contains(r#""key":"spreads""#));
    for line in
        [total("mma", "m1", "betmgm", "total_points", "44.5"), total("tennis", "t1", "betmgm", "total_rounds", "2.5")]
    {
        let report = service.ingest_report(World::Live, &line).await;
        let reasons: Vec<_> = report.reasons().map(|(reason, count)| (reason.key(), count)).collect();
        assert_eq!(reasons, [("market_not_of_sport", 1)], "{line}");
    }
}
