//! The command line as scripts rely on it: exit codes, one document on standard output, one line on standard error.

use std::fs;

use serde_json::{Value, json};

use super::client::get;
use super::command::{Directory, Issued, Started, file_with, run};
use super::seed::within_a_day;

const EVENT: &str = r#"{"type":"event","sport":"mma","id":"ufc1","competition":"UFC","commence_time":"2099-01-01T00:00:00Z","home":"Ana Ruiz","away":"Bea Holt","status":"scheduled"}"#;
const UNKNOWN_SPORT: &str = r#"{"type":"event","sport":"chess","id":"c1","competition":"WC","commence_time":"2099-01-01T00:00:00Z","home":"A","away":"B","status":"scheduled"}"#;
const UNKNOWN_EVENT: &str = r#"{"type":"score","sport":"mma","event":"nobody","status":"live","home_score":0,"away_score":0,"updated_at":"2026-01-01T00:00:00Z"}"#;

/// The user that runs these tests.
fn user() -> String {
    oddsbox::admin::own_name().expect("a name")
}

#[test]
fn exit_code_is_2_for_wrong_usage_and_1_for_failure_with_a_message_on_stderr() {
    let directory = Directory::new();
    directory.run("keys issue --sandbox --name first").succeeded();
    let usages =
        ["fly", "keys", "keys issue --name x", "keys show", "ingest", "maintenance on --for soon", "keys set id"];
    for line in usages.into_iter().chain(["keys issue --sandbox --name x --burst 0", "--json", "status --jsn"]) {
        let done = directory.run(line);
        assert_eq!((done.code, done.stdout.as_str()), (Some(2), ""), "{line}: {done:?}");
        assert!(!done.stderr.is_empty(), "{line}");
    }
    for line in ["keys show nobody", "keys revoke nobody", "keys rotate nobody", "keys set nobody --burst 5"] {
        for line in [line.to_owned(), format!("{line} --json")] {
            let message = directory.run(&line).failed();
            assert!(message.contains("nobody") && message.contains("`oddsbox keys list`"), "{line}: {message}");
        }
    }
    for line in ["--help", "--version", "keys --help", "keys issue --help"] {
        let done = directory.run(line).succeeded();
        assert!(!done.stdout.is_empty(), "{line}");
    }
}

#[test]
fn commands_without_data_say_how_to_create_it() {
    let directory = Directory::new();
    let nothing = directory.path().join("nothing");
    for line in ["keys list", "keys show x", "status", "audit", "check", "maintenance off", "export"] {
        let message = run(&nothing, line).failed();
        let parts = ["nothing", "`oddsbox serve`", "check --data or ODDSBOX_DATA"];
        assert!(parts.iter().all(|part| message.contains(part)), "{line}: {message}");
    }
    assert!(!nothing.exists(), "looking makes nothing");
}

#[test]
fn unknown_setting_is_rejected_by_name() {
    let directory = Directory::new();
    let (_kept, path) = file_with(b"refesh = \"10s\"\n");
    let message = directory.run(&format!("config show --config {}", path.display())).failed();
    assert!(message.contains("line 1: there is no setting refesh; did you mean refresh?"), "{message}");
    let (_kept, path) = file_with(b"refresh = \"soon\"\n");
    let done = directory.run(&format!("serve --listen 127.0.0.1:0 --config {}", path.display()));
    let message = done.failed();
    assert!(message.contains("refresh") && message.contains("soon"), "{message}");
}

#[test]
fn a_production_key_needs_approval_and_only_it_can_be_restricted() {
    let directory = Directory::new();
    let done = directory.run("keys issue --live --name app");
    assert_eq!((done.code, done.stdout.as_str()), (Some(2), ""), "{done:?}");
    assert!(done.stderr.contains("--approved-by"), "{done:?}");
    let message = directory.run("keys issue --sandbox --name app --groups combat").failed();
    assert!(message.contains("production"), "{message}");
    let message = directory.run("keys issue --live --name app --approved-by ada --groups chess").failed();
    assert!(message.contains("chess") && message.contains("combat"), "{message}");
    let key = directory.json("keys issue --live --name app --approved-by ada --groups combat");
    assert_eq!((&key["approved_by"], &key["groups"]), (&json!("ada"), &json!(["combat"])));
    let audit = directory.json("audit").to_string();
    assert!(audit.contains("ada"), "{audit}");
}

