//! One request on its way to an answer: what is known of it so far, and each step that needs it.

use super::access;
use super::asked::Asked;
use super::error::{ApiError, Code};
use super::handle::{Answer, Note};
use super::query;
use super::reply::{Content, Reply};
use super::request_id::RequestId;
use super::route::{Route, UNKNOWN_TEMPLATE, V4Route, Version};
use super::sent::Sent;
use super::service::Service;
use super::usage::Usage;
use super::view::{SportView, WorldView};
use super::{books, event, events, odds, scores, sports, status, v4};
use crate::clock::Moment;
use crate::keys::{AuthError, Charge, Cost, Grant, KeyId, Refusal, Standing};
use crate::model::SportId;

/// How long a client waits before it looks whether a maintenance without an announced end is over.
const MAINTENANCE_RETRY_S: u32 = 60;

#[derive(Debug)]
pub(super) struct Exchange<'s, 'r> {
    pub asked: Asked<'r>,
    pub now: Moment,
    /// The route's template, once it is known.
    pub route: &'static str,
    version: Version,
    service: &'s Service,
    request_id: RequestId,
    key: Option<KeyId>,
    refused: Option<&'static str>,
    key_in_query: bool,
}

impl<'s, 'r> Exchange<'s, 'r> {
    pub(super) fn begin(service: &'s Service, asked: Asked<'r>, now: Moment) -> Self {
        Exchange {
            now,
            route: UNKNOWN_TEMPLATE,
            version: Version::of(asked.path).unwrap_or_default(),
            request_id: service.request_ids.id_of(asked.headers.request_id),
            key: None,
            refused: None,
            key_in_query: false,
            service,
            asked,
        }
    }

    pub(super) fn authenticate(&mut self) -> Result<Grant, AuthError> {
        let grant = self.grant()?;
        self.key = Some(grant.key_id().clone());
        Ok(grant)
    }

    /// The header wins over the query, even when its key is no good: two keys are a mistake worth hearing of.
    fn grant(&mut self) -> Result<Grant, AuthError> {
        let keyring = &self.service.keyring;
        match self.asked.headers.api_key {
            Sent::Once(value) => {
                let text = value.to_str().map_err(|_| AuthError::Malformed)?;
                keyring.authenticate(Some(text), self.now)
            }
            Sent::MoreThanOnce => Err(AuthError::Malformed),
            Sent::Nothing if self.service.allows_query_key() => {
                let text = query::api_key(self.asked.query, self.version);
                self.key_in_query = text.is_some();
                keyring.authenticate(text.as_deref(), self.now)
            }
            Sent::Nothing => Err(AuthError::Missing),
        }
    }

    /// What the route answers with. A key that was taken from the query must stand there once.
    pub(super) fn content(&self, route: &Route<'_>, grant: &Grant) -> Result<Content, ApiError> {
        let content = self.endpoint_content(route, grant)?;
        if self.key_in_query && self.version == Version::V1 {
            query::check_key(self.asked.query)?;
        }
        Ok(content)
    }

    /// Is there such a route, may the key read it, is the service open, and then the endpoint.
    fn endpoint_content(&self, route: &Route<'_>, grant: &Grant) -> Result<Content, ApiError> {
        let (boards, query, now) = (&*self.service.boards, self.asked.query, self.now.timestamp());
        self.check_route(route)?;
        let view = |sport: &str| self.view(grant, boards.catalogue().find(sport));
        match route {
            Route::Odds { sport } => odds::get(&view(sport)?, &self.asked),
            Route::Scores { sport } => scores::get(&view(sport)?, query),
            Route::Events { sport } => events::get(&view(sport)?, query),
            Route::Event { sport, id } => event::get(&view(sport)?, id, query),
            Route::Sports => {
                self.check_open()?;
                sports::get(boards, grant.world(), now, query)
            }
            Route::Books => {
                self.check_open()?;
                books::get(boards, &self.service.kept_books, grant.world(), query)
            }
            Route::Status => status::get(boards, grant, now, query),
            Route::V4(route) => self.v4_content(route, grant),
            _ => Err(not_found()),
        }
    }

    fn v4_content(&self, route: &V4Route<'_>, grant: &Grant) -> Result<Content, ApiError> {
        let (boards, query) = (&*self.service.boards, self.asked.query);
        let view = |key: &str| self.view(grant, boards.catalogue().find_v4(key).map(|(sport, _)| sport));
        match route {
            V4Route::Sports => {
                self.check_open()?;
                v4::sports::get(boards, grant.world(), query)
            }
            V4Route::Upcoming => {
                self.check_open()?;
                v4::upcoming::get(&WorldView::new(boards, grant), query)
            }
            V4Route::Odds { sport } => v4::odds::get(&view(sport)?, sport, query),
            V4Route::Scores { sport } => v4::scores::get(&view(sport)?, sport, self.now.timestamp(), query),
            V4Route::Events { sport } => v4::events::get(&view(sport)?, sport, query),
            V4Route::Participants { sport } => v4::participants::get(&view(sport)?, sport),
            V4Route::EventOdds { sport, id } => v4::event_odds::get(&view(sport)?, sport, id, query),
            V4Route::EventMarkets { sport, id } => v4::event_markets::get(&view(sport)?, sport, id, query),
        }
    }

    fn check_route(&self, route: &Route<'_>) -> Result<(), ApiError> {
        match route {
            Route::Unknown { .. } => return Err(not_found()),
            Route::Malformed { .. } => {
                let message = "The path is not UTF-8 in percent-encoding: write a plain % as %25.";
                return Err(ApiError::new(Code::InvalidRequest, message));
            }
            _ => {}
        }
        if !self.asked.is_read() {
            return Err(ApiError::new(Code::MethodNotAllowed, "This is read-only: use GET or HEAD."));
        }
        Ok(())
    }

