//! What an upstream does not have costs nothing twice: it is not asked for again for a while, and the operator sees why.

use std::time::Duration;

use oddsbox::config::FeedConfig;
use oddsbox::model::Region;
use serde_json::json;

use super::upstream::{Reply, Upstream};
use super::{MMA, account, book, bout, feed, mma, odds, until};
use crate::harness::Service;

fn asked(upstream: &Upstream, text: &str) -> Vec<String> {
    upstream.requests().into_iter().filter(|target| target.contains(text)).collect()
}

/// The competitions and markets that a feed does not poll.
fn skipped(service: &Service) -> Vec<(String, Option<String>)> {
    let skipped = account(service, "us").upstream.map(|upstream| upstream.skipped).unwrap_or_default();
    skipped
        .iter()
        .map(|skipped| (skipped.competition.to_string(), skipped.market.as_deref().map(str::to_owned)))
        .collect()
}

/// Lets a feed poll for so many intervals.
async fn intervals(service: &Service, upstream: &Upstream, key: &str, count: usize) {
    for _ in 0..count {
        let before = asked(upstream, key).len();
        until("a poll", async || {
            service.pass(10);
            asked(upstream, key).len() > before
        })
        .await;
    }
}

#[tokio::test]
async fn unknown_competition_is_asked_for_once_an_hour() {
    for (status, body) in
        [(404, "{\"error_code\":\"UNKNOWN_SPORT\"}"), (422, "{\"error_code\":\"UNKNOWN_SPORT\"}"), (404, "not JSON")]
    {
        let upstream = Upstream::start(None).await;
        upstream.answer(MMA, odds(&[mma("e1", &[book("betmgm", 1.5)])]));
        upstream.answer("soccer_nowhere/odds", Reply::Status(status, "", body));
        let config = feed("us", &upstream, &["mma", "soccer_nowhere"], Region::Us);
        let service = Service::start_polling(vec![config]).await;
        until("both", async || asked(&upstream, "nowhere").len() == 1 && asked(&upstream, MMA).len() == 1).await;
        intervals(&service, &upstream, MMA, 20).await;
        assert_eq!(asked(&upstream, "nowhere").len(), 1, "{status}");
        until("the reason", async || skipped(&service) == [("soccer_nowhere".to_owned(), None)]).await;
        let plan = account(&service, "us").upstream.and_then(|upstream| upstream.plan).expect("a plan");
        assert_eq!(plan.credits_per_day, 3 * 1440, "what is not polled is not planned for");

        upstream.answer("soccer_nowhere/odds", odds(&[bout("s1", "soccer_nowhere", "Cup", &[book("betmgm", 1.5)])]));
        service.pass(3_600);
        until("the next try", async || asked(&upstream, "nowhere").len() == 2).await;
        until("nothing is missing", async || skipped(&service).is_empty()).await;
    }
}

#[tokio::test]
async fn rejected_market_is_left_out_for_a_day_and_the_others_are_polled() {
    let named = "{\"message\":\"Invalid markets: totals\",\"error_code\":\"INVALID_MARKET\"}";
    let unnamed = "{\"message\":\"No.\",\"error_code\":\"INVALID_MARKET_COMBO\"}";
    let good = || odds(&[mma("e1", &[book("betmgm", 1.5)])]);
    // Of h2h, spreads and totals the last is rejected; without its name it takes another request to find it.
    for (body, market) in [(named, "totals"), (unnamed, "totals")] {
        let upstream = Upstream::start(None).await;
        upstream.answer_in_turn(MMA, vec![Reply::Status(422, "", body), good()]);
        let service = Service::start_polling(vec![feed("us", &upstream, &["mma"], Region::Us)]).await;
        super::until_records(&service, "mma", &["e1 betmgm 1.5"]).await;
        let targets = asked(&upstream, MMA);
        assert!(targets[0].contains("markets=h2h,spreads,totals&"), "{targets:?}");
        assert!(targets[1..].iter().all(|target| target.contains("markets=h2h,spreads&")), "{targets:?}");
        intervals(&service, &upstream, MMA, 5).await;
        assert!(asked(&upstream, MMA)[1..].iter().all(|target| target.contains("markets=h2h,spreads&")));
        let key = "mma_mixed_martial_arts".to_owned();
        until("the reason", async || skipped(&service) == [(key.clone(), Some(market.to_owned()))]).await;
        assert_eq!(account(&service, "us").last_failure, None, "the feed itself works");
        service.pass(86_400);
        until("the next day", async || {
            service.pass(10);
            asked(&upstream, MMA).last().is_some_and(|last| last.contains("totals"))
        })
        .await;
    }
}

