//! What people and scripts meet on the command line: names in place of ids, errors as JSON, output that says what to do.

use std::fs;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::client::get;
use super::command::{Directory, Issued, Server, Started, file_with, run, until};
use crate::harness::Answer;

/// The line of an event.
fn event(number: usize) -> String {
    format!(
        r#"{{"type":"event","sport":"mma","id":"e{number}","competition":"Open","commence_time":"2099-01-01T00:00:00Z","home":"A{number}","away":"B{number}","status":"scheduled"}}"#
    ) + "\n"
}

/// A directory with an empty file.
fn empty() -> Directory {
    let directory = Directory::new();
    directory.json("keys issue --sandbox --name first");
    directory
}

#[tokio::test]
async fn demo_does_not_log_requests_unless_asked_to() {
    for (variables, is_logged) in [(&[][..], false), (&[("ODDSBOX_LOG", "info")][..], true)] {
        let directory = Directory::new();
        let server = Server::spawn_as("demo", directory.path(), "127.0.0.1:0", variables);
        let lines = server.lines_until(" status");
        let address = lines.iter().find_map(|line| line.trim().strip_prefix("listening on http://")).expect("one");
        get(address.parse().expect("an address"), "/v1/sports", "none").await;
        let log = server.stop();
        assert_eq!(log.contains("\"access\""), is_logged, "{log}");
    }
}

#[tokio::test]
async fn demo_prints_one_json_document_with_json() {
    let directory = Directory::new();
    let mut seen = Vec::new();
    for _ in 0..2 {
        let server = Server::spawn_as("demo --json", directory.path(), "127.0.0.1:0", &[]);
        let line = server.lines_until("sk_live_ob_").concat();
        let demo: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
        let text = |name: &str| demo[name].as_str().unwrap_or_else(|| panic!("no {name}: {demo}")).to_owned();
        let address = text("url").strip_prefix("http://").and_then(|address| address.parse().ok()).expect("an address");
        for key in ["sandbox_key", "production_key"] {
            assert_eq!(get(address, "/v1/sports", &text(key)).await.status, 200, "{key}");
        }
        assert_eq!(text("docs_url"), format!("{}/docs", text("url")));
        assert_eq!(text("account_url"), format!("{}/account", text("url")));
        assert!(text("console_url").starts_with("http://127.0.0.1:"), "{demo}");
        let commands = demo["commands"].as_array().expect("a list");
        assert!(commands[0].as_str().is_some_and(|line| line.starts_with("curl -H 'X-API-Key: sk_test_")), "{demo}");
        server.terminate();
        let (code, rest, log) = server.end();
        assert_eq!((code, rest.len()), (Some(0), 0), "nothing but the document: {rest:?} {log}");
        seen.push((text("sandbox_key"), text("production_key")));
    }
    assert_eq!(seen[0], seen[1]);
}

#[test]
fn serve_prints_one_json_document_with_json() {
    let directory = Directory::new();
    let server = Server::spawn_as("serve --json", directory.path(), "127.0.0.1:0", &[]);
    let line = server.lines_until("}").concat();
    let document: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
    assert!(document["url"].as_str().is_some_and(|url| url.starts_with("http://127.0.0.1:")), "{document}");
    assert_eq!(document["console_url"], Value::Null);
    server.stop();
}

#[test]
fn keys_are_found_by_name_unless_it_is_ambiguous() {
    let directory = Directory::new();
    let app = Issued::from(&directory.json("keys issue --sandbox --name app"));
    let twin = Issued::from(&directory.json("keys issue --sandbox --name twin"));
    let other = Issued::from(&directory.json("keys issue --live --name twin --approved-by ada"));
    for is_running in [false, true] {
        let server = is_running.then(|| directory.serve());
        assert_eq!(directory.json("keys show app")["id"], app.id.as_str());
        assert_eq!(directory.json("keys set app --burst 7")["limits"]["burst_per_minute"], 7);
        assert_eq!(directory.json("keys rotate app")["id"], app.id.as_str());
        for line in ["keys show twin", "keys rotate twin", "keys revoke twin", "keys set twin --burst 7"] {
            let message = directory.run(line).failed();
            assert!(message.starts_with("2 keys are named twin: "), "{line}: {message}");
            assert!(message.contains(&twin.id) && message.contains(&other.id), "{line}: {message}");
        }
        assert_eq!(
            directory.run("keys show nobody").failed(),
            "no key has the id or name nobody; `oddsbox keys list` shows them"
        );
        drop(server);
    }
    assert_eq!(directory.json("keys revoke app")["status"], "revoked");
    assert_eq!(directory.json(&format!("keys show {}", twin.id))["status"], "active");
}

