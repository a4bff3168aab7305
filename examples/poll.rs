//! A polite poller: prints each price that moves, and asks no more often than there can be something new.
//!
//! ```text
//! ODDSBOX_KEY=sk_test_ob_... cargo run --example poll -- [--once | --count N] [PATH]
//! ```
//!
//! PATH is a list of odds, `/v1/sports/mma/odds` by default; `ODDSBOX_URL` is `http://127.0.0.1:8080` by default. Moves
//! go to standard output, everything else to standard error.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "printing is what it is for")]

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::process::ExitCode;
use std::time::Duration;

use http_body_util::{BodyExt, Empty};
use hyper::body::Bytes;
use hyper::header::{CACHE_CONTROL, ETAG, HOST, HeaderMap, HeaderName, HeaderValue, IF_NONE_MATCH, RETRY_AFTER};
use hyper::{Request, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{sleep, timeout};

const PATIENCE: Duration = Duration::from_secs(10);
const LONGEST_BACK_OFF_S: f64 = 60.0;
const USAGE: &str = "usage: ODDSBOX_KEY=... poll [--once | --count N] [PATH]";

/// Prices, by what each is the price of.
type Prices = BTreeMap<String, String>;

/// Why a look gave nothing.
enum Problem {
    /// The service said no, and asking again would not help.
    Refused(StatusCode, String),
    /// Asking again will help, after so many seconds if the service said how long.
    Later(String, Option<u32>),
}

impl<E: Error> From<E> for Problem {
    fn from(error: E) -> Self {
        Problem::Later(format!("no answer: {error}"), None)
    }
}

/// A list of odds as it was last seen.
struct Odds {
    url: Uri,
    key: HeaderValue,
    etag: Option<HeaderValue>,
    prices: Option<Prices>,
}

impl Odds {
    /// Asks once, prints the moves, and gives the seconds until there can be others.
    async fn look(&mut self) -> Result<u32, Problem> {
        let (status, headers, body) = timeout(PATIENCE, self.ask()).await??;
        match status {
            StatusCode::OK => {
                let prices = read(&serde_json::from_slice(&body)?);
                if let Some(before) = &self.prices {
                    print_moves(before, &prices);
                }
                eprintln!("200: {} prices", prices.len());
                self.prices = Some(prices);
                self.etag = headers.get(ETAG).cloned();
            }
            StatusCode::NOT_MODIFIED => eprintln!("304: nothing new"),
            _ if status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error() => {
                return Err(Problem::Later(explain(status, &body), number(&headers, &RETRY_AFTER, "")));
            }
            _ => return Err(Problem::Refused(status, explain(status, &body))),
        }
        Ok(number(&headers, &CACHE_CONTROL, "max-age=").unwrap_or(30))
    }

    /// One connection for one request: in half a minute much can happen to one that is kept.
    async fn ask(&self) -> Result<(StatusCode, HeaderMap, Bytes), Problem> {
        let host = self.url.authority().map_or("", |authority| authority.as_str());
        let address = if self.url.port().is_some() { host.to_owned() } else { format!("{host}:80") };
        let stream = TcpStream::connect(address).await?;
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        let path = self.url.path_and_query().map_or("/", |path| path.as_str());
        let mut request = Request::get(path).header(HOST, host).header("x-api-key", &self.key);
        if let Some(etag) = &self.etag {
            request = request.header(IF_NONE_MATCH, etag);
        }
        let (head, body) = sender.send_request(request.body(Empty::<Bytes>::new())?).await?.into_parts();
        Ok((head.status, head.headers, body.collect().await?.to_bytes()))
    }
}

/// The whole number that stands in a header after `name`.
fn number(headers: &HeaderMap, header: &HeaderName, name: &str) -> Option<u32> {
    let (_, rest) = headers.get(header)?.to_str().ok()?.split_once(name)?;
    rest.split(',').next()?.trim().parse().ok()
}

fn read(records: &Value) -> Prices {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let mut prices = Prices::new();
    for record in list(records) {
        for outcome in list(&record["outcomes"]) {
            let of =
                [&record["event_id"], &record["bookmaker"], &record["market"], &outcome["name"], &outcome["point"]];
            let of: Vec<String> = of.into_iter().filter(|part| !part.is_null()).map(text).collect();
            prices.insert(of.join(" "), text(&outcome["price"]));
        }
    }
    prices
}

fn print_moves(before: &Prices, after: &Prices) {
    for of in before.keys().chain(after.keys()).collect::<BTreeSet<_>>() {
        let (old, new) = (before.get(of), after.get(of));
        if old != new {
            println!("{of}: {} -> {}", old.map_or("-", String::as_str), new.map_or("-", String::as_str));
        }
    }
}

/// What the service says is wrong.
fn explain(status: StatusCode, body: &[u8]) -> String {
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    let text = |name: &str| body["error"][name].as_str().unwrap_or_default().to_owned();
    format!("{} {}: {}", status.as_u16(), text("code"), text("message"))
}

/// A number from 0 to 1, 1 excluded.
fn chance() -> f64 {
    f64::from(getrandom::u32().unwrap_or_default()) / 2f64.powi(32)
}

/// Looks `count` times; the exit code tells how the last look went.
async fn poll(mut odds: Odds, count: Option<u32>) -> ExitCode {
    let mut failures = 0;
    for look in 1.. {
        let wait_s = match odds.look().await {
            Ok(wait_s) => {
                failures = 0;
                f64::from(wait_s)
            }
            Err(Problem::Refused(status, text)) => {
                eprintln!("{text}");
                if status == StatusCode::UNAUTHORIZED {
                    eprintln!("ODDSBOX_KEY must be a key of this service: oddsbox keys issue --sandbox --name me");
                }
                return ExitCode::FAILURE;
            }
            Err(Problem::Later(text, after_s)) => {
                failures += 1;
                let back_off = 2f64.powi(failures).min(LONGEST_BACK_OFF_S) * (0.5 + chance() / 2.0);
                let wait_s = after_s.map_or(back_off, f64::from);
                eprintln!("{text}; again in {wait_s:.0} s");
                wait_s
            }
        };
        if Some(look) == count {
            break;
        }
        // Clients that were all after_s the same second must not come back in the same instant.
        sleep(Duration::from_secs_f64(wait_s + chance())).await;
    }
    if failures == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// What the environment and the arguments ask for.
fn asked() -> Result<(Odds, Option<u32>), Box<dyn Error>> {
    let key = std::env::var("ODDSBOX_KEY").ok().filter(|key| !key.is_empty());
    let key = key.ok_or("set ODDSBOX_KEY to a key: oddsbox keys issue --sandbox --name me")?;
    let base = std::env::var("ODDSBOX_URL").unwrap_or("http://127.0.0.1:8080".to_owned());
    let (mut path, mut count) = ("/v1/sports/mma/odds".to_owned(), None);
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        match word.as_str() {
            "--once" => count = Some(1),
            "--count" => count = Some(words.next().ok_or(USAGE)?.parse()?),
            _ if word.starts_with('/') => path = word,
            _ => return Err(USAGE.into()),
        }
    }
    let url = format!("{}{path}", base.trim_end_matches('/')).parse()?;
    Ok((Odds { url, key: key.parse()?, etag: None, prices: None }, count))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let (odds, count) = match asked() {
        Ok(asked) => asked,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::from(2);
        }
    };
    tokio::select! {
        code = poll(odds, count) => code,
        Ok(()) = told_to_stop() => ExitCode::SUCCESS,
    }
}

/// Ends with the first SIGINT or SIGTERM.
async fn told_to_stop() -> std::io::Result<()> {
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    tokio::select! {
        _ = interrupt.recv() => Ok(()),
        _ = terminate.recv() => Ok(()),
    }
}
