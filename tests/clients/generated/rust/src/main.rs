//! Calls a running service with the types that typify makes from its `/openapi.json`.
//!
//!     BASE_URL=http://… KEY=sk_live_… oddsbox-generated-client
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "what is unexpected ends the program")]

use std::{env, thread, time::Duration};

use chrono::{DateTime, Utc};
use serde::{Serialize, de::DeserializeOwned};
use ureq::http::{Response, header};
use ureq::{Agent, Body};

#[allow(dead_code, clippy::all, clippy::pedantic, reason = "generated")]
mod oddsbox {
    include!(concat!(env!("OUT_DIR"), "/oddsbox.rs"));
}

use oddsbox::{
    Bookmaker, Error, ErrorCode, Event, Lines, Odds, OddsFormat, OddsRecord, Price, Score, ScoreStatus, ServiceStatus,
    Sports, Status, Usage, UsageKind, V4EventOdds,
};

struct Client {
    agent: Agent,
    base_url: String,
    key: String,
}

type Query<'q> = &'q [(&'q str, &'q str)];

impl Client {
    fn new(base_url: &str, key: &str) -> Self {
        let agent = Agent::config_builder().http_status_as_error(false).build().into();
        Client { agent, base_url: base_url.to_owned(), key: key.to_owned() }
    }

    fn send(&self, path: &str, query: Query<'_>) -> Response<Body> {
        let request = self.agent.get(format!("{}{path}", self.base_url)).header("X-API-Key", &self.key);
        request.query_pairs(query.iter().copied()).call().expect("an answer")
    }

    fn get<T: DeserializeOwned>(&self, path: &str, query: Query<'_>) -> T {
        body(self.send(path, query))
    }

    /// The status and the error of a request that must fail.
    fn error(&self, path: &str, query: Query<'_>) -> (u16, Error) {
        let mut answer = self.send(path, query);
        (answer.status().as_u16(), answer.body_mut().read_json().expect("an error"))
    }

    /// Without `group=bout`, odds are records.
    fn odds(&self, sport: &str, query: Query<'_>) -> Vec<OddsRecord> {
        match self.get(&format!("/v1/sports/{sport}/odds"), query) {
            Odds::OddsRecords(records) => records,
            Odds::Bouts(bouts) => panic!("{bouts:?}"),
        }
    }
}

fn body<T: DeserializeOwned>(mut answer: Response<Body>) -> T {
    let text = answer.body_mut().read_to_string().expect("a body");
    assert!(answer.status().is_success(), "{}: {text}", answer.status());
    serde_json::from_str(&text).unwrap_or_else(|fault| panic!("{fault}: {text}"))
}

fn as_query(time: DateTime<Utc>) -> String {
    time.format("%Y-%m-%dT%H:%M:%SZ").to_string()
}

fn json(value: impl Serialize) -> String {
    serde_json::to_string(&value).unwrap()
}

fn main() {
    let (base_url, key) = (env::var("BASE_URL").expect("BASE_URL"), env::var("KEY").expect("KEY"));
    let client = Client::new(&base_url, &key);
    let as_of = published_time(&client);
    check_service(&client);
    check_formats(&client, as_of);
    check_events(&client);
    check_pages(&client, as_of);
    check_history(&client, as_of);
    check_errors(&client);
    println!("typify: ok");
}

/// A time after the first publication, which can be a second ahead of the clock.
fn published_time(client: &Client) -> DateTime<Utc> {
    loop {
        let status: Status = client.get("/v1/status", &[]);
        assert!(status.status == ServiceStatus::Ok && status.simulated == Some(true), "{status:?}");
        if status.history_since.is_some_and(|since| since < status.server_time) {
            return status.server_time;
        }
        thread::sleep(Duration::from_millis(500));
    }
}

fn check_service(client: &Client) {
    let usage: Usage = client.get("/v1/usage", &[]);
    assert!(usage.kind == UsageKind::Production && usage.minute.remaining > 0, "{usage:?}");
    assert!((usage.hours.len(), usage.days.len()) == (24, 31), "{usage:?}");
    let Sports { sports } = client.get("/v1/sports", &[]);
    assert!(sports.iter().any(|sport| sport.key == "tennis" && sport.active && sport.events > 0), "{sports:?}");
    let bookmakers: Vec<Bookmaker> = client.get("/v1/books", &[]);
    assert!(bookmakers.iter().any(|bookmaker| bookmaker.key == "betmgm"), "{bookmakers:?}");
    let upcoming: Vec<V4EventOdds> =
        client.get("/v4/sports/upcoming/odds", &[("regions", "us"), ("includeLinks", "true")]);
    assert_eq!(upcoming[0].bookmakers[0].markets[0].key, "h2h");
}

