//! The endpoints that take POST: the rotation of a key by its holder, and the Model Context Protocol.

use std::sync::Arc;

use http::{Method, Request, StatusCode};

use super::charged::Charged;
use super::error::{ApiError, Code};
use super::handle::{Exchange, Handled, HandledRequest};
use super::history::Finished;
use super::reply::Reply;
use super::route::Route;
use super::service::Service;
use super::usage::UsageHeaders;
use super::waits::PaidRequest;
use crate::board::Body;
use crate::clock::Moment;
use crate::http::account;
use crate::http::mcp::{self, Asked, McpReply, Posted};
use crate::keys::{Grant, Keys, Refusal, Standing};

impl Exchange<'_, '_> {
    /// A route for POST takes nothing else, and nothing that a page from elsewhere sends.
    pub(super) fn check_post(&self, route: &Route<'_>) -> Result<(), ApiError> {
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
    pub(super) fn rotation(self, keys: &Keys, grant: Grant<'_>, charge: Charged<'_>) -> Handled {
        let order = account::check(&self.request, grant.record(), self.ticket(keys), self.now.timestamp());
        match order {
            Ok(ticket) => match charge.detach() {
                Some(charge) => Handled::Rotates(PaidRequest { grant: grant.to_waiting(), charge }, ticket),
                None => self.fail(&ApiError::internal()).into(),
            },
            Err(error) => self.answer(Err(error), charge, grant).into(),
        }
    }

    /// Answers a message of the Model Context Protocol. The call of a tool is charged as a request of `/v1`.
    pub(super) fn mcp(
        mut self,
        keys: &Keys,
        grant: Grant<'_>,
        mut charge: Charged<'_>,
        (posted, finished, computed): (Option<&Posted>, Option<&Finished>, Option<&Arc<Body>>),
    ) -> Handled {
        let Some(posted) = posted else {
            let Some(charge) = charge.detach() else { return self.fail(&ApiError::internal()).into() };
            return Handled::NeedsBody(PaidRequest { grant: grant.to_waiting(), charge });
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
}

/// Answers a request that has rotated its key.
pub(crate) fn rotated<B>(
    service: &Service,
    request: &Request<B>,
    now: Moment,
    paid: PaidRequest,
    json: Vec<u8>,
) -> HandledRequest {
    let mut exchange = Exchange::begin(service, request, now);
    exchange.find_route();
    let grant = paid.grant.grant();
    exchange.key = Some(grant.key_id().clone());
    let charge = Charged::new(paid.charge.attach(grant.meter()));
    let usage = UsageHeaders::of(charge.keep(), grant, now.timestamp());
    let reply = Reply::posted(StatusCode::OK, json, &exchange.request_id, usage);
    exchange.finish(reply)
}