#[test]
fn audit_is_limited_by_time_and_number() {
    let directory = Directory::new();
    for number in 0..4 {
        directory.json(&format!("keys issue --sandbox --name k{number}"));
    }
    let sequences = |line: &str| {
        let entries = directory.json(line);
        entries
            .as_array()
            .expect("a list")
            .iter()
            .map(|entry| entry["sequence"].as_u64().expect("one"))
            .collect::<Vec<_>>()
    };
    let all = sequences("audit");
    assert_eq!(all.len(), 4);
    assert_eq!(sequences("audit --limit 2"), all[2..]);
    assert_eq!(sequences("audit --limit 2000"), all);
    assert_eq!(sequences("audit --since 2h"), all);
    assert_eq!(sequences("audit --since 2026-01-01"), all);
    assert_eq!(sequences("audit --since 2026-01-01T00:00:00Z --limit 1"), all[3..]);
    assert_eq!(sequences("audit --since 2100-01-01"), [0_u64; 0]);
    assert_eq!(directory.run("audit --since yesterday").code, Some(2));
    assert_eq!(directory.run("audit --limit 0").code, Some(2));
}

#[test]
fn error_is_one_json_object_on_standard_error_with_json() {
    let directory = empty();
    let error = |line: &str, code: i32| {
        let done = directory.run(line);
        assert_eq!((done.code, done.stdout.as_str()), (Some(code), ""), "{line}: {done:?}");
        assert_eq!(done.stderr.lines().count(), 1, "{line}: {done:?}");
        let error: Value = serde_json::from_str(&done.stderr).unwrap_or_else(|error| panic!("{error}: {done:?}"));
        let message = error["error"]["message"].as_str().unwrap_or_else(|| panic!("{done:?}")).to_owned();
        assert_eq!(error, json!({"error": {"message": message}}));
        message
    };
    assert!(error("keys show nobody --json", 1).starts_with("no key has the id or name nobody"));
    assert!(error("status --jsn --json", 2).starts_with("unexpected argument '--jsn' found"));
    assert!(error("keys issue --json", 2).contains("required arguments were not provided"));
    assert!(error("--json", 2).contains("requires a subcommand"));
    assert!(error("--json keys", 2).contains("a command is missing"));
    assert!(error("feeds --stale tokens --json", 2).contains("`feeds tokens` takes no --world and no --stale"));
    let secret = directory.json("keys issue --sandbox --name app")["key"].as_str().expect("a secret").to_owned();
    assert!(!error(&format!("keys {secret} --json"), 2).contains(&secret[11..]));
    assert!(error("serve --listen nowhere --json", 1).starts_with("listen = \"nowhere\" (from --listen)"));
    assert_eq!(directory.run("demo clear --listen 127.0.0.1:0").code, Some(2));
}

#[test]
fn common_options_stand_anywhere() {
    let directory = empty();
    directory.json("feeds token scraper");
    let elsewhere = tempfile::tempdir().expect("a directory");
    let data = directory.path().display();
    for line in [format!("feeds --data {data} tokens --json"), format!("feeds --json tokens --data {data}")] {
        // The harness passes --data first, and the later one wins.
        let done = run(elsewhere.path(), &line).succeeded();
        assert_eq!(done.document()[0]["name"], "scraper", "{line}");
    }
}

