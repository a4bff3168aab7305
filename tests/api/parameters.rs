//! Parameters: every mistake is reported, none is misread.

use super::fixture::{EVENING, error, event, every_sport, message, moneyline};
use crate::harness::Service;

/// The parameters of each endpoint: name, a valid value, an invalid one, and what the message must say that it takes.
type Row = (&'static str, &'static str, &'static str, &'static str);

const ODDS: [Row; 11] = [
    ("market", "moneyline", "winner", "/v1/markets"),
    ("competition", "mma_mixed_martial_arts", "fight_night", "/competitions"),
    ("commence_from", "2026-11-14T23:39:00Z", "2026-11-14", "2026-11-14T23:39:00Z"),
    ("commence_to", "2026-11-14T23:39:00Z", "tomorrow", "2026-11-14T23:39:00Z"),
    ("bookmaker", "betmgm", "nobody", "/v1/books"),
    ("regions", "us,uk", "us,mars", "us, us2, us_dfs, us_ex, uk, eu, fr, se"),
    ("region", "us", "mars", "us, us2, us_dfs, us_ex, uk, eu, fr, se"),
    ("odds_format", "decimal", "hongkong", "american, decimal or fractional"),
    ("event_ids", "m1,m2", "m1,,m2", "100"),
    ("limit", "5", "five", "1 to 500"),
    ("group", "bout", "round", "bout"),
];
const SCORES: [Row; 4] = [
    ("competition", "mma_mixed_martial_arts,soccer_epl", "soccer_epl,fight_night", "/competitions"),
    ("status", "live", "cancelled", "scheduled, live or final"),
    ("event_ids", "m1", ",", "100"),
    ("limit", "5", "501", "1 to 500"),
];
const EVENTS: [Row; 6] = [
    ("competition", "mma_mixed_martial_arts", "mma", "/competitions"),
    ("status", "cancelled", "over", "scheduled, live, final or cancelled"),
    ("event_ids", "m1", "m1,", "100"),
    ("commence_from", "2026-11-14T23:39:00Z", "2026-11-14", "2026-11-14T23:39:00Z"),
    ("commence_to", "2026-11-14T23:39:00Z", "tomorrow", "2026-11-14T23:39:00Z"),
    ("limit", "5", "0", "1 to 500"),
];

fn endpoints() -> [(&'static str, &'static [Row]); 3] {
    [("/v1/sports/mma/odds", &ODDS), ("/v1/sports/mma/scores", &SCORES), ("/v1/sports/mma/events", &EVENTS)]
}

async fn refused(service: &Service, path: &str, query: &str, param: &str, says: &str) {
    let answer = service.get(&format!("{path}?{query}")).await;
    assert_eq!((error(&answer), answer.param()), ((400, "invalid_parameter".into()), param.into()), "{path}?{query}");
    assert!(message(&answer).contains(says), "{path}?{query}: {}", message(&answer));
}

#[tokio::test]
async fn every_valid_value_is_accepted() {
    let service = Service::start().await;
    service.ingest(&every_sport()).await;
    for (path, rows) in endpoints() {
        for (name, good, _, _) in rows {
            let answer = service.get(&format!("{path}?{name}={good}")).await;
            assert_eq!(answer.status, 200, "{path} {name} {answer:?}");
        }
    }
}

#[tokio::test]
async fn a_bad_value_is_400_naming_the_parameter_and_what_it_takes() {
    let service = Service::start().await;
    for (path, rows) in endpoints() {
        for (name, _, bad, takes) in rows {
            refused(&service, path, &format!("{name}={bad}"), name, takes).await;
        }
    }
    for (path, name, bad) in [
        ("/v1/sports/mma/odds", "regions", "US"),
        ("/v1/sports/mma/odds", "regions", "us, uk"),
        ("/v1/sports/mma/odds", "regions", "us,"),
        ("/v1/sports/mma/odds", "odds_format", "Decimal"),
        ("/v1/sports/mma/odds", "after", "zz"),
        ("/v1/sports/mma/odds", "after", "00"),
        ("/v1/sports/mma/events", "after", "x"),
        ("/v1/sports/mma/scores", "after", "x"),
        ("/v1/sports/mma/events", "commence_from", "2026-11-14T23:39:00"),
        ("/v1/sports/mma/events", "commence_from", "2026-11-15T03:00:00+01:00"),
        ("/v1/sports/mma/events", "commence_to", "1794699540"),
        ("/v1/sports/mma/events", "commence_to", "2026-02-30T00:00:00Z"),
    ] {
        let value = bad.replace(' ', "%20");
        refused(&service, path, &format!("{name}={value}"), name, "takes").await;
    }
}

