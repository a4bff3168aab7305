//! Keys: format, rotation, restriction and approval.

use super::fixture::{key, limited};
use crate::harness::Service;
use oddsbox::keys::issue::{IssueError, KeyChange, NewKey};
use oddsbox::keys::{KeyKind, Limits};
use oddsbox::writer::KeyError;

#[tokio::test]
async fn a_key_is_its_prefix_30_random_characters_and_6_of_checksum() {
    let service = Service::start_with_sandbox().await;
    for (secret, prefix) in [(&service.live, "sk_live_ob_"), (&service.sandbox, "sk_test_ob_")] {
        let rest = secret.strip_prefix(prefix).unwrap();
        assert_eq!(rest.len(), 36);
        assert!(rest.bytes().all(|byte| byte.is_ascii_alphanumeric()));
    }
    let other = key(&service, KeyKind::Production, |_| {}).await.secret;
    assert_ne!(other, service.live);
}

#[tokio::test]
async fn mistyped_key_is_distinguished_from_an_unknown_one() {
    let service = Service::start_with_sandbox().await;
    let message = async |secret: &str| super::fixture::message(&service.get_as(secret, "/v1/books").await);
    let unknown = oddsbox::keys::Secret::generate(KeyKind::Production).unwrap();
    let unknown = message(unknown.expose()).await;
    for at in [0, 12, 30, 46] {
        let mut letters = service.live.clone().into_bytes();
        letters[at] = if letters[at] == b'x' { b'y' } else { b'x' };
        let mistyped = String::from_utf8(letters).unwrap();
        assert_ne!(message(&mistyped).await, unknown, "a changed letter at {at}");
    }
}

#[tokio::test]
async fn data_directory_contains_no_secret() {
    let mut service = Service::start_with_sandbox().await;
    assert_eq!(service.get("/v1/books").await.status, 200);
    let secrets = [service.live.clone(), service.sandbox.clone()];
    service.stop().await;
    let mut files = 0;
    for entry in std::fs::read_dir(service.data()).unwrap() {
        let path = entry.unwrap().path();
        let Ok(bytes) = std::fs::read(&path) else { continue };
        files += 1;
        for secret in &secrets {
            let body = &secret.as_bytes()[11..];
            assert!(!bytes.windows(body.len()).any(|part| part == body), "{}", path.display());
        }
    }
    assert!(files > 0);
}

#[tokio::test]
async fn rotation_keeps_limits_and_counters_and_the_old_secret_works_for_its_grace() {
    let service = Service::start_with_sandbox().await;
    let own = limited(&service, 100, Some(50), None).await;
    let used = async |secret: &str| {
        let answer = service.get_as(secret, "/v1/books").await;
        (answer.status, answer.header("x-requests-used").map(str::to_owned))
    };
    assert_eq!(used(&own.secret).await, (200, Some("1".into())));
    let second = service.writer().rotate_key(&own.id, 60, "test").await.unwrap().secret.expose().to_owned();
    assert_eq!(used(&second).await, (200, Some("2".into())), "the same counters");
    service.pass(59);
    assert_eq!(used(&own.secret).await, (200, Some("3".into())));
    service.pass(1);
    assert_eq!(used(&own.secret).await, (401, None), "the grace is over");
    assert_eq!(used(&second).await, (200, Some("4".into())));
    let third = service.writer().rotate_key(&own.id, 0, "test").await.unwrap().secret.expose().to_owned();
    assert_eq!(used(&second).await, (401, None), "no grace is the default");
    assert_eq!(used(&third).await, (200, Some("5".into())));
    let limits = service.get_as(&third, "/v1/status").await.json();
    assert_eq!(limits["rate_limit"].to_string(), r#"{"burst_per_minute":100,"requests_per_day":50}"#);
}

#[tokio::test]
async fn revoking_ends_the_grace_of_rotated_secrets_too() {
    let service = Service::start_with_sandbox().await;
    let own = limited(&service, 100, Some(50), None).await;
    let second = service.writer().rotate_key(&own.id, 600, "test").await.unwrap().secret.expose().to_owned();
    service.writer().revoke_key(&own.id, "test").await.unwrap();
    for secret in [&own.secret, &second] {
        assert_eq!(service.get_as(secret, "/v1/books").await.status, 401);
    }
}

#[tokio::test]
async fn limits_are_set_per_key_and_apply_immediately() {
    let service = Service::start_with_sandbox().await;
    let own = limited(&service, 100, Some(50), None).await;
    let change = KeyChange { burst_per_minute: Some(2), ..KeyChange::default() };
    service.writer().set_key(&own.id, change, "test").await.unwrap();
    for status in [200, 200, 429] {
        assert_eq!(service.get_as(&own.secret, "/v1/books").await.status, status);
    }
}

fn asked(kind: KeyKind) -> NewKey {
    NewKey {
        kind,
        name: "test".into(),
        groups: Vec::new(),
        limits: Limits::default_of(kind),
        expires: None,
        approved_by: Some("ops".into()),
        self_service: false,
    }
}

#[tokio::test]
async fn a_production_key_needs_an_approver_who_is_kept_in_the_audit_log() {
    let service = Service::start_with_sandbox().await;
    let unapproved = NewKey { approved_by: None, ..asked(KeyKind::Production) };
    let refused = service.writer().issue_key(unapproved, "test").await;
    assert!(matches!(refused, Err(KeyError::Refused(IssueError::NotApproved))), "{refused:?}");
    let approved = NewKey { approved_by: Some("Dana of ops".into()), ..asked(KeyKind::Production) };
    service.writer().issue_key(approved, "test").await.unwrap();
    let log = service.writer().read_audit(None, 100).await.unwrap();
    assert!(log.iter().any(|entry| format!("{entry:?}").contains("Dana of ops")), "{log:?}");
}

#[tokio::test]
async fn groups_restrict_production_keys_only_and_must_exist() {
    let service = Service::start_with_sandbox().await;
    let sandbox = NewKey { groups: vec!["golf".into()], approved_by: None, ..asked(KeyKind::Sandbox) };
    let refused = service.writer().issue_key(sandbox, "test").await;
    assert!(matches!(refused, Err(KeyError::Refused(IssueError::GroupsOfSandbox))), "{refused:?}");
    let unknown = NewKey { groups: vec!["mma".into()], ..asked(KeyKind::Production) };
    let refused = service.writer().issue_key(unknown, "test").await;
    assert!(matches!(refused, Err(KeyError::Refused(IssueError::UnknownGroup { .. }))), "{refused:?}");
}
