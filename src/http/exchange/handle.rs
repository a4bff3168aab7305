//! From a request to its response: no disk, no waiting. The caller has read the clock, once.
//!
//! 1. The request gets its id.
//! 2. A URL or headers beyond our bounds are rejected, with any key or none; so is HTTP/1.1 without exactly one valid `Host`.
//! 3. The path becomes a route; an open one is answered without a key. One for POST takes nothing else, and nothing from pages
//!    of other origins.
//! 4. The key becomes a grant, unless the writer has ended: a key that cannot be revoked is not accepted.
//! 5. The request is charged to the key's meter. If that has to wait for a lease, so has the caller of this function.
//! 6. The route must exist, and the method must be one that reads.
//! 7. For a route of one sport, the grant becomes an access to it; then maintenance is checked.
//! 8. The endpoint parses its parameters and produces its content. If it needs something of the log, or something that takes long
//!    to compute, the caller has that done and calls again; the request stays charged.
//!    A request for a stream ends here: the caller opens it. So does the rotation of a key, and
//!    a message of the Model Context Protocol is answered here, once its body has been read.
//! 9. A long answer is charged for its length. The content or the error becomes a response; server errors are not charged.

use std::sync::Arc;

use http::{Request, Response, StatusCode};

use super::charged::{Charged, units_of};
use super::error::{ApiError, Code, GROUP, HISTORY, LENGTH, SELF_SERVICE, STREAMS};
use super::history::{Finished, Stop};
use super::query;
use super::reply::{Content, Reply};
use super::request_headers::{HeaderField, RequestParts};
use super::request_id::RequestId;
use super::route::{Route, UNKNOWN_TEMPLATE, Version};
use super::service::{Authorized, Service};
use super::usage::UsageHeaders;
use super::waits::{HistoryNeed, PaidRequest, Resumed};
use super::work::BodyJob;
use crate::board::Body;
use crate::clock::Moment;
use crate::http::stream::{EventStream, StreamNeed};
use crate::http::transport::ResponseBody;
use crate::http::{v1, v4};
use crate::keys::{AuthError, Cost, Grant, KeyId, KeyTicket, Keys, Refusal, WaitingGrant};

/// The outcome of a request.
#[derive(Debug)]
pub enum Handled {
    Answer(HandledRequest),
    /// The key has quota left but no lease: wait for its meter's lease and call again.
    NeedsLease(WaitingGrant),
    /// Something has to be read of the log first.
    NeedsHistory(PaidRequest, HistoryNeed),
    /// A stream is to be opened.
    Opens(PaidRequest, Box<StreamNeed>),
    /// Something has to be computed first.
    NeedsWork(PaidRequest, BodyJob),
    /// The key is to be rotated, with the secret that was presented.
    Rotates(PaidRequest, KeyTicket),
    /// Its body has to be read first, which is done for holders of a valid key only.
    NeedsBody(PaidRequest),
}

impl From<HandledRequest> for Handled {
    fn from(answer: HandledRequest) -> Self {
        Handled::Answer(answer)
    }
}

/// An answer, and what the access log and the counters need of it.
#[derive(Debug)]
pub struct HandledRequest {
    reply: Reply,
    /// The body, if it is a stream.
    stream: Option<Box<EventStream>>,
    pub note: Note,
}

impl HandledRequest {
    pub fn into_response(self) -> Response<ResponseBody> {
        let mut response = self.reply.into_response();
        if let Some(stream) = self.stream {
            *response.body_mut() = ResponseBody::stream(*stream);
        }
        response
    }
}

/// What the access log and the counters need of a response.
#[derive(Clone, Debug)]
pub struct Note {
    /// The path with its variables named.
    pub route: &'static str,
    pub status: StatusCode,
    /// Of the body, as sent.
    pub bytes: usize,
    pub key: Option<KeyId>,
    /// Why the key was rejected, as one word.
    pub refused: Option<&'static str>,
    pub request_id: RequestId,
}

/// Answers one request, following the steps above.
pub fn handle<B>(service: &Service, request: &Request<B>, now: Moment) -> Handled {
    handle_with(service, request, now, Resumed::default())
}