/// The upstream names none, and rejects the first of three: each try leaves one more out.
#[tokio::test]
async fn rejected_market_that_is_not_named_is_found() {
    let upstream = Upstream::start(None).await;
    let no = || Reply::Status(422, "", "{\"message\":\"No.\",\"error_code\":\"INVALID_MARKET\"}");
    upstream.answer_in_turn(MMA, vec![no(), no(), no(), odds(&[mma("e1", &[book("betmgm", 1.5)])])]);
    let service = Service::start_polling(vec![feed("us", &upstream, &["mma"], Region::Us)]).await;
    super::until_records(&service, "mma", &["e1 betmgm 1.5"]).await;
    let markets = |target: &String| {
        let (_, rest) = target.split_once("markets=").expect("markets");
        rest.split('&').next().expect("a list").to_owned()
    };
    let asked: Vec<String> = asked(&upstream, MMA).iter().take(4).map(markets).collect();
    assert_eq!(asked, ["h2h,spreads,totals", "h2h,spreads", "h2h", "spreads,totals"]);
}

#[tokio::test]
async fn competition_that_is_not_active_is_not_polled_and_shown() {
    let upstream = Upstream::start(None).await;
    let list = |is_active: bool| {
        Reply::Json(
            json!([{"key": "tennis_wta_us_open", "active": true}, {"key": "soccer_epl", "active": is_active}])
                .to_string(),
        )
    };
    upstream.answer("/sports", list(false));
    let game = |key: &str| odds(&[bout(key, key, "Cup", &[book("betmgm", 1.5)])]);
    upstream.answer("tennis_wta_us_open/odds", game("tennis_wta_us_open"));
    upstream.answer("soccer_epl/odds", game("soccer_epl"));
    let sports = ["tennis", "soccer_epl", "soccer_elp"];
    let service = Service::start_polling(vec![feed("us", &upstream, &sports, Region::Us)]).await;
    super::until_records(&service, "tennis", &["tennis_wta_us_open betmgm 1.5"]).await;
    let missing = [("soccer_elp".to_owned(), None), ("soccer_epl".to_owned(), None)];
    until("both", async || skipped(&service) == missing).await;
    let why = account(&service, "us").upstream.expect("an upstream").skipped.remove(0).why;
    assert_eq!(&*why, "the upstream does not list it; did you mean soccer_epl?");
    intervals(&service, &upstream, "tennis_wta_us_open/odds", 5).await;
    assert!(asked(&upstream, "/soccer_").iter().all(|target| !target.contains("/odds")), "{:?}", upstream.requests());
    upstream.answer("/sports", list(true));
    service.pass(3_600);
    super::until_records(&service, "soccer", &["soccer_epl betmgm 1.5"]).await;
}

#[tokio::test]
async fn event_market_that_is_rejected_leaves_the_odds_alone() {
    let upstream = Upstream::start(None).await;
    let mut near = mma("e1", &[book("betmgm", 1.5)]);
    near["commence_time"] = json!("2026-11-15T02:00:00Z");
    upstream.answer(MMA, odds(&[near.clone()]));
    upstream.answer("mma_mixed_martial_arts/events", odds(&[near]));
    let no = Reply::Status(422, "", "{\"message\":\"Unknown: player_dunks\",\"error_code\":\"INVALID_MARKET\"}");
    upstream.answer("events/e1/odds", no);
    let event_markets = vec!["player_dunks".to_owned()];
    let config = FeedConfig { event_markets, ..feed("us", &upstream, &["mma"], Region::Us) };
    let service = Service::start_polling(vec![config]).await;
    until("the event", async || asked(&upstream, "e1/odds").len() == 1).await;
    intervals(&service, &upstream, MMA, 5).await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(asked(&upstream, "e1/odds").len(), 1);
    let key = "mma_mixed_martial_arts".to_owned();
    assert_eq!(skipped(&service), [(key, Some("player_dunks".to_owned()))]);
    let plan = account(&service, "us").upstream.and_then(|upstream| upstream.plan).expect("a plan");
    assert_eq!(plan.event_odds_per_day, 0);
}
