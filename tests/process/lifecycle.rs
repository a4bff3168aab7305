//! Startup and shutdown, and everything that can go wrong with them.

use std::fs;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::json;

use super::client::{Connection, get};
use super::command::{Directory, Issued, Server, Started, blocking, file_with, run, show, until};
use super::seed::within_a_day;

const EVENT: &str = r#"{"type":"event","sport":"mma","id":"ufc1","competition":"UFC","commence_time":"2099-01-01T00:00:00Z","home":"Ana Ruiz","away":"Bea Holt","status":"scheduled"}"#;

/// A drain timeout longer than any test.
const PATIENT: &[(&str, &str)] = &[("ODDSBOX_DRAIN_TIMEOUT", "80s"), ("ODDSBOX_HEADER_TIMEOUT", "80s")];

/// A directory with a key, without a server.
fn with_key() -> (Directory, Issued) {
    let directory = Directory::new();
    let key = Issued::from(&directory.json("keys issue --sandbox --name app --burst 100000 --per-day 50000"));
    (directory, key)
}

/// Starts a request and leaves it incomplete, so that a shutdown has to wait for it.
async fn begin_request(server: &Server) -> Connection {
    let mut connection = Connection::open(server.address()).await.expect("a connection");
    connection.write(b"GET /v1/sports HTTP/1.1\r\nhost: oddsbox\r\n").await.expect("a part");
    // When these are answered, everything sent before them has been read.
    for _ in 0..20 {
        get(server.address(), "/healthz", "").await;
    }
    connection
}

/// Waits until the public listener accepts no more connections.
async fn until_closed(server: &Server) {
    let address = server.address();
    until("the public listener closes", async || Connection::open(address).await.is_err()).await;
}

#[tokio::test]
async fn stale_socket_of_a_crash_is_replaced() {
    let (directory, key) = with_key();
    directory.serve().kill();
    assert!(directory.socket().exists(), "the killed server could not remove it");
    let listed = directory.json("keys list");
    assert_eq!(listed[0]["id"], key.id.as_str(), "a command opens the file itself");
    let server = directory.serve();
    assert_eq!(directory.run("ready").succeeded().stdout, "ready\n");
    assert_eq!(get(server.address(), "/v1/sports", &key.secret).await.status, 200);
    server.stop();
    assert!(!directory.socket().exists(), "an orderly end takes it away");
}

#[test]
fn only_the_owner_can_access_the_file_and_the_socket() {
    let (directory, _) = with_key();
    let server = directory.serve();
    let mode = |path: &Path| fs::metadata(path).expect("a file").permissions().mode() & 0o777;
    assert_eq!(mode(&directory.file()), 0o600);
    assert_eq!(mode(&directory.socket()), 0o600);
    assert_eq!(mode(directory.socket().parent().expect("a directory")), 0o700);
    server.stop();
}

#[tokio::test]
async fn second_server_on_a_directory_fails_with_one_line() {
    let (directory, key) = with_key();
    let server = directory.serve();
    let message = Server::spawn(directory.path(), &[]).failed();
    assert!(message.contains("in use by another oddsbox") && message.contains("oddsbox.redb"), "{message}");
    // The first server is unaffected.
    assert_eq!(get(server.address(), "/v1/sports", &key.secret).await.status, 200);
    directory.run("ready").succeeded();
    server.stop();
}

#[test]
fn port_in_use_is_reported_on_one_line() {
    let (directory, _) = with_key();
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address").to_string();
    let before = fs::read(directory.file()).expect("a file");
    let message = Server::spawn_on(directory.path(), &address, &[]).failed();
    assert!(message.contains(&address) && message.contains("--listen"), "{message}");
    assert_eq!(fs::read(directory.file()).expect("a file"), before);
}

