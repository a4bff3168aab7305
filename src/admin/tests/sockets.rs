//! The socket itself: its permissions, what a killed server leaves behind, and unexpected requests.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

use super::*;
use crate::admin::BindError;

fn mode(path: &std::path::Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[tokio::test]
async fn only_the_owner_can_reach_it_and_it_goes_with_its_server() {
    let fixture = TestServer::new();
    // A directory that was made too open is closed.
    fs::create_dir_all(fixture.data.admin()).unwrap();
    fs::set_permissions(fixture.data.admin(), fs::Permissions::from_mode(0o755)).unwrap();
    let server = fixture.serve().await;
    let socket = fixture.data.socket().unwrap();
    assert_eq!((mode(&fixture.data.admin()), mode(&socket)), (0o700, 0o600));
    server.stop().await;
    assert!(!socket.exists());
}

#[tokio::test]
async fn a_socket_without_a_server_is_replaced_and_one_with_a_server_is_not() {
    let fixture = TestServer::new();
    let server = fixture.serve().await;
    assert!(matches!(Listener::bind(&fixture.data).await, Err(BindError::InUse { .. })));
    server.stop().await;
    // What a killed server leaves: the socket's file, and no listener.
    let socket = fixture.data.socket().unwrap();
    drop(std::os::unix::net::UnixListener::bind(&socket).unwrap());
    assert!(socket.exists());
    fixture.ask(sandbox_key("through the file")).await.unwrap();
    let server = fixture.serve().await;
    fixture.ask(sandbox_key("through the socket")).await.unwrap();
    server.stop().await;
}

/// Sends bytes as they are and gives what comes back.
async fn exchange(fixture: &TestServer, request: &str) -> String {
    let mut stream = UnixStream::connect(fixture.data.socket().unwrap()).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

fn post(target: &str, body: &str) -> String {
    format!("POST {target} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}

#[tokio::test]
async fn curl_gets_json_whatever_it_asks() {
    let fixture = TestServer::new();
    let server = fixture.serve().await;
    let get = |target: &str| format!("GET {target} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    let cases = [
        (get("/livez"), "200", r#"{"live":true}"#),
        (get("/readyz"), "200", r#"{"ready":true}"#),
        (get("/"), "404", r#""code":"not_found""#),
        (get("/command"), "405", r#""code":"method_not_allowed","message":"/command takes POST""#),
        (post("/command", r#"{"command":"keys-list"}"#), "200", "[]"),
        (post("/command", "nonsense"), "400", r#""code":"bad_request""#),
        (post("/command", r#"{"command":"keys-revoke","id":"key_x"}"#), "404", r#""code":"key_not_found""#),
        (post("/command", &format!(r#"{{"command":"{}"}}"#, "x".repeat(70_000))), "413", r#""code":"too_large""#),
        (post("/ingest?world=mars", ""), "400", "world takes live or sandbox"),
        (post("/ingest?world=sandbox", "\n\n"), "200", r#""lines":0"#),
    ];
    for (request, status, part) in cases {
        let answer = exchange(&fixture, &request).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")) && answer.contains(part), "{answer}");
        assert!(answer.contains("content-type: application/json"), "{answer}");
    }
    server.stop().await;
}

#[tokio::test]
async fn a_connection_that_says_nothing_does_not_hold_up_the_stop() {
    let fixture = TestServer::new();
    let server = fixture.serve().await;
    let silent = UnixStream::connect(fixture.data.socket().unwrap()).await.unwrap();
    fixture.ask(Command::KeysList).await.unwrap();
    tokio::time::timeout(Duration::from_secs(4), server.stop()).await.unwrap();
    drop(silent);
}