#[tokio::test]
async fn a_restricted_key_reads_its_groups_and_no_others() {
    let directory = Directory::new();
    let server = directory.serve_all_sports(&[]);
    let key = Issued::from(&directory.json("keys issue --live --name app --approved-by ada --groups combat"));
    let status = async |path: &str| {
        let answer = get(server.address(), path, &key.secret).await;
        if answer.status == 200 { "ok".to_owned() } else { answer.code() }
    };
    assert_eq!(status("/v1/sports/mma/odds").await, "ok");
    assert_eq!(status("/v1/sports/boxing/scores").await, "ok");
    assert_eq!(status("/v1/sports/tennis/odds").await, "forbidden");
    assert_eq!(status("/v1/sports/golf/events").await, "forbidden");
    assert_eq!(status("/v1/sports").await, "ok", "the list of sports is not restricted");
    directory.run(&format!("keys set {} --groups tennis", key.id)).succeeded();
    assert_eq!(status("/v1/sports/mma/odds").await, "forbidden", "in force when the command returns");
    assert_eq!(status("/v1/sports/tennis/odds").await, "ok");
    directory.run(&format!("keys set {} --groups none", key.id)).succeeded();
    assert_eq!(status("/v1/sports/mma/odds").await, "ok");
    server.stop();
}

/// Each command that prints, with its arguments.
fn printing(id: &str, feed: &str) -> Vec<String> {
    let lines = [
        "keys issue --sandbox --name another",
        "keys issue --live --name another --approved-by ada",
        "keys list",
        "keys show $id",
        "keys rotate $id --grace 1h",
        "keys rotate $id --undo",
        "keys set $id --burst 50 --per-day none --per-month 5000 --expires 90d",
        "keys revoke $id",
        "ingest $feed",
        "ingest $feed --world sandbox",
        "audit",
        "status",
        "maintenance on --for 1m",
        "maintenance off",
        "check",
        "config show",
        "openapi",
        "man $manual",
    ];
    lines.iter().map(|line| line.replace("$id", id).replace("$feed", feed)).collect()
}

#[test]
fn json_is_one_document_and_nothing_else() {
    let directory = Directory::new();
    let manual = tempfile::tempdir().expect("a directory");
    let (_kept, feed) = file_with(format!("{EVENT}\n{UNKNOWN_SPORT}\n").as_bytes());
    for is_running in [false, true] {
        let server = is_running.then(|| directory.serve());
        let key = Issued::from(&directory.json("keys issue --sandbox --name app"));
        for line in printing(&key.id, &feed.display().to_string()) {
            let line = line.replace("$manual", &manual.path().display().to_string());
            let done = directory.run(&format!("{line} --json")).succeeded();
            let document = done.document();
            assert!(document.is_object() || document.is_array(), "{line}: {document}");
            assert!(done.stdout.ends_with('\n'), "{line}");
        }
        assert!(directory.run("--json keys list").succeeded().document().is_array(), "wherever the flag stands");
        let ready = directory.run("ready --json");
        assert_eq!(ready.document(), json!({"ready": is_running}));
        assert_eq!(ready.code, Some(i32::from(!is_running)));
        drop(server);
    }
}

#[test]
fn completions_as_json_are_one_document_too() {
    Directory::new().json("completions bash");
}

