//! The rotation of a key by its holder.
//!
//! Only the key's present secret rotates it, once in 24 hours, and the old one is accepted for as long. A client that does not get
//! the answer has the old secret for a day to ask the operator, who can undo the rotation.

use std::fmt;
use std::net::IpAddr;
use std::pin::Pin;

use http::Request;

use crate::board::render::json;
use crate::http::exchange::error::{ApiError, Code};
use crate::http::exchange::handle::{self, HandledRequest};
use crate::http::exchange::post;
use crate::http::exchange::query::Params;
use crate::http::exchange::request_headers::RequestParts;
use crate::http::exchange::route::Version;
use crate::http::exchange::service::Service;
use crate::http::exchange::waits::PaidRequest;
use crate::keys::issue::{IssueError, check_self_rotation};
use crate::keys::{AuthError, KeyId, KeyRecord, KeyTicket, Secret};
use crate::model::Timestamp;

/// A request to rotate has nothing to say in its body, which is not read.
const BODY_BYTES_MAX: u64 = 4 << 10;

/// Whatever rotates keys for their holders.
pub trait KeyRotations: fmt::Debug + Send + Sync {
    /// Rotates a key. What it says is done is durable and in force, and done even if nobody waits for it.
    fn rotate(&self, order: OwnRotation) -> RotationFuture<'_>;
}

pub type RotationFuture<'a> = Pin<Box<dyn Future<Output = Result<RotatedKey, RotationFailure>> + Send + 'a>>;

/// The rotation of a key by its holder.
#[derive(Debug)]
pub struct OwnRotation {
    pub key: KeyId,
    /// The secret that the holder presented.
    pub presented: KeyTicket,
    /// For the audit log.
    pub who: String,
}

/// A key that was rotated.
#[derive(Debug)]
pub struct RotatedKey {
    pub secret: Secret,
    pub old_secret_until: Timestamp,
}

/// Why a key was not rotated.
#[derive(Debug)]
pub enum RotationFailure {
    Refused(IssueError),
    /// Nothing can be written now.
    Unavailable,
}

impl From<RotationFailure> for ApiError {
    fn from(failure: RotationFailure) -> Self {
        let refused = |message: &'static str| ApiError::new(Code::RotationRefused, message);
        match failure {
            RotationFailure::Refused(IssueError::NotSelfService) => {
                refused("This key may not rotate itself. Ask the operator of this service for a new secret.")
            }
            RotationFailure::Refused(IssueError::OldSecret) => {
                refused("This secret has been replaced and cannot rotate its key. Send the new secret of the key.")
            }
            RotationFailure::Refused(IssueError::RotatedLately { retry_after_s }) => {
                let message = format!("A key rotates itself once in 24 hours. Try again in {retry_after_s} seconds.");
                ApiError::new(Code::RateLimited, message).retry_after(retry_after_s)
            }
            RotationFailure::Refused(IssueError::Revoked(id)) => ApiError::of_key(&AuthError::Revoked(id), Version::V1),
            RotationFailure::Refused(IssueError::Expired(id)) => ApiError::of_key(&AuthError::Expired(id), Version::V1),
            RotationFailure::Refused(_) => ApiError::internal(),
            RotationFailure::Unavailable => ApiError::overloaded(),
        }
    }
}

/// A service that nobody has given what rotates keys.
#[derive(Debug)]
pub(crate) struct NoRotations;

impl KeyRotations for NoRotations {
    fn rotate(&self, _: OwnRotation) -> RotationFuture<'_> {
        Box::pin(async { Err(RotationFailure::Unavailable) })
    }
}

/// Whether a request may rotate its key. The writer asks again when it does.
pub(crate) fn check(
    request: &RequestParts<'_>,
    key: &KeyRecord,
    presented: Option<KeyTicket>,
    now: Timestamp,
) -> Result<KeyTicket, ApiError> {
    Params::read(request.query, &[])?;
    if request.headers.content_length().is_some_and(|bytes| bytes > BODY_BYTES_MAX) {
        return Err(ApiError::new(Code::InvalidRequest, "A rotation takes no body. Send none."));
    }
    let presented = presented.ok_or_else(ApiError::internal)?;
    check_self_rotation(key, presented, now).map_err(RotationFailure::Refused)?;
    Ok(presented)
}

impl Service {
    /// Rotates the key of a request that comes from an address.
    pub(crate) async fn rotate_key<B>(
        &self,
        request: &Request<B>,
        client: IpAddr,
        paid: PaidRequest,
        ticket: KeyTicket,
    ) -> HandledRequest {
        let key = paid.grant.grant().key_id().clone();
        let who = format!("{key} ({client})");
        let rotated = self.rotations.rotate(OwnRotation { key: key.clone(), presented: ticket, who }).await;
        match rotated {
            Ok(rotated) => {
                let json = written(&key, &rotated);
                post::rotated(self, request, self.clock.now(), paid, json)
            }
            Err(failure) => {
                let is_ours = matches!(failure, RotationFailure::Unavailable);
                let grant = if is_ours { paid.refund() } else { paid.grant };
                handle::refused(self, request, grant.grant(), self.clock.now(), &failure.into())
            }
        }
    }
}

/// `{"key_id":"…","key":"…","old_secret_until":"…"}`
fn written(key: &KeyId, rotated: &RotatedKey) -> Vec<u8> {
    // At full size: growing would leave a copy of the secret in memory that was freed.
    let mut out = Vec::with_capacity(192);
    out.extend_from_slice(b"{\"key_id\":");
    json::string(key.as_str(), &mut out);
    out.extend_from_slice(b",\"key\":");
    json::string(rotated.secret.expose(), &mut out);
    out.extend_from_slice(b",\"old_secret_until\":\"");
    rotated.old_secret_until.write(&mut out);
    out.extend_from_slice(b"\"}");
    out
}
