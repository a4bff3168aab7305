//! Every error has v4's code and shape.

use super::{MMA, error};
use crate::api::fixture::{every_sport, restricted};
use crate::harness::Service;

#[tokio::test]
async fn invalid_value_is_422() {
    let service = Service::start().await;
    service.ingest(&every_sport()).await;
    let odds = format!("{MMA}/odds?regions=us&");
    for (path, code) in [
        (format!("{MMA}/odds"), "MISSING_REGION"),
        (format!("{MMA}/odds?regions="), "MISSING_REGION"),
        (format!("{MMA}/events/m1/odds"), "MISSING_REGION"),
        (format!("{MMA}/events/m1/markets?regions=,"), "MISSING_REGION"),
        (format!("{MMA}/odds?regions=us,mars"), "INVALID_REGION"),
        (format!("{MMA}/odds?regions=US"), "INVALID_REGION"),
        (format!("{odds}regions=%FF"), "INVALID_REGION"),
        (format!("{MMA}/odds?bookmakers=nobody,noone"), "INVALID_BOOKMAKERS"),
        (format!("{odds}markets=h2h,winning_margin"), "INVALID_MARKET"),
        (format!("{odds}oddsFormat=hongkong"), "INVALID_ODDS_FORMAT"),
        (format!("{odds}dateFormat=julian"), "INVALID_DATE_FORMAT"),
        (format!("{MMA}/events?dateFormat=julian"), "INVALID_DATE_FORMAT"),
        (format!("{odds}eventIds=a,,b"), "INVALID_EVENT_IDS"),
        (format!("{odds}commenceTimeFrom=tomorrow"), "INVALID_COMMENCE_TIME_FROM"),
        (format!("{odds}commenceTimeFrom=2026-11-14T00:00:00+02:00"), "INVALID_COMMENCE_TIME_FROM"),
        (format!("{odds}commenceTimeTo=2026-11-14"), "INVALID_COMMENCE_TIME_TO"),
        (
            format!("{odds}commenceTimeFrom=2026-11-14T00:00:01Z&commenceTimeTo=2026-11-14T00:00:00Z"),
            "INVALID_COMMENCE_TIME_RANGE",
        ),
        (format!("{odds}includeLinks=yes"), "INVALID_INCLUDE_LINKS"),
        (format!("{odds}includeSids=1"), "INVALID_INCLUDE_SIDS"),
        (format!("{odds}includeBetLimits=~"), "INVALID_INCLUDE_BET_LIMITS"),
        (format!("{odds}includeMultipliers=AAA"), "INVALID_INCLUDE_MULTIPLIERS"),
        (format!("{odds}includeRotationNumbers=AAA"), "INVALID_INCLUDE_ROTATION_NUMBERS"),
        (format!("{odds}after=xyz"), "INVALID_AFTER"),
        (format!("{MMA}/scores?daysFrom=0"), "INVALID_SCORES_DAYS_FROM"),
        (format!("{MMA}/scores?daysFrom=4"), "INVALID_SCORES_DAYS_FROM"),
        (format!("{MMA}/scores?daysFrom=1.5"), "INVALID_SCORES_DAYS_FROM"),
        ("/v4/sports?all=maybe".into(), "INVALID_ALL_SPORTS_PARAM"),
    ] {
        assert_eq!(error(&service.get(&path).await), (422, code.into()), "{path}");
    }
}

#[tokio::test]
async fn unknown_path_or_sport_is_404() {
    let service = Service::start().await;
    for (path, code) in [
        ("/v4/sports/curling_curling/odds?regions=us", "UNKNOWN_SPORT"),
        ("/v4/sports/mma/odds?regions=us", "UNKNOWN_SPORT"),
        ("/v4/sports/golf_winner/events", "UNKNOWN_SPORT"),
        ("/v4/sports//scores", "UNKNOWN_SPORT"),
        ("/v4", "NOT_FOUND"),
        ("/v4/nothing", "NOT_FOUND"),
        ("/v4/historical/sports/mma_mixed_martial_arts/scores", "NOT_FOUND"),
        ("/v4/sports/mma_mixed_martial_arts/events/m1", "NOT_FOUND"),
        ("/v4/a/b/c/d/e/f/g", "NOT_FOUND"),
    ] {
        assert_eq!(error(&service.get(path).await), (404, code.into()), "{path}");
    }
}

#[tokio::test]
async fn bad_percent_encoding_in_a_path_is_400() {
    let service = Service::start().await;
    for path in ["/v4/sports/%FF/odds?regions=us", "/v4/%zz", "/v4/sports/mma_mixed_martial_arts/events/%/odds"] {
        assert_eq!(error(&service.get(path).await), (400, "INVALID_REQUEST".into()), "{path}");
        assert_eq!(error(&service.send("GET", path, &[]).await), (401, "MISSING_KEY".into()), "{path}");
    }
}

#[tokio::test]
async fn a_restricted_key_is_forbidden_other_sports() {
    let service = Service::start().await;
    service.ingest(&every_sport()).await;
    let golf = restricted(&service, &["golf"]).await.secret;
    for path in ["odds?regions=us", "odds", "scores", "events", "participants", "events/m1/odds?regions=us"] {
        let answer = service.get_as(&golf, &format!("{MMA}/{path}")).await;
        assert_eq!(error(&answer), (403, "FORBIDDEN".into()), "{path}");
    }
    let own = service.get_as(&golf, "/v4/sports/golf_the_open_championship_winner/odds?regions=us").await;
    assert_eq!(own.status, 200);
}

#[tokio::test]
async fn method_size_and_maintenance_errors_have_the_v4_shape() {
    let service = Service::start().await;
    let key = [("x-api-key", service.live.as_str())];
    let posted = service.send("POST", "/v4/sports", &key).await;
    assert_eq!(error(&posted), (405, "METHOD_NOT_ALLOWED".into()));
    assert_eq!(posted.header("allow"), Some("GET, HEAD"));
    let long = service.get(&format!("{MMA}/odds?eventIds={}", "e".repeat(9000))).await;
    assert_eq!(error(&long), (414, "URI_TOO_LONG".into()));
    let large = service.get_with("/v4/sports", &[("x-pad", &"a".repeat(17 << 10))]).await;
    assert_eq!(error(&large), (431, "HEADERS_TOO_LARGE".into()));
    let since = oddsbox::model::Timestamp::from_unix_ms(crate::harness::START_MS);
    let closed = oddsbox::model::Maintenance { since, until: None };
    service.writer().set_maintenance(Some(closed), "test").await.unwrap();
    for path in ["/v4/sports", "/v4/sports/upcoming/odds?regions=us", &format!("{MMA}/scores")] {
        let closed = service.get(path).await;
        assert_eq!(error(&closed), (503, "MAINTENANCE".into()), "{path}");
        assert_eq!((closed.header("retry-after"), closed.header("x-requests-last")), (Some("60"), Some("0")));
        assert_eq!(closed.header("x-requests-used"), Some("0"));
    }
}
