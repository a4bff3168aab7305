//! `oddsbox demo`: the commands that it prints work as pasted, on every start.
//!
//! The failure that the rest prevents: after a demo, a server on the same directory serves simulated prices to
//! production keys with status `ok`; or a demo mixes simulated prices into real data.

use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::{Value, json};

use super::backup::event;
use super::client::get;
use super::command::{Directory, Issued, Server, file_with, run, run_in};

fn demo(directory: &Directory) -> Server {
    Server::spawn_as("demo", directory.path(), "127.0.0.1:0", &[])
}

/// The secret and the URL of a curl command.
fn pasted(line: &str) -> Option<(&str, &str)> {
    let (secret, url) = line.trim().strip_prefix("curl -H 'X-API-Key: ")?.split_once("' '")?;
    Some((secret, url.strip_suffix('\'')?))
}

/// The output of a demo.
struct Banner {
    lines: Vec<String>,
    address: SocketAddr,
    sandbox: String,
    live: String,
}

impl Banner {
    fn read(server: &Server) -> Banner {
        let lines = server.lines_until("/scores");
        let value = |name: &str| {
            let line = lines.iter().find_map(|line| line.trim().strip_prefix(name));
            line.unwrap_or_else(|| panic!("no {name}: {lines:?}")).trim().to_owned()
        };
        let address = value("listening on http://").parse().expect("an address");
        Banner { address, sandbox: value("sandbox key"), live: value("production key"), lines }
    }
}

async fn status(address: SocketAddr, secret: &str) -> Value {
    get(address, "/v1/status", secret).await.json()
}

#[tokio::test]
async fn demo_prints_working_commands_on_every_start() {
    let directory = Directory::new();
    let mut shown = Vec::new();
    for start in 0..3 {
        let server = demo(&directory);
        let banner = Banner::read(&server);
        let curls: Vec<(&str, &str)> = banner.lines.iter().filter_map(|line| pasted(line)).collect();
        assert_eq!(curls.len(), 3, "{:?}", banner.lines);
        for (secret, url) in &curls {
            let (address, path) = url.strip_prefix("http://").and_then(|url| url.split_once('/')).expect("a URL");
            let answer = get(address.parse().expect("an address"), &format!("/{path}"), secret).await;
            let body: Value = answer.json();
            assert_eq!(answer.status, 200, "{url}: {body}");
            let list = body.as_array().or(body["sports"].as_array()).unwrap_or_else(|| panic!("{url}: {body}"));
            assert!(!list.is_empty(), "{url} shows nothing");
        }
        let command = server.lines_until(" status").concat();
        assert!(command.ends_with(&format!("oddsbox --data {} status", directory.path().display())), "{command}");
        let keys = directory.json("keys list");
        assert_eq!(keys.as_array().map(Vec::len), Some(if start < 2 { 2 } else { 3 }), "{keys}");
        if start == 1 {
            // The file with the secrets is gone, so the next start issues new keys.
            directory.run(&format!("keys revoke {}", keys[1]["id"].as_str().expect("an id"))).succeeded();
        }
        server.stop();
        let mode = fs::metadata(directory.path().join("demo-keys.json")).expect("a file").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        shown.push((banner.sandbox, banner.live));
    }
    assert_eq!(shown[0], shown[1], "the keys of the first start");
    assert!(shown[1].0 == shown[2].0 && shown[1].1 != shown[2].1, "only the revoked one is replaced");
}

#[test]
fn demo_and_serve_have_directories_of_their_own() {
    let directory = Directory::new();
    let server = Server::spawn_in(directory.path(), "demo");
    let banner = Banner::read(&server);
    assert!(banner.lines.iter().any(|line| line.ends_with("data in ./oddsbox-demo")), "{:?}", banner.lines);
    let command = server.lines_until(" status").concat();
    assert!(command.ends_with("--data ./oddsbox-demo status"), "{command}");
    server.stop();
    let message = run_in(directory.path(), "keys list").failed();
    assert!(message.contains("--data ./oddsbox-demo"), "where the demo's data is: {message}");
    let mut server = Server::spawn_in(directory.path(), "serve");
    server.wait_until_ready();
    server.stop();
    for name in ["oddsbox-demo", "oddsbox-data"] {
        assert!(directory.path().join(name).join("oddsbox.redb").exists(), "{name}");
    }
}

