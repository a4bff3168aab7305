//! Answering requests of a connection: the pipeline of `handle`, the waits for a lease, for the log of changes and for what is
//! computed elsewhere, the opening of streams, the rotation of keys, counters and the access log.
//!
//! The access log has one line for each request that was charged to a key, and for as many others as the limiter admits.
//! Never the key, and never the query string, which may contain one. Requests of a key are bounded by its limits. Those
//! that are not charged are not, so their lines are limited by [`LineKind`]: one limit for requests without a valid key,
//! which a flood of them uses up, and another for rejected requests of a key.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use http::{Request, Response};
use hyper::body::Incoming;
use tracing::Level;

use super::error::{ApiError, INVALID_KEYS, REFUSED};
use super::handle::{Handled, HandledRequest, Note, broken, handle_with, refused};
use super::service::Service;
use super::usage::RATELIMIT;
use super::waits::{HistoryNeed, Resumed};
use crate::clock::Moment;
use crate::http::mcp;
use crate::http::transport::{IncomingRequest, Peer, Respond, ResponseBody, ResponseFuture};
use crate::keys::KeyId;
use crate::log::{self, LineKind};
use crate::metrics::Traffic;

impl Respond for Service {
    fn respond_at_once(&self, request: &IncomingRequest, peer: &Peer) -> Option<Response<ResponseBody>> {
        Service::respond_at_once(self, request, peer)
    }

    fn respond<'a>(&'a self, request: IncomingRequest, peer: &'a Peer) -> ResponseFuture<'a> {
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            self.respond_to(&Request::from_parts(parts, ()), Some(body), peer).await
        })
    }

    /// Every response to a valid key has the key's limits.
    fn is_authenticated(&self, response: &Response<ResponseBody>) -> bool {
        response.headers().contains_key(RATELIMIT)
    }

    fn traffic(&self) -> &Arc<Traffic> {
        Service::traffic(self)
    }
}

impl Service {
    /// Answers a request and writes its line of the log, unless it has to wait.
    pub fn respond_at_once<B>(&self, request: &Request<B>, peer: &Peer) -> Option<Response<ResponseBody>> {
        let started = Instant::now();
        match self.handle_contained(request, self.clock.now_at(started), Resumed::default()) {
            Handled::Answer(answer) => {
                self.note(request, peer, &answer.note, started);
                Some(answer.into_response())
            }
            Handled::NeedsLease(_) => None,
            // It is handled anew, and charged again, by what waits.
            Handled::NeedsHistory(paid, _)
            | Handled::Opens(paid, _)
            | Handled::NeedsWork(paid, _)
            | Handled::Rotates(paid, _)
            | Handled::NeedsBody(paid) => {
                paid.refund();
                None
            }
        }
    }

    /// The same for any request. The only waits are for a lease, for the log and for what takes long to compute, and
    /// they are bounded.
    pub async fn respond<B>(&self, request: &Request<B>, peer: &Peer) -> Response<ResponseBody> {
        self.respond_to(request, None, peer).await
    }

    /// The same with the body of the request, which few endpoints read.
    async fn respond_to<B>(
        &self,
        request: &Request<B>,
        incoming: Option<Incoming>,
        peer: &Peer,
    ) -> Response<ResponseBody> {
        let started = Instant::now();
        let answer = self.handle_and_wait(request, incoming, peer, self.clock.now_at(started)).await;
        self.note(request, peer, &answer.note, started);
        answer.into_response()
    }

    /// Counts and logs an answer.
    fn note<B>(&self, request: &Request<B>, peer: &Peer, note: &Note, started: Instant) {
        let took = started.elapsed();
        self.traffic().count_request(note.route, note.status.as_u16(), took);
        if let Some(reason) = note.refused {
            self.traffic().count_refused(reason);
        }
        log_access(request, peer, note, took);
    }

