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

use http::{Method, Request, Response, StatusCode};

use super::error::{ApiError, Code, GROUP, HISTORY, LENGTH, SELF_SERVICE, STREAMS};
use super::history::{Finished, HistoryRead, Stop};
use super::query;
use super::reply::{Content, Reply};
use super::request_headers::{HeaderField, RequestParts};
use super::request_id::RequestId;
use super::route::{Route, UNKNOWN_TEMPLATE, Version};
use super::service::{Authorized, Service};
use super::usage::UsageHeaders;
use super::work::BodyJob;
use crate::board::Body;
use crate::clock::Moment;
use crate::http::account::{self, RotateNeed};
use crate::http::mcp::{self, Asked, McpReply, Posted};
use crate::http::stream::{EventStream, StreamNeed};
use crate::http::transport::ResponseBody;
use crate::http::{v1, v4};
use crate::keys::{
    AuthError, Charge, Cost, Grant, KeyId, KeyTicket, Keys, PaidCharge, Refusal, Standing, UNITS_MAX, WaitingGrant,
};

/// The outcome of a request.
#[derive(Debug)]
pub enum Handled {
    Answer(HandledRequest),
    /// The key has quota left but no lease: wait for its meter's lease and call again.
    NeedsLease(WaitingGrant),
    /// Something has to be read of the log first.
    NeedsHistory(HistoryNeed),
    /// A stream is to be opened.
    Opens(Box<StreamNeed>),
    /// Something has to be computed first.
    NeedsWork(WorkNeed),
    /// The key is to be rotated.
    Rotates(Box<RotateNeed>),
    /// Its body has to be read first.
    NeedsBody(BodyNeed),
}

/// What a request needs computed, and whose request it is.
#[derive(Debug)]
pub struct WorkNeed {
    pub(crate) grant: WaitingGrant,
    pub(crate) job: BodyJob,
    pub(crate) paid: PaidCharge,
}

impl WorkNeed {
    /// Nothing is going to be computed.
    pub(crate) fn refund(self) {
        self.paid.attach(self.grant.grant().meter()).refund();
    }
}

/// A request whose body is needed, and whose request it is. It is read for holders of a valid key only.
#[derive(Debug)]
pub struct BodyNeed {
    pub(crate) grant: WaitingGrant,
    pub(crate) paid: PaidCharge,
}

impl BodyNeed {
    /// Nothing is going to be read.
    pub(crate) fn refund(self) {
        self.paid.attach(self.grant.grant().meter()).refund();
    }
}

/// What a request needs of the log, and whose request it is.
#[derive(Debug)]
pub struct HistoryNeed {
    pub(crate) grant: WaitingGrant,
    pub(crate) read: HistoryRead,
    /// The request stays charged while the log is read: a client that leaves has had its reading.
    pub(crate) paid: PaidCharge,
}

impl HistoryNeed {
    /// Nothing is going to be read.
    pub(crate) fn refund(self) {
        self.paid.attach(self.grant.grant().meter()).refund();
    }
}