#[test]
fn ready_is_0_only_while_a_server_answers() {
    let directory = Directory::new();
    let message = directory.run("ready").failed();
    assert!(message.contains("no server runs"), "{message}");
    let server = directory.serve();
    assert_eq!(directory.run("ready").succeeded().stdout, "ready\n");
    server.stop();
    directory.run("ready").failed();
    let server = directory.serve();
    server.kill();
    assert!(directory.socket().exists());
    let message = directory.run("ready").failed();
    assert!(message.contains("no server runs"), "a socket without a listener is not a server: {message}");
}

/// Removes times and random parts from answers.
fn without_chance(mut answer: Value, keys: &[Issued]) -> Value {
    fn walk(value: &mut Value, keys: &[Issued]) {
        match value {
            Value::Object(fields) => {
                for name in
                    ["created", "at", "since", "until", "time", "revoked", "expires", "old_secret_until", "sequence"]
                {
                    if fields.get(name).is_some_and(|value| !value.is_null()) {
                        fields.insert(name.to_owned(), json!("some"));
                    }
                }
                for name in ["key", "hint"] {
                    fields.remove(name);
                }
                fields.values_mut().for_each(|value| walk(value, keys));
            }
            Value::Array(values) => {
                for value in values.iter_mut() {
                    walk(value, keys);
                }
                // Keys of the same second are ordered by their random ids.
                if values.iter().all(|value| value["scope"].is_string()) {
                    values.sort_by_key(|key| key["id"].to_string());
                }
            }
            Value::String(text) => {
                for (number, key) in keys.iter().enumerate() {
                    *text = text.replace(&key.id, &format!("key {number}"));
                }
                let is_time = |word: &str| word.starts_with("20") && word.contains('T') && word.contains('Z');
                let words = text.split(' ').map(|word| if is_time(word) { "some time" } else { word });
                *text = words.collect::<Vec<_>>().join(" ");
            }
            _ => {}
        }
    }
    walk(&mut answer, keys);
    answer
}

/// Runs a whole sequence of commands; returns every answer.
fn session(directory: &Directory) -> Vec<(String, Value)> {
    let first = Issued::from(&directory.json("keys issue --sandbox --name first --per-month 9000"));
    let second =
        Issued::from(&directory.json("keys issue --live --name second --approved-by ada --groups combat,golf"));
    let keys = [first, second];
    let (_kept, feed) = file_with(format!("{EVENT}\n{UNKNOWN_SPORT}\n\n{UNKNOWN_EVENT}\nno json\n").as_bytes());
    let feed = feed.display().to_string();
    let mut answers = Vec::new();
    let lines = [
        "keys list",
        "keys show $first",
        "keys set $first --name renamed --burst 7 --per-day 100 --expires 30d",
        "keys set $second --groups none --per-day none --per-month 5",
        "keys rotate $second --grace 1h",
        "keys rotate $second --undo",
        "keys set $second --self-service true",
        "keys revoke $first",
        "keys revoke $first",
        "keys rotate $first",
        "keys show nobody",
        "keys set $first --groups combat",
        "keys issue --live --name third --approved-by ada --groups chess",
        "ingest $feed",
        "ingest $feed --strict",
        "ingest missing-file",
        "maintenance on --for 1m",
        "maintenance off",
        "keys list",
        "audit",
    ];
    for line in lines {
        let full = line.replace("$first", &keys[0].id).replace("$second", &keys[1].id).replace("$feed", &feed);
        let done = directory.run(&format!("{full} --json"));
        let stdout = if done.stdout.is_empty() { Value::Null } else { without_chance(done.document(), &keys) };
        let stderr = without_chance(json!(done.stderr.replace(&feed, "$feed")), &keys);
        answers.push((line.to_owned(), json!([done.code, stdout, stderr])));
    }
    // The server's own entry is the only difference.
    let audit = answers.last_mut().expect("an audit log");
    let entries = audit.1[1].as_array_mut().expect("entries");
    entries.retain(|entry| entry["action"] != "start");
    answers
}

