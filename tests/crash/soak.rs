//! The failure that this prevents: something grows a little every hour, or a response that no test inspected differs
//! from the OpenAPI document.
//!
//! Short form: a few seconds of real time, in which hours pass for the service in the test's own process. Long form:
//! `ODDSBOX_SOAK_SECONDS` seconds, or ten minutes.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use oddsbox::admin::IssueKey;
use oddsbox::http::OPENAPI;
use oddsbox::keys::{BURST_MAX, KeyKind};
use serde_json::Value;
use tokio::task::JoinHandle;

use crate::harness::follower::{FollowedBoard, Follower, odds_of};
use crate::harness::schema::{check, resolved};
use crate::harness::{Answer, Service};
use crate::process::client::Connection;
use crate::process::command::{Directory, Server, issue, sandbox};
use crate::process::seed::short_or_long;

const CLIENTS: usize = 32;
const SUBSCRIBERS: usize = 5;
/// What is followed, and compared at the end.
const FOLLOWED: &str = "&bookmaker=betmgm";
/// The log grows for as long as it keeps. A long form has passed that before its first half is over.
const HISTORY: [(&str, &str); 2] = [("history.keep_sandbox", "4h"), ("history.resume", "4h")];
/// So that what grows in memory is not the cache of the file's pages, in MiB.
pub const SMALL_CACHE: (&str, &str) = ("ODDSBOX_CACHE", "4");
const SPORTS: [&str; 5] = ["mma", "boxing", "tennis", "american_football", "golf"];

fn soak_time(short_s: u64) -> Duration {
    let asked = std::env::var("ODDSBOX_SOAK_SECONDS").ok().and_then(|text| text.parse().ok());
    Duration::from_secs(asked.unwrap_or_else(|| short_or_long(short_s, 600)))
}

/// The requests of a client in turn: a path of the document, and the same with its parameters filled in.
fn question(sports: &[&str], number: usize) -> (&'static str, String) {
    let sport = sports[number % sports.len()];
    let format = ["american", "decimal", "fractional"][number % 3];
    match number % 7 {
        0 => {
            ("/v1/sports/{sport_key}/odds", format!("/v1/sports/{sport}/odds?odds_format={format}&regions=us,uk,eu,au"))
        }
        1 => ("/v1/sports/{sport_key}/scores", format!("/v1/sports/{sport}/scores")),
        2 => ("/v1/sports/{sport_key}/events", format!("/v1/sports/{sport}/events?limit=20")),
        3 => ("/v1/sports/{sport_key}/odds", format!("/v1/sports/mma/odds?group=bout&odds_format={format}")),
        4 => ("/v1/sports", "/v1/sports".to_owned()),
        5 => ("/v1/books", "/v1/books".to_owned()),
        _ => ("/v1/status", "/v1/status".to_owned()),
    }
}

fn assert_documented(document: &Value, path: &str, target: &str, answer: &Answer) {
    let responses = &document["paths"][path]["get"]["responses"];
    let documented = resolved(document, &responses[answer.status.to_string()]);
    let schema = &documented["content"]["application/json"]["schema"];
    check(document, schema, &answer.json()).unwrap_or_else(|why| panic!("{target}: {why}"));
}

/// A client that keeps a board by a stream until it is over and a beat has come.
async fn keep_board(service: Arc<Service>, key: String, is_over: Arc<AtomicBool>) -> (Follower, FollowedBoard) {
    let mut board = FollowedBoard::default();
    let path = format!("/v1/stream?sports=mma{FOLLOWED}");
    let mut follower = Follower::open_as(&service, &key, &path, None).await;
    loop {
        let Some(event) = follower.next().await else {
            follower = Follower::open_as(&service, &key, &path, board.last_id.as_deref()).await;
            continue;
        };
        board.apply(&event);
        if event.kind == "beat" && is_over.load(Ordering::Relaxed) {
            return (follower, board);
        }
    }
}

