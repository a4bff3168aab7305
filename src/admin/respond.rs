//! The routes of the admin interface.
//!
//! - `POST /command`: a command as JSON, its answer as JSON
//! - `POST /ingest?world=live|sandbox&strict=true|false`: feed lines, as long as they come; a report at their end
//!   - with `&format=the-odds-api`, and `sport`, `odds_format`, `regions` as far as they are known: one saved payload
//!   - with `&history=true`: history, as lines or as saved responses of the archive
//! - `GET /export?world=live|sandbox`: a world as feed lines; with `&history=true`, and `from`, `to` in seconds: its history
//! - `GET /livez`, `GET /readyz`: whether the process is alive, and whether it serves
//! - `GET /metrics`: what is counted, for Prometheus
//!
//! A failure is `{"error":{"code":"…","message":"…"}}`.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use serde::Serialize;
use tokio::time::timeout;

use super::context::Context;
use super::execute::{execute, ready};
use super::export::{self, ExportOptions};
use super::metrics;
use super::pieces::{self, PiecesBody};
use super::protocol::{Command, Failure, FailureBody, FailureCode};
use super::who::user_name;
use crate::http::Peer;
use crate::ingest::{BodyTerms, Feed, InputOptions, LineStream, read_history, read_lines, read_payload};
use crate::metrics::MetricsPage;

const COMMAND_BYTES_MAX: usize = 64 << 10;
const COMMAND_TIMEOUT: Duration = Duration::from_secs(10);
pub(super) type AdminReply = Response<PiecesBody>;

pub(super) async fn respond(request: Request<Incoming>, context: &Context, peer: &Peer) -> AdminReply {
    let (allowed, is_known) = match request.uri().path() {
        "/command" | "/ingest" => (Method::POST, true),
        "/export" | "/livez" | "/readyz" | "/metrics" => (Method::GET, true),
        _ => (Method::GET, false),
    };
    if !is_known {
        return not_found();
    }
    if *request.method() != allowed {
        return not_allowed(request.uri().path(), &allowed);
    }
    let answered = match request.uri().path() {
        "/command" => command(request, context, peer).await,
        "/ingest" => ingest(request, context).await,
        "/export" => export(&request, context),
        path => Ok(look(path, context).unwrap_or_else(not_found)),
    };
    answered.unwrap_or_else(|error| failure(&error))
}

/// The routes that only look, which the monitoring address has too; `None` for any other path.
pub(super) fn look(path: &str, context: &Context) -> Option<AdminReply> {
    match path {
        "/livez" => Some(json(StatusCode::OK, &serde_json::json!({"live": true}))),
        "/readyz" => Some(readyz(context)),
        "/metrics" => {
            let mut reply = Response::new(pieces::whole(Bytes::from(metrics::page(context))));
            reply.headers_mut().insert(CONTENT_TYPE, header(MetricsPage::MEDIA_TYPE));
            Some(reply)
        }
        _ => None,
    }
}

fn not_found() -> AdminReply {
    failure(&Failure::new(FailureCode::NotFound, "there are /command, /ingest, /export, /livez, /readyz and /metrics"))
}

pub(super) fn not_allowed(path: &str, allowed: &Method) -> AdminReply {
    let mut reply = failure(&Failure::new(FailureCode::MethodNotAllowed, format!("{path} takes {allowed}")));
    reply.headers_mut().insert(ALLOW, header(allowed.as_str()));
    reply
}

/// The audit log keeps the name of the user at the other end of the socket.
async fn command(request: Request<Incoming>, context: &Context, peer: &Peer) -> Result<AdminReply, Failure> {
    let who = peer.user().map_or_else(|| "unknown".to_owned(), user_name);
    let command = read_command(request.into_body()).await?;
    Ok(json(StatusCode::OK, &execute(command, context, &who).await?))
}

/// Reads a command, within bounds of size and time.
pub(super) async fn read_command(body: Incoming) -> Result<Command, Failure> {
    let body = Limited::new(body, COMMAND_BYTES_MAX);
    let body = timeout(COMMAND_TIMEOUT, body.collect()).await.map_err(|_| {
        Failure::new(FailureCode::Timeout, format!("the command did not come within {} s", COMMAND_TIMEOUT.as_secs()))
    })?;
    let body = body.map_err(|error| match error.downcast_ref::<LengthLimitError>() {
        Some(_) => Failure::new(FailureCode::TooLarge, format!("a command has at most {COMMAND_BYTES_MAX} bytes")),
        None => Failure::bad_request(format!("the command broke off: {error}")),
    })?;
    serde_json::from_slice(&body.to_bytes())
        .map_err(|error| Failure::bad_request(format!("that is no command: {error}")))
}

async fn ingest(request: Request<Incoming>, context: &Context) -> Result<AdminReply, Failure> {
    let options = InputOptions::parse(request.uri().query().unwrap_or_default())?;
    let (mut body, context) = (request.into_body(), context.ingest());
    let summary = match options {
        InputOptions::Lines(options) => {
            let lines = LineStream::open(options, Feed::push(), &context).await?;
            match read_lines(lines, &mut body, BodyTerms::default()).await {
                Ok(summary) => summary,
                Err(interrupted) => {
                    let body = FailureBody::from(interrupted);
                    return Ok(json(status_of(&body.error), &body));
                }
            }
        }
        InputOptions::Payload(options) => read_payload(&options, &mut body, &context).await?,
        InputOptions::History(options) => read_history(options, &mut body, &context).await?,
    };
    Ok(json(StatusCode::OK, &summary))
}

fn export(request: &Request<Incoming>, context: &Context) -> Result<AdminReply, Failure> {
    let options = ExportOptions::parse(request.uri().query().unwrap_or_default())?;
    let source = export::start(options, &context.boards, &context.history);
    let mut reply = Response::new(pieces::body(source));
    reply.headers_mut().insert(CONTENT_TYPE, header("application/x-ndjson"));
    Ok(reply)
}

fn readyz(context: &Context) -> AdminReply {
    let answer = ready(context);
    json(if answer.ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE }, &answer)
}

pub(super) fn failure(error: &Failure) -> AdminReply {
    json(status_of(error), &FailureBody { error: error.clone(), taken_lines: None })
}

pub(super) fn status_of(error: &Failure) -> StatusCode {
    match error.code {
        FailureCode::BadRequest | FailureCode::Refused => StatusCode::BAD_REQUEST,
        FailureCode::Unauthorized => StatusCode::UNAUTHORIZED,
        FailureCode::KeyNotFound | FailureCode::FeederNotFound | FailureCode::NotFound => StatusCode::NOT_FOUND,
        FailureCode::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
        FailureCode::Timeout => StatusCode::REQUEST_TIMEOUT,
        FailureCode::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        FailureCode::UnsupportedEncoding => StatusCode::UNSUPPORTED_MEDIA_TYPE,
        FailureCode::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
    }
}

fn json(status: StatusCode, answer: &impl Serialize) -> AdminReply {
    // These types have only keys that are texts, so writing them cannot fail.
    let mut body = serde_json::to_vec(answer).unwrap_or_default();
    body.push(b'\n');
    let mut reply = Response::new(pieces::whole(Bytes::from(body)));
    *reply.status_mut() = status;
    reply.headers_mut().insert(CONTENT_TYPE, header("application/json"));
    reply
}

pub(super) fn header(value: &str) -> HeaderValue {
    HeaderValue::from_str(value).unwrap_or_else(|_| HeaderValue::from_static(""))
}
