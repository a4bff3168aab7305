//! How fast a price and a revocation reach all of three nodes, which run on this machine with a real Redis server, and what
//! nodes and requests cost that server.
//!
//! `cargo bench --bench cluster`; needs `redis-server`. With a number it takes that many seconds and revocations.
#![allow(clippy::expect_used, clippy::print_stdout, reason = "a program that measures")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use oddsbox::admin::{self, AdminAccess, DataDir, FieldSetting, IssueKey, KeyAnswer};
use tempfile::TempDir;

const NODES: [&str; 3] = ["a", "b", "c"];
const KEYS: usize = 50;

/// A process that ends with this value.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

struct Node {
    address: String,
    directory: TempDir,
    _running: Running,
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address").port()
}

fn redis(directory: &Path) -> (Running, u16) {
    let port = free_port();
    let child = Command::new("redis-server")
        .args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", ""])
        .args(["--appendonly", "yes", "--appendfsync", "always", "--dir"])
        .arg(directory)
        .stdout(Stdio::null())
        .spawn()
        .expect("redis-server is installed");
    let running = Running(child);
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        thread::sleep(Duration::from_millis(20));
    }
    (running, port)
}

fn oddsbox(directory: &Path, node: &str, port: u16) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_oddsbox"));
    command.arg("--data").arg(directory);
    command.env("ODDSBOX_CLUSTER_URL", format!("redis://127.0.0.1:{port}")).env("ODDSBOX_CLUSTER_NODE", node);
    command.env("ODDSBOX_REFRESH", "1s").env("ODDSBOX_LOG", "warn");
    command
}

fn start(node: &str, port: u16, is_first: bool) -> Node {
    let directory = tempfile::tempdir().expect("a directory");
    if is_first {
        let done = oddsbox(directory.path(), node, port).args(["cluster", "init"]).output().expect("a process");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    }
    let mut serve = oddsbox(directory.path(), node, port);
    let mut child = serve.args(["serve", "--listen", "127.0.0.1:0"]).stdout(Stdio::piped()).spawn().expect("a process");
    let output = BufReader::new(child.stdout.take().expect("an output"));
    let running = Running(child);
    let line = output.lines().map_while(Result::ok).next().expect("a line");
    let address = line.strip_prefix("listening on http://").expect("an address").to_owned();
    Node { address, directory, _running: running }
}

