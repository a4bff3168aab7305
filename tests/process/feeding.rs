//! Export, feeds and tokens on the command line, with and without a server.

use std::fs;
use std::net::SocketAddr;

use rustls_pki_types::CertificateDer;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::command::{Directory, file_with};
use crate::harness::Answer;
use crate::harness::tls::{Certificates, ask_trusting};

const LINES: &str = r#"{"type":"bookmaker","key":"acme","title":"Acme","regions":["us"]}
{"type":"event","sport":"mma","id":"e1","competition":"c","commence_time":"2036-11-15T00:00:00Z","home":"A","away":"B","status":"scheduled"}
{"type":"odds","sport":"mma","event":"e1","bookmaker":"acme","market":"moneyline","last_update":"2026-01-14T11:59:00Z","format":"decimal","outcomes":[{"name":"A","price":1.91},{"name":"B","price":2.0}]}
{"type":"event","sport":"tennis","id":"t1","competition":"c","commence_time":"2036-11-15T00:00:00Z","home":"A","away":"B","status":"cancelled"}
"#;

/// An empty data directory.
fn empty() -> Directory {
    let directory = Directory::new();
    directory.json("keys issue --sandbox --name first");
    directory
}

#[test]
fn export_round_trips_with_and_without_a_server() {
    let (_kept, lines) = file_with(LINES.as_bytes());
    let one = empty();
    assert_eq!(one.json(&format!("ingest {}", lines.display()))["accepted"], 4);
    let exported = one.run("export").succeeded().stdout;
    assert!(exported.lines().count() > 4 && exported.contains(r#""id":"e1""#), "{exported:.500}");

    let other = empty();
    let out = other.path().join("world.ndjson");
    let written = one.json(&format!("export --output {}", out.display()));
    assert_eq!(written["lines"], exported.lines().count());
    assert_eq!(fs::read_to_string(&out).expect("a file"), exported);
    let server = other.serve();
    let report = other.json(&format!("ingest {}", out.display()));
    assert_eq!((&report["rejected"], &report["lines"]), (&0.into(), &written["lines"]));
    assert_eq!(other.run("export --world live").succeeded().stdout, exported);
    // The simulated world is long enough to arrive in many pieces.
    let sandbox = other.run("export --world sandbox").succeeded().stdout;
    assert!(sandbox.len() > 200_000 && sandbox.ends_with("}\n"), "{}", sandbox.len());
    server.stop();

    assert!(one.run("export --json").failed().contains("--output"));
    assert!(one.run("export --output /nowhere/at/all").failed().contains("no partial file was left"));
    assert!(Directory::new().run("export").failed().contains("no oddsbox data"));
}

#[test]
fn feeds_are_shown_with_a_server_and_their_sources_without() {
    let (_kept, lines) = file_with(LINES.as_bytes());
    let directory = empty();
    directory.json(&format!("ingest {}", lines.display()));
    let offline = directory.json("feeds --world live");
    assert!(offline["feeds"].is_null());
    let source = &offline["sources"][0];
    assert_eq!(
        (&source["bookmaker"], &source["sport"], &source["stale"]),
        (&"acme".into(), &"mma".into(), &true.into())
    );
    assert!(directory.run("feeds").succeeded().stdout.starts_with("No server runs"));

    let server = directory.serve();
    directory.json(&format!("ingest {}", lines.display()));
    let served = directory.json("feeds --world live --stale");
    let feed = &served["feeds"][0];
    assert_eq!((&feed["name"], &feed["kind"], &feed["accepted"]), (&"push".into(), &"push".into(), &4.into()));
    assert_eq!(served["sources"].as_array().map(Vec::len), Some(1));
    let text = directory.run("feeds").succeeded().stdout;
    assert!(text.starts_with("FEED\tKIND\tWORLD") && text.contains("\nacme\tlive\tmma\t"), "{text:.800}");
    server.stop();
}

#[test]
fn token_is_shown_once_and_never_repeated() {
    let directory = empty();
    let offline = directory.json("feeds token scraper-1");
    let server = directory.serve_with(&[("ODDSBOX_INGEST_LISTEN", "127.0.0.1:0"), ("ODDSBOX_LOG", "debug")]);
    let served = directory.json("feeds token scraper-2 --world sandbox");
    let secrets: Vec<String> =
        [&offline, &served].iter().map(|issued| issued["token"].as_str().expect("a token").to_owned()).collect();
    assert!(secrets.iter().all(|secret| secret.starts_with("ft_ob_") && secret.len() == 42));
    assert!(directory.run("feeds token scraper-1").failed().contains("feeds token scraper-1 --revoke"));
    assert!(directory.run("feeds token two/words").failed().contains("a feeder's name"));
    let mut seen = vec![directory.run("feeds").stdout, directory.run("feeds tokens --json").stdout];
    assert_eq!(directory.json("feeds token scraper-1 --revoke")["status"], "revoked");
    let list = directory.json("feeds tokens");
    assert_eq!((&list[0]["name"], &list[0]["status"]), (&"scraper-1".into(), &"revoked".into()));
    assert_eq!((&list[1]["world"], &list[1]["status"]), (&"sandbox".into(), &"active".into()));
    assert!(directory.run("feeds token nobody --revoke").failed().contains("no feeder is called nobody"));
    seen.push(directory.run(&format!("feeds token {} --revoke", secrets[1])).failed());
    let audit = directory.run("audit").succeeded().stdout;
    assert!(audit.contains("\tissue token\tscraper-1\t") && audit.contains("\trevoke token\tscraper-1\t"), "{audit}");
    seen.extend([audit, server.stop()]);
    let file = fs::read(directory.file()).expect("a file");
    for secret in &secrets {
        assert!(seen.iter().all(|text| !text.contains(&secret[6..])));
        assert!(!file.windows(36).any(|window| window == &secret.as_bytes()[6..]));
    }
}

#[test]
fn missing_drop_directory_fails_the_start() {
    let directory = empty();
    let server = super::command::Server::spawn(
        directory.path(),
        &[("ODDSBOX_INGEST_DROP", "/nowhere/at/all"), ("ODDSBOX_LOG", "error")],
    );
    assert!(server.failed().contains("set ingest.drop"));
}

/// Pushes an event's line under TLS; returns the status of the response.
async fn push(trusted: &CertificateDer<'static>, address: SocketAddr, event: &str, authorization: &str) -> Option<u16> {
    let line = LINES.lines().nth(1).expect("an event").replace("\"e1\"", &format!("\"{event}\""));
    let request = format!(
        "POST /ingest HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: {}\r\n{authorization}\r\n{line}",
        line.len()
    );
    Some(ask_trusting(trusted, address, &request).await?.status)
}

/// The failure that this prevents: tokens and lines cross the network in plain text although TLS is configured.
#[tokio::test]
async fn feeders_under_tls_authenticate_by_token() {
    let directory = Directory::new();
    let (files, trusted) = Certificates::made();
    let [(certificate, chain), (key, secret)] = &files.variables();
    let server = directory.serve_with(&[(certificate, chain), (key, secret), ("ODDSBOX_INGEST_LISTEN", "127.0.0.1:0")]);
    let status = directory.json("status");
    let address = status["server"]["ingest_address"].as_str().unwrap_or_else(|| panic!("{status}"));
    let address: SocketAddr = address.parse().expect("an address");
    let issued = directory.json("feeds token scraper");
    let bearer = format!("authorization: Bearer {}\r\n", issued["token"].as_str().expect("a token"));

    assert_eq!(push(&trusted, address, "taken", &bearer).await, Some(200));
    let wrong = "authorization: Bearer ft_ob_000000000000000000000000000000000000\r\n";
    for (event, authorization) in
        [("nobody", ""), ("stranger", wrong), ("mistyped", &*bearer.replace("Bearer ", "Bearer x"))]
    {
        assert_eq!(push(&trusted, address, event, authorization).await, Some(401), "{event}");
    }
    // A client that does not trust the certificate sends nothing, and plain text is rejected.
    assert_eq!(push(&Certificates::made().1, address, "wary", &bearer).await, None);
    let mut plain = TcpStream::connect(address).await.expect("a connection");
    plain.write_all(format!("POST /ingest HTTP/1.1\r\nhost: x\r\n{bearer}\r\n").as_bytes()).await.expect("bytes");
    let mut answer = Vec::new();
    // Whether it is closed or reset does not matter.
    let _ = plain.read_to_end(&mut answer).await;
    assert!(!answer.starts_with(b"HTTP/"), "{}", String::from_utf8_lossy(&answer));

    directory.run("feeds token scraper --revoke").succeeded();
    assert_eq!(push(&trusted, address, "late", &bearer).await, Some(401));
    let exported = directory.run("export --world live").succeeded().stdout;
    assert!(exported.contains(r#""id":"taken""#), "{exported}");
    for event in ["nobody", "stranger", "mistyped", "wary", "late"] {
        assert!(!exported.contains(event), "{exported}");
    }
    server.stop();
}

/// Sends lines by a token; the report.
async fn send(directory: &Directory, token: &str, lines: &str) -> Value {
    let status = directory.json("status");
    let address = status["server"]["ingest_address"].as_str().unwrap_or_else(|| panic!("{status}"));
    let mut stream = TcpStream::connect(address).await.expect("a connection");
    let request = format!(
        "POST /ingest HTTP/1.1\r\nhost: x\r\nconnection: close\r\nauthorization: Bearer {token}\r\n\
         content-length: {}\r\n\r\n{lines}",
        lines.len()
    );
    stream.write_all(request.as_bytes()).await.expect("bytes");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.expect("an answer");
    Answer::parse(&answer).json()
}

#[tokio::test]
async fn used_quota_and_owners_of_events_last_over_a_kill() {
    let directory = empty();
    let issue = |name: &str| {
        let issued = directory.json(&format!("feeds token {name}"));
        issued["token"].as_str().expect("a token").to_owned()
    };
    let (one, two) = (issue("one"), issue("two"));
    let serve = || {
        let quota = [("ODDSBOX_INGEST_BOOKMAKERS", "1"), ("ODDSBOX_INGEST_EVENTS", "2")];
        directory.serve_with(&[&quota[..], &[("ODDSBOX_INGEST_LISTEN", "127.0.0.1:0")]].concat())
    };
    let server = serve();
    assert_eq!(send(&directory, &one, LINES).await["accepted"], 4);
    let used = |directory: &Directory| {
        let feeds = directory.json("feeds")["feeds"].clone();
        let feed = feeds.as_array().expect("feeds").iter().find(|feed| feed["name"] == "token/one").cloned();
        feed.unwrap_or_else(|| panic!("{feeds}"))["added"].clone()
    };
    let before = used(&directory);
    server.kill();

    let server = serve();
    assert_eq!(used(&directory), before);
    let more = LINES.replace("acme", "other").replace("e1", "e2").replace("t1", "t2");
    let report = send(&directory, &one, &more).await;
    assert_eq!(report["rejected_by_reason"]["feeder_quota"], 3, "{report}");
    let remove = r#"{"type":"remove","sport":"mma","event":"e1"}"#.to_owned() + "\n";
    assert_eq!(send(&directory, &two, &remove).await["rejected_by_reason"]["not_own_event"], 1);
    assert_eq!(send(&directory, &one, &remove).await["accepted"], 1);
    server.kill();
    assert_eq!(directory.json("check")["clean"], true);
}
