//! The control of the side-by-side run: hyper handing out ready answers, and nothing else.
//!
//! It reads the answers that oddsbox gave (a JSON file with each request's target and headers, and the answer's
//! status, headers and body) and repeats them. What oddsbox takes beyond this program is what its key check, quota,
//! routing, filters and headers cost.
#![allow(clippy::expect_used, clippy::print_stdout, reason = "a program of the benchmarks may stop and speaks to them")]

use std::collections::HashMap;
use std::convert::Infallible;
use std::fs;
use std::future::ready;
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use tokio::net::TcpListener;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[derive(Deserialize)]
struct Case {
    target: String,
    accept_encoding: String,
    conditional: bool,
    status: u16,
    headers: Vec<(String, String)>,
    body_file: String,
}

/// What tells the requests of the run apart.
type Asked = (String, String, bool);

#[derive(Clone)]
struct Ready {
    status: StatusCode,
    headers: HeaderMap,
    body: Bytes,
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [address, cases] = &arguments[..] else {
        // `cargo bench` runs every benchmark: this one is a server for benches/versus/run.py.
        println!("usage: control ADDRESS CASES.json");
        return;
    };
    let cases: Vec<Case> = serde_json::from_slice(&fs::read(cases).expect("the cases")).expect("cases as JSON");
    let answers: HashMap<Asked, Ready> = cases.into_iter().map(answer).collect();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    runtime.block_on(serve(address, Arc::new(answers)));
}

fn answer(case: Case) -> (Asked, Ready) {
    let header = |(name, value): (String, String)| {
        let name: HeaderName = name.parse().expect("a header's name");
        (name, HeaderValue::from_str(&value).expect("a header's value"))
    };
    let ready = Ready {
        status: StatusCode::from_u16(case.status).expect("a status"),
        headers: case.headers.into_iter().map(header).collect(),
        body: fs::read(&case.body_file).expect("a body").into(),
    };
    ((case.target, case.accept_encoding, case.conditional), ready)
}

async fn serve(address: &str, answers: Arc<HashMap<Asked, Ready>>) {
    let listener = TcpListener::bind(address).await.expect("an address to listen on");
    println!("listening on http://{}", listener.local_addr().expect("an address"));
    loop {
        let Ok((stream, _)) = listener.accept().await else { continue };
        let _ = stream.set_nodelay(true);
        let answers = Arc::clone(&answers);
        tokio::spawn(async move {
            let service = service_fn(|request| ready(Ok::<_, Infallible>(give(&answers, &request))));
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

fn give<B>(answers: &HashMap<Asked, Ready>, request: &Request<B>) -> Response<Full<Bytes>> {
    let target = request.uri().path_and_query().map_or("", |target| target.as_str()).to_owned();
    let encoding = request.headers().get("accept-encoding").and_then(|value| value.to_str().ok()).unwrap_or_default();
    let asked = (target, encoding.to_owned(), request.headers().contains_key("if-none-match"));
    let mut response = Response::new(Full::default());
    match answers.get(&asked) {
        None => *response.status_mut() = StatusCode::NOT_FOUND,
        Some(ready) => {
            *response.status_mut() = ready.status;
            *response.headers_mut() = ready.headers.clone();
            *response.body_mut() = Full::new(ready.body.clone());
        }
    }
    response
}
