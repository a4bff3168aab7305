//! The door for feeders on other machines: one route, `POST /ingest`, by a feed token.
//!
//! It takes news and gives nothing out, so it is neither the public door, which only reads, nor the admin door, which
//! commands: whoever has a token can send lines into one world and do nothing else. Lines go the same way as those of
//! `oddsbox ingest`, and are answered with the same report. Connections, deadlines and TLS are those of the public
//! door, whose listener the server puts before this.
//!
//! - `authorization: Bearer ft_ob_…` says who sends; a revoked token ends a stream at its next batch
//! - `?strict=true` keeps all of the lines or none, as `--strict` does; `?world=` must be the token's own
//! - `content-encoding: gzip` is taken; any other but `identity` is not
//! - when the server stops, a stream is told how many of its lines were taken

use std::sync::Arc;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::header::{ALLOW, AUTHORIZATION, CONTENT_ENCODING, EXPECT, WWW_AUTHENTICATE};
use hyper::{HeaderMap, Method, Request};
use tokio::sync::watch;
use tracing::Level;

use super::context::Context;
use super::intake::{Feed, Intake};
use super::protocol::{Failure, FailureCode};
use super::respond::{Reply, failure, header, ingest_options, taken};
use super::taking::{self, Terms};
use crate::http::Peer;
use crate::keys::Feeder;
use crate::log::{LineKind, limited};

/// What feeders are answered from.
#[derive(Debug)]
pub struct PushDoor {
    context: Context,
    /// How long a stream may be silent.
    silence_max: Duration,
    /// As many bytes as one compressed request may inflate to.
    inflated_max: u64,
    stopping: watch::Receiver<bool>,
}

impl PushDoor {
    /// `stopping` becomes true when no more lines are to be taken.
    pub fn new(context: Context, silence_max: Duration, inflated_max: u64, stopping: watch::Receiver<bool>) -> Self {
        PushDoor { context, silence_max, inflated_max, stopping }
    }

    pub async fn respond(&self, request: Request<Incoming>, peer: &Peer) -> Reply {
        let is_waiting = request.headers().contains_key(EXPECT);
        let (parts, mut body) = request.into_parts();
        let admitted = match (parts.uri.path(), &parts.method) {
            ("/ingest", &Method::POST) => self.admit(&parts.headers, parts.uri.query().unwrap_or_default(), peer).await,
            ("/ingest", _) => Err(Failure::new(FailureCode::MethodNotAllowed, "/ingest takes POST")),
            _ => Err(Failure::new(FailureCode::NotFound, "there is /ingest, for feed lines, and nothing else")),
        };
        match admitted {
            Ok((intake, terms)) => taken(taking::take(intake, &mut body, terms).await),
            Err(error) => {
                // A client that waits for a word before it sends has nothing to be read.
                if !is_waiting {
                    taking::drain(&mut body).await;
                }
                refused(&error)
            }
        }
    }

    async fn admit(&self, headers: &HeaderMap, query: &str, peer: &Peer) -> Result<(Intake, Terms), Failure> {
        let feeder = self.feeder(headers, peer)?;
        let mut options = ingest_options(query)?;
        if query.split('&').any(|pair| pair.starts_with("world=")) && options.world != feeder.world {
            let told = format!("this token is for the {} world: leave out world", feeder.world);
            return Err(Failure::new(FailureCode::Refused, told));
        }
        options.world = feeder.world;
        let terms = Terms {
            silence_max: Some(self.silence_max),
            stopping: Some(self.stopping.clone()),
            gzip_inflated_max: is_gzip(headers)?.then_some(self.inflated_max),
        };
        let feed = Feed::token(Arc::clone(&self.context.feeders), feeder);
        Ok((Intake::open(options, feed, &self.context).await?, terms))
    }

    fn feeder(&self, headers: &HeaderMap, peer: &Peer) -> Result<Arc<Feeder>, Failure> {
        let sent = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        let token = sent.and_then(|value| {
            let (scheme, token) = value.split_once(' ')?;
            scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
        });
        self.context.feeders.admit(token).map_err(|why| {
            limited!(LineKind::FeedToken, Level::WARN, client = %peer.client(headers), %why, "rejected feed token");
            let told =
                "send a feed token that is in force as authorization: Bearer ft_ob_…; `oddsbox feeds token` issues one";
            Failure::new(FailureCode::Unauthorized, told)
        })
    }
}

fn is_gzip(headers: &HeaderMap) -> Result<bool, Failure> {
    let encoding = headers.get(CONTENT_ENCODING).map_or("identity", |value| value.to_str().unwrap_or_default());
    match encoding.trim().to_ascii_lowercase().as_str() {
        "identity" => Ok(false),
        "gzip" | "x-gzip" => Ok(true),
        _ => Err(Failure::new(FailureCode::UnsupportedEncoding, "send the lines as they are, or as gzip")),
    }
}

fn refused(error: &Failure) -> Reply {
    let mut reply = failure(error);
    match error.code {
        FailureCode::Unauthorized => drop(reply.headers_mut().insert(WWW_AUTHENTICATE, header("Bearer"))),
        FailureCode::MethodNotAllowed => drop(reply.headers_mut().insert(ALLOW, header("POST"))),
        _ => {}
    }
    reply
}