#[test]
fn feed_token_is_shown_with_the_address_of_the_listener() {
    let directory = empty();
    let text = directory.run("feeds token nowhere").succeeded().stdout;
    assert!(text.contains("[ingest] listen") && text.contains("ODDSBOX_INGEST_LISTEN"), "{text}");
    let server = directory.serve();
    let text = directory.run("feeds token still-nowhere").succeeded().stdout;
    assert!(text.contains("[ingest] listen"), "{text}");
    server.stop();
    let server = directory.serve_with(&[("ODDSBOX_INGEST_LISTEN", "127.0.0.1:0")]);
    let status = directory.json("status");
    let address = status["server"]["ingest_address"].as_str().expect("an address");
    let text = directory.run("feeds token one").succeeded().stdout;
    assert!(text.contains(&format!("--data-binary @lines.ndjson http://{address}/ingest\n")), "{text}");
    assert_eq!(directory.json("feeds token two")["ingest_url"], format!("http://{address}/ingest"));
    server.stop();
    let server = directory.serve_with(&[("ODDSBOX_INGEST_LISTEN", "0.0.0.0:0")]);
    let text = directory.run("feeds token three").succeeded().stdout;
    assert!(text.contains("HOST is the name of this machine") && !text.contains("0.0.0.0"), "{text}");
    server.stop();
}

/// Pushes one event by a token; the status of the response.
async fn push(address: &str, token: &str, number: usize) -> u16 {
    let line = event(number);
    let mut stream = TcpStream::connect(address).await.expect("a connection");
    let request = format!(
        "POST /ingest HTTP/1.1\r\nhost: x\r\nconnection: close\r\nauthorization: Bearer {token}\r\n\
         content-length: {}\r\n\r\n{line}",
        line.len()
    );
    stream.write_all(request.as_bytes()).await.expect("bytes");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.expect("an answer");
    Answer::parse(&answer).status
}

#[tokio::test]
async fn rotated_feed_token_lives_for_its_grace_and_revocation_ends_both() {
    let directory = empty();
    let serve = || directory.serve_with(&[("ODDSBOX_INGEST_LISTEN", "127.0.0.1:0")]);
    let address = || directory.json("status")["server"]["ingest_address"].as_str().expect("an address").to_owned();
    let token = |line: &str| directory.json(line)["token"].as_str().expect("a token").to_owned();
    let server = serve();
    let first = token("feeds token scraper");
    let rotated = directory.json("feeds token scraper --rotate --grace 1h");
    let second = rotated["token"].as_str().expect("a token").to_owned();
    assert!(rotated["old_secret_until"].is_string() && first != second, "{rotated}");
    let at = address();
    assert_eq!((push(&at, &first, 1).await, push(&at, &second, 2).await), (200, 200));

    // Rotated without a grace: the second ends at once, the first keeps the rest of its hour.
    let third = token("feeds token scraper --rotate");
    assert_eq!((push(&at, &first, 3).await, push(&at, &second, 4).await, push(&at, &third, 5).await), (200, 401, 200));
    server.kill();
    let server = serve();
    let at = address();
    assert_eq!((push(&at, &first, 6).await, push(&at, &second, 7).await, push(&at, &third, 8).await), (200, 401, 200));
    let list = directory.json("feeds tokens");
    assert_eq!((&list[0]["status"], list[0]["old_secret_until"].is_string()), (&json!("active"), true), "{list}");

    directory.run("feeds token scraper --revoke").succeeded();
    assert_eq!((push(&at, &first, 9).await, push(&at, &third, 10).await), (401, 401));
    let message = directory.run("feeds token scraper --rotate").failed();
    assert!(message.contains("is revoked") && message.contains("`oddsbox feeds token scraper`"), "{message}");
    assert!(directory.run("feeds token nobody --rotate").failed().contains("no feeder is called nobody"));
    let audit = directory.run("audit").succeeded().stdout;
    assert!(audit.contains("\trotate token\tscraper\tgrace 3600 s"), "{audit}");
    for secret in [&first, &second, &third] {
        assert!(!audit.contains(&secret[6..]));
    }
    let fourth = token("feeds token scraper");
    assert_eq!((push(&at, &first, 11).await, push(&at, &fourth, 12).await), (401, 200));
    server.stop();
    assert_eq!(directory.json("check")["clean"], true);
    for line in ["feeds token x --grace 1h", "feeds token x --rotate --revoke", "feeds token x --rotate --world live"] {
        assert_eq!(directory.run(line).code, Some(2), "{line}");
    }
}

