//! A service that polls another one's `/v4` ends up with the same prices, in the requested format.

use std::time::{Duration, Instant};

use oddsbox::config::{FeedConfig, FeedKey, FeedSecret};
use oddsbox::model::{Market, OddsFormat, Region, Regions, World};

use crate::api::fixture::{EVENING, closed, event, every_sport, moneyline, moneyline_at, odds, odds_in, total};
use crate::harness::Service;

const SPORTS: [(&str, &str); 5] = [
    ("mma", "mma_mixed_martial_arts"),
    ("boxing", "boxing_boxing"),
    ("tennis", "tennis_cup"),
    ("american_football", "americanfootball_nfl"),
    ("golf", "golf_the_open_championship_winner"),
];

fn feed(upstream: &Service, format: OddsFormat) -> FeedConfig {
    FeedConfig {
        name: "upstream".into(),
        url: format!("http://{}/v4", upstream.address),
        key: FeedKey::Text(FeedSecret::new(&upstream.live)),
        world: World::Live,
        sports: SPORTS.iter().map(|(sport, _)| (*sport).to_owned()).collect(),
        regions: Regions::only(Region::Us),
        markets: Market::FEATURED.iter().map(|market| market.key().to_owned()).collect(),
        event_markets: Vec::new(),
        event_horizon: Duration::from_secs(86_400),
        odds_format: format,
        interval: Duration::from_secs(60),
        scores_interval: None,
        requests_per_day: None,
        timeout: Duration::from_secs(30),
        ca: None,
    }
}

/// Every price of a service in a format, in both response shapes.
async fn prices(service: &Service, format: OddsFormat) -> Vec<String> {
    let mut all = Vec::new();
    for (sport, key) in SPORTS {
        let markets = "h2h,spreads,totals,outrights,top5,top10,top20,three_ball,matchup,round_leader";
        let v4 = format!("/v4/sports/{key}/odds?regions=us&markets={markets}&oddsFormat={format}");
        for path in [format!("/v1/sports/{sport}/odds?odds_format={format}&limit=500"), v4] {
            let answer = service.get(&path).await;
            assert_eq!(answer.status, 200, "{answer:?}");
            all.push(answer.text().to_owned());
        }
    }
    all
}

/// Waits until the polling service has the prices of the other, advancing its clock.
async fn until_same(upstream: &Service, downstream: &Service, format: OddsFormat) {
    let expected = prices(upstream, format).await;
    let began = Instant::now();
    loop {
        downstream.advance(1).await;
        let got = prices(downstream, format).await;
        if got == expected {
            return;
        }
        assert!(began.elapsed() < Duration::from_secs(60), "{got:#?}\nis not\n{expected:#?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn chained(format: OddsFormat) {
    let upstream = Service::start().await;
    let golf = r#"[{"name":"A. Ames","price":150},{"name":"B. Bohn","price":250}]"#;
    let draw = r#"[{"name":"Away m2","price":3.4},{"name":"Draw","price":51.0},{"name":"Home m2","price":1.35}]"#;
    let spread = r#"[{"name":"Home f1","price":-110,"point":-3.5},{"name":"Away f1","price":-110,"point":3.5}]"#;
    let lines = [
        every_sport(),
        event("mma", "m2", EVENING),
        odds_in("decimal", "mma", "m2", "fanduel", "moneyline", crate::api::fixture::UPDATED, draw),
        moneyline("mma", "m1", "betmgm", 104, -121),
        odds("golf", "g1", "draftkings", "top5", golf),
        odds("american_football", "f1", "betmgm", "spread", spread),
    ];
    upstream.ingest(&lines.concat()).await;
    let downstream = Service::start_polling(vec![feed(&upstream, format)]).await;
    until_same(&upstream, &downstream, format).await;

    let newer = "2026-11-14T23:39:10Z";
    let lines = [
        moneyline_at("mma", "m1", "betmgm", newer, 250, -300),
        closed("mma", "m1", "draftkings", "total_rounds", newer),
        total("tennis", "t1", "fanduel", "total_points", "22.5"),
    ];
    upstream.ingest(&lines.concat()).await;
    upstream.advance(30).await;
    until_same(&upstream, &downstream, format).await;
}

#[tokio::test]
async fn american_prices_pass_through_a_chain_unchanged() {
    chained(OddsFormat::American).await;
}

#[tokio::test]
async fn decimal_prices_pass_through_a_chain_unchanged() {
    chained(OddsFormat::Decimal).await;
}
