//! A secret is shown once, when it is issued, and appears nowhere else: no log, audit row, error, listing or byte of
//! the file.

use std::fs;
use std::net::SocketAddr;

use http_body_util::{BodyExt, Empty};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;

use super::client::Connection;
use super::command::{Directory, Issued};

/// The characters of a secret after its prefix: thirty random ones and six of checksum.
const BODY: usize = 36;

/// Whether a text contains any of the secrets, or anything that could be one.
fn leak(text: &[u8], secrets: &[String]) -> Option<String> {
    let known = secrets.iter().find(|secret| contains(text, secret.as_bytes()));
    // Even without the prefix.
    let random = secrets.iter().find(|secret| contains(text, &secret.as_bytes()["sk_test_ob_".len()..]));
    known.or(random).cloned().or_else(|| shaped_like_a_secret(text))
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

/// `sk_(live|test)_ob_[0-9A-Za-z]{36}`.
fn shaped_like_a_secret(text: &[u8]) -> Option<String> {
    [b"sk_live_ob_", b"sk_test_ob_"].into_iter().find_map(|prefix| {
        let starts = text.windows(prefix.len()).enumerate().filter(|(_, window)| window == prefix);
        let mut bodies = starts.filter_map(|(start, _)| text.get(start + prefix.len()..start + prefix.len() + BODY));
        let body = bodies.find(|body| body.iter().all(u8::is_ascii_alphanumeric))?;
        Some(String::from_utf8_lossy(body).into_owned())
    })
}

#[test]
fn leak_check_finds_a_leak() {
    let secret = format!("sk_live_ob_{}", "a1B2".repeat(9));
    for text in [format!("x{secret}y"), format!("\0{}", &secret[11..])] {
        assert!(leak(text.as_bytes(), std::slice::from_ref(&secret)).is_some(), "{text}");
    }
    assert!(leak(format!("({secret})").as_bytes(), &[]).is_some());
    assert_eq!(leak(b"sk_live_ob_\xE2\x80\xA6a1B2 sk_test_ob_a1B2", &[secret]), None);
}

/// Everything that must not contain a secret, with the name of its origin.
#[derive(Debug, Default)]
struct Evidence(Vec<(String, Vec<u8>)>);

impl Evidence {
    fn add(&mut self, name: impl Into<String>, text: impl Into<Vec<u8>>) {
        self.0.push((name.into(), text.into()));
    }

    fn judge(&self, secrets: &[String]) {
        for (name, text) in &self.0 {
            let found = leak(text, secrets);
            assert_eq!(found, None, "{name}: {}", String::from_utf8_lossy(&text[..text.len().min(4000)]));
        }
    }
}

/// Requests of every kind with a valid, exhausted, revoked or mistyped key; returns all error responses.
async fn make_requests(address: SocketAddr, secret: &str, evidence: &mut Evidence) {
    let mistyped = format!("{}x", &secret[..secret.len() - 1]);
    let header = |key: &str| format!("x-api-key: {key}\r\n");
    let requests = [
        ("/v1/sports".to_owned(), header(secret)),
        ("/v1/sports".to_owned(), header(&mistyped)),
        ("/v1/nothing".to_owned(), header(secret)),
        (format!("/v1/{secret}"), header(secret)),
        (format!("/v1/sports/{secret}/odds"), header(secret)),
        (format!("/v1/sports/mma/events/{secret}"), header(secret)),
        ("/v1/sports/mma/odds?odd_format=decimal".to_owned(), header(secret)),
        (format!("/v1/sports/mma/odds?bookmaker={secret}"), header(secret)),
        (format!("/v1/sports/mma/odds?api_kye={secret}"), String::new()),
        (format!("/v1/sports/mma/odds?limit=0&api_key={secret}"), String::new()),
        (format!("/v1/sports?api_key={secret}"), String::new()),
        (format!("/v1/sports?api_key={mistyped}"), String::new()),
        (format!("/v1/sports?api_key={secret}&api_key={secret}"), String::new()),
        (format!("/v1/status?api_key={secret}"), header(secret)),
        (format!("/healthz?api_key={secret}"), header(secret)),
        ("/v1/sports".to_owned(), format!("authorization: Bearer {secret}\r\ncookie: key={secret}\r\n")),
    ];
    for (path, headers) in requests {
        for method in ["GET", "POST"] {
            let mut connection = Connection::open(address).await.expect("a connection");
            let text = format!("{method} {path} HTTP/1.1\r\nhost: oddsbox\r\ncontent-length: 0\r\n{headers}\r\n");
            let answer = connection.send(&text).await.expect("an answer");
            assert!(answer.status < 500, "{answer:?}");
            evidence.add(format!("{method} {path}"), format!("{answer:?}"));
        }
    }
    // Requests that do not parse are answered without further processing.
    let mut broken = Connection::open(address).await.expect("a connection");
    broken.write(format!("GET {secret}\r\n{secret}\r\n\r\n").as_bytes()).await.expect("a request");
    make_http2_requests(address, secret).await;
}

async fn make_http2_requests(address: SocketAddr, secret: &str) {
    let stream = TcpStream::connect(address).await.expect("a connection");
    let handshake = http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await;
    let (mut sender, connection) = handshake.expect("a connection");
    let driven = tokio::spawn(connection);
    for path in [format!("/v1/sports?api_key={secret}"), "/v1/sports/mma/odds?limit=1".to_owned()] {
        let request = hyper::Request::builder().uri(format!("http://{address}{path}")).header("x-api-key", secret);
        let request = request.body(Empty::<bytes::Bytes>::new()).expect("a request");
        let answer = sender.send_request(request).await.expect("an answer");
        answer.into_body().collect().await.expect("a body");
    }
    drop(sender);
    driven.await.expect("a task").expect("an orderly end");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_secret_is_in_no_log_audit_row_error_listing_or_file() {
    let directory = Directory::new();
    let mut evidence = Evidence::default();
    let mut secrets = Vec::new();
    let mut issued = |directory: &Directory, line: &str| {
        let key = Issued::from(&directory.json(line));
        secrets.push(key.secret.clone());
        key
    };
    // Without a server first, then with one.
    let early = issued(&directory, "keys issue --sandbox --name early");
    let server = directory.serve_with(&[("ODDSBOX_LOG", "trace")]);
    let live = issued(&directory, "keys issue --live --name live --approved-by ada --groups combat");
    let spent = issued(&directory, "keys issue --sandbox --name spent --per-day 3");
    let revoked = issued(&directory, "keys issue --sandbox --name revoked");
    let own = issued(&directory, "keys issue --sandbox --name own --self-service");
    let rotated = issued(&directory, &format!("keys rotate {}", early.id));
    let graced = issued(&directory, &format!("keys rotate {} --grace 1h", live.id));
    let undone = issued(&directory, &format!("keys rotate {} --grace 1h", spent.id));
    directory.run(&format!("keys rotate {} --undo", spent.id)).succeeded();
    directory.run(&format!("keys revoke {}", revoked.id)).succeeded();
    directory.run(&format!("keys set {} --name renamed --per-day 5000", live.id)).succeeded();
    for key in [&early, &live, &spent, &revoked, &rotated, &graced, &undone] {
        make_requests(server.address(), &key.secret, &mut evidence).await;
    }
    secrets.push(super::account::rotate(&server, &own).await.secret);
    let lines = ["keys list", "audit", "status", "config show", "check", "keys show nobody", "maintenance off"];
    for line in lines.iter().map(ToString::to_string).chain([format!("keys show {}", live.id)]) {
        for line in [line.clone(), format!("{line} --json")] {
            let done = directory.run(&line);
            evidence.add(format!("{line}, while it runs"), done.stdout + &done.stderr);
        }
    }
    let log = server.stop();
    assert!(log.contains("TRACE") && log.lines().count() > 200, "everything was logged: {}", log.lines().count());
    evidence.add("the log", log);
    for line in lines {
        let done = directory.run(line);
        evidence.add(format!("{line}, without a server"), done.stdout + &done.stderr);
    }
    for entry in fs::read_dir(directory.path()).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_file() {
            evidence.add(path.display().to_string(), fs::read(&path).expect("a file"));
        }
    }
    assert_eq!(secrets.len(), 9);
    evidence.judge(&secrets);
}

/// The words of a command with `SECRET` replaced.
fn with_secret(line: &str, secret: &str) -> String {
    line.replace("SECRET", secret)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn secret_typed_in_place_of_an_id_is_not_repeated() {
    let directory = Directory::new();
    let key = Issued::from(&directory.json("keys issue --sandbox --name app"));
    let token = directory.json("feeds token feeder")["token"].as_str().expect("a token").to_owned();
    let parts = [key.secret.clone(), key.secret["sk_test_ob_".len()..].to_owned(), token];
    let commands = [
        "keys show SECRET",
        "keys show SECRET --json",
        "keys rotate SECRET",
        "keys revoke SECRET",
        "keys set SECRET --burst 5",
        "feeds token SECRET",
        "feeds token SECRET --revoke",
        "keys SECRET",
        "keys show key_1 SECRET",
        "keys rotate key_1 --grace SECRET",
        "SECRET",
    ];
    let bodies = parts.clone().map(|part| format!("sk_test_ob_{}", &part[part.len() - BODY..]));
    let mut evidence = Evidence::default();
    for is_served in [false, true] {
        let server = is_served.then(|| directory.serve_with(&[("ODDSBOX_LOG", "trace")]));
        for (command, part) in commands.iter().flat_map(|command| parts.iter().map(move |part| (command, part))) {
            let done = directory.run(&with_secret(command, part));
            assert_eq!(leak((done.stdout.clone() + &done.stderr).as_bytes(), &bodies), None, "{command}");
            assert!(matches!(done.code, Some(1 | 2)), "{command}: {done:?}");
        }
        if let Some(server) = server {
            evidence.add("the log", server.stop());
        }
    }
    evidence.add("the audit log", directory.run("audit --json").succeeded().stdout);
    evidence.add("the file", fs::read(directory.file()).expect("a file"));
    evidence.judge(&bodies);
    assert_eq!(directory.json("keys list").as_array().map(Vec::len), Some(1));
    assert_eq!(directory.json("feeds tokens").as_array().map(Vec::len), Some(1));
    let message = directory.run(&with_secret("keys revoke SECRET", &key.secret)).failed();
    let last_four = &key.secret[key.secret.len() - 4..];
    assert!(message.contains("keys list") && message.contains(last_four), "how to find its id: {message}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn text_output_contains_the_secret_only_when_it_is_issued() {
    let directory = Directory::new();
    let issued = directory.run("keys issue --sandbox --name shown").succeeded().stdout;
    let secret = shaped_like_a_secret(issued.as_bytes()).expect("a secret");
    let listed = directory.run("keys list").succeeded().stdout;
    assert_eq!(leak(listed.as_bytes(), &[]), None, "{listed}");
    let last_four = &secret[BODY - 4..];
    assert!(listed.contains(&format!("sk_test_ob_…{last_four}")), "its prefix and last four characters: {listed}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn secret_sent_as_request_id_is_not_logged() {
    let directory = Directory::new();
    let key = Issued::from(&directory.json("keys issue --sandbox --name careless"));
    let server = directory.serve();
    let mut connection = Connection::open(server.address()).await.expect("a connection");
    let text = format!("GET /v1/sports HTTP/1.1\r\nhost: oddsbox\r\nx-request-id: {}\r\n\r\n", key.secret);
    assert_eq!(connection.send(&text).await.expect("an answer").status, 401);
    let log = server.stop();
    assert_eq!(leak(log.as_bytes(), &[key.secret]), None, "{log}");
}