/// The same with what was done for the request before.
pub(crate) fn handle_with<B>(service: &Service, request: &Request<B>, now: Moment, resumed: Resumed<'_>) -> Handled {
    // 1. Its id.
    let mut exchange = Exchange::begin(service, request, now);
    // 2. Bounds and host.
    if let Err(error) = exchange.request.check() {
        return exchange.fail(&error).into();
    }
    // 3. The route.
    let route = exchange.find_route();
    if !route.needs_key() {
        return exchange.open_page(&route).into();
    }
    if let Err(error) = exchange.check_post(&route) {
        return exchange.fail(&error).into();
    }
    // 4. The key.
    let keys = service.keyring.load();
    let authenticated = exchange.authenticate(&keys);
    if !service.boards.condition().may_serve(|| service.clock.mono_ms()) {
        return exchange.fail(&ApiError::overloaded()).into();
    }
    let grant = match authenticated {
        Ok(grant) => grant,
        Err(error) => return exchange.refuse_key(error).into(),
    };
    // 5. The charge.
    let cost = if route.is_free() { Cost::BurstOnly } else { Cost::Full };
    let Resumed { finished, body, posted, paid } = resumed;
    let charge = match paid {
        Some(paid) => Ok(paid.attach(grant.meter())),
        None => grant.meter().charge(cost, exchange.now),
    };
    let mut charge = match charge {
        Ok(charge) => Charged::new(charge),
        Err(Refusal::NeedsLease) => return Handled::NeedsLease(grant.to_waiting()),
        Err(refusal) => return exchange.refuse_charge(refusal, grant).into(),
    };
    match route {
        Route::AccountRotate => return exchange.rotation(&keys, grant, charge),
        Route::Mcp => return exchange.mcp(&keys, grant, charge, (posted, finished, body)),
        _ => {}
    }
    // 6 to 8. The content.
    let content = match exchange.content(&route, grant, (finished, body)) {
        Ok(content) => Ok(content),
        Err(Stop::Failed(error)) => Err(error),
        Err(stop) => return exchange.wait(stop, &keys, grant, charge),
    };
    // 9. The answer.
    let rows = content.as_ref().map_or(0, |content| content.rows);
    let content = match charge.add_rows(rows, exchange.now) {
        Ok(()) => content,
        Err(Refusal::NeedsLease) => {
            charge.refund();
            return Handled::NeedsLease(grant.to_waiting_for(units_of(rows)));
        }
        Err(refusal) => Err(ApiError::too_long(units_of(rows), refusal)),
    };
    exchange.answer(content, charge, grant).into()
}

/// Answers a request with a stream, which costs as much as the rows that it begins with.
pub(crate) fn opened<B>(
    service: &Service,
    request: &Request<B>,
    now: Moment,
    paid: PaidRequest,
    rows: usize,
    stream: EventStream,
) -> Handled {
    let mut exchange = Exchange::begin(service, request, now);
    exchange.find_route();
    let grant = paid.grant.grant();
    exchange.key = Some(grant.key_id().clone());
    let mut charge = Charged::new(paid.charge.attach(grant.meter()));
    match charge.add_rows(rows, now) {
        Ok(()) => {}
        Err(Refusal::NeedsLease) => {
            charge.refund();
            return Handled::NeedsLease(grant.to_waiting_for(units_of(rows)));
        }
        Err(refusal) => {
            return exchange.answer(Err(ApiError::too_long(units_of(rows), refusal)), charge, grant).into();
        }
    }
    let usage = UsageHeaders::of(charge.keep(), grant, now.timestamp());
    let reply = Reply::stream(&exchange.request_id, usage);
    let is_head = exchange.request.is_head;
    let answer = exchange.finish(reply);
    HandledRequest { stream: (!is_head).then(|| Box::new(stream)), ..answer }.into()
}

/// Answers a request that waited in vain, for a lease or for its turn to read the log.
pub(crate) fn refused<B>(
    service: &Service,
    request: &Request<B>,
    grant: Grant<'_>,
    now: Moment,
    error: &ApiError,
) -> HandledRequest {
    let mut exchange = Exchange::begin(service, request, now);
    exchange.find_route();
    exchange.refused = match error.code {
        Code::RateLimited if exchange.is_post => Some(SELF_SERVICE),
        Code::RateLimited => Some(HISTORY),
        Code::TooManyStreams => Some(STREAMS),
        Code::RotationRefused => Some(SELF_SERVICE),
        _ => None,
    };
    exchange.refuse(error, grant)
}

/// Answers a request whose handling panicked.
pub(crate) fn broken<B>(service: &Service, request: &Request<B>, now: Moment) -> HandledRequest {
    let mut exchange = Exchange::begin(service, request, now);
    exchange.find_route();
    exchange.fail(&ApiError::internal())
}