/// All commands that open a file, on a file that cannot be opened: one line each, and the file is unchanged.
fn refuse(directory: &Path, part: &str) {
    let file = directory.join("oddsbox.redb");
    let before = fs::read(&file).ok();
    let mut message = vec![Server::spawn(directory, &[]).failed()];
    for line in ["keys issue --sandbox --name app", "keys list", "check", "status"] {
        message.push(run(directory, line).failed());
    }
    for message in message {
        assert!(
            message.contains(part) || (before.is_none() && message.contains("no oddsbox data in")),
            "{part}: {message}"
        );
    }
    assert_eq!(fs::read(&file).ok(), before);
}

#[test]
fn impossible_data_path_is_reported_on_one_line() {
    let (_kept, file) = file_with(b"a file");
    refuse(&file, "not a directory");
    refuse(&file.join("below"), "not a directory");
    assert_eq!(fs::read(&file).expect("the file"), b"a file");
}

#[test]
fn missing_permission_is_reported_on_one_line() {
    let directory = tempfile::tempdir().expect("a directory");
    let closed = directory.path().join("closed");
    fs::create_dir(&closed).expect("a directory");
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o500)).expect("permissions");
    if fs::write(closed.join("probe"), b"").is_ok() {
        // Root may write anywhere.
        return;
    }
    let message = Server::spawn(&closed, &[]).failed();
    assert!(message.contains("permission"), "{message}");
}

#[test]
fn foreign_file_is_left_unchanged() {
    let empty_pages = vec![0; 65_536];
    for contents in [b"hello\n".as_slice(), &[0xFF; 5000], &empty_pages, b"redb"] {
        let directory = Directory::new();
        fs::write(directory.file(), contents).expect("a file");
        refuse(directory.path(), "oddsbox.redb");
    }
    let directory = Directory::new();
    fs::create_dir(directory.file()).expect("a directory");
    refuse(directory.path(), "is a directory");
}

#[test]
fn truncated_file_is_left_unchanged() {
    let (directory, _) = with_key();
    directory.serve().stop();
    let closed = fs::read(directory.file()).expect("a file");
    directory.serve().kill();
    let crashed = fs::read(directory.file()).expect("a file");
    for whole in [closed, crashed] {
        for kept in [whole.len() / 2, whole.len() - 1, 20_000, 400, 8] {
            let cut = Directory::new();
            fs::write(cut.file(), &whole[..kept]).expect("a file");
            refuse(cut.path(), "oddsbox.redb");
        }
    }
}

#[test]
fn path_too_long_for_a_socket_is_reported_on_one_line() {
    let directory = Directory::new();
    let long = directory.path().join("d".repeat(120));
    let message = Server::spawn(&long, &[]).failed();
    assert!(message.contains("choose a shorter data directory"), "{message}");
}

#[tokio::test]
async fn shutdown_completes_requests_and_keeps_usage() {
    within_a_day(check_shutdown_completes_requests_and_keeps_usage).await;
}

async fn check_shutdown_completes_requests_and_keeps_usage() {
    let (directory, key) = with_key();
    let server = directory.serve_with(PATIENT);
    let mut resting = Connection::open(server.address()).await.expect("a connection");
    for _ in 0..123 {
        assert_eq!(resting.get("/v1/sports", &key.secret).await.expect("an answer").status, 200);
    }
    let mut begun = begin_request(&server).await;
    server.terminate();
    until_closed(&server).await;
    let rest = begun.send(&format!("x-api-key: {}\r\n\r\n", key.secret)).await.expect("an answer");
    assert_eq!((rest.status, rest.header("x-requests-used")), (200, Some("124")));
    let (code, _, log) = server.end();
    assert_eq!(code, Some(0), "{log}");
    assert!(!directory.socket().exists());
    assert_eq!(directory.json(&format!("keys show {}", key.id))["used_today"], 124);
    let server = directory.serve();
    assert_eq!(get(server.address(), "/v1/sports", &key.secret).await.header("x-requests-used"), Some("125"));
    server.stop();
}

