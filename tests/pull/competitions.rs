//! Sports and competitions: which are polled, with which markets, and how many at a time.

use std::collections::BTreeSet;
use std::time::Duration;

use oddsbox::config::FeedConfig;
use oddsbox::model::Region;
use serde_json::{Value, json};

use super::upstream::{Reply, Upstream};
use super::{account, book, bout, feed, odds, published, until, with_competitions};
use crate::harness::Service;

/// The competition and the markets of each request for odds.
fn requested(upstream: &Upstream) -> BTreeSet<String> {
    let parts = |target: &String| {
        let path = target.strip_prefix("/v4/sports/")?;
        let (key, query) = path.split_once("/odds?")?;
        let markets = query.split('&').find_map(|field| field.strip_prefix("markets="))?;
        Some(format!("{key} {markets}"))
    };
    upstream.requests().iter().filter_map(parts).collect()
}

fn futures(key: &str) -> Value {
    let outcomes = json!([{"name": "Reds", "price": 4.5}, {"name": "Blues", "price": 6.0}]);
    let market = json!({"key": "outrights", "last_update": "2026-11-14T23:38:00Z", "outcomes": outcomes});
    json!({
        "id": key, "sport_key": key, "sport_title": "Cup Winner", "commence_time": "2027-02-14T23:30:00Z",
        "home_team": null, "away_team": null,
        "bookmakers": [{"key": "betmgm", "title": "BetMGM", "last_update": "2026-11-14T23:38:00Z", "markets": [market]}],
    })
}

#[tokio::test]
async fn futures_are_polled_for_their_winner_and_games_for_their_sides() {
    let upstream = Upstream::start(None).await;
    let list = json!([
        {"key": "americanfootball_nfl", "active": true, "has_outrights": false},
        {"key": "americanfootball_nfl_super_bowl_winner", "active": true, "has_outrights": true},
        {"key": "americanfootball_new_cup", "active": true, "has_outrights": true},
        {"key": "americanfootball_ufl", "active": false, "has_outrights": false},
        {"key": "soccer_epl", "active": true, "has_outrights": false},
        {"key": "soccer_spain_la_liga", "active": true, "has_outrights": false},
        {"key": "mma_mixed_martial_arts", "active": true, "has_outrights": false},
    ]);
    upstream.answer("/sports", Reply::Json(list.to_string()));
    for key in ["americanfootball_nfl", "soccer_epl", "mma_mixed_martial_arts"] {
        upstream.answer(&format!("{key}/odds"), odds(&[bout(key, key, "Cup", &[book("betmgm", 1.5)])]));
    }
    for key in ["americanfootball_nfl_super_bowl_winner", "americanfootball_new_cup"] {
        upstream.answer(&format!("{key}/odds"), odds(&[futures(key)]));
    }
    let sports = ["american_football", "soccer_epl", "mma"];
    let service = Service::start_polling(vec![feed("us", &upstream, &sports, Region::Us)]).await;
    until("every competition", async || requested(&upstream).len() == 5).await;
    let expected = [
        "americanfootball_new_cup outrights",
        "americanfootball_nfl h2h,spreads,totals",
        "americanfootball_nfl_super_bowl_winner outrights",
        "mma_mixed_martial_arts h2h,spreads,totals",
        "soccer_epl h2h,spreads,totals",
    ];
    assert_eq!(requested(&upstream).iter().map(String::as_str).collect::<Vec<_>>(), expected);
    // A competition that the catalogue lacks is known by the title of the payload.
    until("the winner", async || {
        service.pass(1);
        let path = "/v1/sports/american_football/odds?competition=americanfootball_new_cup&market=outright";
        service.get(path).await.text().contains("\"Reds\"")
    })
    .await;
    let competitions = service.get("/v1/sports/american_football/competitions").await.text().to_owned();
    assert!(competitions.contains("\"Cup Winner\""), "{competitions}");
}

#[tokio::test]
async fn a_few_requests_are_in_flight_at_a_time() {
    let keys: Vec<String> = (0..12).map(|number| format!("tennis_atp_cup_{number}")).collect();
    let upstream = with_competitions(&keys.iter().map(String::as_str).collect::<Vec<_>>()).await;
    upstream.set_latency(Duration::from_millis(100));
    let service = Service::start_polling(vec![feed("us", &upstream, &["tennis"], Region::Us)]).await;
    until("all of them", async || published(&service, "tennis").await == 12).await;
    assert_eq!(upstream.in_flight_max(), 4);
    assert_eq!(upstream.requests().len(), 13, "each once, and the list");
    let quota = account(&service, "us").upstream.expect("a quota");
    assert_eq!(quota.remaining.zip(upstream.credits()).map(|(known, left)| known >= left), Some(true));
}

/// The fake upstream panics if a request costs more than is left.
#[tokio::test]
async fn requests_in_flight_never_cost_more_than_is_left() {
    let keys: Vec<String> = (0..8).map(|number| format!("tennis_atp_cup_{number}")).collect();
    for credits in [2, 7, 24] {
        let upstream = with_competitions(&keys.iter().map(String::as_str).collect::<Vec<_>>()).await;
        upstream.set_credits(Some(credits));
        upstream.set_latency(Duration::from_millis(20));
        let config = FeedConfig { interval: Duration::from_secs(1), ..feed("us", &upstream, &["tennis"], Region::Us) };
        let service = Service::start_polling(vec![config]).await;
        let left = || upstream.credits().expect("credits");
        until("the credits are spent", async || {
            service.pass(21_600);
            left() < 3
        })
        .await;
        assert_eq!(left(), credits % 3);
        service.pass(86_400);
        tokio::time::sleep(Duration::from_millis(150)).await;
        assert_eq!(left(), credits % 3);
    }
}

/// The failure that this prevents: one match on made the scores of every competition of its sport be requested, for 2
/// credits each.
#[tokio::test]
async fn scores_are_requested_for_competitions_with_an_event_on_only() {
    let upstream = with_competitions(&["tennis_atp_a", "tennis_atp_b"]).await;
    let mut on = bout("a", "tennis_atp_a", "Cup", &[book("betmgm", 1.5)]);
    on["commence_time"] = json!("2026-11-14T23:00:00Z");
    upstream.answer("tennis_atp_a/odds", odds(&[on]));
    upstream.answer("tennis_atp_a/scores", odds(&[]));
    let scores_interval = Some(Duration::from_secs(60));
    let config = FeedConfig { scores_interval, ..feed("us", &upstream, &["tennis"], Region::Us) };
    let service = Service::start_polling(vec![config]).await;
    let asked = |text: &str| upstream.requests().iter().filter(|target| target.contains(text)).count();
    until("scores", async || {
        service.pass(10);
        asked("tennis_atp_a/scores") > 2
    })
    .await;
    assert_eq!(asked("tennis_atp_b/scores"), 0);
    let plan = account(&service, "us").upstream.and_then(|upstream| upstream.plan).expect("a plan");
    assert_eq!((plan.odds_per_day, plan.scores_per_day), (2 * 3 * 1440, 3 * 1440), "{plan:?}");
}
