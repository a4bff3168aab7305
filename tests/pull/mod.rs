//! A service that polls an upstream: new prices appear, missing ones are closed, and a failed poll changes nothing.

mod competitions;
mod credits;
mod event_markets;
mod unavailable;
pub mod upstream;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use oddsbox::config::{FeedConfig, FeedKey, FeedSecret};
use oddsbox::ingest::Account;
use oddsbox::model::{OddsFormat, Reason, Region, Regions, Timestamp, World};
use serde_json::{Value, json};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;

use crate::harness::Service;
use upstream::{Reply, Upstream};

const KEY: &str = "hush0f3c9a";
const MMA: &str = "mma_mixed_martial_arts/odds";

fn feed(name: &str, upstream: &Upstream, sports: &[&str], region: Region) -> FeedConfig {
    FeedConfig {
        name: name.into(),
        url: format!("http://{}/v4", upstream.address),
        key: FeedKey::Text(FeedSecret::new(KEY)),
        world: World::Live,
        sports: sports.iter().map(|sport| (*sport).to_owned()).collect(),
        regions: Regions::only(region),
        markets: ["h2h", "spreads", "totals", "outrights"].map(str::to_owned).to_vec(),
        event_markets: Vec::new(),
        event_horizon: Duration::from_secs(86_400),
        odds_format: OddsFormat::Decimal,
        interval: Duration::from_secs(60),
        scores_interval: None,
        requests_per_day: None,
        timeout: Duration::from_secs(30),
        ca: None,
    }
}

fn book(key: &str, price: f64) -> Value {
    let outcomes = json!([{"name": "Ada Stone", "price": price}, {"name": "Bo Reed", "price": 2.0}]);
    let market = json!({"key": "h2h", "last_update": "2026-11-14T23:38:00Z", "outcomes": outcomes});
    json!({"key": key, "title": key, "last_update": "2026-11-14T23:38:00Z", "markets": [market]})
}

fn bout(id: &str, sport: &str, title: &str, books: &[Value]) -> Value {
    json!({
        "id": id, "sport_key": sport, "sport_title": title, "commence_time": "2026-11-20T02:00:00Z",
        "home_team": "Ada Stone", "away_team": "Bo Reed", "bookmakers": books,
    })
}

fn mma(id: &str, books: &[Value]) -> Value {
    bout(id, "mma_mixed_martial_arts", "MMA", books)
}

fn odds(events: &[Value]) -> Reply {
    Reply::Json(json!(events).to_string())
}

async fn records(service: &Service, sport: &str) -> Vec<String> {
    service.writer().tick().await.expect("a writer");
    let path = format!("/v1/sports/{sport}/odds?regions=us,uk,eu,au&odds_format=decimal&limit=500");
    let json = service.get(&path).await.json();
    let line = |record: &Value| {
        let field = |name: &str| record[name].as_str().unwrap_or_default().to_owned();
        format!("{} {} {}", field("event_id"), field("bookmaker"), record["outcomes"][0]["price"])
    };
    json.as_array().expect("a list").iter().map(line).collect()
}