    /// What the key may read of a sport, if there is one by the name that was asked for.
    fn view(&self, grant: &Grant, sport: Option<SportId>) -> Result<SportView<'s>, ApiError> {
        let boards = &*self.service.boards;
        let Some(sport) = sport else {
            let message = match self.version {
                Version::V1 => "There is no such sport: /v1/sports lists those there are.",
                Version::V4 => "There is no such sport: /v4/sports?all=true lists those there are.",
            };
            return Err(ApiError::new(Code::SportNotFound, message));
        };
        let Ok(access) = grant.for_sport(sport) else {
            return Err(ApiError::new(Code::Forbidden, "This key is restricted to other groups of sports."));
        };
        self.check_open()?;
        Ok(SportView::new(boards, access))
    }

    fn check_open(&self) -> Result<(), ApiError> {
        let now = self.now.timestamp();
        let Some(maintenance) = self.service.boards.condition().maintenance(now) else { return Ok(()) };
        let retry_after_s = maintenance.until.map_or(MAINTENANCE_RETRY_S, |until| until.seconds_since(now));
        let message = format!("The service is closed for maintenance. Try again in {retry_after_s} seconds.");
        Err(ApiError::new(Code::Maintenance, message).retry_after(retry_after_s))
    }

    /// Answers a request that was charged; what fails on our side is given back.
    pub(super) fn answer(mut self, content: Result<Content, ApiError>, charge: Charged<'_>, grant: &Grant) -> Answer {
        let reply = match content {
            Ok(content) => {
                let usage = Usage::of(charge.standing, grant, self.now.timestamp());
                let mut reply = Reply::content(&self.asked, content, &self.request_id, self.freshness(), usage);
                self.insert_cost(&mut reply, charge.cost == Cost::Full);
                charge.keep();
                reply
            }
            Err(error) => {
                self.refused = (error.code == Code::Forbidden).then_some(access::GROUP);
                let mut reply = Reply::error(&error, self.version, &self.request_id);
                let (is_ours, cost) = (reply.status.is_server_error(), charge.cost);
                let standing = if is_ours { charge.refund() } else { charge.keep() };
                reply.insert_usage(Usage::of(standing, grant, self.now.timestamp()));
                self.insert_cost(&mut reply, cost == Cost::Full && !is_ours);
                reply
            }
        };
        self.finish(reply)
    }

    /// Answers a request that holds a valid key and was not let pass.
    pub(super) fn refuse(mut self, error: &ApiError, grant: &Grant) -> Answer {
        self.key = Some(grant.key_id().clone());
        let mut reply = Reply::error(error, self.version, &self.request_id);
        reply.insert_usage(Usage::of(grant.meter().standing(self.now), grant, self.now.timestamp()));
        self.insert_cost(&mut reply, false);
        self.finish(reply)
    }

    /// Answers a request whose key has nothing left.
    pub(super) fn refuse_charge(mut self, refusal: Refusal, grant: &Grant) -> Answer {
        self.refused = Some(refusal.reason());
        self.refuse(&refusal.into(), grant)
    }

    fn insert_cost(&self, reply: &mut Reply, was_charged: bool) {
        if self.version == Version::V4 {
            reply.insert_cost(was_charged);
        }
    }

    /// Answers a request whose key opens nothing.
    pub(super) fn refuse_key(mut self, error: AuthError) -> Answer {
        self.refused = Some(error.reason());
        self.key = error.key().cloned();
        // Only a key that opened something is worth a word on how it came.
        self.key_in_query = false;
        let error = ApiError::of_key(&error, self.version);
        self.fail(&error)
    }

    /// Answers a request of which no key is known.
    pub(super) fn fail(self, error: &ApiError) -> Answer {
        let reply = Reply::error(error, self.version, &self.request_id);
        self.finish(reply)
    }

    pub(super) fn open_page(self, route: &Route<'_>) -> Answer {
        if let Err(error) = self.check_route(route) {
            return self.fail(&error);
        }
        let Some(page) = self.service.pages.get(route) else { return self.fail(&not_found()) };
        let mut reply = Reply::page(&self.asked, &page.content, &self.request_id, self.freshness());
        for (name, value) in &page.headers {
            reply.insert(name.clone(), value.clone());
        }
        self.finish(reply)
    }

    /// What `Cache-Control` depends on: now, and the time between two publications.
    fn freshness(&self) -> (Moment, i64) {
        (self.now, self.service.settings.refresh_ms)
    }

    fn finish(self, mut reply: Reply) -> Answer {
        // On `/v4` the query is where keys come from.
        if self.key_in_query && self.version == Version::V1 {
            reply.insert_deprecation();
        }
        if self.asked.is_head {
            reply.without_body();
        }
        let (status, bytes) = (reply.status, reply.len());
        let Exchange { route, key, refused, request_id, .. } = self;
        Answer { reply, note: Note { route, status, bytes, key, refused, request_id } }
    }
}

fn not_found() -> ApiError {
    ApiError::new(Code::NotFound, "There is nothing here: /docs lists what there is.")
}

/// A charge that is given back if the handling breaks off.
#[derive(Debug)]
pub(super) struct Charged<'m> {
    charge: Option<Charge<'m>>,
    standing: Standing,
    cost: Cost,
}

impl<'m> Charged<'m> {
    pub(super) fn new(charge: Charge<'m>, cost: Cost) -> Self {
        Charged { standing: *charge.standing(), charge: Some(charge), cost }
    }

    /// What was charged stays so.
    fn keep(mut self) -> Standing {
        self.charge = None;
        self.standing
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