#[test]
fn commands_answer_the_same_with_and_without_a_server() {
    let (alone, served) = (Directory::new(), Directory::new());
    let server = served.serve_all_sports(&[]);
    for ((line, alone), (_, served)) in session(&alone).into_iter().zip(session(&served)) {
        assert_eq!(alone, served, "{line}");
    }
    server.stop();
}

#[tokio::test]
async fn accepted_lines_are_served_and_rejected_ones_counted_by_reason() {
    let directory = Directory::new();
    let server = directory.serve();
    let live = Issued::from(&directory.json("keys issue --live --name app --approved-by ada"));
    let (_kept, feed) = file_with(format!("{EVENT}\n{UNKNOWN_SPORT}\n\n{UNKNOWN_EVENT}\n").as_bytes());
    let events = async || get(server.address(), "/v1/sports/mma/events", &live.secret).await.json();
    let report = directory.run(&format!("ingest {} --strict --json", feed.display()));
    assert_eq!(report.code, Some(1), "{report:?}");
    assert!(report.complaint().contains("nothing was written"), "{report:?}");
    let report = report.document();
    assert_eq!((&report["written"], &report["lines"]), (&json!(false), &json!(3)));
    assert!(report["rejected"].as_u64() >= Some(1), "{report}");
    assert_eq!(events().await, json!([]), "one bad line, and nothing is written");

    let report = directory.json(&format!("ingest {}", feed.display()));
    assert_eq!((&report["lines"], &report["accepted"], &report["rejected"]), (&json!(3), &json!(1), &json!(2)));
    assert_eq!(report["rejected_by_reason"], json!({"unknown_event": 1, "unknown_sport": 1}), "{report}");
    assert_eq!((&report["examples"][0]["line"], &report["examples"][1]["line"]), (&json!(2), &json!(4)));
    assert_eq!(events().await[0]["id"], "ufc1");

    let mut piped = Started::new(directory.path(), ["ingest", "-", "--strict", "--json"]);
    piped.write(&format!("{}\n", EVENT.replace("ufc1", "ufc2")));
    piped.write(&EVENT.replace("ufc1", "ufc3"));
    let report = piped.done().succeeded().document();
    assert_eq!((&report["written"], &report["accepted"], &report["rejected"]), (&json!(true), &json!(2), &json!(0)));
    assert_eq!(events().await.as_array().map(Vec::len), Some(3), "the last line needs no end");
    for (line, part) in
        [("ingest no-such-file", "cannot read no-such-file: No such file"), ("ingest /", "cannot read /: ")]
    {
        let message = directory.run(line).failed();
        assert!(message.contains(part), "{message}");
    }
    let text = directory.run(&format!("ingest {}", feed.display())).succeeded().stdout;
    assert!(text.contains("accepted") && text.contains("1 unknown_sport"), "{text}");
    server.stop();
}

#[test]
fn strict_ingest_reports_every_rejected_line() {
    let directory = Directory::new();
    directory.run("keys issue --sandbox --name first").succeeded();
    let (_kept, feed) = file_with(format!("{EVENT}\n{UNKNOWN_SPORT}\n{UNKNOWN_EVENT}\n").as_bytes());
    let report = directory.run(&format!("ingest {} --strict --json", feed.display())).document();
    assert_eq!((&report["accepted"], &report["rejected"]), (&json!(1), &json!(2)), "{report}");
}

