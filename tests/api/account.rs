//! The account page, and the rotation of a key by its holder.

use oddsbox::keys::KeyKind;

use super::fixture::{Key, error, key, message};
use crate::harness::{Answer, Service};

const DAY_S: u64 = 86_400;

async fn self_service(service: &Service, kind: KeyKind) -> Key {
    key(service, kind, |new| new.self_service = true).await
}

async fn rotate(service: &Service, secret: &str) -> Answer {
    service.send("POST", "/account/rotate", &[("x-api-key", secret)]).await
}

async fn status(service: &Service, secret: &str) -> u16 {
    service.get_as(secret, "/v1/books").await.status
}

fn new_secret(rotated: &Answer) -> String {
    rotated.json()["key"].as_str().unwrap_or_else(|| panic!("{rotated:?}")).to_owned()
}

#[tokio::test]
async fn page_needs_no_key_and_may_load_and_contact_only_this_service() {
    let service = Service::start().await;
    for (path, media_type) in [
        ("/account", "text/html; charset=utf-8"),
        ("/account/", "text/html; charset=utf-8"),
        ("/account/account.js", "text/javascript; charset=utf-8"),
        ("/account/account.css", "text/css; charset=utf-8"),
    ] {
        let got = service.send("GET", path, &[]).await;
        assert_eq!((got.status, got.header("content-type")), (200, Some(media_type)), "{path}");
        let policy = got.header("content-security-policy").unwrap();
        let parts: Vec<&str> = policy.split("; ").collect();
        for part in [
            "default-src 'none'",
            "script-src 'self'",
            "style-src 'self'",
            "connect-src 'self'",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
        ] {
            assert!(parts.contains(&part), "{path}: {policy}");
        }
        assert_eq!(parts.len(), 7, "{path}: {policy}");
        assert_eq!(got.header("referrer-policy"), Some("no-referrer"));
        assert_eq!(got.header("x-content-type-options"), Some("nosniff"));
        assert!(got.header("set-cookie").is_none());
        let post = service.send("POST", path, &[]).await;
        assert_eq!((error(&post), post.header("allow")), ((405, "method_not_allowed".into()), Some("GET, HEAD")));
    }
    for path in ["/account/other.js", "/account/rotate/x", "/account/..%2Fdocs"] {
        assert_eq!(service.send("GET", path, &[]).await.status, 404, "{path}");
    }
}

#[tokio::test]
async fn key_of_either_kind_rotates_itself_and_its_old_secret_works_for_a_day() {
    let service = Service::start_with_sandbox().await;
    for kind in KeyKind::ALL {
        let own = self_service(&service, kind).await;
        assert_eq!(service.get_as(&own.secret, "/v1/usage").await.json()["self_service"], true);
        let rotated = rotate(&service, &own.secret).await;
        assert_eq!((rotated.status, rotated.header("cache-control")), (200, Some("no-store")), "{rotated:?}");
        assert!(rotated.header("ratelimit").is_some() && rotated.header("x-request-id").is_some());
        assert_eq!(rotated.header("x-requests-used"), Some("0"), "it counts for the minute only");
        assert_eq!(rotated.json()["key_id"], own.id.as_str());
        let second = new_secret(&rotated);
        assert!(second.starts_with(kind.prefix()) && second != own.secret);
        assert_eq!((status(&service, &own.secret).await, status(&service, &second).await), (200, 200));
        let until = rotated.json()["old_secret_until"].as_str().unwrap().to_owned();
        let now = jiff::Timestamp::from_millisecond(service.clock.now().unix_ms).unwrap();
        assert_eq!(until.parse::<jiff::Timestamp>().unwrap().as_second() - now.as_second(), 86_400);
        service.pass(DAY_S - 1);
        assert_eq!(status(&service, &own.secret).await, 200);
        service.pass(1);
        assert_eq!((status(&service, &own.secret).await, status(&service, &second).await), (401, 200));
    }
}

