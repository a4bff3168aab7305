//! From a request to its answer: no disk, no waiting. The clock has been read, once.
//!
//! 1. The request gets its id.
//! 2. A URL or headers beyond our bounds are refused, whoever asks; so is HTTP/1.1 without exactly one valid `Host`.
//! 3. The path becomes a route; an open one is answered without a key.
//! 4. The key becomes a grant, unless the writer has ended: a key that cannot be revoked opens nothing.
//! 5. The request is charged to the key's meter. If that has to wait for a lease, so has the caller of this function.
//! 6. The route is looked at: does it exist, is the method one that reads?
//! 7. For a route of one sport, the grant becomes an access to it; then maintenance closes what it closes.
//! 8. The endpoint reads its parameters and finds its content.
//! 9. The content or the error becomes an answer; what fails on our side is not charged.

use bytes::Bytes;
use http::{Request, Response, StatusCode, Uri, Version};
use http_body_util::Full;

use super::asked::Asked;
use super::error::{ApiError, Code};
use super::exchange::{Charged, Exchange};
use super::host;
use super::reply::Reply;
use super::request_id::RequestId;
use super::route::Route;
use super::sent::Sent;
use super::service::Service;
use crate::clock::Moment;
use crate::keys::{Cost, Grant, KeyId, Refusal};

/// Our bounds, below those of the HTTP library, so that going beyond them is answered like any other mistake.
pub(super) const URI_BYTES_MAX: usize = 8 << 10;
pub(super) const HEADER_BYTES_MAX: usize = 16 << 10;
pub(super) const HEADERS_MAX: usize = 64;

/// What became of a request.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "nearly every request is answered: a box would cost each of them")]
pub enum Handled {
    Answer(Answer),
    /// The key has room but no lease: wait for its meter's lease and ask again.
    NeedsLease(Grant),
}

impl From<Answer> for Handled {
    fn from(answer: Answer) -> Self {
        Handled::Answer(answer)
    }
}

/// An answer, and what is worth keeping of it.
#[derive(Debug)]
pub struct Answer {
    pub(super) reply: Reply,
    pub note: Note,
}

impl Answer {
    pub fn into_response(self) -> Response<Full<Bytes>> {
        self.reply.into_response()
    }
}

/// What the access log and the counters hold of an answer.
#[derive(Clone, Debug)]
pub struct Note {
    /// The path with its variables named.
    pub route: &'static str,
    pub status: StatusCode,
    /// Of the body, as sent.
    pub bytes: usize,
    pub key: Option<KeyId>,
    /// Why the key did not open what was asked for, as one word, where it did not.
    pub refused: Option<&'static str>,
    pub request_id: RequestId,
}

/// Answers one request, following the steps above.
pub fn handle<B>(service: &Service, request: &Request<B>, now: Moment) -> Handled {
    let mut exchange = Exchange::begin(service, Asked::of(request), now);
    let checked =
        check_bounds(request.uri(), &exchange.asked).and_then(|()| check_host(request.version(), &exchange.asked));
    if let Err(error) = checked {
        return exchange.fail(&error).into();
    }
    let route = Route::of(exchange.asked.path);
    exchange.route = route.template();
    if !route.needs_key() {
        return exchange.open_page(&route).into();
    }
    if service.boards.condition().has_writer_ended() {
        return exchange.fail(&ApiError::overloaded()).into();
    }
    let grant = match exchange.authenticate() {
        Ok(grant) => grant,
        Err(error) => return exchange.refuse_key(error).into(),
    };
    let cost = if route.is_free() { Cost::BurstOnly } else { Cost::Full };
    let charge = match grant.meter().charge(cost, exchange.now) {
        Ok(charge) => Charged::new(charge, cost),
        Err(Refusal::NeedsLease) => return Handled::NeedsLease(grant),
        Err(refusal) => return exchange.refuse_charge(refusal, &grant).into(),
    };
    let content = exchange.content(&route, &grant);
    exchange.answer(content, charge, &grant).into()
}

/// A request is answered with `overloaded`, because the lease that it needs did not come in time.
pub(super) fn overloaded<B>(service: &Service, request: &Request<B>, grant: &Grant, now: Moment) -> Answer {
    let mut exchange = Exchange::begin(service, Asked::of(request), now);
    exchange.route = Route::of(exchange.asked.path).template();
    exchange.refuse(&ApiError::overloaded(), grant)
}

/// A request whose handling broke off.
pub(super) fn broken<B>(service: &Service, request: &Request<B>, now: Moment) -> Answer {
    let mut exchange = Exchange::begin(service, Asked::of(request), now);
    exchange.route = Route::of(exchange.asked.path).template();
    exchange.fail(&ApiError::internal())
}

/// RFC 9112, section 3.2: a request without a valid `Host`, or with several, gets 400, so that no two parties on its way
/// take it for requests to different hosts. HTTP/2 names its host elsewhere.
fn check_host(version: Version, asked: &Asked<'_>) -> Result<(), ApiError> {
    let fault = match asked.headers.host {
        _ if version > Version::HTTP_11 => return Ok(()),
        Sent::Once(host) if host::is_valid(host.as_bytes()) => return Ok(()),
        Sent::Nothing if version < Version::HTTP_11 => return Ok(()),
        Sent::Nothing => "is missing",
        Sent::Once(_) => "is not a host name or an address with an optional port",
        Sent::MoreThanOnce => "was sent more than once",
    };
    let message = format!("The `Host` header {fault}. Send it once, as in `Host: odds.example.com:8080`.");
    Err(ApiError::new(Code::InvalidRequest, message))
}

fn check_bounds(uri: &Uri, asked: &Asked<'_>) -> Result<(), ApiError> {
    let authority = uri.authority().map_or(0, |authority| authority.as_str().len());
    if asked.path.len() + asked.query.map_or(0, str::len) + authority > URI_BYTES_MAX {
        let message = "The URL is longer than 8 KiB. Ask for fewer events at a time.";
        return Err(ApiError::new(Code::UriTooLong, message));
    }
    if asked.headers.bytes > HEADER_BYTES_MAX || asked.headers.count > HEADERS_MAX {
        let message = "The headers are more than 64 or longer than 16 KiB. Leave out what is not needed.";
        return Err(ApiError::new(Code::HeadersTooLarge, message));
    }
    Ok(())
}