/// For each tick that brought prices: its second, and how long after that they had arrived with its beat.
fn follow(address: &str, secret: &str, lags: &Sender<(u64, Duration)>) {
    let mut stream = TcpStream::connect(address).expect("a connection");
    let request = format!("GET /v1/stream?snapshot=false HTTP/1.1\r\nhost: oddsbox\r\nx-api-key: {secret}\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("a request");
    let mut has_price = false;
    for line in BufReader::new(stream).lines().map_while(Result::ok) {
        has_price |= line == "event: odds";
        let Some(beat) = line.strip_prefix(r#"data: {"at":""#).filter(|_| line.contains(r#""position":"#)) else {
            continue;
        };
        let arrived = SystemTime::now();
        let at = humantime::parse_rfc3339(beat.split('"').next().expect("a text")).expect("a time");
        if std::mem::take(&mut has_price) {
            let tick = at.duration_since(UNIX_EPOCH).expect("a time").as_secs();
            let _ = lags.send((tick, arrived.duration_since(at).expect("an earlier time")));
        }
    }
}

fn new_key(name: String) -> IssueKey {
    IssueKey {
        kind: "sandbox".into(),
        name,
        approved_by: None,
        groups: Vec::new(),
        burst_per_minute: Some(60_000),
        requests_per_day: FieldSetting::To(1_000_000),
        requests_per_month: FieldSetting::Keep,
        streams: Some(10),
        expires_in_s: None,
        self_service: false,
    }
}

/// What an engine has done since it was started.
#[derive(Clone, Copy, Debug)]
struct EngineUse {
    at: Instant,
    cpu_s: f64,
    commands: f64,
    bytes_out: f64,
}

impl EngineUse {
    fn read(port: u16) -> EngineUse {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("a connection");
        stream.write_all(b"INFO\r\nQUIT\r\n").expect("a request");
        let mut text = String::new();
        stream.read_to_string(&mut text).expect("an answer");
        let figure = |name: &str| -> f64 {
            let found = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            found.expect("a figure of Redis").parse().expect("a number")
        };
        EngineUse {
            at: Instant::now(),
            cpu_s: figure("used_cpu_user") + figure("used_cpu_sys"),
            commands: figure("total_commands_processed"),
            bytes_out: figure("total_net_output_bytes"),
        }
    }

    /// Shows what was done since then.
    fn show(self, since: EngineUse, what: &str) {
        let seconds = (self.at - since.at).as_secs_f64();
        println!(
            "the engine with {what}: {:.2} % of a core, {:.0} commands and {:.1} kB out a second",
            (self.cpu_s - since.cpu_s) / seconds * 100.0,
            (self.commands - since.commands) / seconds,
            (self.bytes_out - since.bytes_out) / seconds / 1000.0,
        );
    }
}

/// Asks for a page with each key in turn until a time; returns how many requests passed.
fn ask_until(end: Instant, address: &str, secrets: &[String]) -> u64 {
    let stream = TcpStream::connect(address).expect("a connection");
    let mut answers = BufReader::new(stream.try_clone().expect("a connection"));
    let mut requests = stream;
    let (mut line, mut body, mut passed) = (String::new(), Vec::new(), 0);
    for secret in secrets.iter().cycle() {
        if Instant::now() >= end {
            break;
        }
        let request = format!("GET /v1/sports HTTP/1.1\r\nhost: oddsbox\r\nx-api-key: {secret}\r\n\r\n");
        requests.write_all(request.as_bytes()).expect("a request");
        let mut length = 0;
        loop {
            line.clear();
            answers.read_line(&mut line).expect("a line");
            passed += u64::from(line.starts_with("HTTP/1.1 200"));
            if let Some(value) = line.strip_prefix("content-length: ") {
                length = value.trim().parse().expect("a length");
            }
            if line == "\r\n" {
                break;
            }
        }
        body.resize(length, 0);
        answers.read_exact(&mut body).expect("a body");
    }
    passed
}

fn show(what: &str, mut all: Vec<Duration>) {
    all.sort_unstable();
    let at = |percent: usize| all[(all.len() - 1) * percent / 100];
    println!("{what}: {} measured, median {:?}, p99 {:?}, highest {:?}", all.len(), at(50), at(99), at(100));
}

async fn issue(access: &AdminAccess, name: String) -> KeyAnswer {
    access.ask(admin::Command::KeysIssue(new_key(name))).await.expect("a key")
}

fn main() {
    let count = std::env::args().find_map(|argument| argument.parse().ok()).unwrap_or(100_u64);
    let directory = tempfile::tempdir().expect("a directory");
    let (_redis, port) = redis(directory.path());
    let mut nodes = Vec::<Node>::new();
    for name in NODES {
        nodes.push(start(name, port, nodes.is_empty()));
        let before = EngineUse::read(port);
        thread::sleep(Duration::from_secs(count / 5));
        EngineUse::read(port).show(before, &format!("{} nodes", nodes.len()));
    }
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let accesses: Vec<AdminAccess> = runtime.block_on(async {
        let mut accesses = Vec::new();
        for node in &nodes {
            let data = DataDir::new(node.directory.path());
            accesses.push(AdminAccess::server(&data).await.expect("a socket").expect("a server"));
        }
        accesses
    });

    let revocations = runtime.block_on(async {
        let mut took = Vec::new();
        for round in 0..usize::try_from(count).expect("a number") {
            let key = issue(&accesses[round % NODES.len()], format!("key {round}")).await;
            let began = Instant::now();
            let other = &accesses[(round + 1) % NODES.len()];
            let revoked: KeyAnswer = other.ask(admin::Command::KeysRevoke { id: key.id }).await.expect("a revocation");
            took.push(began.elapsed());
            assert!(revoked.unconfirmed.is_empty(), "{revoked:?}");
        }
        took
    });
    show("a revocation until no node of three lets the key in", revocations);

    let keys = runtime.block_on(async {
        let mut keys = Vec::new();
        for number in 0..KEYS {
            keys.push(issue(&accesses[0], format!("client {number}")).await);
        }
        keys
    });
    let secrets: Vec<String> = keys.into_iter().map(|key| key.key.expect("a secret").expose().to_owned()).collect();
    let (before, end) = (EngineUse::read(port), Instant::now() + Duration::from_secs(count / 5));
    let passed: u64 = thread::scope(|scope| {
        let clients: Vec<_> =
            nodes.iter().map(|node| scope.spawn(|| ask_until(end, &node.address, &secrets))).collect();
        clients.into_iter().map(|client| client.join().expect("a client")).sum()
    });
    EngineUse::read(port).show(before, &format!("3 nodes, {KEYS} keys and {passed} requests in {} s", count / 5));

    let key = runtime.block_on(issue(&accesses[0], "streams".to_owned()));
    let secret = key.key.expect("a secret").expose().to_owned();
    let (sender, lags) = channel();
    for node in &nodes {
        let (address, secret, sender) = (node.address.clone(), secret.clone(), sender.clone());
        thread::spawn(move || follow(&address, &secret, &sender));
    }
    thread::sleep(Duration::from_secs(count));
    // The last node of each tick counts.
    let mut ticks = std::collections::BTreeMap::<u64, (usize, Duration)>::new();
    for (tick, lag) in lags.try_iter() {
        let (nodes, highest) = ticks.entry(tick).or_default();
        (*nodes, *highest) = (*nodes + 1, lag.max(*highest));
    }
    let all: Vec<Duration> = ticks.values().filter(|(nodes, _)| *nodes == NODES.len()).map(|(_, lag)| *lag).collect();
    // In about half of the seconds the simulator changes no price of the sandbox.
    assert!(all.len() as u64 * 4 > count, "prices arrived in {} of {count} seconds", all.len());
    show("a price from its tick until it is on a stream of every node of three", all);
}
