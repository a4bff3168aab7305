//! The push interface, for feeders on other machines: one route, `POST /ingest`, authorised by a feed token.
//!
//! It accepts news and serves no data: a client with a token can send lines into one world and do nothing else. Lines take
//! the same path as those of `oddsbox ingest`, and the answer is the same report. Connections, deadlines and TLS are those
//! of the public interface, whose listener the server puts in front of this.
//!
//! - `authorization: Bearer ft_ob_…` identifies the feeder; a token that is revoked or rotated out ends a stream at its next batch,
//!   and so does a node of a cluster whose lease has ended: it cannot tell whether the token is in force
//! - `?strict=true` keeps all of the lines or none, as `--strict` does; `?world=` must be the token's own
//! - `content-encoding: gzip` is accepted; any other but `identity` is not
//! - when the server stops, a stream is answered with the number of its lines that were taken

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use hyper::body::Incoming;
use hyper::header::{ALLOW, AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE, EXPECT, HeaderValue, WWW_AUTHENTICATE};
use hyper::{HeaderMap, Method, Request, Response, StatusCode};
use serde::Serialize;
use tokio::sync::watch;
use tracing::Level;

use super::error::{IngestError, IngestErrorKind};
use super::feed::{Feed, IngestContext};
use super::options::IngestOptions;
use super::read_body::{BodyTerms, InterruptedInput, drain, read_lines};
use super::stream::LineStream;
use crate::http::{IncomingRequest, Peer, Respond, ResponseBody, ResponseFuture};
use crate::keys::AdmittedFeeder;
use crate::log::{LineKind, limited};
use crate::metrics::Traffic;

/// The only route.
const ROUTE: &str = "/ingest";

/// Answers feeders.
#[derive(Debug)]
pub struct PushInterface {
    context: IngestContext,
    /// How long a stream may be silent.
    silence_max: Duration,
    /// As many bytes as one compressed request may inflate to.
    inflated_max: u64,
    stopping: watch::Receiver<bool>,
    traffic: Arc<Traffic>,
}

/// The body of an answer that is a failure.
#[derive(Serialize)]
struct ErrorBody<'a> {
    error: ErrorText<'a>,
    /// Of a stream that failed: the lines from its start that are done with.
    #[serde(skip_serializing_if = "Option::is_none")]
    taken_lines: Option<u64>,
}

#[derive(Serialize)]
struct ErrorText<'a> {
    code: &'a str,
    message: String,
}

impl PushInterface {
    /// `stopping` becomes true when no more lines are to be taken.
    pub fn new(
        context: IngestContext,
        silence_max: Duration,
        inflated_max: u64,
        stopping: watch::Receiver<bool>,
    ) -> Self {
        let traffic = Arc::new(Traffic::new(&[ROUTE], &[]));
        PushInterface { context, silence_max, inflated_max, stopping, traffic }
    }

    async fn answer(&self, request: Request<Incoming>, peer: &Peer) -> Response<ResponseBody> {
        let expects_continue = request.headers().contains_key(EXPECT);
        let (parts, mut body) = request.into_parts();
        let admitted = match (parts.uri.path(), &parts.method) {
            (ROUTE, &Method::POST) => self.admit(&parts.headers, parts.uri.query().unwrap_or_default(), peer).await,
            (ROUTE, _) => Err(IngestError::MethodNotAllowed),
            _ => Err(IngestError::NotFound),
        };
        match admitted {
            Ok((lines, terms)) => match read_lines(lines, &mut body, terms).await {
                Ok(summary) => json(StatusCode::OK, &summary),
                Err(interrupted) => {
                    let InterruptedInput { error, taken_lines } = &interrupted;
                    failure(error.kind(), interrupted.to_string(), Some(*taken_lines))
                }
            },
            Err(error) => {
                // A client that waits for `100 Continue` has sent nothing to be read.
                if !expects_continue {
                    drain(&mut body).await;
                }
                reject(&error)
            }
        }
    }

    async fn admit(
        &self,
        headers: &HeaderMap,
        query: &str,
        peer: &Peer,
    ) -> Result<(LineStream, BodyTerms), IngestError> {
        let admitted = self.feeder(headers, peer)?;
        let world = admitted.feeder.world;
        let mut options = IngestOptions::parse(query)?;
        if query.split('&').any(|pair| pair.starts_with("world=")) && options.world != world {
            return Err(IngestError::OtherWorld(world));
        }
        options.world = world;
        let terms = BodyTerms {
            silence_max: Some(self.silence_max),
            stopping: Some(self.stopping.clone()),
            gzip_inflated_max: is_gzip(headers)?.then_some(self.inflated_max),
        };
        let feed = Feed::token(Arc::clone(&self.context.feeders), admitted);
        feed.check(&self.context)?;
        Ok((LineStream::open(options, feed, &self.context).await?, terms))
    }

    fn feeder(&self, headers: &HeaderMap, peer: &Peer) -> Result<AdmittedFeeder, IngestError> {
        let sent = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        let token = sent.and_then(|value| {
            let (scheme, token) = value.split_once(' ')?;
            scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
        });
        let now = self.context.clock.now().timestamp();
        self.context.feeders.admit(token, now).map_err(|why| {
            if !self.context.knows_revocations() {
                // It may have been issued on another node meanwhile.
                return IngestError::TokenUnconfirmed;
            }
            limited!(LineKind::FeedToken, Level::WARN, client = %peer.client(headers), %why, "rejected feed token");
            IngestError::Unauthorized
        })
    }
}

impl Respond for PushInterface {
    fn respond<'a>(&'a self, request: IncomingRequest, peer: &'a Peer) -> ResponseFuture<'a> {
        Box::pin(async move {
            let began = Instant::now();
            let reply = self.answer(request, peer).await;
            self.traffic.count_request(ROUTE, reply.status().as_u16(), began.elapsed());
            reply
        })
    }

    fn traffic(&self) -> &Arc<Traffic> {
        &self.traffic
    }
}

fn is_gzip(headers: &HeaderMap) -> Result<bool, IngestError> {
    let encoding = headers.get(CONTENT_ENCODING).map_or("identity", |value| value.to_str().unwrap_or_default());
    match encoding.trim().to_ascii_lowercase().as_str() {
        "identity" => Ok(false),
        "gzip" | "x-gzip" => Ok(true),
        _ => Err(IngestError::UnsupportedEncoding),
    }
}

/// The answer to a request that was not admitted.
fn reject(error: &IngestError) -> Response<ResponseBody> {
    let mut reply = failure(error.kind(), error.to_string(), None);
    let header = match error.kind() {
        IngestErrorKind::Unauthorized => Some((WWW_AUTHENTICATE, "Bearer")),
        IngestErrorKind::MethodNotAllowed => Some((ALLOW, "POST")),
        _ => None,
    };
    if let Some((name, value)) = header {
        reply.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    reply
}

fn failure(kind: IngestErrorKind, message: String, taken_lines: Option<u64>) -> Response<ResponseBody> {
    json(kind.status(), &ErrorBody { error: ErrorText { code: kind.code(), message }, taken_lines })
}

fn json(status: StatusCode, answer: &impl Serialize) -> Response<ResponseBody> {
    // These types have only string keys, so serialising them cannot fail.
    let mut body = serde_json::to_vec(answer).unwrap_or_default();
    body.push(b'\n');
    let mut reply = Response::new(ResponseBody::from(Bytes::from(body)));
    *reply.status_mut() = status;
    reply.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    reply
}