    /// Handles a request again whenever what it waited for has come.
    async fn handle_and_wait<B>(
        &self,
        request: &Request<B>,
        mut incoming: Option<Incoming>,
        peer: &Peer,
        now: Moment,
    ) -> HandledRequest {
        let mut handled = self.handle_contained(request, now, Resumed::default());
        let mut lease_deadline = None;
        let (mut finished, mut body, mut posted, mut paid) = (None, None, None, None);
        loop {
            match handled {
                Handled::Answer(answer) => return answer,
                // Other requests may use up the lease: the deadline bounds how often that can happen.
                Handled::NeedsLease(waiting) => {
                    let patience = self.settings.lease_patience;
                    let deadline = *lease_deadline.get_or_insert_with(|| tokio::time::Instant::now() + patience);
                    let lease = waiting.lease_arrives(self.clock.now());
                    if !matches!(tokio::time::timeout_at(deadline, lease).await, Ok(Ok(()))) {
                        let now = self.clock.now();
                        return refused(self, request, waiting.grant(), now, &ApiError::overloaded());
                    }
                }
                Handled::NeedsHistory(waiting, HistoryNeed(read)) if finished.is_none() => {
                    match self.history.read(waiting.grant.grant().key_id(), read).await {
                        Ok(read) => (finished, paid) = (Some(read), Some(waiting.charge)),
                        Err(error) => {
                            return refused(self, request, waiting.refund().grant(), self.clock.now(), &error);
                        }
                    }
                }
                Handled::Opens(waiting, need) => {
                    let address = peer.counted_client(request.headers());
                    handled = self.open_stream(request, address, waiting, *need).await;
                    continue;
                }
                Handled::NeedsBody(waiting) if posted.is_none() => {
                    posted = Some(mcp::read_body(incoming.take()).await);
                    paid = Some(waiting.charge);
                }
                Handled::Rotates(waiting, ticket) => {
                    return self.rotate_key(request, peer.client(request.headers()), waiting, ticket).await;
                }
                Handled::NeedsWork(waiting, job) if body.is_none() => {
                    let (counted, began) = (self.traffic().work().wait(), tokio::time::Instant::now());
                    let computed = self.work.run(waiting.grant.grant().key_id(), job).await;
                    drop(counted);
                    match computed {
                        Ok(computed) => {
                            self.traffic().work().count_computed(began.elapsed());
                            (body, paid) = (Some(computed), Some(waiting.charge));
                        }
                        Err(error) => {
                            return refused(self, request, waiting.refund().grant(), self.clock.now(), &error);
                        }
                    }
                }
                // Each is done once.
                Handled::NeedsHistory(..) | Handled::NeedsWork(..) | Handled::NeedsBody(_) => {
                    return broken(self, request, self.clock.now());
                }
            }
            let (finished, body, posted) = (finished.as_ref(), body.as_ref(), posted.as_ref());
            let resumed = Resumed { finished, body, posted, paid: paid.take() };
            handled = self.handle_contained(request, self.clock.now(), resumed);
        }
    }

    /// A panic costs one request its answer, not its connection the others.
    fn handle_contained<B>(&self, request: &Request<B>, now: Moment, resumed: Resumed<'_>) -> Handled {
        catch_unwind(AssertUnwindSafe(|| handle_with(self, request, now, resumed)))
            .unwrap_or_else(|_| Handled::Answer(broken(self, request, now)))
    }
}

/// Writes the line of a request, unless too many like it came in this second.
fn log_access<B>(request: &Request<B>, peer: &Peer, note: &Note, took: Duration) {
    if !tracing::enabled!(target: "access", Level::INFO) {
        return;
    }
    let Some(suppressed) = kind(note).map_or(Some(0), log::admit) else { return };
    let client = peer.client(request.headers());
    tracing::info!(
        target: "access",
        method = request.method().as_str(),
        route = note.route,
        status = note.status.as_u16(),
        bytes = note.bytes,
        micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX),
        key = note.key.as_ref().map_or("-", KeyId::as_str),
        client = %client,
        peer = (client != peer.address()).then(|| tracing::field::display(peer.address())),
        refused = note.refused,
        request_id = note.request_id.as_str(),
        suppressed = (suppressed > 0).then_some(suppressed),
    );
}

/// The limit that a line is under; none for a request that was charged to a key.
fn kind(note: &Note) -> Option<LineKind> {
    let has_invalid_key = note.refused.is_some_and(|reason| REFUSED[..INVALID_KEYS].contains(&reason));
    if note.key.is_none() || has_invalid_key {
        Some(LineKind::Unauthenticated)
    } else if note.refused.is_some() || note.status.is_server_error() {
        Some(LineKind::Refused)
    } else {
        None
    }
}
