//! A fake of The Odds API with configurable responses, costs and latency.

use std::collections::{BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

/// How a request is answered.
#[derive(Clone, Debug)]
pub enum Reply {
    Json(String),
    Gzip(String),
    /// A status with its headers and body.
    Status(u16, &'static str, &'static str),
    /// Half of a body.
    Truncated(String),
    /// Nothing, until the client gives up.
    Silence,
}

/// Responses by path, and the requests received.
#[derive(Clone, Debug)]
pub struct Upstream {
    pub address: SocketAddr,
    state: Arc<Mutex<UpstreamState>>,
}

#[derive(Debug)]
struct UpstreamState {
    /// The last of a path's replies stays.
    replies: Vec<(String, VecDeque<Reply>)>,
    requests: Vec<String>,
    /// Credits left; `None` for an upstream that does not report them.
    credits: Option<u64>,
    used: u64,
    /// Whether requests cost what The Odds API charges, instead of [`COST`].
    has_real_costs: bool,
    /// Seconds until the credits are renewed, for an upstream whose quota is of a day.
    day_rest_s: Option<u64>,
    latency: Duration,
    in_flight: usize,
    in_flight_max: usize,
}

impl Default for UpstreamState {
    fn default() -> Self {
        UpstreamState {
            replies: Vec::new(),
            requests: Vec::new(),
            credits: Some(10_000_000),
            used: 0,
            has_real_costs: false,
            day_rest_s: None,
            latency: Duration::ZERO,
            in_flight: 0,
            in_flight_max: 0,
        }
    }
}

/// The cost of odds and scores, unless costs are real; lists are free.
pub const COST: u64 = 3;

impl Upstream {
    pub async fn start(tls: Option<TlsAcceptor>) -> Upstream {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let upstream = Upstream { address: listener.local_addr().expect("an address"), state: Arc::default() };
        let own = upstream.clone();
        tokio::spawn(async move {
            loop {
                let Ok((stream, _)) = listener.accept().await else { return };
                let (own, tls) = (own.clone(), tls.clone());
                tokio::spawn(async move {
                    match tls {
                        None => own.serve(stream).await,
                        Some(tls) => {
                            // A client that does not trust the certificate disconnects.
                            if let Ok(stream) = tls.accept(stream).await {
                                own.serve(stream).await;
                            }
                        }
                    }
                });
            }
        });
        upstream
    }

    /// Sets the response to requests whose path ends with this text.
    pub fn answer(&self, path: &str, reply: Reply) {
        self.answer_in_turn(path, vec![reply]);
    }

    /// The same with several responses, one after the other; the last one stays.
    pub fn answer_in_turn(&self, path: &str, replies: Vec<Reply>) {
        let mut state = self.state.lock().expect("a lock");
        state.replies.retain(|(known, _)| known != path);
        state.replies.push((path.to_owned(), replies.into()));
    }

    /// Charges what The Odds API does: markets by regions, those that were returned for an event, 2 for scores.
    pub fn charge_real_costs(&self) {
        self.state.lock().expect("a lock").has_real_costs = true;
    }

    /// Reports the credits as those of a day that has so many seconds left, as another oddsbox does.
    pub fn set_day_quota(&self, rest_s: u64) {
        self.state.lock().expect("a lock").day_rest_s = Some(rest_s);
    }

    /// Delays every response.
    pub fn set_latency(&self, latency: Duration) {
        self.state.lock().expect("a lock").latency = latency;
    }

    /// How many requests were in flight at the same time, at most.
    pub fn in_flight_max(&self) -> usize {
        self.state.lock().expect("a lock").in_flight_max
    }

    /// Sets the credits left; `None` to stop reporting them.
    pub fn set_credits(&self, credits: Option<u64>) {
        self.state.lock().expect("a lock").credits = credits;
    }

    pub fn credits(&self) -> Option<u64> {
        self.state.lock().expect("a lock").credits
    }

    /// Charges a request, and returns the headers with the credits left.
    fn charge(&self, cost: u64) -> String {
        let mut state = self.state.lock().expect("a lock");
        let Some(credits) = state.credits else { return String::new() };
        state.credits = Some(credits.checked_sub(cost).expect("no request costs more than is left"));
        state.used += cost;
        let (left, used) = (credits - cost, state.used);
        let day =
            state.day_rest_s.map(|rest_s| format!("ratelimit: \"burst\";r=9;t=60, \"day\";r={left};t={rest_s}\r\n"));
        let day = day.unwrap_or_default();
        format!("x-requests-remaining: {left}\r\nx-requests-used: {used}\r\nx-requests-last: {cost}\r\n{day}")
    }

    /// The requested targets, in order.
    pub fn requests(&self) -> Vec<String> {
        self.state.lock().expect("a lock").requests.clone()
    }

    async fn serve(&self, mut stream: impl AsyncRead + AsyncWrite + Unpin) {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            match stream.read(&mut byte).await {
                Ok(1) => head.push(byte[0]),
                _ => return,
            }
        }
        let head = String::from_utf8(head).expect("a request");
        let target = head.split(' ').nth(1).expect("a target").to_owned();
        let (reply, latency) = {
            let mut state = self.state.lock().expect("a lock");
            let path = target.split('?').next().expect("a path").to_owned();
            state.requests.push(target.clone());
            state.in_flight += 1;
            state.in_flight_max = state.in_flight_max.max(state.in_flight);
            let latency = state.latency;
            let found = state.replies.iter_mut().find(|(known, _)| path.ends_with(known.as_str()));
            let reply = found.and_then(
                |(_, replies)| {
                    if replies.len() > 1 { replies.pop_front() } else { replies.front().cloned() }
                },
            );
            (reply, latency)
        };
        let reply = reply.unwrap_or(Reply::Status(404, "", "{\"message\":\"nothing here\"}"));
        let has_real_costs = self.state.lock().expect("a lock").has_real_costs;
        let cost = if has_real_costs { real_cost(&target, &reply) } else { flat_cost(&target, &reply) };
        let quota = self.charge(cost);
        tokio::time::sleep(latency).await;
        let _ = self.send(&mut stream, reply, &quota).await;
        self.state.lock().expect("a lock").in_flight -= 1;
        let _ = stream.shutdown().await;
    }

    async fn send(
        &self,
        stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
        reply: Reply,
        quota: &str,
    ) -> std::io::Result<()> {
        let (status, headers, body, sent) = match reply {
            Reply::Silence => {
                let mut end = [0];
                let _ = stream.read(&mut end).await;
                return Ok(());
            }
            Reply::Json(text) => (200, String::new(), text.clone().into_bytes(), text.len()),
            Reply::Gzip(text) => {
                let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
                std::io::Write::write_all(&mut packer, text.as_bytes())?;
                let body = packer.finish()?;
                let sent = body.len();
                (200, "content-encoding: gzip\r\n".to_owned(), body, sent)
            }
            Reply::Truncated(text) => (200, String::new(), text.clone().into_bytes(), text.len() / 2),
            Reply::Status(status, headers, body) => (status, headers.to_owned(), body.into(), body.len()),
        };
        let head = format!(
            "HTTP/1.1 {status} X\r\ncontent-length: {}\r\nconnection: close\r\n{quota}{headers}\r\n",
            body.len()
        );
        stream.write_all(head.as_bytes()).await?;
        stream.write_all(&body[..sent]).await
    }
}

