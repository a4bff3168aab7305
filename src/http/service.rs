//! What every request is answered from, and the little of answering that waits.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;

use super::access::{self, REFUSED};
use super::books::KeptLists;
use super::client_address::Peer;
use super::handle::{Answer, Handled, Note, broken, handle, overloaded};
use super::pages::Pages;
use super::request_id::RequestIds;
use super::route::COUNTED;
use crate::board::Boards;
use crate::clock::{Clock, Moment};
use crate::keys::{Grant, Keyring};
use crate::metrics::Traffic;

/// How the interface behaves where the operator may choose.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Whether a key is accepted in the query as well.
    pub allow_query_key: bool,
    /// Between two publications of prices, in milliseconds.
    pub refresh_ms: i64,
    /// How long a request waits for its key's lease before it is answered with `overloaded`.
    pub lease_patience: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Settings { allow_query_key: true, refresh_ms: 30_000, lease_patience: Duration::from_secs(2) }
    }
}

/// A request as it comes through a listener.
pub type IncomingRequest = Request<Incoming>;

/// Whatever answers the requests that come through a listener.
pub trait Respond: Send + Sync + 'static {
    type Body: hyper::body::Body<Data = Bytes, Error: std::error::Error + Send + Sync> + Send + 'static;

    /// The answer to a request, if it can be given without waiting; `None` leaves it to [`Respond::respond`].
    fn respond_at_once(&self, _: &IncomingRequest, _: &Peer) -> Option<Response<Self::Body>> {
        None
    }

    fn respond(&self, request: IncomingRequest, peer: &Peer) -> impl Future<Output = Response<Self::Body>> + Send;

    /// Where its connections are counted.
    fn traffic(&self) -> &Arc<Traffic>;
}

impl Respond for Service {
    type Body = Full<Bytes>;

    fn respond_at_once(&self, request: &IncomingRequest, peer: &Peer) -> Option<Response<Full<Bytes>>> {
        Service::respond_at_once(self, request, peer)
    }

    async fn respond(&self, request: IncomingRequest, peer: &Peer) -> Response<Full<Bytes>> {
        Service::respond(self, &request, peer).await
    }

    fn traffic(&self) -> &Arc<Traffic> {
        Service::traffic(self)
    }
}

/// The public interface: built once, shared by every connection.
#[derive(Debug)]
pub struct Service {
    pub(super) boards: Arc<Boards>,
    pub(super) keyring: Arc<Keyring>,
    pub(super) clock: Clock,
    pub(super) settings: Settings,
    allow_query_key: AtomicBool,
    pub(super) request_ids: RequestIds,
    pub(super) pages: Pages,
    pub(super) kept_books: KeptLists,
    traffic: Arc<Traffic>,
}

impl Service {
    pub fn new(boards: Arc<Boards>, keyring: Arc<Keyring>, clock: Clock, settings: Settings) -> Self {
        Service {
            boards,
            keyring,
            clock,
            allow_query_key: AtomicBool::new(settings.allow_query_key),
            settings,
            request_ids: RequestIds::new(),
            pages: Pages::new(),
            kept_books: KeptLists::default(),
            traffic: Arc::new(Traffic::new(&COUNTED, &REFUSED)),
        }
    }

    /// What passes through here, counted.
    pub fn traffic(&self) -> &Arc<Traffic> {
        &self.traffic
    }

    /// Whether a key is accepted in the query as well.
    pub(super) fn allows_query_key(&self) -> bool {
        self.allow_query_key.load(Ordering::Relaxed)
    }

    /// Accepts keys in the query from now on, or no longer.
    pub fn allow_query_key(&self, allow: bool) {
        self.allow_query_key.store(allow, Ordering::Relaxed);
    }

    /// Answers a request and writes its line of the log, unless it has to wait for a lease.
    pub fn respond_at_once<B>(&self, request: &Request<B>, peer: &Peer) -> Option<Response<Full<Bytes>>> {
        let started = Instant::now();
        match self.handle_contained(request, self.clock.now_at(started)) {
            Handled::Answer(answer) => {
                self.note(request, peer, &answer.note, started);
                Some(answer.into_response())
            }
            Handled::NeedsLease(_) => None,
        }
    }

    /// The same for any request. The only wait is for a lease, and it is bounded.
    pub async fn respond<B>(&self, request: &Request<B>, peer: &Peer) -> Response<Full<Bytes>> {
        let started = Instant::now();
        let answer = match self.handle_contained(request, self.clock.now_at(started)) {
            Handled::Answer(answer) => answer,
            Handled::NeedsLease(grant) => self.wait_and_handle(request, grant).await,
        };
        self.note(request, peer, &answer.note, started);
        answer.into_response()
    }

    /// Counts and logs an answer.
    fn note<B>(&self, request: &Request<B>, peer: &Peer, note: &Note, started: Instant) {
        let took = started.elapsed();
        self.traffic.count_request(note.route, note.status.as_u16(), took);
        if let Some(reason) = note.refused {
            self.traffic.count_refused(reason);
        }
        access::log(request, peer, note, took);
    }

    async fn wait_and_handle<B>(&self, request: &Request<B>, mut grant: Grant) -> Answer {
        let deadline = tokio::time::Instant::now() + self.settings.lease_patience;
        loop {
            let lease = grant.meter().lease_arrives(self.clock.now());
            match tokio::time::timeout_at(deadline, lease).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) | Err(_) => return overloaded(self, request, &grant, self.clock.now()),
            }
            match self.handle_contained(request, self.clock.now()) {
                Handled::Answer(answer) => return answer,
                // Others were quicker and took all of it: the deadline bounds how often that can happen.
                Handled::NeedsLease(again) => grant = again,
            }
        }
    }

    /// A panic costs one request its answer, not its connection the others.
    fn handle_contained<B>(&self, request: &Request<B>, now: Moment) -> Handled {
        catch_unwind(AssertUnwindSafe(|| handle(self, request, now)))
            .unwrap_or_else(|_| Handled::Answer(broken(self, request, now)))
    }
}