#[tokio::test]
async fn key_rotates_itself_once_a_day_and_the_limit_survives_a_restart() {
    let service = Service::start().await;
    let own = self_service(&service, KeyKind::Production).await;
    let second = new_secret(&rotate(&service, &own.secret).await);
    service.pass(60);
    let service = service.restart_now().await;
    let refused = rotate(&service, &second).await;
    assert_eq!(error(&refused), (429, "rate_limited".into()));
    assert_eq!(refused.header("retry-after"), Some("86340"), "{refused:?}");
    assert!(message(&refused).contains("once in 24 hours"), "{refused:?}");
    service.pass(DAY_S - 60);
    let third = new_secret(&rotate(&service, &second).await);
    assert_eq!(status(&service, &third).await, 200);
}

#[tokio::test]
async fn only_a_key_that_may_rotates_itself_and_only_with_its_present_secret() {
    let service = Service::start().await;
    let plain = key(&service, KeyKind::Production, |_| {}).await;
    let refused = rotate(&service, &plain.secret).await;
    assert_eq!(error(&refused), (403, "forbidden".into()));
    assert!(message(&refused).contains("operator"), "{refused:?}");
    assert_eq!(status(&service, &plain.secret).await, 200, "nothing has changed");
    let own = self_service(&service, KeyKind::Production).await;
    let second = new_secret(&rotate(&service, &own.secret).await);
    service.pass(DAY_S - 1);
    let refused = rotate(&service, &own.secret).await;
    assert_eq!(error(&refused), (403, "forbidden".into()), "an old secret cannot take the key over");
    assert!(message(&refused).contains("has been replaced"), "{refused:?}");
    service.pass(1);
    assert_eq!(rotate(&service, &own.secret).await.status, 401, "its grace period is over");
    let change = oddsbox::keys::KeyChange { self_service: Some(false), ..Default::default() };
    service.writer().set_key(&own.id, change, "test").await.unwrap();
    assert_eq!(rotate(&service, &second).await.status, 403, "the operator has taken the right away");
    service.writer().revoke_key(&own.id, "test").await.unwrap();
    assert_eq!(rotate(&service, &second).await.status, 401);
    assert_eq!(service.send("POST", "/account/rotate", &[]).await.status, 401);
}

#[tokio::test]
async fn rotation_takes_the_key_from_a_header_and_nothing_from_the_query() {
    let service = Service::start().await;
    let own = self_service(&service, KeyKind::Production).await;
    let in_query = service.send("POST", &format!("/account/rotate?api_key={}", own.secret), &[]).await;
    assert_eq!(error(&in_query), (401, "authentication_failed".into()));
    let with_query = service.send("POST", "/account/rotate?grace=1", &[("x-api-key", &own.secret)]).await;
    assert_eq!((error(&with_query), with_query.param()), ((400, "invalid_parameter".into()), "grace".into()));
    let bearer = format!("Bearer {}", own.secret);
    let rotated = service.send("POST", "/account/rotate", &[("authorization", &bearer)]).await;
    assert_eq!(rotated.status, 200, "{rotated:?}");
    let bearer = format!("Bearer {}", new_secret(&rotated));
    assert_eq!(service.send("GET", "/v1/books", &[("authorization", &bearer)]).await.status, 401, "only there");
}

#[tokio::test]
async fn rotation_is_for_post_without_a_body_from_no_other_origin() {
    let service = Service::start().await;
    let own = self_service(&service, KeyKind::Production).await;
    for method in ["GET", "HEAD", "PUT", "DELETE", "OPTIONS"] {
        let got = service.send(method, "/account/rotate", &[("x-api-key", &own.secret)]).await;
        assert_eq!((got.status, got.header("allow")), (405, Some("POST")), "{method}");
    }
    for origin in ["http://evil.example", "null", "http://oddsbox.evil.example", "http://oddsbox:81"] {
        let headers = [("x-api-key", own.secret.as_str()), ("origin", origin)];
        let got = service.send("POST", "/account/rotate", &headers).await;
        assert_eq!(error(&got), (403, "forbidden".into()), "{origin}");
        assert!(got.header("access-control-allow-origin").is_none());
    }
    let long = format!(
        "POST /account/rotate HTTP/1.1\r\nhost: oddsbox\r\nconnection: close\r\nx-api-key: {}\r\ncontent-length: 5000\r\n\r\n",
        own.secret
    );
    let got = Answer::parse(&service.exchange(long.as_bytes()).await);
    assert_eq!(error(&got), (400, "invalid_parameter".into()));
    assert_eq!(status(&service, &own.secret).await, 200);
    let short = long.replace("5000", "2").replace("connection", "origin: http://oddsbox\r\nconnection") + "{}";
    let got = Answer::parse(&service.exchange(short.as_bytes()).await);
    assert_eq!(got.status, 200, "a short body is ignored, and an own page may ask: {got:?}");
}