/// Reads what is left of a stream: the board that was kept must become that of Get Odds, as time stands still.
async fn assert_followed(service: &Service, (mut follower, mut board): (Follower, FollowedBoard)) -> String {
    let began = Instant::now();
    while board.comparable() != odds_of(service, "mma", FOLLOWED).await {
        assert!(began.elapsed() < Duration::from_secs(30), "the board that was kept differs from that of Get Odds");
        if let Ok(event) = tokio::time::timeout(Duration::from_secs(1), follower.next()).await {
            board.apply(&event.expect("the stream goes on"));
        }
    }
    format!("{} conflated and {} resets", board.conflated, board.resets)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hours_of_a_demo_keep_the_file_small_and_responses_documented() {
    let service = Arc::new(Service::start_demo_with(&HISTORY).await);
    let document: Arc<Value> = Arc::new(serde_json::from_str(OPENAPI).expect("a document"));
    let is_over = Arc::new(AtomicBool::new(false));
    let (answers, refusals) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let mut clients = Vec::new();
    for client in 0..CLIENTS {
        let kind = if client % 2 == 0 { KeyKind::Sandbox } else { KeyKind::Production };
        let key = service
            .issue(kind, |new| (new.limits.burst_per_minute, new.limits.per_day) = (BURST_MAX, Some(1 << 40)))
            .await;
        let (is_over, document) = (Arc::clone(&is_over), Arc::clone(&document));
        let (answers, refusals) = (Arc::clone(&answers), Arc::clone(&refusals));
        let address = service.address;
        clients.push(tokio::spawn(async move {
            let mut connection = Connection::open(address).await.expect("a connection");
            let mut number = client;
            while !is_over.load(Ordering::Relaxed) {
                let (path, target) = question(&SPORTS, number);
                let answer = connection.get(&target, key.secret.expose()).await.expect("an answer");
                assert_documented(&document, path, &target, &answer);
                // On a busy machine, the first lease of a new day may be late.
                let is_refused = answer.status == 503;
                assert!(is_refused || answer.status == 200, "{target}: {answer:?}");
                (if is_refused { &refusals } else { &answers }).fetch_add(1, Ordering::Relaxed);
                number += CLIENTS + 1;
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }));
    }
    let subscribers: Vec<_> = (0..SUBSCRIBERS)
        .map(|_| tokio::spawn(keep_board(Arc::clone(&service), service.live.clone(), Arc::clone(&is_over))))
        .collect();
    let began = Instant::now();
    let started = service.clock.now().unix_ms;
    let (mut sizes, mut passed_s, mut rows_of_half) = (Vec::new(), 0, Vec::new());
    // A thousand times as fast as real time, as far as the machine keeps up.
    while began.elapsed() < soak_time(6) {
        tokio::time::sleep(Duration::from_millis(20)).await;
        let due_s = u64::try_from(began.elapsed().as_millis()).expect("a short time");
        let step_s = (due_s - passed_s).min(120);
        service.advance(step_s).await;
        passed_s += step_s;
        sizes.push(service.writer().file_bytes().await.expect("a size"));
        if rows_of_half.is_empty() && began.elapsed() >= soak_time(6) / 2 {
            rows_of_half = service.writer().check().await.expect("a check").rows;
        }
    }
    is_over.store(true, Ordering::Relaxed);
    for client in clients {
        client.await.expect("a client");
    }
    while !subscribers.iter().all(JoinHandle::is_finished) {
        service.advance(10).await;
    }
    for subscriber in subscribers {
        println!("a subscriber: {}", assert_followed(&service, subscriber.await.expect("a subscriber")).await);
    }
    let hours = (service.clock.now().unix_ms - started) / 3_600_000;
    let (half, whole) = (sizes[..sizes.len() / 2].iter().max(), sizes.iter().max());
    let (answers, refusals) = (answers.load(Ordering::Relaxed), refusals.load(Ordering::Relaxed));
    println!(
        "{hours} hours, {answers} answers and {refusals} refusals, the file {half:?} bytes at most in the first half, \
         {whole:?} in all"
    );
    assert!(refusals * 100 <= answers, "{refusals} were refused, {answers} answered");
    assert!(whole.copied() < half.map(|half| half * 2 + (4 << 20)), "the file grows: {half:?}, then {whole:?}");
    let report = service.writer().check().await.expect("a check");
    assert!(report.is_clean(), "{report:?}");
    let rows: Vec<_> =
        rows_of_half.into_iter().zip(report.rows).map(|((table, half), (_, end))| (table, half, end)).collect();
    println!("rows of each table after half of it and at the end: {rows:?}");
}

/// Follows a stream and comes back after every hundred events.
async fn subscribe(address: SocketAddr, secret: String, events: Arc<AtomicU64>, ended: Arc<AtomicU64>) {
    let mut last = String::new();
    loop {
        let headers = format!("x-api-key: {secret}\r\n{last}");
        let mut follower = Follower::open_at(address, "/v1/stream?sports=mma,golf", &headers).await;
        if follower.status == 503 {
            tokio::time::sleep(Duration::from_secs(1)).await;
            continue;
        }
        assert_eq!(follower.status, 200, "{}", follower.head);
        for _ in 0..100 {
            let Some(event) = follower.next().await else {
                ended.fetch_add(1, Ordering::Relaxed);
                break;
            };
            last = event.id.map_or(last, |id| format!("last-event-id: {id}\r\n"));
            events.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Twenty requests of a client. On a busy machine, a node may wait for a lease.
async fn ask(address: SocketAddr, secret: &str, sports: &[&str], client: usize, pause: Duration) -> u64 {
    let mut connection = Connection::open(address).await.expect("a connection");
    let mut refusals = 0;
    for number in 0..20 {
        let (_, target) = question(sports, client + number);
        let status = connection.get(&target, secret).await.expect("an answer").status;
        assert!(matches!(status, 200 | 503), "{status}: {target}");
        refusals += u64::from(status == 503);
        tokio::time::sleep(pause).await;
    }
    refusals
}

/// What servers have of memory, in kB, and open files.
type Usage = Vec<(u64, usize)>;

fn usage(servers: &[&Server]) -> Usage {
    servers.iter().map(|server| (memory_kb(server), open_files(server))).collect()
}

fn open_files(server: &Server) -> usize {
    fs::read_dir(format!("/proc/{}/fd", server.id())).map_or(0, Iterator::count)
}

fn memory_kb(server: &Server) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", server.id())).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or("0");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

/// Polls servers and follows their streams for a while: they must not grow. Returns how many streams they ended.
pub async fn poll_and_follow(servers: &[&Server], secret: &str, sports: &'static [&str], pause: Duration) -> u64 {
    let (events, ended) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let addresses = servers.iter().map(|server| server.address()).cycle();
    let subscribers: Vec<_> = (addresses.clone().take(SUBSCRIBERS * servers.len()))
        .map(|address| tokio::spawn(subscribe(address, secret.to_owned(), Arc::clone(&events), Arc::clone(&ended))))
        .collect();
    let (began, mut rounds, mut refusals) = (Instant::now(), Vec::new(), 0);
    while began.elapsed() < soak_time(4) || rounds.len() < 4 {
        let clients = addresses.clone().take(CLIENTS).enumerate().map(|(client, address)| {
            let secret = secret.to_owned();
            tokio::spawn(async move { ask(address, &secret, sports, client, pause).await })
        });
        for client in clients.collect::<Vec<_>>() {
            refusals += client.await.expect("a client");
        }
        rounds.push(usage(servers));
    }
    for subscriber in subscribers {
        assert!(!subscriber.is_finished(), "a subscriber failed: {:?}", subscriber.await);
        subscriber.abort();
    }
    let answers = (rounds.len() * CLIENTS * 20) as u64 - refusals;
    let (events, ended) = (events.load(Ordering::Relaxed), ended.load(Ordering::Relaxed));
    let (first, last) = (&rounds[1], &rounds[rounds.len() - 1]);
    println!(
        "{answers} answers, {refusals} refusals, {events} events, {ended} streams ended: memory and open files from \
         {first:?} to {last:?}"
    );
    assert!(refusals * 100 <= answers, "{refusals} were refused, {answers} answered");
    for (first, last) in first.iter().zip(last) {
        assert!(last.0 < first.0 + 100_000, "memory grows: {rounds:?}");
        // Closed connections may be noticed a moment later.
        assert!(last.1 <= first.1 + 2 * (CLIENTS + SUBSCRIBERS), "open files grow: {rounds:?}");
    }
    ended
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn polled_and_followed_process_does_not_grow() {
    if !Path::new("/proc/self/fd").exists() {
        println!("skipped: there is no /proc to look into");
        return;
    }
    let directory = Directory::new();
    let server = directory.serve_all_sports(&[("ODDSBOX_LOG", "warn"), ("ODDSBOX_REFRESH", "1s"), SMALL_CACHE]);
    let new = IssueKey { streams: Some(100), ..sandbox(1 << 40) };
    let key = issue(&directory.access().await, new).await.expect("a key");
    let ended = poll_and_follow(&[&server], &key.secret, &SPORTS, Duration::ZERO).await;
    assert_eq!(ended, 0, "streams of a server that runs were ended");
    server.stop();
}
