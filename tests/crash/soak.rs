//! The failure that this prevents: something grows a little every hour, or a response that no test inspected differs
//! from the OpenAPI document.
//!
//! Short form: a few seconds of real time, in which hours pass for the service in the test's own process. Long form:
//! `ODDSBOX_SOAK_SECONDS` seconds, or ten minutes.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use oddsbox::http::OPENAPI;
use oddsbox::keys::{BURST_MAX, KeyKind};
use serde_json::Value;

use crate::harness::schema::{check, resolved};
use crate::harness::{Answer, Service};
use crate::process::client::Connection;
use crate::process::command::{Directory, Server, issue, sandbox};
use crate::process::seed::short_or_long;

const CLIENTS: usize = 32;
const SPORTS: [&str; 5] = ["mma", "boxing", "tennis", "american_football", "golf"];

fn soak_time(short_s: u64) -> Duration {
    let asked = std::env::var("ODDSBOX_SOAK_SECONDS").ok().and_then(|text| text.parse().ok());
    Duration::from_secs(asked.unwrap_or_else(|| short_or_long(short_s, 600)))
}

/// The requests of a client in turn: a path of the document, and the same with its parameters filled in.
fn question(number: usize) -> (&'static str, String) {
    let sport = SPORTS[number % SPORTS.len()];
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hours_of_a_demo_keep_the_file_small_and_responses_documented() {
    let service = Arc::new(Service::start_demo().await);
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
                let (path, target) = question(number);
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
    let began = Instant::now();
    let started = service.clock.now().unix_ms;
    let (mut sizes, mut passed_s) = (Vec::new(), 0);
    // A thousand times as fast as real time, as far as the machine keeps up.
    while began.elapsed() < soak_time(6) {
        tokio::time::sleep(Duration::from_millis(20)).await;
        let due_s = u64::try_from(began.elapsed().as_millis()).expect("a short time");
        let step_s = (due_s - passed_s).min(120);
        service.advance(step_s).await;
        passed_s += step_s;
        sizes.push(service.writer().file_bytes().await.expect("a size"));
    }
    is_over.store(true, Ordering::Relaxed);
    for client in clients {
        client.await.expect("a client");
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
}

fn open_files(server: &Server) -> usize {
    fs::read_dir(format!("/proc/{}/fd", server.id())).map_or(0, Iterator::count)
}

fn memory_kb(server: &Server) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", server.id())).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or("0");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn polling_process_does_not_grow() {
    if !Path::new("/proc/self/fd").exists() {
        println!("skipped: there is no /proc to look into");
        return;
    }
    let directory = Directory::new();
    let server = directory.serve_all_sports(&[("ODDSBOX_LOG", "warn")]);
    let key = issue(&directory.access().await, sandbox(1 << 40)).await.expect("a key");
    let began = Instant::now();
    let mut rounds = Vec::new();
    while began.elapsed() < soak_time(4) || rounds.len() < 4 {
        let mut clients = Vec::new();
        for client in 0..CLIENTS {
            let (address, secret) = (server.address(), key.secret.clone());
            clients.push(tokio::spawn(async move {
                let mut connection = Connection::open(address).await.expect("a connection");
                for number in 0..20 {
                    let (_, target) = question(client + number);
                    assert_eq!(connection.get(&target, &secret).await.expect("an answer").status, 200, "{target}");
                }
            }));
        }
        for client in clients {
            client.await.expect("a client");
        }
        rounds.push((memory_kb(&server), open_files(&server)));
    }
    let (first, last) = (rounds[1], rounds[rounds.len() - 1]);
    println!("{} rounds: memory and open files from {first:?} to {last:?}", rounds.len());
    assert!(last.0 < first.0 + 100_000, "memory grows: {rounds:?}");
    // Closed connections may be noticed a moment later.
    assert!(last.1 <= first.1 + 2 * CLIENTS, "open files grow: {rounds:?}");
    server.stop();
}