/// Waits until a condition holds.
async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let began = Instant::now();
    while !is_so().await {
        assert!(began.elapsed() < Duration::from_secs(60), "waited for: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Waits while the clock advances: prices are published at the tick of the refresh.
async fn until_records(service: &Service, sport: &str, expected: &[&str]) {
    until(&format!("{expected:?}"), async || {
        service.pass(1);
        records(service, sport).await == expected
    })
    .await;
}

fn account(service: &Service, name: &str) -> Account {
    let found = service.ledger.accounts().into_iter().find(|(own, _)| **own == *name);
    found.expect("an account").1
}

#[tokio::test]
async fn prices_appear_and_those_that_a_poll_no_longer_has_are_closed() {
    let upstream = Upstream::start(None).await;
    let both = [book("betmgm", 1.5), book("fanduel", 1.6)];
    upstream.answer(MMA, odds(&[mma("e1", &both), mma("e2", &both[..1])]));
    let service = Service::start_polling(vec![feed("us", &upstream, &["mma"], Region::Us)]).await;
    until_records(&service, "mma", &["e1 betmgm 1.5", "e1 fanduel 1.6", "e2 betmgm 1.5"]).await;
    let target = upstream.requests().remove(0);
    let expected = "/v4/sports/mma_mixed_martial_arts/odds?apiKey=hush0f3c9a&regions=us&markets=h2h,spreads,totals\
        &oddsFormat=decimal&dateFormat=iso";
    assert_eq!(target, expected);

    upstream.answer(MMA, Reply::Gzip(json!([mma("e1", &both[..1])]).to_string()));
    service.pass(60);
    until_records(&service, "mma", &["e1 betmgm 1.5"]).await;
    assert_eq!(service.get("/v1/sports/mma/events/e2").await.status, 200, "the event itself stays");

    upstream.answer(MMA, odds(&[mma("e1", &both), mma("e2", &both[..1])]));
    service.pass(60);
    // The prices have their old times, but are back nevertheless.
    until_records(&service, "mma", &["e1 betmgm 1.5", "e1 fanduel 1.6", "e2 betmgm 1.5"]).await;
    let account = account(&service, "us");
    assert_eq!((account.rejected.len(), account.last_failure), (0, None));
    let quota = account.upstream.expect("a quota");
    assert_eq!(quota.remaining, upstream.credits());
}

#[tokio::test]
async fn a_polled_price_dated_in_the_future_is_rejected_and_does_not_keep_the_one_before() {
    let upstream = Upstream::start(None).await;
    upstream.answer(MMA, odds(&[mma("e1", &[book("betmgm", 1.5), book("fanduel", 1.6)])]));
    let service = Service::start_polling(vec![feed("us", &upstream, &["mma"], Region::Us)]).await;
    until_records(&service, "mma", &["e1 betmgm 1.5", "e1 fanduel 1.6"]).await;

    let ahead: Value = serde_json::from_str(&book("betmgm", 1.7).to_string().replace("2026", "2030")).expect("JSON");
    upstream.answer(MMA, odds(&[mma("e1", &[ahead, book("fanduel", 1.6)])]));
    service.pass(60);
    until_records(&service, "mma", &["e1 fanduel 1.6"]).await;
    let rejected = account(&service, "us").rejected;
    assert!(rejected.iter().any(|(reason, count)| reason.key() == "in_future" && *count > 0), "{rejected:?}");

    upstream.answer(MMA, odds(&[mma("e1", &[book("betmgm", 1.8), book("fanduel", 1.6)])]));
    service.pass(60);
    until_records(&service, "mma", &["e1 betmgm 1.8", "e1 fanduel 1.6"]).await;
}

fn titled(title: &str) -> Reply {
    let mut book = book("betmgm", 1.5);
    book["title"] = json!(title);
    odds(&[mma("e1", &[book])])
}

async fn has_title(service: &Service, title: &str) -> bool {
    service.pass(1);
    service.writer().tick().await.expect("a writer");
    let book = format!(r#"{{"key":"betmgm","title":"{title}","regions":["us"]}}"#);
    let v4 = service.get("/v4/sports/mma_mixed_martial_arts/odds?regions=us").await;
    let is_in_v4 = v4.text().contains(&format!(r#"{{"key":"betmgm","title":"{title}","#));
    service.get("/v1/books").await.text().contains(&book) && is_in_v4
}

#[tokio::test]
async fn the_title_of_a_polled_bookmaker_is_the_last_payloads_also_after_a_restart() {
    let upstream = Upstream::start(None).await;
    let polled = || vec![feed("us", &upstream, &["mma"], Region::Us)];
    upstream.answer(MMA, titled("Bet MGM (New Jersey)"));
    let service = Service::start_polling(polled()).await;
    until("the payload's title", async || has_title(&service, "Bet MGM (New Jersey)").await).await;
    upstream.answer(MMA, titled("Bet MGM"));
    service.pass(60);
    until("the next payload's title", async || has_title(&service, "Bet MGM").await).await;

    upstream.answer(MMA, Reply::Silence);
    let service = service.restart_polling(Vec::new()).await;
    assert!(has_title(&service, "Bet MGM").await, "{:?}", service.get("/v1/books").await);
}

#[tokio::test]
async fn the_time_of_a_polled_bookmaker_goes_out_as_it_came_in() {
    let upstream = Upstream::start(None).await;
    let mut books = [book("betmgm", 1.5), book("fanduel", 1.6), book("draftkings", 1.7)];
    books[0]["last_update"] = json!("2026-11-14T23:38:01Z");
    books[1]["last_update"] = json!("2026-11-14T23:37:20Z");
    let times = json!(["2026-11-14T23:38:00Z", "2026-11-14T23:38:01Z", "2026-11-14T23:37:20Z"]);
    upstream.answer(MMA, odds(&[mma("e1", &books)]));
    let service = Service::start_polling(vec![feed("us", &upstream, &["mma"], Region::Us)]).await;
    until_records(&service, "mma", &["e1 betmgm 1.5", "e1 draftkings 1.7", "e1 fanduel 1.6"]).await;
    let check = async |service: &Service| {
        let events = service.get("/v4/sports/mma_mixed_martial_arts/odds?regions=us").await.json();
        let books = events[0]["bookmakers"].as_array().expect("bookmakers");
        let of = |key: &str| books.iter().find(|book| book["key"] == key).expect("a bookmaker");
        let found = ["draftkings", "betmgm", "fanduel"].map(|key| of(key)["last_update"].clone());
        assert_eq!(json!(found), times);
        assert!(books.iter().all(|book| book["markets"][0]["last_update"] == "2026-11-14T23:38:00Z"), "{books:?}");
        let records = service.get("/v1/sports/mma/odds").await.json();
        let records = records.as_array().expect("a list");
        assert!(records.iter().all(|record| record["last_update"] == "2026-11-14T23:38:00Z"), "{records:?}");
    };
    check(&service).await;
    check(&service.restart_polling(Vec::new()).await).await;
}

#[tokio::test]
async fn a_bad_answer_changes_nothing_and_is_told_without_the_key() {
    let upstream = Upstream::start(None).await;
    let good = odds(&[mma("e1", &[book("betmgm", 1.5)])]);
    upstream.answer(MMA, good.clone());
    let config = FeedConfig { timeout: Duration::from_secs(1), ..feed("us", &upstream, &["mma"], Region::Us) };
    let service = Service::start_polling(vec![config]).await;
    until_records(&service, "mma", &["e1 betmgm 1.5"]).await;

    let other = json!([bout("e1", "icehockey_nhl", "NHL", &[])]).to_string();
    let bad = [
        (
            Reply::Status(401, "", "{\"message\":\"hush0f3c9a is no key\",\"error_code\":\"INVALID_KEY\"}"),
            "answered 401 INVALID_KEY",
        ),
        (Reply::Status(422, "", "{}"), "answered 422"),
        (Reply::Status(429, "retry-after: 5\r\n", ""), "answered 429"),
        (Reply::Status(500, "", "oh"), "answered 500"),
        (Reply::Status(302, "location: /hush0f3c9a\r\n", ""), "answered 302"),
        (Reply::Truncated(json!([mma("e1", &[])]).to_string()), "the answer broke off"),
        (Reply::Json("[{\"id\":".to_owned()), "the answer cannot be used: it is no JSON"),
        (Reply::Json("{\"message\":\"sorry\"}".to_owned()), "the answer cannot be used: it is neither"),
        (Reply::Json(other), "none of its events can be read"),
        (Reply::Silence, "no answer within 1 s"),
    ];
    for (reply, cause) in bad {
        upstream.answer(MMA, reply);
        service.pass(1000);
        until(cause, async || account(&service, "us").last_failure.is_some_and(|(_, why)| why.contains(cause))).await;
        assert_eq!(records(&service, "mma").await, ["e1 betmgm 1.5"], "{cause}");
    }
    assert!(!format!("{:?}", service.ledger.accounts()).contains(KEY));

    upstream.answer(MMA, odds(&[mma("e1", &[book("betmgm", 1.7)])]));
    let mut again = mma("e1", &[book("betmgm", 1.7)]);
    again["bookmakers"][0]["markets"][0]["last_update"] = json!("2026-11-14T23:38:59Z");
    upstream.answer(MMA, odds(&[again]));
    service.pass(1000);
    until_records(&service, "mma", &["e1 betmgm 1.7"]).await;
}

#[tokio::test]
async fn a_wait_that_the_upstream_asks_for_is_kept() {
    let upstream = Upstream::start(None).await;
    upstream.answer(MMA, Reply::Status(429, "retry-after: 300\r\n", ""));
    let service = Service::start_polling(vec![feed("us", &upstream, &["mma"], Region::Us)]).await;
    let next = || account(&service, "us").upstream.and_then(|upstream| upstream.next_poll);
    let asked = Timestamp::from_unix(1_794_699_540 + 300);
    until("the wait", async || next() == Some(asked)).await;
}

#[tokio::test]
async fn what_vanished_while_the_service_was_down_is_closed_and_slow_feeds_stay_fresh_for_longer() {
    let upstream = Upstream::start(None).await;
    upstream.answer(MMA, odds(&[mma("e1", &[book("betmgm", 1.5)]), mma("e2", &[book("fanduel", 1.5)])]));
    let slow = FeedConfig { interval: Duration::from_secs(600), ..feed("us", &upstream, &["mma"], Region::Us) };
    let service = Service::start_polling(vec![slow.clone()]).await;
    until_records(&service, "mma", &["e1 betmgm 1.5", "e2 fanduel 1.5"]).await;

    upstream.answer(MMA, Reply::Status(500, "", ""));
    let service = service.restart_polling(vec![slow]).await;
    let failed = async || account(&service, "us").last_failure.is_some();
    until("a failure", failed).await;
    assert_eq!(records(&service, "mma").await, ["e1 betmgm 1.5", "e2 fanduel 1.5"]);
    let status = async || service.get("/v1/status").await.json()["status"].as_str().unwrap_or_default().to_owned();
    service.pass(1800);
    assert_eq!(status().await, "ok", "three intervals of its feed");
    upstream.answer(MMA, odds(&[mma("e1", &[book("betmgm", 1.5)])]));
    until_records(&service, "mma", &["e1 betmgm 1.5"]).await;
}

#[tokio::test]
async fn feeds_do_not_close_what_is_not_theirs() {
    let (us, uk) = (Upstream::start(None).await, Upstream::start(None).await);
    us.answer(MMA, odds(&[mma("e1", &[book("betmgm", 1.5), book("unibet", 1.6)])]));
    uk.answer(MMA, odds(&[mma("e1", &[book("unibet", 1.6), book("newbook", 1.7)])]));
    let feeds = vec![feed("us", &us, &["mma"], Region::Us), feed("uk", &uk, &["mma"], Region::Uk)];
    let service = Service::start_polling(feeds).await;
    until_records(&service, "mma", &["e1 betmgm 1.5", "e1 newbook 1.7", "e1 unibet 1.6"]).await;
    let event = r#"{"type":"event","sport":"mma","id":"pushed","competition":"MMA","commence_time":"2026-11-21T02:00:00Z","home":"A","away":"B","status":"scheduled"}"#;
    let line = r#"{"type":"odds","sport":"mma","event":"pushed","bookmaker":"betmgm","market":"moneyline","last_update":"2026-11-14T23:38:00Z","format":"decimal","outcomes":[{"name":"A","price":1.9}]}"#;
    service.ingest(&format!("{event}\n{line}\n")).await;

    us.answer(MMA, odds(&[mma("e1", &[])]));
    service.pass(60);
    until_records(&service, "mma", &["e1 newbook 1.7", "e1 unibet 1.6", "pushed betmgm 1.9"]).await;
    uk.answer(MMA, odds(&[]));
    service.pass(60);
    until_records(&service, "mma", &["pushed betmgm 1.9"]).await;
    let books = service.get("/v1/books").await.json();
    let newbook = books.as_array().expect("a list").iter().find(|book| book["key"] == "newbook").expect("a newcomer");
    assert_eq!(newbook["regions"], json!(["uk"]));
}

#[tokio::test]
async fn competitions_are_found_and_end_with_their_season() {
    let upstream = Upstream::start(None).await;
    let sports = |wimbledon: bool| {
        let list = json!([
            {"key": "tennis_atp_wimbledon", "active": wimbledon}, {"key": "tennis_wta_us_open", "active": true},
            {"key": "golf_us_open_winner", "active": true},
        ]);
        Reply::Json(list.to_string())
    };
    upstream.answer("/sports", sports(true));
    let game = |id: &str, key: &str| odds(&[bout(id, key, "Cup", &[book("betmgm", 1.5)])]);
    upstream.answer("tennis_atp_wimbledon/odds", game("w", "tennis_atp_wimbledon"));
    upstream.answer("tennis_wta_us_open/odds", game("u", "tennis_wta_us_open"));
    let service = Service::start_polling(vec![feed("us", &upstream, &["tennis"], Region::Us)]).await;
    until_records(&service, "tennis", &["u betmgm 1.5", "w betmgm 1.5"]).await;
    upstream.answer("/sports", Reply::Json("[]".to_owned()));
    service.pass(3600);
    until("a complaint", async || account(&service, "us").last_failure.is_some()).await;
    assert_eq!(records(&service, "tennis").await, ["u betmgm 1.5", "w betmgm 1.5"], "a list of nothing is no list");
    upstream.answer("/sports", sports(false));
    service.pass(3600);
    until_records(&service, "tennis", &["u betmgm 1.5"]).await;
    assert!(!upstream.requests().iter().any(|target| target.contains("golf")));
}

/// The records of a sport as published so far, without a tick.
async fn published(service: &Service, sport: &str) -> usize {
    let path = format!("/v1/sports/{sport}/odds?regions=us,uk,eu,au&limit=500");
    service.get(&path).await.json().as_array().expect("a list").len()
}

/// An upstream with so many tennis competitions, each with one match.
async fn with_competitions(keys: &[&str]) -> Upstream {
    let upstream = Upstream::start(None).await;
    let list: Vec<Value> = keys.iter().map(|key| json!({"key": key, "active": true})).collect();
    upstream.answer("/sports", Reply::Json(json!(list).to_string()));
    for key in keys {
        upstream.answer(&format!("{key}/odds"), odds(&[bout(key, key, "Cup", &[book("betmgm", 1.5)])]));
    }
    upstream
}

#[tokio::test]
async fn first_round_over_several_competitions_is_published_at_its_end() {
    let upstream = with_competitions(&["tennis_atp_a", "tennis_atp_b", "tennis_wta_c"]).await;
    let service = Service::start_polling(vec![feed("us", &upstream, &["tennis"], Region::Us)]).await;
    // The clock does not advance, so there is neither a tick nor the end of a stream's first second.
    until("all three", async || published(&service, "tennis").await == 3).await;
    let first = service.get("/v1/sports/tennis/odds").await.body;
    service.pass(20);
    service.writer().tick().await.expect("a writer");
    assert_eq!(service.get("/v1/sports/tennis/odds").await.body, first, "the same until the tick");
}

#[tokio::test]
async fn round_that_breaks_off_publishes_what_it_brought() {
    let upstream = with_competitions(&["tennis_atp_a", "tennis_atp_b", "tennis_wta_c"]).await;
    upstream.answer("tennis_atp_b/odds", Reply::Status(500, "", ""));
    let service = Service::start_polling(vec![feed("us", &upstream, &["tennis"], Region::Us)]).await;
    until("the others", async || published(&service, "tennis").await == 2).await;
    assert!(account(&service, "us").last_failure.is_some());
}

#[tokio::test]
async fn bookmaker_added_by_one_sport_does_not_delay_the_first_prices_of_another() {
    let upstream = with_competitions(&["tennis_atp_a"]).await;
    upstream.answer(MMA, odds(&[mma("e1", &[book("newcomer", 1.5)])]));
    let feeds = vec![feed("us", &upstream, &["mma", "tennis_atp_a"], Region::Us)];
    let service = Service::start_polling(feeds).await;
    until("both", async || published(&service, "mma").await + published(&service, "tennis").await == 2).await;
}

#[tokio::test]
async fn bookmaker_that_a_healthy_poll_leaves_out_degrades_nothing() {
    let upstream = Upstream::start(None).await;
    upstream.answer(MMA, odds(&[mma("e1", &[book("betmgm", 1.5), book("fanduel", 1.6)])]));
    let service = Service::start_polling(vec![feed("us", &upstream, &["mma"], Region::Us)]).await;
    until_records(&service, "mma", &["e1 betmgm 1.5", "e1 fanduel 1.6"]).await;
    upstream.answer(MMA, odds(&[mma("e1", &[book("betmgm", 1.5)])]));
    service.pass(60);
    until_records(&service, "mma", &["e1 betmgm 1.5"]).await;
    // Longer than any source of the feed stays fresh; it is polled meanwhile.
    for _ in 0..10 {
        let asked = upstream.requests().len();
        until("another poll", async || {
            service.pass(10);
            upstream.requests().len() > asked
        })
        .await;
    }
    until("ok", async || service.get("/v1/status").await.json()["status"] == "ok").await;
}

#[tokio::test]
async fn scores_are_asked_for_while_an_event_is_on_and_end_it() {
    let upstream = Upstream::start(None).await;
    let mut event = mma("e1", &[book("betmgm", 1.5)]);
    event["commence_time"] = json!("2026-11-14T23:00:00Z");
    upstream.answer(MMA, odds(&[event.clone()]));
    let mut score = event.clone();
    score["bookmakers"] = json!(null);
    score["completed"] = json!(true);
    score["last_update"] = json!("2026-11-14T23:38:50Z");
    score["scores"] = json!([{"name": "Bo Reed", "score": "1"}, {"name": "Ada Stone", "score": "0"}]);
    let mut stranger = score.clone();
    stranger["id"] = json!("e9");
    upstream.answer("mma_mixed_martial_arts/scores", odds(&[score, stranger]));
    let config =
        FeedConfig { scores_interval: Some(Duration::from_secs(60)), ..feed("us", &upstream, &["mma"], Region::Us) };
    let service = Service::start_polling(vec![config]).await;
    until("the end", async || {
        // The first round of scores may have come before the event.
        service.pass(60);
        service.get("/v1/sports/mma/scores").await.json()[0]["winner"] == "Bo Reed"
    })
    .await;
    assert_eq!(service.get("/v1/sports/mma/events/e1").await.json()["status"], "final");
    assert_eq!(service.get("/v1/sports/mma/events/e9").await.status, 404);
    until_records(&service, "mma", &[]).await;
    // The next poll of odds still has the event, which stays finished.
    let asked = upstream.requests().len();
    service.pass(60);
    until("another poll", async || {
        upstream.requests().len() > asked + 1 || account(&service, "us").rejected.contains_key(&Reason::EventOver)
    })
    .await;
    assert_eq!(service.get("/v1/sports/mma/events/e1").await.json()["status"], "final");
}

/// A certificate for 127.0.0.1, its acceptor, and the CA file that makes it trusted.
fn certificate(directory: &std::path::Path) -> (TlsAcceptor, PathBuf) {
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).expect("a certificate");
    let path = directory.join("ca.pem");
    std::fs::write(&path, made.cert.pem()).expect("a file");
    let key = rustls_pki_types::PrivateKeyDer::try_from(made.signing_key.serialize_der()).expect("a key");
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let config = config.with_safe_default_protocol_versions().expect("versions").with_no_client_auth();
    let config = config.with_single_cert(vec![made.cert.der().clone()], key).expect("a pair");
    (TlsAcceptor::from(Arc::new(config)), path)
}

#[tokio::test]
async fn an_upstream_behind_tls_must_be_trusted() {
    let directory = tempfile::tempdir().expect("a directory");
    let (acceptor, ca) = certificate(directory.path());
    let upstream = Upstream::start(Some(acceptor)).await;
    upstream.answer(MMA, odds(&[mma("e1", &[book("betmgm", 1.5)])]));
    let https = |name: &str, ca: Option<PathBuf>| FeedConfig {
        url: format!("https://{}/v4", upstream.address),
        ca,
        ..feed(name, &upstream, &["mma"], Region::Us)
    };
    let service = Service::start_polling(vec![https("strange", None)]).await;
    until("a complaint", async || {
        account(&service, "strange").last_failure.is_some_and(|(_, why)| why.contains("no connection"))
    })
    .await;
    assert_eq!(upstream.requests(), [""; 0], "the key was not sent");
    let service = service.restart_polling(vec![https("known", Some(ca))]).await;
    until_records(&service, "mma", &["e1 betmgm 1.5"]).await;
}
