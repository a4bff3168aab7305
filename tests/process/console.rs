//! The console of a real server: the command that prints its link, sessions that survive a restart, and that no secret of
//! a session is written anywhere.

use std::fs::{self, Permissions};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;

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
    evidence.push(("the file", fs::read(directory.file()).expect("a file")));
    evidence.push(("the stored sessions", fs::read(directory.data().console_sessions()).expect("a file")));
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

/// A session, whatever port the console listens on.
struct StoredLogin {
    token: String,
    csrf: String,
}

impl StoredLogin {
    async fn new(directory: &Directory) -> StoredLogin {
        let (_, cookie, csrf) = sign_in(directory).await;
        StoredLogin { token: cookie.split('=').nth(1).expect("a token").to_owned(), csrf }
    }

    /// The status of a command that it sends to the running server.
    async fn command(&self, directory: &Directory) -> u16 {
        let (address, _) = link(directory);
        let cookie = format!("oddsbox_console_{}={}", address.port(), self.token);
        let head = format!("POST /api/command HTTP/1.1\r\ncookie: {cookie}\r\nx-csrf-token: {}", self.csrf);
        send(address, &head, r#"{"command":"status"}"#).await.status
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn session_survives_a_restart_and_a_kill_until_it_is_signed_out() {
    let directory = Directory::new();
    let server = directory.serve_with(&[WITH_CONSOLE]);
    let (first, second) = (StoredLogin::new(&directory).await, StoredLogin::new(&directory).await);
    let mode = fs::metadata(directory.data().console_sessions()).expect("a file").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    server.stop();
    let server = directory.serve_with(&[WITH_CONSOLE]);
    assert_eq!((first.command(&directory).await, second.command(&directory).await), (200, 200));
    let third = StoredLogin::new(&directory).await;
    server.kill();
    let server = directory.serve_with(&[WITH_CONSOLE]);
    assert_eq!((first.command(&directory).await, third.command(&directory).await), (200, 200));
    assert_eq!(directory.json("console --sign-out")["sessions"], Value::from(3));
    server.kill();
    let server = directory.serve_with(&[WITH_CONSOLE]);
    for login in [&first, &second, &third] {
        assert_eq!(login.command(&directory).await, 401);
    }
    server.stop();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn signing_out_without_a_server_ends_stored_sessions() {
    let directory = Directory::new();
    let server = directory.serve_with(&[WITH_CONSOLE]);
    let login = StoredLogin::new(&directory).await;
    server.stop();
    assert_eq!(directory.json("console --sign-out")["sessions"], Value::from(1));
    assert_eq!(directory.json("console --sign-out")["sessions"], Value::from(0));
    let server = directory.serve_with(&[WITH_CONSOLE]);
    assert_eq!(login.command(&directory).await, 401);
    let audit = directory.run("audit --json").succeeded().stdout;
    assert!(audit.contains("1 sessions ended"), "{audit}");
    server.stop();

    // A server without a console has them too.
    let server = directory.serve_with(&[WITH_CONSOLE]);
    let login = StoredLogin::new(&directory).await;
    server.stop();
    let server = directory.serve();
    assert_eq!(directory.json("console --sign-out")["sessions"], Value::from(1));
    server.stop();
    let server = directory.serve_with(&[WITH_CONSOLE]);
    assert_eq!(login.command(&directory).await, 401);
    server.stop();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unusable_session_file_signs_everybody_out_and_the_server_starts() {
    let directory = Directory::new();
    let path = directory.data().console_sessions();
    for why in ["it is damaged", "its version is unknown", "mode 0600"] {
        let server = directory.serve_with(&[WITH_CONSOLE]);
        let login = StoredLogin::new(&directory).await;
        server.stop();
        let mut bytes = fs::read(&path).expect("a file");
        match why {
            "it is damaged" => bytes.truncate(bytes.len() / 2),
            "its version is unknown" => bytes["oddsbox-console-sessions ".len()] = b'9',
            _ => fs::set_permissions(&path, Permissions::from_mode(0o644)).expect("a file"),
        }
        fs::write(&path, bytes).expect("a file");
        let server = directory.serve_with(&[WITH_CONSOLE]);
        assert_eq!(login.command(&directory).await, 401, "{why}");
        let log = server.stop();
        assert!(log.contains("ignored the stored console sessions: nobody is signed in"), "{log}");
        assert!(log.contains(why), "{log}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_end_with_a_restore_and_do_not_follow_their_file_to_another_directory() {
    let directory = Directory::new();
    let server = directory.serve_with(&[WITH_CONSOLE]);
    let login = StoredLogin::new(&directory).await;
    let backup = directory.path().join("backup.redb");
    directory.run(&format!("backup {}", backup.display())).succeeded();
    server.stop();

    let other = Directory::new();
    fs::copy(directory.file(), other.file()).expect("a copy");
    fs::copy(directory.data().console_sessions(), other.data().console_sessions()).expect("a copy");
    let server = other.serve_with(&[WITH_CONSOLE]);
    assert_eq!(login.command(&other).await, 401);
    assert!(server.stop().contains("it belongs to another database"));

    let stored = fs::read(directory.data().console_sessions()).expect("a file");
    directory.run(&format!("restore {}", backup.display())).succeeded();
    assert!(!directory.data().console_sessions().exists());
    let server = directory.serve_with(&[WITH_CONSOLE]);
    assert_eq!(login.command(&directory).await, 401);
    server.stop();
    // Not even if the file is put back.
    fs::write(directory.data().console_sessions(), stored).expect("a file");
    fs::set_permissions(directory.data().console_sessions(), Permissions::from_mode(0o600)).expect("a file");
    let server = directory.serve_with(&[WITH_CONSOLE]);
    assert_eq!(login.command(&directory).await, 401);
    server.stop();
}
