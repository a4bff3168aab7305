//! Markets that are polled event by event, for events within the horizon.

use std::time::Duration;

use oddsbox::config::FeedConfig;
use oddsbox::model::Region;
use serde_json::{Value, json};

use super::upstream::{Reply, Upstream};
use super::{account, bout, feed, odds, until};
use crate::harness::Service;

const NBA: &str = "basketball_nba";

/// A game that begins at a time of the day after the test's start.
fn game(id: &str, commence: &str, books: &[Value]) -> Value {
    let mut game = bout(id, NBA, "NBA", books);
    game["commence_time"] = json!(commence);
    game
}

fn prop(key: &str, market: &str, price: f64) -> Value {
    let outcome =
        |name: &str, price: f64| json!({"name": name, "description": "Ada Stone", "price": price, "point": 20.5});
    let outcomes = json!([outcome("Over", price), outcome("Under", 1.9)]);
    let market = json!({"key": market, "last_update": "2026-11-14T23:38:00Z", "outcomes": outcomes});
    json!({"key": key, "title": key, "markets": [market]})
}

fn one(event: &Value) -> Reply {
    Reply::Json(event.to_string())
}

const SOON: &str = "2026-11-15T02:00:00Z";

/// An upstream with games at these times, each with a moneyline; `e1` has a prop as well.
async fn with_games(games: &[(&str, &str)]) -> (Upstream, FeedConfig) {
    let upstream = Upstream::start(None).await;
    upstream.charge_real_costs();
    let list = |books: &[Value]| games.iter().map(|(id, time)| game(id, time, books)).collect::<Vec<_>>();
    upstream.answer(&format!("{NBA}/odds"), odds(&list(&[super::book("betmgm", 1.5)])));
    upstream.answer(&format!("{NBA}/events"), odds(&list(&[])));
    upstream.answer("events/e1/odds", one(&game("e1", SOON, &[prop("betmgm", "player_points", 1.8)])));
    let config = FeedConfig {
        event_markets: vec!["player_points".to_owned(), "player_assists".to_owned()],
        ..feed("us", &upstream, &[NBA], Region::Us)
    };
    (upstream, config)
}

async fn records(service: &Service) -> Vec<String> {
    service.pass(1);
    service.writer().tick().await.expect("a writer");
    let path = "/v1/sports/basketball/odds?market=all&regions=us&odds_format=decimal";
    let json = service.get(path).await.json();
    let line = |record: &Value| {
        let field = |name: &str| record[name].as_str().unwrap_or_default().to_owned();
        format!("{} {} {}", field("event_id"), field("market"), record["outcomes"][0]["price"])
    };
    json.as_array().expect("a list").iter().map(line).collect()
}

async fn until_records(service: &Service, expected: &[&str]) {
    until(&format!("{expected:?}"), async || records(service).await == expected).await;
}

fn asked(upstream: &Upstream, text: &str) -> usize {
    upstream.requests().iter().filter(|target| target.contains(text)).count()
}

#[tokio::test]
async fn events_within_the_horizon_are_polled_one_by_one() {
    let games = [("e1", SOON), ("late", "2026-11-16T00:30:00Z"), ("far", "2026-11-20T00:00:00Z")];
    let (upstream, config) = with_games(&games).await;
    let service = Service::start_polling(vec![config]).await;
    until_records(&service, &["e1 moneyline 1.5", "e1 player_points 1.8", "late moneyline 1.5", "far moneyline 1.5"])
        .await;
    let expected = "/v4/sports/basketball_nba/events/e1/odds?apiKey=hush0f3c9a&regions=us\
        &markets=player_points,player_assists&oddsFormat=decimal&dateFormat=iso";
    assert!(upstream.requests().iter().any(|target| target == expected), "{:?}", upstream.requests());
    assert_eq!(asked(&upstream, "events/late/odds"), 0, "it begins in more than a day");

    // 51 minutes later it comes within the horizon, before the next list of events.
    upstream.answer("events/late/odds", one(&game("late", games[1].1, &[prop("betmgm", "player_points", 1.7)])));
    service.pass(3_100);
    until("the late game", async || asked(&upstream, "events/late/odds") > 0).await;
    until("its prop", async || records(&service).await.contains(&"late player_points 1.7".to_owned())).await;
    assert_eq!(asked(&upstream, "events/far/odds"), 0);
}

