//! Revocation: no request sent after a revocation returned is answered with data.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

use oddsbox::admin::AdminAccess;

use super::client::Connection;
use super::command::{Directory, Issued, Server, blocking, issue, revoke, rotate, run, sandbox, until};
use super::seed::{Random, Stream, short_or_long};

const CLIENTS: usize = 64;
/// Successful responses to each key before it is revoked, so that it was in use.
const ANSWERS_BEFORE: usize = CLIENTS;
/// Rejections of each key before the next one is revoked, so that it was still being tried.
const REFUSALS_AFTER: usize = CLIENTS;

/// The result for one key.
#[derive(Debug)]
struct Contender {
    key: Issued,
    answered: AtomicUsize,
    refused: AtomicUsize,
}

/// State shared by the clients and the operator.
#[derive(Debug)]
struct Race {
    contenders: Vec<Contender>,
    /// The key that is used and revoked next.
    current: AtomicUsize,
    is_over: AtomicBool,
}

/// One request: its key, when it was sent and answered, and whether it was accepted.
#[derive(Debug)]
struct Request {
    contender: usize,
    sent: Instant,
    answered: Instant,
    passed: bool,
}

/// When a revocation started and when it returned.
#[derive(Debug)]
struct Revoked {
    begun: Instant,
    returned: Instant,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_request_sent_after_a_revocation_succeeds() {
    let mut random = Random::new();
    let directory = Directory::new();
    let server = directory.serve_with(&[("ODDSBOX_LOG", "warn")]);
    let access = directory.access().await;
    let mut contenders = Vec::new();
    for _ in 0..short_or_long(60, 520) {
        let key = issue(&access, sandbox(100_000_000)).await.expect("a key");
        contenders.push(Contender { key, answered: AtomicUsize::new(0), refused: AtomicUsize::new(0) });
    }
    let race = Arc::new(Race { contenders, current: AtomicUsize::new(0), is_over: AtomicBool::new(false) });
    let client = |_| tokio::spawn(hammer(Arc::clone(&race), server.address(), random.fork()));
    let clients: Vec<_> = (0..CLIENTS).map(client).collect();

    let mut revoked = Vec::new();
    for (number, contender) in race.contenders.iter().enumerate() {
        race.current.store(number, Ordering::Release);
        until("the key is in use", async || contender.answered.load(Ordering::Relaxed) >= ANSWERS_BEFORE).await;
        let begun = Instant::now();
        end(&directory, &access, number, &contender.key.id).await;
        revoked.push(Revoked { begun, returned: Instant::now() });
        until("the key is refused", async || contender.refused.load(Ordering::Relaxed) >= REFUSALS_AFTER).await;
    }
    race.is_over.store(true, Ordering::Release);
    let mut requests = Vec::new();
    for client in clients {
        requests.extend(client.await.expect("a client"));
    }
    judge(&requests, &revoked);
    finish(server, &requests, &revoked);
}

/// Invalidates a secret in one of the possible ways.
async fn end(directory: &Directory, access: &AdminAccess, number: usize, id: &str) {
    match number % 8 {
        0 => {
            let (data, line) = (directory.path().to_owned(), format!("keys revoke {id}"));
            blocking(move || run(&data, &line).succeeded()).await;
        }
        1 => {
            let (data, line) = (directory.path().to_owned(), format!("keys rotate {id}"));
            blocking(move || run(&data, &line).succeeded()).await;
        }
        2 => drop(rotate(access, id).await.expect("a rotation")),
        _ => drop(revoke(access, id).await.expect("a revocation")),
    }
}

/// Uses the current key, and now and then an earlier one, until the race is over.
async fn hammer(race: Arc<Race>, address: SocketAddr, mut random: Stream) -> Vec<Request> {
    let mut connection = Connection::open(address).await.expect("a connection");
    let mut requests = Vec::new();
    while !race.is_over.load(Ordering::Acquire) {
        let current = race.current.load(Ordering::Acquire);
        let back = if random.below(4) == 0 { usize::try_from(random.below(3)).expect("a small number") } else { 0 };
        let contender = current.saturating_sub(back);
        let Contender { key, answered, refused } = &race.contenders[contender];
        let text = request(&key.secret, &mut random);
        let sent = Instant::now();
        let answer = connection.send(&text).await.expect("an answer");
        let passed = match answer.status {
            200 | 304 => true,
            401 => false,
            _ => panic!("{answer:?}"),
        };
        (if passed { answered } else { refused }).fetch_add(1, Ordering::Relaxed);
        requests.push(Request { contender, sent, answered: Instant::now(), passed });
    }
    requests
}

/// A request with the key in the header or the query, plain or conditional.
fn request(secret: &str, random: &mut Stream) -> String {
    let path =
        ["/v1/sports", "/v1/status", "/v1/sports/mma/odds?limit=1"][usize::try_from(random.below(3)).unwrap_or(0)];
    match random.below(4) {
        0 => {
            let mark = if path.contains('?') { '&' } else { '?' };
            format!("GET {path}{mark}api_key={secret} HTTP/1.1\r\nhost: oddsbox\r\n\r\n")
        }
        1 => format!("GET {path} HTTP/1.1\r\nhost: oddsbox\r\nif-none-match: *\r\nx-api-key: {secret}\r\n\r\n"),
        _ => format!("GET {path} HTTP/1.1\r\nhost: oddsbox\r\nx-api-key: {secret}\r\n\r\n"),
    }
}

fn judge(requests: &[Request], revoked: &[Revoked]) {
    for request in requests {
        let Revoked { begun, returned } = &revoked[request.contender];
        if request.sent >= *returned {
            let after = request.sent - *returned;
            assert!(!request.passed, "key {} passed {after:?} after it was revoked", request.contender);
        }
        if request.answered <= *begun {
            assert!(request.passed, "key {} was refused before it was revoked", request.contender);
        }
    }
}

fn finish(server: Server, requests: &[Request], revoked: &[Revoked]) {
    let late = requests.iter().filter(|request| request.sent >= revoked[request.contender].returned).count();
    assert!(late >= revoked.len() * REFUSALS_AFTER / 2, "{late} requests after their revocation prove little");
    let slowest = revoked.iter().map(|revoked| revoked.returned - revoked.begun).max().unwrap_or_default();
    println!(
        "{} revocations, {} requests, {late} of them sent after their revocation, slowest revocation {slowest:?}",
        revoked.len(),
        requests.len()
    );
    server.stop();
}