#[test]
fn rotated_feed_token_ends_with_its_grace() {
    let directory = empty();
    directory.json("feeds token scraper");
    directory.json("feeds token scraper --rotate --grace 1s");
    let is_over = || directory.json("feeds tokens")[0]["old_secret_until"].is_null();
    let began = std::time::Instant::now();
    while !is_over() {
        assert!(began.elapsed().as_secs() < 60, "the grace period does not end");
    }
}

#[test]
fn repeated_rejections_collapse_in_the_report() {
    let directory = empty();
    let lines: Vec<String> = (0..50).map(|number| format!("{{\"type\":\"t{number}\"}}")).collect();
    let (_kept, file) = file_with(format!("{}\n{}", lines.join("\n"), event(1)).as_bytes());
    let text = directory.run(&format!("ingest {}", file.display())).succeeded().stdout;
    assert_eq!(text.matches("unknown_type: ").count(), 3, "{text}");
    assert!(text.ends_with("… and 47 more like it\n"), "{text}");
    let (_kept, one) = file_with(b"not JSON\n");
    for flag in ["", " --strict"] {
        let done = directory.run(&format!("ingest {}{flag}", one.display()));
        assert!(done.complaint().starts_with("the only line was rejected"), "{done:?}");
    }
}

#[tokio::test]
async fn interrupted_ingest_says_what_was_kept() {
    let directory = empty();
    let server = directory.serve();
    let live_events = || directory.json("status")["worlds"]["live"]["events"].clone();
    let mut ingest = Started::new(directory.path(), ["ingest", "-", "--json"]);
    ingest.write(&(event(1) + "not JSON\n" + &event(2) + "{\"type\":\"event\""));
    until("the lines were read", async || live_events() == 2).await;
    let done = ingest.interrupted();
    assert_eq!(done.code, Some(130), "{done:?}");
    let report = done.document();
    assert_eq!((&report["lines"], &report["accepted"]), (&json!(3), &json!(2)), "{report}");
    assert!(done.complaint().starts_with("interrupted: kept 2 of the 3 lines read so far"), "{done:?}");
    assert_eq!(live_events(), 2);

    server.stop();
}

/// More than a pipe and the command's own buffers hold: once it is written, the command is reading.
fn padded(lines: &str) -> String {
    format!("{lines}{}", "\n".repeat(1 << 20))
}

#[test]
fn interrupted_ingest_without_a_server_says_what_was_kept() {
    let directory = empty();
    let mut ingest = Started::new(directory.path(), ["ingest", "-"]);
    ingest.write(&padded(&event(1)));
    let done = ingest.interrupted();
    assert_eq!(done.code, Some(130), "{done:?}");
    assert!(done.complaint().starts_with("interrupted: kept 1 of the 1 lines read so far"), "{done:?}");
    assert_eq!(directory.json("status")["worlds"]["live"]["events"], 1);
}

#[test]
fn interrupted_strict_ingest_writes_nothing() {
    let directory = empty();
    for is_running in [false, true] {
        let server = is_running.then(|| directory.serve());
        let mut ingest = Started::new(directory.path(), ["ingest", "-", "--strict"]);
        ingest.write(&padded(&event(1)));
        let done = ingest.interrupted();
        assert_eq!((done.code, done.stdout.as_str()), (Some(130), ""), "{done:?}");
        assert_eq!(done.complaint(), "interrupted: nothing was written");
        assert_eq!(directory.json("status")["worlds"]["live"]["events"], 0);
        drop(server);
    }
}

#[test]
fn export_does_not_overwrite_a_file_without_force() {
    let directory = empty();
    let (_kept, file) = file_with(b"mine");
    let line = format!("export --output {}", file.display());
    let message = directory.run(&line).failed();
    assert!(message.contains("exists") && message.contains("--force"), "{message}");
    assert_eq!(fs::read(&file).expect("a file"), b"mine");
    directory.run(&format!("{line} --force")).succeeded();
    assert_ne!(fs::read(&file).expect("a file"), b"mine");
    assert_eq!(directory.run("export --force").code, Some(2), "without --output");
    let left: Vec<_> = fs::read_dir(file.parent().expect("a directory")).expect("one").collect();
    assert_eq!(left.len(), 1, "no temporary file: {left:?}");
}