#[tokio::test]
async fn rotation_counts_for_the_burst_and_works_in_maintenance() {
    let service = Service::start().await;
    let own = key(&service, KeyKind::Production, |new| {
        new.self_service = true;
        new.limits.burst_per_minute = 3;
        new.limits.per_day = Some(1);
    })
    .await;
    assert_eq!(status(&service, &own.secret).await, 200);
    assert_eq!(error(&service.get_as(&own.secret, "/v1/books").await), (429, "quota_exceeded".into()));
    let since = service.clock.now().timestamp();
    let closed = oddsbox::model::Maintenance { since, until: None };
    service.writer().set_maintenance(Some(closed), "test").await.unwrap();
    let second = new_secret(&rotate(&service, &own.secret).await);
    assert_eq!(rotate(&service, &second).await.status, 429, "the third of the minute, and a second one of the day");
    let refused = rotate(&service, &second).await;
    assert!(message(&refused).contains("per minute"), "{refused:?}");
}

#[tokio::test]
async fn of_two_rotations_with_one_secret_one_succeeds() {
    let service = Service::start().await;
    for _ in 0..8 {
        let own = self_service(&service, KeyKind::Production).await;
        let four = tokio::join!(
            rotate(&service, &own.secret),
            rotate(&service, &own.secret),
            rotate(&service, &own.secret),
            rotate(&service, &own.secret)
        );
        let answers = [four.0, four.1, four.2, four.3];
        let (done, refused): (Vec<_>, Vec<_>) = answers.iter().partition(|answer| answer.status == 200);
        assert_eq!((done.len(), refused.len()), (1, 3), "{answers:?}");
        assert!(refused.iter().all(|answer| answer.status == 403), "{refused:?}");
        assert_eq!(status(&service, &new_secret(done[0])).await, 200);
    }
}

#[tokio::test]
async fn rotation_is_audited_with_the_key_and_its_address_and_the_operator_can_undo_it() {
    let service = Service::start().await;
    let own = self_service(&service, KeyKind::Production).await;
    let second = new_secret(&rotate(&service, &own.secret).await);
    let log = service.writer().read_audit(None, 100).await.unwrap();
    let note = &log.last().unwrap().note;
    assert_eq!((&*note.action, &*note.subject), ("rotate", own.id.as_str()));
    assert_eq!((&*note.who, &*note.detail), (&*format!("{} (127.0.0.1)", own.id), "by its holder, grace 86400 s"));
    service.pass(3_600);
    service.writer().undo_rotation(&own.id, "test").await.unwrap();
    assert_eq!((status(&service, &own.secret).await, status(&service, &second).await), (200, 401));
    let refused = rotate(&service, &own.secret).await;
    assert_eq!(refused.header("retry-after"), Some("82800"), "undone, and still the one of the day: {refused:?}");
    let again = service.writer().undo_rotation(&own.id, "test").await.unwrap_err().to_string();
    assert!(again.contains("no rotation of") && again.contains("can be undone"), "{again}");
    let service = service.restart_now().await;
    service.pass(2 * DAY_S);
    assert_eq!((status(&service, &own.secret).await, status(&service, &second).await), (200, 401), "it has no end");
    let log = service.writer().read_audit(None, 100).await.unwrap();
    let undone = log.iter().find(|entry| &*entry.note.action == "undo rotation").unwrap();
    assert_eq!((&*undone.note.who, &*undone.note.subject), ("test", own.id.as_str()));
}
