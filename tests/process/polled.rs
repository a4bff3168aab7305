//! The key of a polled feed is sent to the upstream and nowhere else.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use super::command::{Directory, until};

const KEY: &str = "hush7be21d";

/// Answers every request with the same status, and echoes the key in the body.
fn upstream(status: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut request = [0; 4096];
            let Ok(length) = stream.read(&mut request) else { continue };
            let asked = String::from_utf8_lossy(&request[..length]).into_owned();
            assert!(asked.contains(KEY), "{asked}");
            let body = format!("{{\"message\":\"{KEY}\",\"error_code\":\"INVALID_KEY\"}}");
            let head = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
            let _ = stream.write_all((head + &body).as_bytes());
        }
    });
    format!("http://{address}/v4")
}

#[tokio::test]
async fn feed_key_is_not_logged_or_shown() {
    for (status, expected) in
        [("401 Unauthorized", "answered 401 INVALID_KEY"), ("200 OK", "the answer cannot be used")]
    {
        let directory = Directory::new();
        let config = directory.path().join("oddsbox.toml");
        let file = format!(
            "log = \"trace\"\n[feeds.us]\nkind = \"the-odds-api\"\nurl = \"{}\"\nkey = \"{KEY}\"\nsports = [\"mma\"]\n",
            upstream(status)
        );
        fs::write(&config, file).expect("a file");
        let shown = directory.run(&format!("config show --json --config {}", config.display())).succeeded();
        assert!(!shown.stdout.contains(KEY) && shown.stdout.contains("(hidden)"), "{}", shown.stdout);

        let path = config.display().to_string();
        let server = directory.serve_with(&[("ODDSBOX_CONFIG", &path)]);
        until(expected, async || server.log().contains(expected)).await;
        let log = server.stop();
        assert!(!log.contains(KEY), "{log}");
        assert!(!log.contains("apiKey"), "{log}");
    }
}

fn read(stream: &mut TcpStream) -> String {
    let mut request = [0; 4096];
    let length = stream.read(&mut request).unwrap_or(0);
    String::from_utf8_lossy(&request[..length]).into_owned()
}

/// A proxy that answers in place of the upstream once it was asked for a tunnel; the first line of each tunnel request.
fn proxy() -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let tunnels = Arc::<Mutex<Vec<String>>>::default();
    let seen = Arc::clone(&tunnels);
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let tunnel = read(&mut stream);
            seen.lock().expect("a lock").push(tunnel.lines().next().unwrap_or_default().to_owned());
            let _ = stream.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n");
            let request = read(&mut stream);
            assert!(request.contains(KEY), "{request}");
            let _ = stream.write_all(b"HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
        }
    });
    (format!("http://{address}"), tunnels)
}

#[tokio::test]
async fn proxy_of_the_environment_is_used_and_sees_no_key() {
    let directory = Directory::new();
    let config = directory.path().join("oddsbox.toml");
    let url = "http://upstream.test/v4";
    let file = format!("[feeds.us]\nkind = \"the-odds-api\"\nurl = \"{url}\"\nkey = \"{KEY}\"\nsports = [\"mma\"]\n");
    fs::write(&config, file).expect("a file");
    let (path, (address, tunnels)) = (config.display().to_string(), proxy());
    let server =
        directory.serve_with(&[("ODDSBOX_CONFIG", &path), ("HTTP_PROXY", &address), ("NO_PROXY", "other.test")]);
    until("a tunnel", async || server.log().contains("answered 401")).await;
    server.stop();
    let tunnels = tunnels.lock().expect("a lock");
    assert!(tunnels.iter().all(|line| line == "CONNECT upstream.test:80 HTTP/1.1"), "{tunnels:?}");
}
