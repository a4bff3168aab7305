//! How keys are sent, what they may read and what they are charged.

use super::{MMA, ROUTES, error};
use crate::api::fixture::{every_sport, key, limited};
use crate::harness::Service;
use oddsbox::keys::KeyKind;

#[tokio::test]
async fn key_is_accepted_in_the_query_or_the_header() {
    let service = Service::start().await;
    service.ingest(&every_sport()).await;
    for (path, _) in ROUTES {
        let join = if path.contains('?') { '&' } else { '?' };
        for name in ["apiKey", "api_key", "api%4Bey"] {
            let answer = service.send("GET", &format!("{path}{join}{name}={}", service.live), &[]).await;
            assert_eq!((answer.status, answer.header("deprecation")), (200, None), "{path} {name}");
            assert!(!answer.text().contains("sk_live"));
        }
        assert_eq!(service.get(path).await.status, 200, "{path}");
        assert_eq!(service.get_as(&service.live, &format!("{path}{join}apiKey=wrong")).await.status, 200, "{path}");
        assert_eq!(error(&service.send("GET", path, &[]).await), (401, "MISSING_KEY".into()), "{path}");
    }
    let wrong = service.get_as("wrong", &format!("/v4/sports?apiKey={}", service.live)).await;
    assert_eq!(error(&wrong), (401, "INVALID_KEY".into()), "the header wins");
    let v1 = service.send("GET", &format!("/v1/sports?apiKey={}", service.live), &[]).await;
    assert_eq!(v1.status, 401, "there the query's key has another name");
}

#[tokio::test]
async fn the_last_of_repeated_api_keys_counts() {
    let service = Service::start().await;
    let good = &service.live;
    for (query, status) in [
        (format!("apiKey=wrong&apiKey={good}"), 200),
        (format!("apiKey={good}&apiKey=wrong"), 401),
        (format!("api_key=wrong&apiKey={good}"), 200),
        (format!("apiKey={good}&apiKey={good}"), 200),
    ] {
        assert_eq!(service.send("GET", &format!("/v4/sports?{query}"), &[]).await.status, status, "{query}");
    }
}

#[tokio::test]
async fn encoded_path_prefix_does_not_bypass_authentication() {
    let service = Service::start().await;
    for path in ["/%764/sports", "/v%34/nothing", "/%76%34"] {
        assert_eq!(error(&service.send("GET", path, &[]).await), (401, "MISSING_KEY".into()), "{path}");
    }
}

#[tokio::test]
async fn query_keys_can_be_disabled() {
    let service = Service::start_with(&[("allow_query_key", "false")]).await;
    let answer = service.send("GET", &format!("/v4/sports?apiKey={}", service.live), &[]).await;
    assert_eq!(error(&answer), (401, "MISSING_KEY".into()));
    assert_eq!(service.get("/v4/sports").await.status, 200);
}

#[tokio::test]
async fn deactivated_key_is_distinguished_from_an_unknown_one() {
    let service = Service::start().await;
    let revoked = key(&service, KeyKind::Production, |_| {}).await;
    service.writer().revoke_key(&revoked.id, "test").await.unwrap();
    let rotated = key(&service, KeyKind::Production, |_| {}).await;
    service.writer().rotate_key(&rotated.id, 0, "test").await.unwrap();
    let other = Service::start().await;
    for (secret, code) in [
        (&revoked.secret, "DEACTIVATED_KEY"),
        (&rotated.secret, "DEACTIVATED_KEY"),
        (&other.live, "INVALID_KEY"),
        (&"hello".to_owned(), "INVALID_KEY"),
    ] {
        let answer = service.send("GET", &format!("/v4/sports?apiKey={secret}"), &[]).await;
        assert_eq!(error(&answer), (401, code.into()));
        assert!(answer.header("www-authenticate").is_some() && answer.header("x-requests-used").is_none());
        assert!(!answer.text().contains(secret.as_str()));
    }
}

#[tokio::test]
async fn catalogue_lists_are_free_and_other_requests_count_once() {
    let service = Service::start().await;
    service.ingest(&every_sport()).await;
    let key = limited(&service, 100, Some(50), None).await.secret;
    let mut used = 0;
    let mistakes = [("/v4/nothing", 1), ("/v4/sports/curling/odds", 1), ("/v4/sports/mma_mixed_martial_arts/odds", 1)];
    for (path, cost) in ROUTES.into_iter().chain(mistakes) {
        let answer = service.get_as(&key, path).await;
        used += cost;
        assert_eq!(answer.header("x-requests-last"), Some(&*cost.to_string()), "{path}");
        assert_eq!(answer.header("x-requests-used"), Some(&*used.to_string()), "{path}");
        assert_eq!(answer.header("x-requests-remaining"), Some(&*(50 - used).to_string()), "{path}");
    }
    assert_eq!(service.get_as(&key, "/v1/books").await.header("x-requests-last"), None);
}

#[tokio::test]
async fn exhausted_day_is_401_and_exhausted_minute_is_429() {
    let service = Service::start().await;
    service.ingest(&every_sport()).await;
    let path = format!("{MMA}/scores");
    let daily = limited(&service, 100, Some(2), None).await.secret;
    for _ in 0..2 {
        assert_eq!(service.get_as(&daily, &path).await.status, 200);
    }
    let spent = service.get_as(&daily, &path).await;
    assert_eq!(error(&spent), (401, "OUT_OF_USAGE_CREDITS".into()));
    assert_eq!((spent.header("x-requests-remaining"), spent.header("x-requests-last")), (Some("0"), Some("0")));
    assert_eq!(spent.header("retry-after"), Some("1260"), "until midnight");
    assert!(spent.json()["message"].as_str().unwrap().to_lowercase().contains("usage limit"));
    assert_eq!(service.get_as(&daily, "/v1/books").await.status, 429, "as ever there");
    assert_eq!(service.get_as(&daily, "/v4/sports").await.status, 200, "free is free");
    let burst = limited(&service, 1, Some(100), None).await.secret;
    assert_eq!(service.get_as(&burst, "/v4/sports").await.status, 200);
    let spent = service.get_as(&burst, "/v4/sports").await;
    assert_eq!(error(&spent), (429, "EXCEEDED_FREQ_LIMIT".into()));
    assert_eq!(spent.header("retry-after"), Some("60"));
}
