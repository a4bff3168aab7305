use serde_json::json;

use super::*;

fn read(command: serde_json::Value) -> Result<Command, String> {
    serde_json::from_value(command).map_err(|error| error.to_string())
}

#[test]
fn commands_are_objects_with_their_name() {
    assert_eq!(read(json!({"command": "keys-list"})), Ok(Command::KeysList));
    assert_eq!(
        read(json!({"command": "keys-rotate", "id": "key_x", "grace_s": 60})),
        Ok(Command::KeysRotate { id: "key_x".into(), grace_s: 60 })
    );
    assert_eq!(read(json!({"command": "audit"})), Ok(Command::Audit { after: None, limit: None }));
    assert_eq!(read(json!({"command": "maintenance-on"})), Ok(Command::MaintenanceOn { for_s: None }));
}

#[test]
fn what_is_left_out_is_kept_and_null_takes_away() {
    let set = read(json!({"command": "keys-set", "id": "key_x", "requests_per_day": null, "expires_in_s": 60}));
    let expected = SetKey {
        id: "key_x".into(),
        requests_per_day: FieldSetting::Remove,
        expires_in_s: FieldSetting::To(60),
        ..SetKey::default()
    };
    assert_eq!(set, Ok(Command::KeysSet(expected)));
}

#[test]
fn a_mistyped_field_is_an_error_and_not_a_silent_default() {
    let wrong = [
        json!({"command": "keys-issue", "kind": "sandbox", "name": "n", "per_day": 5}),
        json!({"command": "keys-set", "id": "key_x", "grups": []}),
        json!({"command": "keys-rotate", "id": "key_x", "grace": 60}),
        json!({"command": "keys-burn", "id": "key_x"}),
        json!({"id": "key_x"}),
    ];
    for command in wrong {
        assert!(read(command.clone()).is_err(), "{command}");
    }
}

#[test]
fn every_command_reads_back_as_it_was_written() {
    let issue = IssueKey {
        kind: "production".into(),
        name: "n".into(),
        approved_by: Some("ada".into()),
        groups: vec!["combat".into()],
        burst_per_minute: Some(5),
        requests_per_day: FieldSetting::Remove,
        requests_per_month: FieldSetting::To(9),
        streams: None,
        expires_in_s: None,
        self_service: true,
    };
    let commands = [
        Command::KeysIssue(issue),
        Command::KeysSet(SetKey { id: "key_x".into(), groups: Some(Vec::new()), ..SetKey::default() }),
        Command::KeysRotateUndo { id: "key_x".into() },
        Command::Audit { after: Some(3), limit: Some(4) },
        Command::MaintenanceOn { for_s: Some(1800) },
        Command::Check(CheckOptions::default()),
    ];
    for command in commands {
        let text = serde_json::to_string(&command).unwrap();
        assert_eq!(serde_json::from_str::<Command>(&text).unwrap(), command, "{text}");
    }
}

fn key() -> KeyAnswer {
    KeyAnswer {
        id: "key_x".into(),
        key: None,
        kind: "sandbox".into(),
        name: "n".into(),
        groups: Vec::new(),
        scope: "odds:read".into(),
        limits: LimitsAnswer { burst_per_minute: 60, requests_per_day: Some(10), requests_per_month: None, streams: 2 },
        created: "2026-11-14T12:00:00Z".into(),
        expires: None,
        approved_by: None,
        revoked: None,
        status: "active".into(),
        hint: "sk_test_ob_…wxyz".into(),
        used_today: 1,
        used_this_month: 2,
        remaining_today: Some(9),
        last_used: None,
        open_streams: 0,
        old_secret_until: None,
        undo_until: None,
        self_service: false,
        unconfirmed: Vec::new(),
    }
}

#[test]
fn a_key_names_every_field_and_its_secret_only_when_there_is_one() {
    let text = r#"{"id":"key_x","kind":"sandbox","name":"n","groups":[],"scope":"odds:read","limits":{"burst_per_minute":60,"requests_per_day":10,"requests_per_month":null,"streams":2},"created":"2026-11-14T12:00:00Z","expires":null,"approved_by":null,"revoked":null,"status":"active","hint":"sk_test_ob_…wxyz","used_today":1,"used_this_month":2,"remaining_today":9,"last_used":null,"open_streams":0,"old_secret_until":null,"undo_until":null,"self_service":false}"#;
    assert_eq!(serde_json::to_string(&Answer::Key(Box::new(key()))).unwrap(), text);
    let issued = KeyAnswer { key: Some(SecretText::new("sk_test_ob_secret")), ..key() };
    assert!(serde_json::to_string(&issued).unwrap().starts_with(r#"{"id":"key_x","key":"sk_test_ob_secret","kind":"#));
    assert!(!format!("{issued:?}").contains("sk_test_ob_secret"));
}

#[test]
fn a_failure_has_a_code_and_a_message() {
    let failure = failure::FailureBody { error: Failure::new(FailureCode::KeyNotFound, "no key"), taken_lines: None };
    let text = serde_json::to_string(&failure).unwrap();
    assert_eq!(text, r#"{"error":{"code":"key_not_found","message":"no key"}}"#);
}