#[test]
fn config_show_fails_as_serve_does() {
    let directory = Directory::new();
    let catalogue = directory.path().join("catalogue.toml");
    fs::write(&catalogue, "sports = 1\n").expect("a file");
    let feed = "[feeds.us]\nkind = \"the-odds-api\"\nurl = \"https://upstream.invalid/v4\"\nsports = \"mma\"\n";
    let wrong = [
        "refersh = \"10s\"\n".to_owned(),
        "refresh = \"soon\"\n".to_owned(),
        "log = \"=no=\"\n".to_owned(),
        "catalogue = \"/nowhere/catalogue.toml\"\n".to_owned(),
        format!("catalogue = \"{}\"\n", catalogue.display()),
        "[tls]\ncertificate = \"/nowhere/chain.pem\"\nkey = \"/nowhere/key.pem\"\n".to_owned(),
        "[ingest]\ndrop = \"/nowhere/drop\"\n".to_owned(),
        format!("{feed}key_file = \"/nowhere/key\"\n"),
        format!("{feed}key = \"k\"\nca = \"/nowhere/ca.pem\"\n"),
        feed.replace("\"mma\"", "\"soccr\"") + "key = \"k\"\n",
        format!("{feed}key = \"k\"\nmarkets = [\"h2h\", \"player_points\"]\n"),
        format!("{feed}key = \"k\"\nevent_markets = [\"player points\"]\n"),
        format!("{feed}key = \"k\"\nmarkets = []\n"),
    ];
    for text in wrong {
        let (_kept, file) = file_with(text.as_bytes());
        let serve = directory.run(&format!("serve --listen 127.0.0.1:0 --config {}", file.display()));
        let show = directory.run(&format!("config show --config {}", file.display()));
        assert_eq!((serve.code, show.code), (Some(1), Some(1)), "{text}: {show:?}");
        assert_eq!(serve.complaint(), show.complaint(), "{text}");
    }
    let text = feed.replace("\"mma\"", "\"soccr\"") + "key = \"k\"\n";
    let (_kept, file) = file_with(text.as_bytes());
    let shown = directory.run(&format!("config show --config {}", file.display())).complaint();
    assert!(
        shown.contains("feeds.us.sports: there is no sport or competition \"soccr\": did you mean \"soccer\"?"),
        "{shown}"
    );
    for sports in ["mma", "soccer,soccer_epl,americanfootball_nfl,tennis,soccer_new_cup"] {
        let text = feed.replace("mma", sports) + "key = \"k\"\nevent_markets = [\"player_points\"]\n";
        let (_kept, file) = file_with(text.as_bytes());
        directory.run(&format!("config show --config {}", file.display())).succeeded();
    }
}

#[test]
fn status_and_feeds_say_that_no_server_runs() {
    let directory = empty();
    let text = directory.run("status").succeeded().stdout;
    assert!(text.starts_with("No server runs on ") && !text.contains("ok: ") && !text.contains("\nstatus"), "{text}");
    let text = directory.run("feeds").succeeded().stdout;
    assert!(text.starts_with("No server runs on ") && text.contains("LAST SUCCESS"), "{text}");
    let server = directory.serve();
    let text = directory.run("status").succeeded().stdout;
    assert!(text.starts_with("status       ") && text.contains("\nserver       http://"), "{text}");
    server.stop();
}

#[test]
fn manual_pages_have_a_section_of_examples() {
    let manual = tempfile::tempdir().expect("a directory");
    Directory::new().run(&format!("man {}", manual.path().display())).succeeded();
    let page = fs::read_to_string(manual.path().join("oddsbox-keys-rotate.1")).expect("a page");
    assert!(page.contains(".SH EXAMPLES\n.nf\noddsbox keys rotate acme\n") && !page.contains(".SH EXTRA"), "{page}");
}
