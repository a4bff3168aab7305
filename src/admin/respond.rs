//! The routes of the admin door.
//!
//! - `POST /command`: a command as JSON, its answer as JSON
//! - `POST /ingest?world=live|sandbox&strict=true|false`: feed lines, as long as they come; a report at their end
//!   - with `&format=the-odds-api`, and `sport`, `odds_format`, `regions` as far as they are known: one saved payload
//! - `GET /livez`, `GET /readyz`: whether the process lives, and whether it serves
//! - `GET /metrics`: what is counted, for Prometheus
//!
//! A failure is `{"error":{"code":"…","message":"…"}}`.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use serde::Serialize;
use tokio::time::timeout;

use super::context::Context;
use super::execute::{execute, ready};
use super::figures;
use super::intake::Intake;
use super::payload::Gathered;
use super::protocol::{Command, Failure, FailureBody, FailureCode, IngestAnswer, IngestOptions, PayloadOptions};
use crate::metrics::Page;
use crate::model::{OddsFormat, Region, Regions, World};

const COMMAND_BYTES_MAX: usize = 64 << 10;
const COMMAND_TIMEOUT: Duration = Duration::from_secs(10);
/// After this much silence, the lines of a stream that have come are handed on.
const INGEST_PAUSE: Duration = Duration::from_millis(200);
/// How long the rest of a stream that failed is read and thrown away, so that its sender gets to see why.
const INGEST_DRAIN: Duration = Duration::from_secs(2);

pub(super) type Reply = Response<Full<Bytes>>;

pub(super) async fn respond(
    request: Request<Incoming>,
    context: Arc<Context>,
    who: Arc<str>,
) -> Result<Reply, Infallible> {
    let (allowed, is_known) = match request.uri().path() {
        "/command" | "/ingest" => (Method::POST, true),
        "/livez" | "/readyz" | "/metrics" => (Method::GET, true),
        _ => (Method::GET, false),
    };
    if !is_known {
        return Ok(not_found());
    }
    if *request.method() != allowed {
        return Ok(not_allowed(request.uri().path(), &allowed));
    }
    let answered = match request.uri().path() {
        "/command" => command(request, &context, &who).await,
        "/ingest" => ingest(request, &context).await,
        path => Ok(look(path, &context).unwrap_or_else(not_found)),
    };
    Ok(answered.unwrap_or_else(|error| failure(&error)))
}

/// The routes that only look, which the monitoring address has too; `None` for any other path.
pub(super) fn look(path: &str, context: &Context) -> Option<Reply> {
    match path {
        "/livez" => Some(json(StatusCode::OK, &serde_json::json!({"live": true}))),
        "/readyz" => Some(readyz(context)),
        "/metrics" => {
            let mut reply = Response::new(Full::new(Bytes::from(figures::page(context))));
            reply.headers_mut().insert(CONTENT_TYPE, header(Page::MEDIA_TYPE));
            Some(reply)
        }
        _ => None,
    }
}

fn not_found() -> Reply {
    failure(&Failure::new(FailureCode::NotFound, "there are /command, /ingest, /livez, /readyz and /metrics"))
}

pub(super) fn not_allowed(path: &str, allowed: &Method) -> Reply {
    let mut reply = failure(&Failure::new(FailureCode::MethodNotAllowed, format!("{path} takes {allowed}")));
    reply.headers_mut().insert(ALLOW, header(allowed.as_str()));
    reply
}

async fn command(request: Request<Incoming>, context: &Context, who: &str) -> Result<Reply, Failure> {
    let body = Limited::new(request.into_body(), COMMAND_BYTES_MAX);
    let body = timeout(COMMAND_TIMEOUT, body.collect()).await.map_err(|_| {
        Failure::new(FailureCode::Timeout, format!("the command did not come within {} s", COMMAND_TIMEOUT.as_secs()))
    })?;
    let body = body.map_err(|error| match error.downcast_ref::<LengthLimitError>() {
        Some(_) => Failure::new(FailureCode::TooLarge, format!("a command has at most {COMMAND_BYTES_MAX} bytes")),
        None => Failure::bad_request(format!("the command broke off: {error}")),
    })?;
    let command: Command = serde_json::from_slice(&body.to_bytes())
        .map_err(|error| Failure::bad_request(format!("that is no command: {error}")))?;
    Ok(json(StatusCode::OK, &execute(command, context, who).await?))
}

async fn ingest(request: Request<Incoming>, context: &Context) -> Result<Reply, Failure> {
    let asked = ingest_asked(request.uri().query().unwrap_or_default())?;
    let mut body = request.into_body();
    let taken = match asked {
        Asked::Lines(options) => take_in(options, &mut body, context).await,
        Asked::Payload(options) => take_payload(&options, &mut body, context).await,
    };
    match taken {
        Ok(report) => Ok(json(StatusCode::OK, &report)),
        Err(error) => {
            let drained = async { while let Some(Ok(_)) = body.frame().await {} };
            let _ = timeout(INGEST_DRAIN, drained).await;
            Err(error)
        }
    }
}

/// Reads a stream to its end. A stream may be silent for as long as it likes, and is not kept waiting by its silence.
async fn take_in(options: IngestOptions, body: &mut Incoming, context: &Context) -> Result<IngestAnswer, Failure> {
    let mut intake = Intake::open(options, context).await?;
    loop {
        let frame = match timeout(INGEST_PAUSE, body.frame()).await {
            Ok(frame) => frame,
            Err(_silence) => {
                intake.pause().await?;
                body.frame().await
            }
        };
        match frame {
            None => return intake.finish().await,
            Some(Ok(frame)) => {
                if let Some(bytes) = frame.data_ref() {
                    intake.push(bytes).await?;
                }
            }
            Some(Err(error)) => {
                // Whole lines that came are kept; the one that broke off is not a line.
                intake.pause().await?;
                return Err(Failure::bad_request(format!("the lines broke off: {error}")));
            }
        }
    }
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
    payload.finish(options, context).await
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

fn ingest_options(query: &str) -> Result<IngestOptions, Failure> {
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
    let status = match error.code {
        FailureCode::BadRequest | FailureCode::Refused => StatusCode::BAD_REQUEST,
        FailureCode::KeyNotFound | FailureCode::NotFound => StatusCode::NOT_FOUND,
        FailureCode::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
        FailureCode::Timeout => StatusCode::REQUEST_TIMEOUT,
        FailureCode::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        FailureCode::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
    };
    json(status, &FailureBody { error: error.clone() })
}

fn json(status: StatusCode, answer: &impl Serialize) -> Reply {
    // These types have only keys that are texts, so writing them cannot fail.
    let mut body = serde_json::to_vec(answer).unwrap_or_default();
    body.push(b'\n');
    let mut reply = Response::new(Full::new(Bytes::from(body)));
    *reply.status_mut() = status;
    reply.headers_mut().insert(CONTENT_TYPE, header("application/json"));
    reply
}

fn header(value: &str) -> HeaderValue {
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
