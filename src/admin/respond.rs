//! The routes of the admin door.
//!
//! - `POST /command`: a command as JSON, its answer as JSON
//! - `POST /ingest?world=live|sandbox&strict=true|false`: feed lines, as long as they come; a report at their end
//!   - with `&format=the-odds-api`, and `sport`, `odds_format`, `regions` as far as they are known: one saved payload
//! - `GET /export?world=live|sandbox`: a world as feed lines
//! - `GET /livez`, `GET /readyz`: whether the process lives, and whether it serves
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
use super::export;
use super::figures;
use super::intake::{Feed, Intake};
use super::payload::Gathered;
use super::pieces::{self, PiecesBody};
use super::protocol::{Command, Failure, FailureBody, FailureCode, IngestAnswer, IngestOptions, PayloadOptions};
use super::taking::{self, BrokenOff, Terms};
use super::who::user_name;
use crate::http::Peer;
use crate::metrics::Page;
use crate::model::{OddsFormat, Region, Regions, World};

const COMMAND_BYTES_MAX: usize = 64 << 10;
const COMMAND_TIMEOUT: Duration = Duration::from_secs(10);
pub(super) type Reply = Response<PiecesBody>;

pub(super) async fn respond(request: Request<Incoming>, context: &Context, peer: &Peer) -> Reply {
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
pub(super) fn look(path: &str, context: &Context) -> Option<Reply> {
    match path {
        "/livez" => Some(json(StatusCode::OK, &serde_json::json!({"live": true}))),
        "/readyz" => Some(readyz(context)),
        "/metrics" => {
            let mut reply = Response::new(pieces::whole(Bytes::from(figures::page(context))));
            reply.headers_mut().insert(CONTENT_TYPE, header(Page::MEDIA_TYPE));
            Some(reply)
        }
        _ => None,
    }
}

fn not_found() -> Reply {
    failure(&Failure::new(FailureCode::NotFound, "there are /command, /ingest, /export, /livez, /readyz and /metrics"))
}

pub(super) fn not_allowed(path: &str, allowed: &Method) -> Reply {
    let mut reply = failure(&Failure::new(FailureCode::MethodNotAllowed, format!("{path} takes {allowed}")));
    reply.headers_mut().insert(ALLOW, header(allowed.as_str()));
    reply
}

/// The audit log keeps the name of the user at the other end of the socket.
async fn command(request: Request<Incoming>, context: &Context, peer: &Peer) -> Result<Reply, Failure> {
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

async fn ingest(request: Request<Incoming>, context: &Context) -> Result<Reply, Failure> {
    let asked = ingest_asked(request.uri().query().unwrap_or_default())?;
    let mut body = request.into_body();
    match asked {
        Asked::Lines(options) => {
            let intake = Intake::open(options, Feed::push(), context).await?;
            Ok(taken(taking::take(intake, &mut body, Terms::default()).await))
        }
        Asked::Payload(options) => match take_payload(&options, &mut body, context).await {
            Ok(report) => Ok(json(StatusCode::OK, &report)),
            Err(error) => {
                taking::drain(&mut body).await;
                Err(error)
            }
        },
    }
}

/// The answer to a stream of lines.
pub(super) fn taken(taken: Result<IngestAnswer, BrokenOff>) -> Reply {
    match taken {
        Ok(report) => json(StatusCode::OK, &report),
        Err(BrokenOff { failure, taken_lines }) => {
            let status = status_of(&failure);
            json(status, &FailureBody { error: failure, taken_lines: Some(taken_lines) })
        }
    }
}

fn export(request: &Request<Incoming>, context: &Context) -> Result<Reply, Failure> {
    let world = match request.uri().query().unwrap_or("world=live").split_once('=') {
        Some(("world", value)) => World::parse(value),
        _ => None,
    };
    let world = world.ok_or_else(|| Failure::bad_request("export takes world=live or world=sandbox"))?;
    let mut reply = Response::new(pieces::body(export::start(world, &context.boards)));
    reply.headers_mut().insert(CONTENT_TYPE, header("application/x-ndjson"));
    Ok(reply)
}

/// Gathers a payload and takes it in.
async fn take_payload(
    options: &PayloadOptions,
    body: &mut Incoming,
    context: &Context,
) -> Result<IngestAnswer, Failure> {
    let mut payload = Gathered::default();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| Failure::bad_request(format!("the payload broke off: {error}")))?;
        if let Some(bytes) = frame.data_ref() {
            payload.push(bytes)?;
        }
    }
    payload.finish(options, &Feed::push(), context).await
}

