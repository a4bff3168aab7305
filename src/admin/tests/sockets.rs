//! The socket itself: whose it is, what is left behind, what it says to strangers.

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
    let house = TestServer::new();
    // A directory that was made too open is closed.
    fs::create_dir_all(house.data.admin()).unwrap();
    fs::set_permissions(house.data.admin(), fs::Permissions::from_mode(0o755)).unwrap();
    let server = house.serve().await;
    let socket = house.data.socket().unwrap();
    assert_eq!((mode(&house.data.admin()), mode(&socket)), (0o700, 0o600));
    server.stop().await;
    assert!(!socket.exists());
}

#[tokio::test]
async fn a_socket_without_a_server_is_replaced_and_one_with_a_server_is_not() {
    let house = TestServer::new();
    let server = house.serve().await;
    assert!(matches!(Listener::bind(&house.data).await, Err(BindError::InUse { .. })));
    server.stop().await;
    // What a server leaves that was killed: the file, and nobody behind it.
    let socket = house.data.socket().unwrap();
    drop(std::os::unix::net::UnixListener::bind(&socket).unwrap());
    assert!(socket.exists());
    house.ask(sandbox_key("through the file")).await.unwrap();
    let server = house.serve().await;
    house.ask(sandbox_key("through the socket")).await.unwrap();
    server.stop().await;
}

/// Sends bytes as they are and gives what comes back.
async fn exchange(house: &TestServer, request: &str) -> String {
    let mut stream = UnixStream::connect(house.data.socket().unwrap()).await.unwrap();
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
    let house = TestServer::new();
    let server = house.serve().await;
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
        let answer = exchange(&house, &request).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")) && answer.contains(part), "{answer}");
        assert!(answer.contains("content-type: application/json"), "{answer}");
    }
    server.stop().await;
}

#[tokio::test]
async fn a_connection_that_says_nothing_does_not_hold_up_the_stop() {
    let house = TestServer::new();
    let server = house.serve().await;
    let silent = UnixStream::connect(house.data.socket().unwrap()).await.unwrap();
    house.ask(Command::KeysList).await.unwrap();
    tokio::time::timeout(Duration::from_secs(4), server.stop()).await.unwrap();
    drop(silent);
}