/// The same records in each format, as they were at one time.
fn check_formats(client: &Client, as_of: DateTime<Utc>) {
    let of = |format: OddsFormat| {
        let format_name = format.to_string();
        let query =
            [("market", "moneyline"), ("limit", "20"), ("as_of", &as_query(as_of)), ("odds_format", &format_name)];
        let records = client.odds("tennis", &query);
        assert!(!records.is_empty() && records.iter().all(|record| record.format == format), "{records:?}");
        records
    };
    let (american, decimal, fractional) =
        (of(OddsFormat::American), of(OddsFormat::Decimal), of(OddsFormat::Fractional));
    for ((american, decimal), fractional) in american.iter().zip(&decimal).zip(&fractional) {
        assert!(american.id == decimal.id && decimal.id == fractional.id);
        for (index, outcome) in decimal.outcomes.iter().enumerate() {
            let prices = (&american.outcomes[index].price, &outcome.price, &fractional.outcomes[index].price);
            let (Price::Number(whole), Price::Number(decimal), Price::String(fraction)) = prices else {
                panic!("{prices:?}")
            };
            let (numerator, denominator) = fraction.split_once('/').expect("n/d");
            let profit = numerator.parse::<f64>().unwrap() / denominator.parse::<f64>().unwrap();
            assert!((profit + 1.0 - decimal).abs() < 0.02 * decimal, "{fraction} is not {decimal}");
            let expected = if *decimal >= 2.0 { 100.0 * (decimal - 1.0) } else { -100.0 / (decimal - 1.0) };
            assert!((expected - whole).abs() <= 1.0 + 0.03 * whole.abs(), "{whole} is not {decimal}");
        }
    }
}

fn check_events(client: &Client) {
    let records = client.odds("tennis", &[("include", "event"), ("regions", "us,uk"), ("limit", "1")]);
    let event: Event = client.get(&format!("/v1/sports/tennis/events/{}", records[0].event_id), &[]);
    assert_eq!(records[0].event.as_ref().expect("include=event").home_team, event.home_team);
    assert!(event.markets.iter().any(|market| **market == "moneyline"), "{event:?}");
    let scores: Vec<Score> = client.get("/v1/sports/tennis/scores", &[("status", "live")]);
    assert!(scores.iter().all(|score| score.status == ScoreStatus::Live && score.home_team.is_some()), "{scores:?}");
    let bouts = match client.get("/v1/sports/mma/odds", &[("group", "bout")]) {
        Odds::Bouts(bouts) => bouts,
        Odds::OddsRecords(records) => panic!("{records:?}"),
    };
    assert!(!bouts.bouts[0].books[0].outcomes.is_empty(), "{bouts:?}");
}

fn check_pages(client: &Client, as_of: DateTime<Utc>) {
    let (path, as_of) = ("/v1/sports/tennis/events", as_query(as_of));
    let whole: Vec<Event> = client.get(path, &[("as_of", &as_of), ("limit", "500")]);
    let mut paged: Vec<Event> = Vec::new();
    let mut after = None;
    loop {
        let mut query = vec![("as_of", as_of.as_str()), ("limit", "3")];
        query.extend(after.as_deref().map(|after| ("after", after)));
        let answer = client.send(path, &query);
        let next = answer.headers().get_all(header::LINK).iter().find_map(|link| next_page(link.to_str().ok()?));
        paged.extend(body::<Vec<Event>>(answer));
        if next.is_none() {
            break;
        }
        after = next;
    }
    assert!(whole.len() > 3);
    assert_eq!(json(&paged), json(&whole));
}

/// The cursor in the link to the next page.
fn next_page(links: &str) -> Option<String> {
    let (target, _) = links.split(", ").find(|link| link.ends_with("rel=\"next\""))?.split_once('>')?;
    let (_, after) = target.split_once("after=")?;
    Some(after.split('&').next()?.to_owned())
}

fn check_history(client: &Client, as_of: DateTime<Utc>) {
    let record = &client.odds("tennis", &[("odds_format", "decimal"), ("as_of", &as_query(as_of)), ("limit", "1")])[0];
    let query = [("bookmaker", &*record.bookmaker), ("market", &*record.market), ("odds_format", "decimal")];
    let history: Lines = client.get(&format!("/v1/sports/tennis/events/{}/lines", record.event_id), &query);
    let [line] = &history.lines[..] else { panic!("{history:?}") };
    let then = line.points.iter().rfind(|point| point.at <= as_of).expect("a price at that time");
    assert_eq!(json(&then.outcomes), json(&record.outcomes));
    assert!(line.opening.at <= then.at, "{line:?}");
}

fn check_errors(client: &Client) {
    let (status, wrong_key) = Client::new(&client.base_url, "sk_live_ob_wrong").error("/v1/sports", &[]);
    assert_eq!((status, wrong_key.error.code), (401, ErrorCode::AuthenticationFailed));
    let (status, wrong_value) = client.error("/v1/sports/tennis/odds", &[("limit", "0")]);
    assert_eq!((status, wrong_value.error.code), (400, ErrorCode::InvalidParameter));
    assert_eq!(wrong_value.error.param.as_deref(), Some("limit"));
    assert_eq!(client.error("/v1/sports/tennis/events/nobody", &[]).1.error.code, ErrorCode::EventNotFound);
}