#[tokio::test]
async fn maintenance_answers_503_and_is_shown_in_the_status() {
    let directory = Directory::new();
    let server = directory.serve();
    let key = Issued::from(&directory.json("keys issue --sandbox --name app"));
    let data = async || get(server.address(), "/v1/sports/mma/odds", &key.secret).await;
    let status = async || get(server.address(), "/v1/status", &key.secret).await.json()["status"].clone();
    // A simulated bookmaker is silent for part of each hour, and the status is then degraded.
    assert_eq!(data().await.status, 200);
    assert_ne!(status().await, "maintenance");
    let on = directory.json("maintenance on --for 1m");
    assert!(on["maintenance"]["until"].is_string(), "{on}");
    let closed = data().await;
    assert_eq!((closed.status, closed.code().as_str()), (503, "maintenance"));
    let retry: u64 = closed.header("retry-after").expect("a time").parse().expect("seconds");
    // Both the end and the wait are rounded up to whole seconds.
    assert!((1..=61).contains(&retry), "{retry}");
    assert_eq!(status().await, "maintenance");
    assert_eq!(directory.json("status")["status"], "maintenance");
    let used = directory.json(&format!("keys show {}", key.id))["used_today"].clone();
    assert_eq!(used, 1, "only the request that was answered counts");
    directory.run("maintenance off").succeeded();
    // A simulated bookmaker is silent for part of each hour, and the status is then degraded.
    assert_eq!(data().await.status, 200);
    assert_ne!(status().await, "maintenance");

    // It survives any kind of restart.
    directory.run("maintenance on").succeeded();
    server.kill();
    let server = directory.serve();
    assert_eq!(get(server.address(), "/v1/sports", &key.secret).await.status, 503);
    server.stop();
    directory.run("maintenance off").succeeded();
    let server = directory.serve();
    assert_eq!(get(server.address(), "/v1/sports", &key.secret).await.status, 200);
    server.stop();
}

#[tokio::test]
async fn maintenance_ends_automatically() {
    let directory = Directory::new();
    let server = directory.serve();
    let key = Issued::from(&directory.json("keys issue --sandbox --name app --burst 100000"));
    directory.run("maintenance on --for 4s").succeeded();
    assert_eq!(get(server.address(), "/v1/sports", &key.secret).await.status, 503);
    super::command::until("the maintenance ends", async || {
        get(server.address(), "/v1/sports", &key.secret).await.status == 200
    })
    .await;
    assert_eq!(directory.json("status")["maintenance"], Value::Null);
    server.stop();
}

#[tokio::test]
async fn audit_log_records_who_did_what() {
    let directory = Directory::new();
    let alone = Issued::from(&directory.json("keys issue --sandbox --name alone"));
    let server = directory.serve();
    let key = Issued::from(&directory.json("keys issue --live --name app --approved-by ada"));
    directory.run(&format!("keys rotate {} --grace 1h", key.id)).succeeded();
    directory.run(&format!("keys set {} --burst 5", key.id)).succeeded();
    directory.run("maintenance on").succeeded();
    directory.run("maintenance off").succeeded();
    directory.run(&format!("keys revoke {}", key.id)).succeeded();
    directory.run("keys revoke nobody").failed();
    server.stop();
    let entries = directory.json("audit");
    let entries = entries.as_array().expect("entries");
    let actions: Vec<(&str, &str, &str)> = entries
        .iter()
        .map(|entry| ["who", "action", "subject"].map(|name| entry[name].as_str().unwrap_or("")).into())
        .collect();
    let user = user();
    let by = |action, subject| (user.as_str(), action, subject);
    let expected = [
        by("issue", alone.id.as_str()),
        ("oddsbox", "start", "service"),
        by("issue", key.id.as_str()),
        by("rotate", key.id.as_str()),
        by("set", key.id.as_str()),
    ];
    assert_eq!(actions[..5], expected, "{actions:?}");
    assert!(actions[5..7].iter().all(|(who, action, _)| *who == user && action.contains("maintenance")), "{actions:?}");
    assert_eq!(actions[7], by("revoke", key.id.as_str()));
    assert_eq!(actions.len(), 8, "what was refused changed nothing: {actions:?}");
    let sequences: Vec<u64> = entries.iter().filter_map(|entry| entry["sequence"].as_u64()).collect();
    assert!(sequences.is_sorted() && sequences.len() == 8, "{sequences:?}");
    let text = directory.run("audit").succeeded().stdout;
    assert_eq!(text.lines().count(), 9, "a header and a line for each: {text}");
}