#[tokio::test]
async fn second_signal_ends_the_drain_immediately() {
    within_a_day(check_second_signal_ends_the_drain_immediately).await;
}

async fn check_second_signal_ends_the_drain_immediately() {
    let (directory, key) = with_key();
    let mut server = directory.serve_with(PATIENT);
    for _ in 0..7 {
        assert_eq!(get(server.address(), "/v1/sports", &key.secret).await.status, 200);
    }
    let unfinished = begin_request(&server).await;
    server.terminate();
    until_closed(&server).await;
    assert!(!server.has_ended(), "it waits for the request that was begun");
    let began = Instant::now();
    server.terminate();
    let (code, _, log) = server.end();
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    assert_eq!(code, Some(0), "{log}");
    assert!(log.contains("stopped at once"), "{log}");
    drop(unfinished);
    assert_eq!(directory.json(&format!("keys show {}", key.id))["used_today"], 7, "the counters are kept all the same");
}

/// Sends requests on many connections until the server is gone; returns how many were sent and answered with 200.
async fn load(address: SocketAddr, secret: &str) -> (u64, u64) {
    let client = |_| {
        let secret = secret.to_owned();
        tokio::spawn(async move {
            let (mut sent, mut answered) = (0, 0);
            while let Ok(mut connection) = Connection::open(address).await {
                loop {
                    sent += 1;
                    let Ok(answer) = connection.get("/v1/sports", &secret).await else { break };
                    assert_eq!(answer.status, 200, "{answer:?}");
                    answered += 1;
                }
            }
            (sent, answered)
        })
    };
    let clients: Vec<_> = (0..32).map(client).collect();
    let mut total = (0, 0);
    for client in clients {
        let (sent, answered) = client.await.expect("a client");
        total = (total.0 + sent, total.1 + answered);
    }
    total
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shutdown_under_load_keeps_usage() {
    within_a_day(check_shutdown_under_load_keeps_usage).await;
}

async fn check_shutdown_under_load_keeps_usage() {
    let directory = Directory::new();
    for signals in [1, 2, 1, 2, 2] {
        let issue = "keys issue --sandbox --name app --burst 10000000 --per-day 90000000";
        let key = Issued::from(&directory.json(issue));
        let server = directory.serve_with(&[("ODDSBOX_LOG", "warn")]);
        let (address, secret) = (server.address(), key.secret.clone());
        let clients = tokio::spawn(async move { load(address, &secret).await });
        let access = directory.access().await;
        until("requests come", async || show(&access, &key.id).await.used_today > 500).await;
        for _ in 0..signals {
            server.terminate();
        }
        let (code, _, log) = blocking(move || server.end()).await;
        assert_eq!(code, Some(0), "{log}");
        let (sent, answered) = clients.await.expect("the clients");
        let used = directory.json(&format!("keys show {}", key.id))["used_today"].as_u64().expect("a number");
        assert!((answered..=sent).contains(&used), "{signals} signals: {answered} of {sent} answered, {used} counted");
    }
}

#[tokio::test]
async fn admin_socket_works_while_the_server_drains() {
    let (directory, key) = with_key();
    let server = directory.serve_with(PATIENT);
    let mut unfinished = begin_request(&server).await;
    server.terminate();
    until_closed(&server).await;
    let late = Issued::from(&directory.json("keys issue --sandbox --name late"));
    assert_eq!(directory.json(&format!("keys revoke {}", key.id))["status"], "revoked");
    let rest = unfinished.send(&format!("x-api-key: {}\r\n\r\n", key.secret)).await.expect("an answer");
    assert_eq!(rest.status, 401, "it is in force for the request that was begun before");
    let (code, _, log) = server.end();
    assert_eq!(code, Some(0), "{log}");
    let server = directory.serve();
    assert_eq!(get(server.address(), "/v1/sports", &key.secret).await.status, 401);
    assert_eq!(get(server.address(), "/v1/sports", &late.secret).await.status, 200);
    server.stop();
}

#[tokio::test]
async fn draining_server_is_not_ready() {
    let (directory, _) = with_key();
    let server = directory.serve_with(PATIENT);
    let unfinished = begin_request(&server).await;
    server.terminate();
    until_closed(&server).await;
    let message = directory.run("ready").failed();
    assert!(message.contains("starting or stopping"), "{message}");
    drop(unfinished);
}

#[test]
fn signal_during_the_start_leaves_the_file_intact() {
    let (directory, _) = with_key();
    let server = Server::spawn(directory.path(), &[]);
    server.terminate();
    // Before its signal handler is installed it is killed by the signal; after that it shuts down gracefully.
    let (code, _, log) = server.end();
    assert!(code.is_none() || code == Some(0), "{code:?} {log}");
    assert_eq!(directory.json("keys list").as_array().map(Vec::len), Some(1), "the file is in order");
    directory.serve().stop();
}

/// Commands started at a bad time. Each succeeds or says on one line why not.
fn judge(directory: &Directory, key: &Issued, commands: Vec<Started>) -> usize {
    let mut succeeded = 0;
    for command in commands {
        let done = command.done();
        if done.code == Some(0) {
            assert_eq!(done.document()[0]["id"], key.id.as_str(), "{done:?}");
            succeeded += 1;
        } else {
            let message = done.failed();
            assert!(message.contains("try again") || message.contains("in use"), "{message}");
        }
    }
    assert_eq!(directory.json("keys list")[0]["id"], key.id.as_str());
    succeeded
}

#[test]
fn commands_while_a_server_starts_are_answered() {
    let (directory, key) = with_key();
    for _ in 0..3 {
        let mut server = Server::spawn(directory.path(), &[]);
        let commands = (0..8).map(|_| Started::new(directory.path(), ["keys", "list", "--json"])).collect();
        let succeeded = judge(&directory, &key, commands);
        server.wait_until_ready();
        assert_eq!(succeeded, 8, "each command holds the file only briefly");
        server.stop();
    }
}

#[test]
fn commands_while_a_server_stops_are_answered_or_asked_to_retry() {
    let (directory, key) = with_key();
    for _ in 0..3 {
        let server = directory.serve();
        server.terminate();
        let commands = (0..8).map(|_| Started::new(directory.path(), ["keys", "list", "--json"])).collect();
        judge(&directory, &key, commands);
        let (code, _, log) = server.end();
        assert_eq!(code, Some(0), "{log}");
    }
}

#[tokio::test]
async fn concurrent_commands_can_create_a_directory() {
    for _ in 0..3 {
        let directory = Directory::new();
        let line = "keys issue --sandbox --name app --json";
        let mut server = Server::spawn(directory.path(), &[]);
        let commands: Vec<_> = (0..4).map(|_| Started::new(directory.path(), line.split(' '))).collect();
        let issued: Vec<_> =
            commands.into_iter().map(|command| Issued::from(&command.done().succeeded().document())).collect();
        server.wait_until_ready();
        for key in &issued {
            assert_eq!(get(server.address(), "/v1/sports", &key.secret).await.status, 200);
        }
        server.stop();
    }
}

/// A command that reads from a pipe and has the file open.
fn hold_the_file(directory: &Directory) -> Started {
    let mut holder = Started::new(directory.path(), ["ingest", "-", "--json"]);
    holder.write(&format!("{EVENT}\n"));
    let began = Instant::now();
    // Any other process finds the file locked.
    loop {
        let file = fs::File::open(directory.file()).expect("a file");
        match file.try_lock() {
            Err(fs::TryLockError::WouldBlock) => return holder,
            Err(fs::TryLockError::Error(error)) => panic!("{error}"),
            Ok(()) => file.unlock().expect("a lock"),
        }
        assert!(began.elapsed() < Duration::from_secs(60) && !holder.has_ended(), "{holder:?}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[tokio::test]
async fn server_waits_for_a_command_that_uses_the_file() {
    let (directory, key) = with_key();
    let mut holder = hold_the_file(&directory);
    let mut server = Server::spawn(directory.path(), &[]);
    let command = Started::new(directory.path(), ["keys", "list", "--json"]);
    assert!(!holder.has_ended());
    let report = holder.done().succeeded().document();
    assert_eq!(report["accepted"], 1);
    server.wait_until_ready();
    assert_eq!(get(server.address(), "/v1/sports", &key.secret).await.status, 200);
    let done = command.done().succeeded();
    assert_eq!(done.document()[0]["id"], key.id.as_str(), "so does a command");
    server.stop();
}

#[test]
fn lock_timeout_is_reported_on_one_line() {
    let (directory, _) = with_key();
    let mut holder = hold_the_file(&directory);
    let server = Server::spawn(directory.path(), &[]);
    let command = Started::new(directory.path(), ["keys", "list"]);
    let message = server.failed();
    assert!(message.contains("in use"), "{message}");
    let message = command.done().failed();
    assert!(message.contains("in use") && message.contains("try again"), "{message}");
    assert!(!holder.has_ended());
    assert_eq!(holder.done().succeeded().document()["accepted"], json!(1));
}

#[tokio::test]
async fn ingest_reports_a_lost_server_and_written_lines_are_kept() {
    let (directory, _) = with_key();
    let live = Issued::from(&directory.json("keys issue --live --name live --approved-by ada"));
    for is_orderly in [true, false] {
        let server = directory.serve();
        let id = format!("ufc-{is_orderly}");
        let mut stream = Started::new(directory.path(), ["ingest", "-", "--json"]);
        stream.write(&format!("{}\n", EVENT.replace("ufc1", &id)));
        let address = server.address();
        until("the line has come", async || {
            get(address, "/v1/sports/mma/events", &live.secret).await.text().contains(&id)
        })
        .await;
        if is_orderly {
            let log = server.stop();
            assert!(!log.contains("ERROR"), "{log}");
        } else {
            server.kill();
        }
        let message = stream.done().failed();
        assert!(message.contains("does not answer") && message.contains("try again"), "{message}");
        let server = directory.serve();
        let events = get(server.address(), "/v1/sports/mma/events", &live.secret).await;
        assert!(events.text().contains(&id), "{events:?}");
        server.stop();
    }
}

#[tokio::test]
async fn admin_socket_speaks_plain_http() {
    let (directory, key) = with_key();
    let server = directory.serve();
    let ask = async |request: String| -> io::Result<String> {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        let mut stream = tokio::net::UnixStream::connect(directory.socket()).await?;
        stream.write_all(request.as_bytes()).await?;
        let mut text = String::new();
        stream.read_to_string(&mut text).await?;
        Ok(text)
    };
    let post = |body: &str| {
        let length = body.len();
        format!("POST /command HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}")
    };
    let ready =
        ask("GET /readyz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n".to_owned()).await.expect("an answer");
    assert!(ready.starts_with("HTTP/1.1 200") && ready.contains(r#"{"ready":true}"#), "{ready}");
    let listed = ask(post(r#"{"command":"keys-list"}"#)).await.expect("an answer");
    assert!(listed.contains(&key.id) && !listed.contains(&key.secret), "{listed}");
    let wrong = ask(post(r#"{"command":"keys-burn"}"#)).await.expect("an answer");
    assert!(wrong.starts_with("HTTP/1.1 400") && wrong.contains("bad_request"), "{wrong}");
    // The public API has none of these paths.
    for path in ["/command", "/readyz", "/livez", "/ingest"] {
        assert_eq!(get(server.address(), path, &key.secret).await.status, 404, "{path}");
    }
    server.stop();
}
