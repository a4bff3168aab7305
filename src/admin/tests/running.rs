//! A command is answered the same whether a server does it or the command itself.

use serde_json::{Value, json};

use super::*;

/// Every command that only looks.
fn looks(id: &str) -> Vec<Command> {
    vec![
        Command::KeysList,
        Command::KeysShow { id: id.into() },
        Command::Audit { after: None, limit: None },
        Command::Audit { after: Some(1), limit: Some(2) },
        Command::Status,
        Command::Check(CheckOptions { pages: true, drop_damaged: false }),
    ]
}

/// Without what only a server has, and the size of the file, which a closing changes.
fn comparable(mut answer: Value) -> Value {
    if let Some(answer) = answer.as_object_mut() {
        answer.remove("server");
        answer.remove("file_bytes");
        answer.remove("rows");
    }
    answer
}

#[tokio::test]
async fn the_same_file_gives_the_same_answers_with_and_without_a_server() {
    let fixture = TestServer::new();
    let server = fixture.serve().await;
    let issued = fixture.ask(sandbox_key("first")).await.unwrap();
    let id = text(&issued, "id").to_owned();
    fixture.ask(Command::MaintenanceOn { for_s: Some(600) }).await.unwrap();
    let mut with_server = Vec::new();
    for command in looks(&id) {
        with_server.push(comparable(fixture.ask(command).await.unwrap()));
    }
    server.stop().await;
    for (command, expected) in looks(&id).into_iter().zip(with_server) {
        let name = format!("{command:?}");
        assert_eq!(comparable(fixture.ask(command).await.unwrap()), expected, "{name}");
    }
}

/// Every command that changes something, with what changes from one run to the next left out of its answer.
async fn changes(fixture: &TestServer) -> Vec<Value> {
    let issued = fixture.ask(sandbox_key("changing")).await.unwrap();
    let id = text(&issued, "id").to_owned();
    let set = super::super::SetKey {
        id: id.clone(),
        name: Some("changed".into()),
        burst_per_minute: Some(5),
        requests_per_day: FieldSetting::Remove,
        requests_per_month: FieldSetting::To(100),
        streams: None,
        expires_in_s: FieldSetting::To(3600),
        ..Default::default()
    };
    let answers = [
        Ok(issued),
        fixture.ask(Command::KeysSet(set)).await,
        fixture.ask(Command::KeysRotate { id: id.clone(), grace_s: 60 }).await,
        fixture.ask(Command::KeysRevoke { id: id.clone() }).await,
        fixture.ask(Command::KeysRotate { id: id.clone(), grace_s: 0 }).await,
        fixture.ask(Command::KeysRevoke { id: "key_x".into() }).await,
        fixture.ask(Command::MaintenanceOn { for_s: None }).await,
        fixture.ask(Command::MaintenanceOn { for_s: Some(0) }).await,
        fixture.ask(Command::MaintenanceOff).await,
        fixture.ask(Command::Audit { after: None, limit: Some(0) }).await,
    ];
    let plain = |answer: Result<Value, AdminError>| match answer {
        Ok(mut answer) => {
            for field in ["id", "key", "hint"] {
                answer.as_object_mut().unwrap().remove(field);
            }
            answer
        }
        Err(error) => json!(error.to_string().replace(&id, "ID")),
    };
    answers.into_iter().map(plain).collect()
}

#[tokio::test]
async fn changes_are_the_same_with_and_without_a_server() {
    let with_server = TestServer::new();
    let server = with_server.serve().await;
    let expected = changes(&with_server).await;
    server.stop().await;
    assert_eq!(changes(&TestServer::new()).await, expected);
    assert_eq!(
        expected[1]["limits"],
        json!({"burst_per_minute": 5, "requests_per_day": null, "requests_per_month": 100, "streams": 2})
    );
    assert_eq!(expected[1]["expires"], "2026-11-14T13:00:00Z");
    assert_eq!(expected[2]["old_secret_until"], "2026-11-14T12:01:00Z");
    assert_eq!(expected[3]["status"], "revoked");
    assert_eq!(expected[4], "ID is revoked, which cannot be undone: issue a new key instead");
    assert_eq!(expected[5], "no key has the id or name key_x; `oddsbox keys list` shows them");
    assert_eq!(expected[6]["maintenance"], json!({"since": "2026-11-14T12:00:00Z", "until": null}));
    assert_eq!(expected[8]["maintenance"], Value::Null);
}

#[tokio::test]
async fn status_tells_of_the_server_only_where_there_is_one() {
    let fixture = TestServer::new();
    let server = fixture.serve().await;
    fixture.setup.clock.advance(Duration::from_secs(90));
    let status = fixture.ask(Command::Status).await.unwrap();
    assert_eq!(status["server"]["uptime_s"], 90);
    assert_eq!(status["server"]["requests_per_second"], 0.5);
    assert_eq!(status["status"], "ok");
    assert_eq!(fixture.ask(Command::Ready).await.unwrap(), json!({"ready": true}));
    server.stop().await;
    let status = fixture.ask(Command::Status).await.unwrap();
    assert_eq!(status["server"], Value::Null);
    assert!(status["file_bytes"].as_u64().unwrap() > 0);
    assert_eq!(fixture.ask(Command::Ready).await.unwrap(), json!({"ready": false}));
}

#[tokio::test]
async fn a_directory_that_is_not_there_is_made_only_for_commands_that_may() {
    let fixture = TestServer::new();
    let error = fixture.find(Access::Existing).await.unwrap_err().to_string();
    assert!(error.starts_with("no oddsbox data in ") && error.contains("check --data or ODDSBOX_DATA"), "{error}");
    assert!(!fixture.data.path().exists());
    fixture.ask(sandbox_key("first")).await.unwrap();
    fixture.find(Access::Existing).await.unwrap().close().await.unwrap();
}

/// A server takes the file before it answers and leaves it after: commands in between must not fail.
#[tokio::test]
async fn a_server_that_starts_or_stops_is_waited_for() {
    let fixture = TestServer::new();
    fixture.ask(sandbox_key("first")).await.unwrap();
    let locked = Store::open(&fixture.data.file(), Arc::clone(&fixture.setup.catalogue), fixture.setup.store).unwrap();
    // Retries are at intervals of tokio's clock, so that some come before the release without waiting for them.
    tokio::time::pause();
    let release = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        drop(locked);
    };
    let (list, ()) = tokio::join!(fixture.ask(Command::KeysList), release);
    assert_eq!(list.unwrap().as_array().unwrap().len(), 1);
}