/// What is known of one request so far, and the steps that need it.
#[derive(Debug)]
pub(super) struct Exchange<'s, 'r> {
    pub(super) request: RequestParts<'r>,
    pub(super) now: Moment,
    /// The route's template, once it is known.
    route: &'static str,
    version: Version,
    service: &'s Service,
    pub(super) request_id: RequestId,
    pub(super) key: Option<KeyId>,
    pub(super) refused: Option<&'static str>,
    key_in_query: bool,
    /// Whether the key is taken from a header only.
    is_post: bool,
}

impl<'s, 'r> Exchange<'s, 'r> {
    pub(super) fn begin<B>(service: &'s Service, request: &'r Request<B>, now: Moment) -> Self {
        let request = RequestParts::of(request);
        Exchange {
            now,
            route: UNKNOWN_TEMPLATE,
            version: Version::of(request.path).unwrap_or_default(),
            request_id: service.request_ids.id_of(request.headers.request_id),
            key: None,
            refused: None,
            key_in_query: false,
            is_post: false,
            service,
            request,
        }
    }

    pub(super) fn find_route(&mut self) -> Route<'r> {
        let route = Route::of(self.request.path);
        self.route = route.template();
        self.is_post = route.is_post();
        route
    }

    fn authenticate<'k>(&mut self, keys: &'k Keys) -> Result<Grant<'k>, AuthError> {
        let grant = self.grant(keys)?;
        self.key = Some(grant.key_id().clone());
        Ok(grant)
    }

    /// The header wins over the query, even when its key is not valid: sending two keys is a mistake that should surface.
    fn grant<'k>(&mut self, keys: &'k Keys) -> Result<Grant<'k>, AuthError> {
        if self.is_post {
            return keys.authenticate(self.request.headers.header_key()?, self.now);
        }
        match self.request.headers.api_key {
            HeaderField::Once(value) => keys.authenticate(Some(value.as_bytes()), self.now),
            HeaderField::Repeated => Err(AuthError::Malformed),
            HeaderField::Missing if self.service.allows_query_key() => {
                let text = query::api_key(self.request.query, self.version);
                self.key_in_query = text.is_some();
                keys.authenticate(text.as_deref(), self.now)
            }
            HeaderField::Missing => Err(AuthError::Missing),
        }
    }

    /// What authenticates the request again, later.
    pub(super) fn ticket(&self, keys: &Keys) -> Option<KeyTicket> {
        if self.is_post {
            return keys.ticket(self.request.headers.header_key().ok()??);
        }
        match self.request.headers.api_key {
            HeaderField::Once(value) => keys.ticket(value.as_bytes()),
            _ => keys.ticket(query::api_key(self.request.query, self.version)?.as_bytes()),
        }
    }

    /// The request as an endpoint sees it.
    pub(super) fn authorized<'a>(
        &'a self,
        grant: Grant<'a>,
        (finished, computed): (Option<&'a Finished>, Option<&'a Arc<Body>>),
    ) -> Authorized<'a> {
        let (service, request, version) = (self.service, &self.request, self.version);
        let (now, moment) = (self.now.timestamp(), self.now);
        Authorized { service, request, grant, now, moment, version, finished, computed }
    }

    /// What the caller does or waits for. The request stays charged.
    pub(super) fn wait(self, stop: Stop, keys: &Keys, grant: Grant<'_>, charge: Charged<'_>) -> Handled {
        let Some(charge) = charge.detach() else { return self.fail(&ApiError::internal()).into() };
        let paid = PaidRequest { grant: grant.to_waiting(), charge };
        match stop {
            Stop::NeedsHistory(read) => Handled::NeedsHistory(paid, HistoryNeed(read)),
            Stop::NeedsWork(job) => Handled::NeedsWork(paid, job),
            Stop::Opens(plan) => match self.ticket(keys) {
                Some(ticket) => Handled::Opens(paid, Box::new(StreamNeed { plan: *plan, ticket })),
                None => self.fail(&ApiError::internal()).into(),
            },
            Stop::Failed(error) => self.fail(&error).into(),
        }
    }

    /// Steps 6 to 8. A key in the query must be there once.
    fn content(
        &self,
        route: &Route<'_>,
        grant: Grant<'_>,
        (finished, computed): (Option<&Finished>, Option<&Arc<Body>>),
    ) -> Result<Content, Stop> {
        self.check_route(route)?;
        let authorized = self.authorized(grant, (finished, computed));
        let content = match route {
            Route::V4(route) => v4::get(&authorized, route),
            route => v1::get(&authorized, route),
        }?;
        if self.key_in_query && self.version == Version::V1 {
            query::check_key(self.request.query)?;
        }
        Ok(content)
    }

    fn check_route(&self, route: &Route<'_>) -> Result<(), ApiError> {
        match route {
            Route::Unknown { .. } => return Err(ApiError::not_found()),
            Route::Malformed { .. } => {
                let message = "The path is not UTF-8 in percent-encoding: write a plain % as %25.";
                return Err(ApiError::new(Code::InvalidRequest, message));
            }
            _ => {}
        }
        if !self.request.is_read() {
            return Err(ApiError::new(Code::MethodNotAllowed, "This is read-only: use GET or HEAD."));
        }
        Ok(())
    }

    /// Answers a request that was charged; a server error refunds it.
    pub(super) fn answer(
        mut self,
        content: Result<Content, ApiError>,
        charge: Charged<'_>,
        grant: Grant<'_>,
    ) -> HandledRequest {
        let reply = match content {
            Ok(content) => {
                let usage = UsageHeaders::of(charge.standing, grant, self.now.timestamp());
                let mut reply = Reply::content(&self.request, content, &self.request_id, self.freshness(), usage);
                self.insert_cost(&mut reply, charge.units());
                charge.keep();
                reply
            }
            Err(error) => {
                self.refused = match error.code {
                    Code::Forbidden => Some(GROUP),
                    Code::QuotaExceeded => Some(LENGTH),
                    Code::RotationRefused => Some(SELF_SERVICE),
                    _ => None,
                };
                let mut reply = Reply::error(&error, self.version, &self.request_id);
                let (is_ours, units) = (reply.status.is_server_error(), charge.units());
                let standing = if is_ours { charge.refund() } else { charge.keep() };
                reply.insert_usage(UsageHeaders::of(standing, grant, self.now.timestamp()));
                self.insert_cost(&mut reply, if is_ours { 0 } else { units });
                reply
            }
        };
        self.finish(reply)
    }

    /// Answers a request with a valid key that was rejected.
    fn refuse(mut self, error: &ApiError, grant: Grant<'_>) -> HandledRequest {
        self.key = Some(grant.key_id().clone());
        let mut reply = Reply::error(error, self.version, &self.request_id);
        reply.insert_usage(UsageHeaders::of(grant.meter().standing(self.now), grant, self.now.timestamp()));
        self.insert_cost(&mut reply, 0);
        self.finish(reply)
    }

    /// Answers a request whose key has nothing left.
    fn refuse_charge(mut self, refusal: Refusal, grant: Grant<'_>) -> HandledRequest {
        self.refused = Some(refusal.reason());
        self.refuse(&refusal.into(), grant)
    }

    fn insert_cost(&self, reply: &mut Reply, units: u64) {
        if self.version == Version::V4 {
            reply.insert_cost(units);
        }
    }

    /// Answers a request whose key is not valid.
    fn refuse_key(mut self, error: AuthError) -> HandledRequest {
        self.refused = Some(error.reason());
        self.key = error.key().cloned();
        // The deprecation header is for valid keys only.
        self.key_in_query = false;
        let error = ApiError::of_key(&error, self.version);
        self.fail(&error)
    }

    /// Answers with an error, without a known key.
    pub(super) fn fail(self, error: &ApiError) -> HandledRequest {
        let reply = Reply::error(error, self.version, &self.request_id);
        self.finish(reply)
    }

    fn open_page(self, route: &Route<'_>) -> HandledRequest {
        if let Err(error) = self.check_route(route) {
            return self.fail(&error);
        }
        let Some(page) = self.service.pages.get(route, &self.request) else { return self.fail(&ApiError::not_found()) };
        let mut reply = Reply::page(&self.request, &page.content, &self.request_id, self.freshness());
        for (name, value) in &page.headers {
            reply.insert(name.clone(), value.clone());
        }
        self.finish(reply)
    }

    /// What `Cache-Control` depends on: now, and the time between two publications.
    fn freshness(&self) -> (Moment, i64) {
        (self.now, self.service.settings.refresh_ms)
    }

    pub(super) fn finish(self, mut reply: Reply) -> HandledRequest {
        // On `/v4` the query is where keys come from.
        if self.key_in_query && self.version == Version::V1 {
            reply.insert_deprecation();
        }
        if self.request.is_head {
            reply.without_body();
        }
        let (status, bytes) = (reply.status, reply.len());
        let Exchange { route, key, refused, request_id, .. } = self;
        HandledRequest { reply, stream: None, note: Note { route, status, bytes, key, refused, request_id } }
    }
}
