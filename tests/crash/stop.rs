//! The failure that this prevents: a shutdown truncates a response or loses usage.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::process::command::{Directory, Issued, blocking, show, until};
use crate::process::seed::{Random, short_or_long, within_a_day};

/// How an exchange on a connection ended.
enum Ended {
    Answered,
    /// Not a byte of a response arrived.
    Unanswered,
    Cut(String),
}

/// One request and its complete response.
async fn exchange(stream: &mut TcpStream, secret: &str) -> Ended {
    let request =
        format!("GET /v1/sports/tennis/odds?limit=500 HTTP/1.1\r\nhost: oddsbox\r\nx-api-key: {secret}\r\n\r\n");
    if stream.write_all(request.as_bytes()).await.is_err() {
        return Ended::Unanswered;
    }
    let mut bytes = Vec::new();
    let mut wanted = None;
    loop {
        if wanted.is_some_and(|wanted| bytes.len() >= wanted) {
            return Ended::Answered;
        }
        match stream.read_buf(&mut bytes).await {
            Ok(0) | Err(_) if bytes.is_empty() => return Ended::Unanswered,
            Ok(0) | Err(_) => return Ended::Cut(format!("{} of {wanted:?} bytes", bytes.len())),
            Ok(_) => {}
        }
        let head_end = bytes.windows(4).position(|window| window == b"\r\n\r\n").map(|at| at + 4);
        if let (None, Some(head_end)) = (wanted, head_end) {
            let head = String::from_utf8_lossy(&bytes[..head_end]).to_lowercase();
            assert!(head.starts_with("http/1.1 200"), "{head}");
            let length = head.split("content-length: ").nth(1).and_then(|rest| rest.split("\r\n").next());
            wanted = Some(head_end + length.and_then(|text| text.parse::<usize>().ok()).expect("a length"));
        }
    }
}

/// Sends requests until the server is gone; returns how many were sent and answered.
async fn load(address: SocketAddr, secret: String) -> (u64, u64) {
    let (mut sent, mut answered) = (0, 0);
    while let Ok(mut stream) = TcpStream::connect(address).await {
        loop {
            sent += 1;
            match exchange(&mut stream, &secret).await {
                Ended::Answered => answered += 1,
                Ended::Unanswered => break,
                Ended::Cut(what) => panic!("an answer was cut: {what}"),
            }
        }
    }
    (sent, answered)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shutdown_under_load_truncates_no_response_and_keeps_usage() {
    within_a_day(check_shutdown_under_load_truncates_no_response_and_keeps_usage).await;
}

async fn check_shutdown_under_load_truncates_no_response_and_keeps_usage() {
    let stops = short_or_long(20, 500);
    let mut random = Random::new();
    let directory = Directory::new();
    let issue = "keys issue --sandbox --name app --burst 10000000 --per-day 90000000";
    let key = Issued::from(&directory.json(issue));
    let (mut counted, mut requests) = (0, 0);
    for stop in 0..stops {
        let server = directory.serve_with(&[("ODDSBOX_LOG", "warn")]);
        let clients: Vec<_> = (0..8).map(|_| tokio::spawn(load(server.address(), key.secret.clone()))).collect();
        let access = directory.access().await;
        let enough = counted + 20 + random.below(100);
        until("requests come", async || show(&access, &key.id).await.used_today > enough).await;
        server.terminate();
        let (code, _, log) = blocking(move || server.end()).await;
        assert_eq!(code, Some(0), "stop {stop}: {log}");
        let (mut sent, mut answered) = (0, 0);
        for client in clients {
            let (more_sent, more_answered) = client.await.expect("a client");
            (sent, answered) = (sent + more_sent, answered + more_answered);
        }
        let used = directory.json(&format!("keys show {}", key.id))["used_today"].as_u64().expect("a number");
        let passed = used - counted;
        assert!((answered..=sent).contains(&passed), "stop {stop}: {answered} of {sent} answered, {passed} counted");
        (counted, requests) = (used, requests + answered);
    }
    println!("{stops} stops, {requests} answers, none cut");
}