#[tokio::test]
async fn rotated_secret_works_immediately_and_the_old_one_until_its_grace_period_ends() {
    let directory = Directory::new();
    let server = directory.serve();
    let first = Issued::from(&directory.json("keys issue --sandbox --name app --burst 100000"));
    let status = async |key: &Issued| get(server.address(), "/v1/sports", &key.secret).await.status;
    let second = Issued::from(&directory.json(&format!("keys rotate {} --grace 1h", first.id)));
    assert_eq!((status(&first).await, status(&second).await), (200, 200));
    let third = Issued::from(&directory.json(&format!("keys rotate {} --grace 5s", first.id)));
    assert_eq!((status(&second).await, status(&third).await), (200, 200));
    super::command::until("the grace ends", async || status(&second).await == 401).await;
    assert_eq!(status(&third).await, 200);
    directory.run(&format!("keys revoke {}", first.id)).succeeded();
    for key in [&first, &second, &third] {
        assert_eq!(status(key).await, 401, "revoking ends every secret");
    }
    server.stop();
}

#[tokio::test]
async fn expired_key_is_rejected_and_can_be_extended() {
    let directory = Directory::new();
    let server = directory.serve();
    let key = Issued::from(&directory.json("keys issue --sandbox --name app --burst 100000 --expires 2s"));
    let status = async || get(server.address(), "/v1/sports", &key.secret).await.status;
    super::command::until("the key expires", async || status().await == 401).await;
    assert_eq!(directory.json(&format!("keys show {}", key.id))["status"], "expired");
    directory.run(&format!("keys set {} --expires never", key.id)).succeeded();
    assert_eq!(status().await, 200);
    server.stop();
}

#[tokio::test]
async fn usage_is_the_same_for_clients_operators_and_after_a_restart() {
    within_a_day(check_usage_is_the_same_for_clients_operators_and_after_a_restart).await;
}

async fn check_usage_is_the_same_for_clients_operators_and_after_a_restart() {
    let directory = Directory::new();
    let server = directory.serve();
    let key = Issued::from(&directory.json("keys issue --sandbox --name app --burst 1000 --per-day 500"));
    for _ in 0..37 {
        assert_eq!(get(server.address(), "/v1/sports", &key.secret).await.status, 200);
    }
    assert_eq!(get(server.address(), "/v1/sports/chess/odds", &key.secret).await.status, 404);
    assert_eq!(get(server.address(), "/v1/status", &key.secret).await.header("x-requests-used"), Some("38"));
    let running = directory.json(&format!("keys show {}", key.id));
    assert_eq!((&running["used_today"], &running["remaining_today"]), (&json!(38), &json!(462)));
    server.stop();
    assert_eq!(directory.json(&format!("keys show {}", key.id)), running, "with and without a server");
    assert_eq!(directory.json(&format!("keys show {}", key.id)), running, "looking costs nothing");
    let server = directory.serve();
    assert_eq!(directory.json(&format!("keys show {}", key.id)), running);
    assert_eq!(get(server.address(), "/v1/sports", &key.secret).await.header("x-requests-used"), Some("39"));
    server.stop();
}

#[test]
fn a_configuration_file_is_used_and_shown_with_its_origin() {
    let directory = Directory::new();
    let (_kept, path) = file_with(b"refresh = \"10s\"\n[simulator]\nseed = 7\n");
    let settings = directory.json(&format!("config show --config {}", path.display()));
    let of = |name: &str| settings.as_array().and_then(|all| all.iter().find(|one| one["name"] == name)).expect("it");
    assert_eq!((&of("refresh")["value"], &of("refresh")["from"]), (&json!("10s"), &json!(path.display().to_string())));
    assert_eq!(of("simulator.seed")["variable"], "ODDSBOX_SIMULATOR_SEED");
    assert_eq!(of("listen")["from"], "default");
    assert!(!fs::exists(directory.file()).expect("an answer"), "showing settings makes no file");
}
