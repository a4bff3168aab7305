//! The console of a real server: the command that prints its link, and that no secret of a session is written anywhere.

use std::net::SocketAddr;

use serde_json::Value;

use super::client::Connection;
use super::command::Directory;
use crate::harness::Answer;

const WITH_CONSOLE: (&str, &str) = ("ODDSBOX_CONSOLE_LISTEN", "127.0.0.1:0");

/// A console link, as address and path.
fn link(directory: &Directory) -> (SocketAddr, String) {
    let answer = directory.json("console");
    let url = answer["url"].as_str().expect("a link").strip_prefix("http://").expect("plain text").to_owned();
    let (address, _) = url.split_once('/').expect("a path");
    (address.parse().expect("an address"), url[address.len()..].to_owned())
}

async fn send(address: SocketAddr, head: &str, body: &str) -> Answer {
    let mut connection = Connection::open(address).await.expect("a connection");
    let length = body.len();
    let text =
        format!("{head}\r\nhost: {address}\r\norigin: http://{address}\r\ncontent-length: {length}\r\n\r\n{body}");
    connection.send(&text).await.expect("an answer")
}

/// The cookie and the CSRF token of a session.
async fn sign_in(directory: &Directory) -> (SocketAddr, String, String) {
    let (address, path) = link(directory);
    let opened = send(address, &format!("GET {path} HTTP/1.1"), "").await;
    assert_eq!(opened.status, 303);
    let cookie = opened.header("set-cookie").expect("a cookie").split(';').next().expect("a value").to_owned();
    let session = send(address, &format!("GET /api/session HTTP/1.1\r\ncookie: {cookie}"), "").await;
    let csrf = session.json()["csrf"].as_str().expect("a token").to_owned();
    (address, cookie, csrf)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn session_secrets_are_in_no_log_audit_entry_or_file() {
    let directory = Directory::new();
    let server = directory.serve_with(&[WITH_CONSOLE, ("ODDSBOX_LOG", "trace")]);
    let (unused, path) = link(&directory);
    let (address, cookie, csrf) = sign_in(&directory).await;
    assert_eq!(unused, address);
    let head = format!("POST /api/command HTTP/1.1\r\ncookie: {cookie}\r\nx-csrf-token: {csrf}");
    let issued = send(address, &head, r#"{"command":"keys-issue","kind":"sandbox","name":"sessions"}"#).await;
    assert_eq!(issued.status, 200, "{issued:?}");
    let key = issued.json()["key"].as_str().expect("a secret").to_owned();
    send(address, &format!("GET {path}x HTTP/1.1"), "").await;
    let audit = directory.run("audit --json").succeeded().stdout;
    let status = directory.run("status --json").succeeded().stdout;
    let log = server.stop();
    assert!(log.contains("rejected console link"), "the wrong link was logged: {log}");
    let mut evidence =
        vec![("the log", log.into_bytes()), ("audit", audit.into_bytes()), ("status", status.into_bytes())];
    evidence.push(("the file", std::fs::read(directory.file()).expect("a file")));
    let token = cookie.split('=').nth(1).expect("a token").to_owned();
    let secrets = [path.trim_start_matches("/sign-in/").to_owned(), token, csrf, key];
    for (place, bytes) in evidence {
        for secret in &secrets {
            assert!(secret.len() > 30, "{secret}");
            let is_there = bytes.windows(secret.len()).any(|window| window == secret.as_bytes());
            assert!(!is_there, "{secret} is in {place}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_command_prints_one_link_and_ends_every_session() {
    let directory = Directory::new();
    let refused = directory.run("console").failed();
    assert!(refused.starts_with("no oddsbox data in"), "{refused}");
    let server = directory.serve_with(&[WITH_CONSOLE]);
    let printed = directory.run("console").succeeded().stdout;
    assert!(printed.starts_with("http://127.0.0.1:") && printed.contains("/sign-in/"), "{printed}");
    assert_eq!(printed.lines().count(), 1);
    let (address, cookie, _) = sign_in(&directory).await;
    let look = format!("GET /api/session HTTP/1.1\r\ncookie: {cookie}");
    assert_eq!(send(address, &look, "").await.status, 200);
    assert_eq!(directory.json("console --sign-out")["sessions"], Value::from(1));
    assert_eq!(send(address, &look, "").await.status, 401);
    drop(server.stop());
    let refused = directory.run("console").failed();
    assert!(refused.starts_with("no server runs here"), "{refused}");
}