#[tokio::test]
async fn an_empty_value_is_400() {
    let service = Service::start().await;
    for (path, rows) in endpoints() {
        for (name, _, _, takes) in rows {
            refused(&service, path, &format!("{name}="), name, takes).await;
            refused(&service, path, name, name, takes).await;
        }
        refused(&service, path, "after=", "after", "empty").await;
    }
}

#[tokio::test]
async fn a_value_given_twice_is_400() {
    let service = Service::start().await;
    for (path, rows) in endpoints() {
        for (name, good, _, takes) in rows {
            refused(&service, path, &format!("{name}={good}&{name}={good}"), name, takes).await;
            refused(&service, path, &format!("{name}={good}&limit=5&{name}={good}"), name, takes).await;
        }
        refused(&service, path, "%6Cimit=5&limit=5", "limit", "twice").await;
    }
    // Next to the header, the query's key is ignored; if it is used, it must occur once.
    assert_eq!(service.get("/v1/books?api_key=a&api_key=b").await.status, 200);
    let twice = service.send("GET", &format!("/v1/books?api_key={0}&api_key={0}", service.live), &[]).await;
    assert_eq!((error(&twice), twice.param()), ((400, "invalid_parameter".into()), "api_key".into()));
    assert!(message(&twice).contains("twice"), "{twice:?}");
}

#[tokio::test]
async fn bad_encoding_is_400() {
    let service = Service::start().await;
    for (path, rows) in endpoints() {
        for (name, _, _, takes) in rows {
            for bad in ["%FF", "%", "%2", "%zz", "a%C3%28"] {
                refused(&service, path, &format!("{name}={bad}"), name, takes).await;
            }
        }
        let answer = service.get(&format!("{path}?li%zzmit=5")).await;
        assert_eq!(error(&answer), (400, "invalid_parameter".into()), "{path}");
    }
}

#[tokio::test]
async fn names_and_values_are_percent_decoded() {
    let service = Service::start().await;
    service.ingest(&[event("mma", "m1", EVENING), moneyline("mma", "m1", "betmgm", -110, 150)].concat()).await;
    let answer = service.get("/v1/sports/mma/odds?odds%5Fformat=%64ecimal&event%5fids=m%31").await;
    assert_eq!((answer.status, &answer.json()[0]["format"]), (200, &"decimal".into()), "{answer:?}");
}

#[tokio::test]
async fn an_unknown_name_is_400_with_the_nearest_known_one() {
    let service = Service::start().await;
    let odds = "/v1/sports/mma/odds";
    for (path, sent, nearest) in [
        (odds, "odd_format", "odds_format"),
        (odds, "oddsFormat", "odds_format"),
        (odds, "markets", "market"),
        (odds, "bookmakers", "bookmaker"),
        (odds, "event_id", "event_ids"),
        (odds, "Limit", "limit"),
        (odds, "apiKey", "api_key"),
        ("/v1/sports/mma/scores", "statuses", "status"),
        ("/v1/sports/mma/events", "comence_from", "commence_from"),
        ("/v1/sports/mma/events", "afer", "after"),
    ] {
        let query = format!("{sent}=decimal");
        refused(&service, path, &query, sent, &format!("`{nearest}`")).await;
    }
    refused(&service, odds, "page=2", "page", "market, bookmaker, regions").await;
    refused(&service, "/v1/sports/mma/scores", "odds_format=decimal", "odds_format", "status").await;
    refused(&service, odds, "status=live", "status", "market").await;
}

#[tokio::test]
async fn endpoints_without_parameters_refuse_every_name() {
    let service = Service::start().await;
    service.ingest(&every_sport()).await;
    for path in [
        "/v1/sports",
        "/v1/books",
        "/v1/markets",
        "/v1/status",
        "/v1/sports/mma/events/m1",
        "/v1/sports/mma/competitions",
    ] {
        for name in ["limit", "x", "regions"] {
            refused(&service, path, &format!("{name}=1"), name, name).await;
        }
        assert_eq!(service.get(&format!("{path}?")).await.status, 200, "an empty query is none");
    }
}

#[tokio::test]
async fn invalid_value_is_echoed_truncated_and_escaped() {
    let service = Service::start().await;
    let long = "%22".repeat(500);
    let answer = service.get(&format!("/v1/sports/mma/odds?market={long}")).await;
    assert_eq!(error(&answer), (400, "invalid_parameter".into()));
    assert!(answer.body.len() < 600, "{}", answer.body.len());
}