fn is_list(target: &str) -> bool {
    target.contains("/sports?") || target.contains("/events?")
}

fn flat_cost(target: &str, reply: &Reply) -> u64 {
    if is_list(target) || matches!(reply, Reply::Status(..)) { 0 } else { COST }
}

fn real_cost(target: &str, reply: &Reply) -> u64 {
    let (Reply::Json(body) | Reply::Gzip(body)) = reply else { return 0 };
    let values = |name: &str| {
        let query = target.split_once('?').map_or("", |(_, query)| query);
        let found = query.split('&').find_map(|field| field.strip_prefix(name)?.strip_prefix('='));
        found.map_or(0, |list| list.split(',').count() as u64)
    };
    if is_list(target) {
        return 0;
    }
    if target.contains("/scores?") {
        return 1 + values("daysFrom");
    }
    if target.contains("/events/") {
        let event: serde_json::Value = serde_json::from_str(body).expect("an event");
        let books = event["bookmakers"].as_array().expect("bookmakers").iter();
        let markets = books.flat_map(|book| book["markets"].as_array().expect("markets").clone());
        return markets.map(|market| market["key"].to_string()).collect::<BTreeSet<_>>().len() as u64
            * values("regions");
    }
    if body == "[]" { 0 } else { values("markets") * values("regions") }
}