/// The failure that this prevents: a poll of the odds of a competition closed every market that it does not contain.
#[tokio::test]
async fn polls_of_odds_and_of_events_close_only_their_own_markets() {
    let (upstream, config) = with_games(&[("e1", SOON), ("e2", SOON)]).await;
    let both = [prop("betmgm", "player_points", 1.6), prop("fanduel", "player_assists", 1.7)];
    upstream.answer("events/e2/odds", one(&game("e2", SOON, &both)));
    let service = Service::start_polling(vec![config]).await;
    let all = [
        "e1 moneyline 1.5",
        "e1 player_points 1.8",
        "e2 moneyline 1.5",
        "e2 player_points 1.6",
        "e2 player_assists 1.7",
    ];
    until_records(&service, &all).await;

    upstream.answer(&format!("{NBA}/odds"), odds(&[]));
    let (before, polls) = (asked(&upstream, "nba/odds"), asked(&upstream, "e1/odds"));
    until("more polls of both", async || {
        service.pass(20);
        asked(&upstream, "nba/odds") > before + 1 && asked(&upstream, "e1/odds") > polls + 1
    })
    .await;
    until_records(&service, &["e1 player_points 1.8", "e2 player_points 1.6", "e2 player_assists 1.7"]).await;

    upstream.answer("events/e2/odds", one(&game("e2", SOON, &both[..1])));
    service.pass(60);
    until_records(&service, &["e1 player_points 1.8", "e2 player_points 1.6"]).await;
    // An event that the upstream no longer has, and one that its list no longer has.
    upstream.answer("events/e2/odds", Reply::Status(404, "", "{\"error_code\":\"EVENT_NOT_FOUND\"}"));
    service.pass(60);
    until_records(&service, &["e1 player_points 1.8"]).await;
    let gone = asked(&upstream, "e2/odds");
    upstream.answer(&format!("{NBA}/events"), odds(&[]));
    service.pass(3_600);
    until_records(&service, &[]).await;
    assert_eq!(asked(&upstream, "e2/odds"), gone, "not asked for again");
}

#[tokio::test]
async fn event_markets_that_are_no_longer_configured_are_closed_after_a_restart() {
    let (upstream, config) = with_games(&[("e1", SOON)]).await;
    let both = [prop("betmgm", "player_points", 1.8), prop("fanduel", "player_assists", 1.7)];
    upstream.answer("events/e1/odds", one(&game("e1", SOON, &both)));
    let service = Service::start_polling(vec![config.clone()]).await;
    until_records(&service, &["e1 moneyline 1.5", "e1 player_points 1.8", "e1 player_assists 1.7"]).await;

    upstream.answer("events/e1/odds", Reply::Status(500, "", ""));
    let fewer = FeedConfig { event_markets: vec!["player_points".to_owned()], ..config.clone() };
    let service = service.restart_polling_now(vec![fewer]).await;
    until_records(&service, &["e1 moneyline 1.5", "e1 player_points 1.8"]).await;
    let none = FeedConfig { event_markets: Vec::new(), ..config };
    let service = service.restart_polling_now(vec![none]).await;
    until_records(&service, &["e1 moneyline 1.5"]).await;
}

#[tokio::test]
async fn feed_may_have_event_markets_only() {
    let (upstream, config) = with_games(&[("e1", SOON)]).await;
    let config = FeedConfig { markets: Vec::new(), requests_per_day: Some(100_000), ..config };
    let service = Service::start_polling(vec![config]).await;
    until_records(&service, &["e1 player_points 1.8"]).await;
    assert_eq!(asked(&upstream, "nba/odds"), 0);
    let plan = account(&service, "us").upstream.and_then(|upstream| upstream.plan).expect("a plan");
    assert_eq!((plan.odds_per_day, plan.event_odds_per_day), (0, 1440), "one of two markets is returned");
}

