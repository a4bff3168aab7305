//! `/v4/historical/…`: what was published at a date, in the shape of The Odds API.

use super::MMA;
use crate::api::fixture::{EVENING, event, moneyline, moneyline_at, remove};
use crate::harness::{Answer, Service};

const PAST: &str = "/v4/historical/sports/mma_mixed_martial_arts";
const FIRST: &str = "2026-11-14T23:39:00Z";
const SECOND: &str = "2026-11-14T23:39:30Z";
/// The publication after the fight was removed.
const THIRD: &str = "2026-11-14T23:40:00Z";

/// Two publications of a fight's price, and the answers to the path at each.
async fn with_two_ticks(path: &str) -> (Service, [Answer; 2]) {
    let service = Service::start().await;
    service.ingest(&[event("mma", "m1", EVENING), moneyline("mma", "m1", "betmgm", -110, -110)].concat()).await;
    let first = service.get(path).await;
    let lines = [moneyline_at("mma", "m1", "betmgm", FIRST, -120, 100), event("mma", "m2", EVENING)];
    service.ingest(&lines.concat()).await;
    service.advance(30).await;
    let second = service.get(path).await;
    service.advance(5).await;
    service.ingest(&remove("mma", "m1")).await;
    service.advance(25).await;
    (service, [first, second])
}

fn wrapped(timestamps: [&str; 3], data: &Answer) -> String {
    wrapped_in(timestamps, data, |time| format!("\"{time}\""))
}

fn wrapped_in(timestamps: [&str; 3], data: &Answer, written: impl Fn(&str) -> String) -> String {
    let [timestamp, previous, next] = timestamps.map(|time| match time {
        "" => "null".to_owned(),
        time => written(time),
    });
    let data = data.text();
    format!(r#"{{"timestamp":{timestamp},"previous_timestamp":{previous},"next_timestamp":{next},"data":{data}}}"#)
}

fn error_code(answer: &Answer) -> (u16, String) {
    (answer.status, answer.json()["error_code"].as_str().unwrap_or_default().to_owned())
}

#[tokio::test]
async fn odds_are_those_of_then_in_an_envelope() {
    for (current, past) in [
        (format!("{MMA}/odds?regions=us&markets=h2h"), format!("{PAST}/odds?regions=us&markets=h2h")),
        (
            format!("{MMA}/odds?bookmakers=betmgm&dateFormat=unix"),
            format!("{MMA}/odds-history?bookmakers=betmgm&dateFormat=unix"),
        ),
        (format!("{MMA}/events/m1/odds?regions=us"), format!("{PAST}/events/m1/odds?regions=us")),
    ] {
        let (service, [first, second]) = with_two_ticks(&current).await;
        for (date, timestamps, then) in [
            (FIRST, [FIRST, "", SECOND], &first),
            ("2026-11-14T23:39:29Z", [FIRST, "", SECOND], &first),
            (SECOND, [SECOND, FIRST, THIRD], &second),
            ("2026-11-14T23:39:59Z", [SECOND, FIRST, THIRD], &second),
        ] {
            let answer = service.get(&format!("{past}&date={date}")).await;
            let expected = if past.contains("unix") {
                let unix = |time: &str| match time {
                    FIRST => "1794699540".to_owned(),
                    SECOND => "1794699570".to_owned(),
                    _ => "1794699600".to_owned(),
                };
                wrapped_in(timestamps, then, unix)
            } else {
                wrapped(timestamps, then)
            };
            assert_eq!((answer.status, answer.text()), (200, &*expected), "{past} {date}");
            assert_eq!(answer.header("x-requests-last"), Some("1"));
        }
    }
}

#[tokio::test]
async fn events_are_those_of_then() {
    let (service, [first, second]) = with_two_ticks(&format!("{MMA}/events")).await;
    // The second fight came in the first second, after the first answer.
    assert_ne!(first.text(), second.text());
    let answer = service.get(&format!("{PAST}/events?date=2026-11-14T23:39:34Z")).await;
    assert_eq!(answer.text(), wrapped([SECOND, FIRST, THIRD], &second));
    let later = service.get(&format!("{PAST}/events?date=2026-11-14T23:39:35Z")).await.json();
    assert_eq!((later["timestamp"].as_str(), &later["data"][0]["id"]), (Some("2026-11-14T23:39:35Z"), &"m2".into()));
}

#[tokio::test]
async fn what_cannot_be_answered_has_a_code() {
    let (service, _) = with_two_ticks(&format!("{MMA}/odds?regions=us")).await;
    for (path, expected) in [
        ("odds?regions=us", (422, "MISSING_HISTORICAL_TIMESTAMP")),
        ("odds?regions=us&date=", (422, "MISSING_HISTORICAL_TIMESTAMP")),
        ("odds?regions=us&date=yesterday", (422, "INVALID_HISTORICAL_TIMESTAMP")),
        ("odds?regions=us&date=2026-11-14T23:40:01Z", (422, "INVALID_HISTORICAL_TIMESTAMP")),
        ("events?date=2020-01-01T00:00:00Z", (422, "INVALID_HISTORICAL_TIMESTAMP")),
        ("odds?date=2026-11-14T23:39:00Z", (422, "MISSING_REGION")),
        ("events/m2/odds?regions=us&date=2026-11-14T23:38:59Z", (422, "INVALID_HISTORICAL_TIMESTAMP")),
        ("events/m9/odds?regions=us&date=2026-11-14T23:39:00Z", (404, "EVENT_NOT_FOUND")),
        ("scores?date=2026-11-14T23:39:00Z", (404, "NOT_FOUND")),
    ] {
        let answer = service.get(&format!("{PAST}/{path}")).await;
        assert_eq!(error_code(&answer), (expected.0, expected.1.to_owned()), "{path}");
    }
    let unknown = service.get("/v4/historical/sports/quidditch/odds?regions=us&date=2026-11-14T23:39:00Z").await;
    assert_eq!(error_code(&unknown), (404, "UNKNOWN_SPORT".to_owned()));
}