/// What was done for a request since it was handled before.
#[derive(Debug, Default)]
pub(crate) struct Resumed<'f> {
    /// What was read of the log.
    pub(crate) finished: Option<&'f Finished>,
    /// What was computed.
    pub(crate) body: Option<&'f Arc<Body>>,
    /// Its body, if that was needed.
    pub(crate) posted: Option<&'f Posted>,
    /// The charge of the request, unless it was refunded since.
    pub(crate) paid: Option<PaidCharge>,
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
    if service.boards.condition().has_writer_ended() {
        return exchange.fail(&ApiError::overloaded()).into();
    }
    let keys = service.keyring.load();
    let grant = match exchange.authenticate(&keys) {
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
    (waiting, paid): (WaitingGrant, PaidCharge),
    rows: usize,
    stream: EventStream,
) -> Handled {
    let mut exchange = Exchange::begin(service, request, now);
    exchange.find_route();
    let grant = waiting.grant();
    exchange.key = Some(grant.key_id().clone());
    let mut charge = Charged::new(paid.attach(grant.meter()));
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

/// Answers a request that has rotated its key.
pub(crate) fn rotated<B>(
    service: &Service,
    request: &Request<B>,
    now: Moment,
    (waiting, paid): (WaitingGrant, PaidCharge),
    json: Vec<u8>,
) -> HandledRequest {
    let mut exchange = Exchange::begin(service, request, now);
    exchange.find_route();
    let grant = waiting.grant();
    exchange.key = Some(grant.key_id().clone());
    let charge = Charged::new(paid.attach(grant.meter()));
    let usage = UsageHeaders::of(charge.keep(), grant, now.timestamp());
    let reply = Reply::posted(StatusCode::OK, json, &exchange.request_id, usage);
    exchange.finish(reply)
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
struct Exchange<'s, 'r> {
    request: RequestParts<'r>,
    now: Moment,
    /// The route's template, once it is known.
    route: &'static str,
    version: Version,
    service: &'s Service,
    request_id: RequestId,
    key: Option<KeyId>,
    refused: Option<&'static str>,
    key_in_query: bool,
    /// Whether the key is taken from a header only.
    is_post: bool,
}

impl<'s, 'r> Exchange<'s, 'r> {
    fn begin<B>(service: &'s Service, request: &'r Request<B>, now: Moment) -> Self {
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

    fn find_route(&mut self) -> Route<'r> {
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
    fn ticket(&self, keys: &Keys) -> Option<KeyTicket> {
        if self.is_post {
            return keys.ticket(self.request.headers.header_key().ok()??);
        }
        match self.request.headers.api_key {
            HeaderField::Once(value) => keys.ticket(value.as_bytes()),
            _ => keys.ticket(query::api_key(self.request.query, self.version)?.as_bytes()),
        }
    }

    /// The request as an endpoint sees it.
    fn authorized<'a>(
        &'a self,
        grant: Grant<'a>,
        (finished, computed): (Option<&'a Finished>, Option<&'a Arc<Body>>),
    ) -> Authorized<'a> {
        let (service, request, version) = (self.service, &self.request, self.version);
        let (now, moment) = (self.now.timestamp(), self.now);
        Authorized { service, request, grant, now, moment, version, finished, computed }
    }

    /// What the caller does or waits for. The request stays charged.
    fn wait(self, stop: Stop, keys: &Keys, grant: Grant<'_>, charge: Charged<'_>) -> Handled {
        let Some(paid) = charge.detach() else { return self.fail(&ApiError::internal()).into() };
        let waiting = grant.to_waiting();
        match stop {
            Stop::NeedsHistory(read) => Handled::NeedsHistory(HistoryNeed { grant: waiting, read, paid }),
            Stop::NeedsWork(job) => Handled::NeedsWork(WorkNeed { grant: waiting, job, paid }),
            Stop::Opens(plan) => match self.ticket(keys) {
                Some(ticket) => Handled::Opens(Box::new(StreamNeed { plan, grant: waiting, ticket, paid })),
                None => self.fail(&ApiError::internal()).into(),
            },
            Stop::Failed(error) => self.fail(&error).into(),
        }
    }

    /// Answers a message of the Model Context Protocol. The call of a tool is charged as a request of `/v1`.
    fn mcp(
        mut self,
        keys: &Keys,
        grant: Grant<'_>,
        mut charge: Charged<'_>,
        (posted, finished, computed): (Option<&Posted>, Option<&Finished>, Option<&Arc<Body>>),
    ) -> Handled {
        let Some(posted) = posted else {
            let Some(paid) = charge.detach() else { return self.fail(&ApiError::internal()).into() };
            return Handled::NeedsBody(BodyNeed { grant: grant.to_waiting(), paid });
        };
        let call = match mcp::asked(&self.request, posted) {
            Asked::Answered(reply) => return self.answer_mcp(reply, charge.keep(), grant),
            Asked::Call(call) => call,
        };
        match charge.count_call(self.now) {
            Ok(()) => {}
            Err(Refusal::NeedsLease) => {
                charge.refund();
                return Handled::NeedsLease(grant.to_waiting());
            }
            Err(refusal) => {
                self.refused = Some(refusal.reason());
                return self.answer_mcp(mcp::refused(&call, &refusal.into()), charge.refund(), grant);
            }
        }
        match mcp::answer(&self.authorized(grant, (finished, computed)), &call) {
            Ok((reply, is_ours)) => {
                let standing = if is_ours { charge.refund() } else { charge.keep() };
                self.answer_mcp(reply, standing, grant)
            }
            Err(stop) => self.wait(stop, keys, grant, charge),
        }
    }

    fn answer_mcp(self, reply: McpReply, standing: Standing, grant: Grant<'_>) -> Handled {
        let usage = UsageHeaders::of(standing, grant, self.now.timestamp());
        let reply = Reply::posted(reply.status, reply.json, &self.request_id, usage);
        self.finish(reply).into()
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

    /// A route for POST takes nothing else, and nothing that a page from elsewhere sends.
    fn check_post(&self, route: &Route<'_>) -> Result<(), ApiError> {
        if !route.is_post() {
            return Ok(());
        }
        if self.request.method != Method::POST {
            return Err(ApiError::new(Code::PostOnly, "This takes POST only."));
        }
        if self.request.is_from_elsewhere() {
            let message = "This request was sent by a web page of another origin, which is not accepted here.";
            return Err(ApiError::new(Code::ForeignOrigin, message));
        }
        Ok(())
    }

    /// Leaves the rotation of a key to the caller, if its holder may rotate it.
    fn rotation(self, keys: &Keys, grant: Grant<'_>, charge: Charged<'_>) -> Handled {
        let order = account::check(&self.request, grant.record(), self.ticket(keys), self.now.timestamp());
        match order {
            Ok(ticket) => match charge.detach() {
                Some(paid) => Handled::Rotates(Box::new(RotateNeed { grant: grant.to_waiting(), ticket, paid })),
                None => self.fail(&ApiError::internal()).into(),
            },
            Err(error) => self.answer(Err(error), charge, grant).into(),
        }
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
    fn answer(mut self, content: Result<Content, ApiError>, charge: Charged<'_>, grant: Grant<'_>) -> HandledRequest {
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
    fn fail(self, error: &ApiError) -> HandledRequest {
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

    fn finish(self, mut reply: Reply) -> HandledRequest {
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

/// How many rows of history an answer has for each unit of its cost.
const ROWS_OF_UNIT: usize = 500;

/// One for each 500 begun, and one for an answer without any. The longest lists of `/v4` have about 40,000 rows: beyond what
/// one lease pays for, more rows cost no more.
fn units_of(rows: usize) -> u64 {
    (rows.div_ceil(ROWS_OF_UNIT) as u64).clamp(1, UNITS_MAX)
}

/// A charge that is refunded if handling panics.
#[derive(Debug)]
struct Charged<'m> {
    charge: Option<Charge<'m>>,
    standing: Standing,
}

impl<'m> Charged<'m> {
    fn new(charge: Charge<'m>) -> Self {
        Charged { standing: *charge.standing(), charge: Some(charge) }
    }

    fn units(&self) -> u64 {
        self.charge.as_ref().map_or(0, Charge::units)
    }

    /// Charges for the length of an answer.
    fn add_rows(&mut self, rows: usize, now: Moment) -> Result<(), Refusal> {
        let more = units_of(rows) - 1;
        let Some(charge) = self.charge.as_mut().filter(|_| more > 0) else { return Ok(()) };
        charge.add(more, now)?;
        self.standing = *charge.standing();
        Ok(())
    }

    /// Charges for the call of a tool, which was charged for the minute only. One that has waited was charged before.
    fn count_call(&mut self, now: Moment) -> Result<(), Refusal> {
        let Some(charge) = self.charge.as_mut().filter(|charge| charge.units() == 0) else { return Ok(()) };
        charge.add(1, now)?;
        self.standing = *charge.standing();
        Ok(())
    }

    /// Makes the charge final.
    fn keep(mut self) -> Standing {
        self.charge = None;
        self.standing
    }

    fn detach(mut self) -> Option<PaidCharge> {
        self.charge.take().map(Charge::detach)
    }

    fn refund(mut self) -> Standing {
        self.charge.take().map_or(self.standing, Charge::refund)
    }
}

impl Drop for Charged<'_> {
    fn drop(&mut self) {
        if std::thread::panicking()
            && let Some(charge) = self.charge.take()
        {
            charge.refund();
        }
    }
}