#[tokio::test]
async fn event_without_prices_is_asked_less_often() {
    let (upstream, config) = with_games(&[("e1", SOON)]).await;
    upstream.answer("events/e1/odds", one(&game("e1", SOON, &[])));
    let service = Service::start_polling(vec![config]).await;
    until("the event", async || asked(&upstream, "e1/odds") == 1).await;
    let until_asked = async |text: &str, count: usize| {
        until(text, async || {
            service.pass(10);
            asked(&upstream, text) >= count
        })
        .await;
    };
    until_asked("nba/odds", 5).await;
    assert_eq!(asked(&upstream, "e1/odds"), 1, "ten intervals are not over");
    let plan = account(&service, "us").upstream.and_then(|upstream| upstream.plan).expect("a plan");
    assert_eq!((plan.odds_per_day, plan.event_odds_per_day), (3 * 1440, 0), "an empty answer costs nothing");
    upstream.answer("events/e1/odds", one(&game("e1", SOON, &[prop("betmgm", "player_points", 1.8)])));
    until_asked("e1/odds", 2).await;
    let odds = asked(&upstream, "nba/odds");
    until_asked("e1/odds", 4).await;
    assert!(asked(&upstream, "nba/odds") <= odds + 4, "as often as the odds");
}

#[tokio::test]
async fn plan_counts_event_markets_and_keeps_to_the_budget() {
    let (upstream, config) = with_games(&[("e1", SOON), ("e2", SOON)]).await;
    let full = [prop("betmgm", "player_points", 1.8), prop("betmgm", "player_assists", 1.7)];
    for id in ["e1", "e2"] {
        upstream.answer(&format!("events/{id}/odds"), one(&game(id, SOON, &full)));
    }
    // 3 for the odds and 2 for each event: 7 a round. The test begins 21 minutes before midnight.
    let config = FeedConfig { requests_per_day: Some(2_000), ..config };
    let service = Service::start_polling(vec![config.clone()]).await;
    service.pass(1_260);
    let plan = || account(&service, "us").upstream.and_then(|upstream| upstream.plan);
    let is_known = |plan: &oddsbox::ingest::UpstreamPlan| plan.event_odds_per_day > 0 && plan.limit.is_some();
    until("a plan", async || plan().as_ref().is_some_and(is_known)).await;
    let begun = upstream.credits().expect("credits");
    // One hour, at the pace of a clock that the feed reads every 100 ms.
    for _ in 0..60 {
        service.pass(60);
        tokio::time::sleep(Duration::from_millis(120)).await;
    }
    let shown = account(&service, "us").upstream.expect("a quota");
    let plan = plan().expect("a plan");
    assert_eq!(plan.limit.map(oddsbox::ingest::PlanLimit::key), Some("budget"));
    assert_eq!(plan.credits_per_day, plan.odds_per_day + plan.event_odds_per_day + plan.scores_per_day);
    let spent = begun - upstream.credits().expect("credits");
    assert!((40..=2_000 / 24 + 14).contains(&spent), "{spent}");
    assert!(plan.credits_per_day <= 2_000, "{plan:?}");
    assert!(shown.budget_left.is_some_and(|left| left < 2_000), "{shown:?}");

    // What was spent today is known after a restart.
    let left = shown.budget_left;
    let service = service.restart_polling_now(vec![config]).await;
    until("an account", async || account(&service, "us").upstream.is_some()).await;
    let again = account(&service, "us").upstream.and_then(|upstream| upstream.budget_left);
    assert!(again.zip(left).is_some_and(|(again, left)| again <= left), "{again:?} of {left:?}");
}