/// What is sent to `/ingest`.
#[derive(Debug, PartialEq, Eq)]
enum Asked {
    Lines(IngestOptions),
    Payload(PayloadOptions),
}

fn ingest_asked(query: &str) -> Result<Asked, Failure> {
    let (own, other): (Vec<&str>, Vec<&str>) = query.split('&').filter(|pair| !pair.is_empty()).partition(|pair| {
        ["format", "sport", "odds_format", "regions"].contains(&pair.split_once('=').map_or(*pair, |(name, _)| name))
    });
    let IngestOptions { world, strict } = ingest_options(&other.join("&"))?;
    let mut options = PayloadOptions { world, strict, sport: None, odds_format: None, regions: Regions::NONE };
    let mut is_payload = false;
    for pair in &own {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let takes = |what: &str| Failure::bad_request(format!("{name} takes {what}"));
        match name {
            "format" if value == "the-odds-api" => is_payload = true,
            "format" => return Err(takes("the-odds-api, or is left out for feed lines")),
            "sport" => options.sport = Some(value.to_owned()),
            "odds_format" => {
                let format = OddsFormat::parse(value).ok_or_else(|| takes("american, decimal or fractional"))?;
                options.odds_format = Some(format);
            }
            _ => {
                let regions: Option<Regions> = value.split(',').map(Region::parse).collect();
                options.regions = regions.ok_or_else(|| takes("us, uk, eu, au, between commas"))?;
            }
        }
    }
    match own.first() {
        Some(_) if is_payload => Ok(Asked::Payload(options)),
        Some(pair) => Err(Failure::bad_request(format!("{pair} is for format=the-odds-api only"))),
        None => Ok(Asked::Lines(IngestOptions { world, strict })),
    }
}

pub(super) fn ingest_options(query: &str) -> Result<IngestOptions, Failure> {
    let mut options = IngestOptions { world: World::Live, strict: false };
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        match name {
            "world" => {
                options.world =
                    World::parse(value).ok_or_else(|| Failure::bad_request("world takes live or sandbox"))?;
            }
            "strict" => {
                options.strict = value.parse().map_err(|_| Failure::bad_request("strict takes true or false"))?;
            }
            _ => return Err(Failure::bad_request(format!("there is no parameter {name:?}: world, strict"))),
        }
    }
    Ok(options)
}

fn readyz(context: &Context) -> Reply {
    let answer = ready(context);
    json(if answer.ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE }, &answer)
}

pub(super) fn failure(error: &Failure) -> Reply {
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

fn json(status: StatusCode, answer: &impl Serialize) -> Reply {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parameters_of_a_payload_are_checked() {
        assert_eq!(ingest_asked(""), Ok(Asked::Lines(IngestOptions { world: World::Live, strict: false })));
        let full = "format=the-odds-api&world=sandbox&sport=mma&odds_format=decimal&regions=us,uk&strict=true";
        let options = PayloadOptions {
            world: World::Sandbox,
            strict: true,
            sport: Some("mma".to_owned()),
            odds_format: Some(OddsFormat::Decimal),
            regions: Regions::only(Region::Us).with(Region::Uk),
        };
        assert_eq!(ingest_asked(full), Ok(Asked::Payload(options)));
        for wrong in ["format=csv", "sport=mma", "format=the-odds-api&regions=mars", "format=the-odds-api&sprot=mma"] {
            assert_eq!(ingest_asked(wrong).map_err(|error| error.code), Err(FailureCode::BadRequest), "{wrong}");
        }
    }

    #[test]
    fn the_parameters_of_ingest_are_checked() {
        let default = IngestOptions { world: World::Live, strict: false };
        assert_eq!(ingest_options(""), Ok(default));
        let strict = IngestOptions { world: World::Sandbox, strict: true };
        assert_eq!(ingest_options("world=sandbox&strict=true"), Ok(strict));
        for wrong in ["world=mars", "strict=1", "wrold=live", "world"] {
            assert_eq!(ingest_options(wrong).map_err(|error| error.code), Err(FailureCode::BadRequest), "{wrong}");
        }
    }
}
