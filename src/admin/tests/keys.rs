//! The audit log has who acted; no secret is stored or logged.

use super::*;
use crate::admin::own_name;

#[tokio::test]
async fn the_audit_log_names_the_user_whichever_way_the_command_came() {
    let fixture = TestServer::new();
    fixture.ask(sandbox_key("without a server")).await.unwrap();
    let server = fixture.serve().await;
    fixture.ask(sandbox_key("with a server")).await.unwrap();
    let log = fixture.ask(Command::Audit { after: None, limit: None }).await.unwrap();
    let entries = log.as_array().unwrap();
    assert_eq!(entries.len(), 2);
    for entry in entries {
        assert_eq!(text(entry, "who"), own_name().unwrap());
        assert_eq!(text(entry, "action"), "issue");
    }
    server.stop().await;
}

#[tokio::test]
async fn a_secret_is_in_the_answer_that_issues_it_and_in_no_other() {
    let fixture = TestServer::new();
    let server = fixture.serve().await;
    let issued = fixture.ask(sandbox_key("secretive")).await.unwrap();
    let id = text(&issued, "id").to_owned();
    let rotated = fixture.ask(Command::KeysRotate { id: id.clone(), grace_s: 60 }).await.unwrap();
    let secrets = [text(&issued, "key"), text(&rotated, "key")];
    assert_ne!(secrets[0], secrets[1]);
    assert_eq!(text(&rotated, "hint"), format!("sk_test_ob_…{}", &secrets[1][43..]));
    let others = [
        Command::KeysList,
        Command::KeysShow { id: id.clone() },
        Command::KeysSet(super::super::SetKey { id: id.clone(), name: Some("n".into()), ..Default::default() }),
        Command::Audit { after: None, limit: None },
        Command::Status,
        Command::Check(CheckOptions::default()),
        Command::KeysRevoke { id },
    ];
    for command in others {
        let name = format!("{command:?}");
        let answer = fixture.ask(command).await.unwrap().to_string();
        assert!(secrets.iter().all(|secret| !answer.contains(&secret[11..30])), "{name}: {answer}");
        assert!(!answer.contains("\"key\":\"sk_"), "{name}");
    }
    server.stop().await;
}

/// Times are stored in whole seconds: a duration that begins within one must not end early.
#[tokio::test]
async fn grace_expiry_and_maintenance_last_at_least_as_long_as_requested() {
    let fixture = TestServer::new();
    let server = fixture.serve().await;
    fixture.setup.clock.advance(Duration::from_millis(900));
    let Command::KeysIssue(new) = sandbox_key("short") else { panic!() };
    let issued = fixture.ask(Command::KeysIssue(IssueKey { expires_in_s: Some(3), ..new })).await.unwrap();
    assert_eq!(text(&issued, "expires"), "2026-11-14T12:00:04Z");
    let id = text(&issued, "id").to_owned();
    let rotated = fixture.ask(Command::KeysRotate { id: id.clone(), grace_s: 3 }).await.unwrap();
    assert_eq!(text(&rotated, "old_secret_until"), "2026-11-14T12:00:04Z");
    let without = fixture.ask(Command::KeysRotate { id: id.clone(), grace_s: 0 }).await.unwrap();
    assert_eq!(text(&without, "old_secret_until"), "2026-11-14T12:00:04Z", "no grace means none, to the millisecond");
    let set = super::super::SetKey { id, expires_in_s: FieldSetting::To(60), ..Default::default() };
    assert_eq!(text(&fixture.ask(Command::KeysSet(set)).await.unwrap(), "expires"), "2026-11-14T12:01:01Z");
    let closed = fixture.ask(Command::MaintenanceOn { for_s: Some(3) }).await.unwrap();
    assert_eq!(text(&closed["maintenance"], "until"), "2026-11-14T12:00:04Z");
    server.stop().await;
}
