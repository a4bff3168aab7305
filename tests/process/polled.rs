//! The key of a polled feed is sent to the upstream and nowhere else.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
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