#[tokio::test]
async fn serve_refuses_a_demo_until_it_is_cleared() {
    let directory = Directory::new();
    let server = demo(&directory);
    let banner = Banner::read(&server);
    let running = directory.run("demo clear").failed();
    assert!(running.contains("a server runs"), "{running}");
    server.stop();

    let refused = Server::spawn(directory.path(), &[]).failed();
    let advised = format!("demo clear --data {}", directory.path().display());
    assert!(refused.contains("invented prices") && refused.contains(&format!("`oddsbox {advised}`")), "{refused}");
    let before = directory.json("status");
    assert_eq!(before["worlds"]["live"]["simulated"], true, "{before}");
    assert!(directory.run("status").succeeded().stdout.contains("live         simulated, "));

    let cleared = directory.json("demo clear");
    let live = &before["worlds"]["live"];
    assert!(live["history_since"].is_string() && live["history_bytes"].as_u64() > Some(0), "{live}");
    assert_eq!((&cleared["cleared"], &cleared["sources"]), (&json!(true), &live["sources"]), "{cleared}");
    assert!(cleared["events"].as_u64() >= live["events"].as_u64() && live["events"].as_u64() > Some(0), "{cleared}");
    assert!(!directory.path().join("demo-keys.json").exists(), "no secret in plain text beside production data");
    let audit = directory.json("audit").to_string();
    assert!(audit.contains("\"clear demo\"") && audit.contains("\"simulate\""), "{audit}");
    assert_eq!(directory.json("check")["clean"], true);

    let server = directory.serve();
    let live = status(server.address(), &banner.live).await;
    assert_eq!((&live["status"], &live["sports_active"], &live["simulated"]), (&json!("ok"), &json!(0), &Value::Null));
    assert_eq!(live["history_since"], Value::Null, "simulated prices are nobody's history");
    for path in ["/v1/sports/mma/odds", "/v1/sports/tennis/events", "/v1/sports/tennis/scores"] {
        assert_eq!(get(server.address(), path, &banner.live).await.json(), json!([]), "{path}");
    }
    let sandbox: Value = get(server.address(), "/v1/sports/mma/odds", &banner.sandbox).await.json();
    assert!(sandbox.as_array().is_some_and(|records| !records.is_empty()), "the sandbox is as it was");
    let counts = directory.json("status");
    assert_eq!((&counts["worlds"]["live"]["events"], &counts["worlds"]["live"]["sources"]), (&json!(0), &json!(0)));
    assert_eq!(counts["worlds"]["live"]["simulated"], false);
    server.stop();
    assert_eq!(directory.json("demo clear")["cleared"], false, "there is nothing left to clear");
}

#[tokio::test]
async fn documentation_offers_the_printed_keys_in_a_demo_and_none_in_serve() {
    let directory = Directory::new();
    let server = demo(&directory);
    let banner = Banner::read(&server);
    let offered = get(banner.address, "/docs/demo.json", "").await;
    assert_eq!(offered.json(), json!({"sandbox": banner.sandbox, "live": banner.live}));
    server.stop();
    directory.json("demo clear");
    let server = directory.serve();
    assert_eq!(get(server.address(), "/docs/demo.json", "").await.status, 404);
    server.stop();
}

#[tokio::test]
async fn status_of_a_demo_says_that_its_live_world_is_simulated() {
    let directory = Directory::new();
    let server = demo(&directory);
    let banner = Banner::read(&server);
    assert_eq!(status(banner.address, &banner.live).await["simulated"], true);
    assert_eq!(status(banner.address, &banner.sandbox).await.get("simulated"), None, "of the sandbox nothing is said");
    server.stop();
    let other = Directory::new();
    let server = other.serve();
    let live = Issued::from(&other.json("keys issue --live --name app --approved-by ada"));
    assert_eq!(status(server.address(), &live.secret).await.get("simulated"), None);
    server.stop();
}

#[test]
fn demo_refuses_a_live_world_that_is_not_simulated() {
    let directory = Directory::new();
    let (_kept, lines) = file_with(event(1).as_bytes());
    directory.json("keys issue --live --name app --approved-by ada");
    directory.json(&format!("ingest {}", lines.display()));
    let exported = directory.run("export").succeeded().stdout;
    let refused = demo(&directory).failed();
    assert!(refused.contains("not simulated") && refused.contains("--data"), "{refused}");
    let refused = directory.run("demo clear").failed();
    assert!(refused.contains("not simulated") && refused.contains("nothing was deleted"), "{refused}");
    assert_eq!(directory.run("export").succeeded().stdout, exported);
    directory.serve().stop();
}

#[test]
fn demo_clear_does_not_create_a_missing_directory() {
    let directory = Directory::new();
    let nothing = directory.path().join("nothing");
    let message = run(&nothing, "demo clear").failed();
    assert!(message.contains("no demo in") && message.contains("nothing"), "{message}");
    assert!(!Path::new(&nothing).exists());
}
