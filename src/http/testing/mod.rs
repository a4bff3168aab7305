//! A small service to test against: two worlds, five sports, four bookmakers, a key of each kind, a manual clock.

mod history;
mod rotations;
mod worlds;

use std::sync::Arc;

use http::header::{HOST, HeaderName, HeaderValue};
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::BodyExt;

use crate::board::Boards;
use crate::clock::Clock;
use crate::http::Peer;
use crate::http::exchange::handle::{Handled, HandledRequest, Note, handle_with};
use crate::http::exchange::service::{Service, ServiceSettings};
use crate::http::exchange::waits::{HistoryNeed, Resumed};
use crate::keys::{KeyId, KeyKind, KeyRecord, Keyring, LeaseQueue, LeaseRequests, Limits, Secret, Usage};
use crate::networks::Networks;

use self::history::UnchangedHistory;
use self::rotations::DirectRotations;
use self::worlds::{at, catalogue, live_world, sandbox_world};

/// 2026-11-14T23:39:00Z, a tick of the refresh.
pub(super) const NOW: u32 = 1_794_699_540;

pub(super) struct Fixture {
    pub service: Arc<Service>,
    pub clock: Clock,
    pub sandbox: String,
    pub production: String,
    /// Restricted to golf.
    pub golf_only: String,
    /// A hundred requests a month and no limit by day.
    pub monthly: String,
    /// Two requests a minute, three a day.
    pub tiny: String,
    pub requests: LeaseRequests,
}

/// A client on this machine.
pub(super) fn local() -> Peer {
    Peer::new([127, 0, 0, 1].into(), &Networks::default())
}

/// An answer with its body.
#[derive(Debug)]
pub(super) struct Got {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub bytes: Vec<u8>,
    pub note: Note,
}

impl Got {
    pub(super) fn text(&self) -> &str {
        std::str::from_utf8(&self.bytes).unwrap()
    }

    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    pub(super) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.bytes).unwrap()
    }

    /// Status and error code.
    pub(super) fn error(&self) -> (u16, String) {
        (self.status.as_u16(), self.json()["error"]["code"].as_str().unwrap().to_owned())
    }
}

pub(super) fn request(method: Method, target: &str, headers: &[(&str, &str)]) -> Request<()> {
    let mut request = Request::new(());
    request.headers_mut().insert(HOST, HeaderValue::from_static("test"));
    *request.method_mut() = method;
    *request.uri_mut() = target.parse().unwrap();
    for (name, value) in headers {
        let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
        request.headers_mut().append(name, HeaderValue::from_str(value).unwrap());
    }
    request
}

impl Fixture {
    pub(super) fn new() -> Self {
        Self::with_settings(ServiceSettings::default())
    }

    pub(super) fn with_settings(settings: ServiceSettings) -> Self {
        let clock = Clock::manual(i64::from(NOW) * 1000);
        let catalogue = Arc::new(catalogue());
        let boards = Arc::new(Boards::new(Arc::clone(&catalogue), [sandbox_world(&catalogue), live_world(&catalogue)]));
        let (queue, requests) = LeaseQueue::open();
        let sandbox = key(1, KeyKind::Sandbox, &[], Limits::default_of(KeyKind::Sandbox));
        let production = key(2, KeyKind::Production, &[], Limits::default_of(KeyKind::Production));
        let golf_only = key(3, KeyKind::Production, &["golf"], Limits::default_of(KeyKind::Production));
        let month = Limits { burst_per_minute: 60, per_day: None, per_month: Some(100), streams: 10 };
        let monthly = key(4, KeyKind::Sandbox, &[], month);
        let tiny = key(
            5,
            KeyKind::Sandbox,
            &[],
            Limits { burst_per_minute: 2, per_day: Some(3), per_month: None, streams: 10 },
        );
        let keys = [sandbox, production, golf_only, monthly, tiny];
        let records = keys.iter().map(|(record, _)| (record.clone(), Usage::default()));
        let keyring = Arc::new(Keyring::new(catalogue, records, queue));
        for entry in keyring.list() {
            grant_lease(&keyring, entry.id(), &clock);
        }
        let [sandbox, production, golf_only, monthly, tiny] = keys.map(|(_, secret)| secret.expose().to_owned());
        let history = Arc::new(UnchangedHistory(Arc::clone(&boards)));
        let rotations = Arc::new(DirectRotations { keyring: Arc::clone(&keyring), clock: clock.clone() });
        let service = Service::new(boards, keyring, clock.clone(), settings);
        let service = service.with_history(history).with_rotations(rotations);
        let service = Arc::new(service);
        Fixture { service, clock, sandbox, production, golf_only, monthly, tiny, requests }
    }

    /// Answers a request, granting every lease at once.
    pub(super) fn send(&self, request: &Request<()>) -> Got {
        let (mut finished, mut body, mut paid) = (None, None, None);
        // Nothing has a body here.
        let posted = Ok(bytes::Bytes::new());
        let mut is_read = false;
        for _ in 0..4 {
            let posted = is_read.then_some(&posted);
            let resumed = Resumed { finished: finished.as_ref(), body: body.as_ref(), posted, paid: paid.take() };
            match handle_with(&self.service, request, self.clock.now(), resumed) {
                Handled::Answer(answer) => return got(answer),
                Handled::NeedsHistory(waiting, HistoryNeed(read)) => {
                    (finished, paid) = (Some(self.service.history.read_here(read)), Some(waiting.charge));
                }
                Handled::NeedsWork(waiting, job) => (body, paid) = (Some(job.run()), Some(waiting.charge)),
                Handled::NeedsBody(waiting) => (is_read, paid) = (true, Some(waiting.charge)),
                Handled::Rotates(waiting, ticket) => {
                    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
                    let client = std::net::Ipv4Addr::LOCALHOST.into();
                    return got(runtime.block_on(self.service.rotate_key(request, client, waiting, ticket)));
                }
                Handled::NeedsLease(waiting) => {
                    grant_lease(&self.service.keyring, waiting.grant().key_id(), &self.clock);
                }
                Handled::Opens(waiting, need) => {
                    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
                    let opened = runtime.block_on(self.service.open_stream(request, None, waiting, *need));
                    let Handled::Answer(answer) = opened else { panic!("a stream that waits") };
                    // Its body goes on for ever.
                    let (note, response) = (answer.note.clone(), answer.into_response());
                    let (parts, _) = response.into_parts();
                    return Got { status: parts.status, headers: parts.headers, bytes: Vec::new(), note };
                }
            }
        }
        panic!("a lease was granted and another is needed")
    }

    /// A GET with the sandbox key.
    pub(super) fn get(&self, target: &str) -> Got {
        self.get_as(&self.sandbox, target, &[])
    }

    pub(super) fn get_as(&self, key: &str, target: &str, headers: &[(&str, &str)]) -> Got {
        let mut all = vec![("x-api-key", key)];
        all.extend(headers);
        self.send(&request(Method::GET, target, &all))
    }

    /// A request without a key.
    pub(super) fn anonymous(&self, method: Method, target: &str) -> Got {
        self.send(&request(method, target, &[]))
    }
}

fn got(answer: HandledRequest) -> Got {
    let (note, response) = (answer.note.clone(), answer.into_response());
    let (parts, body) = response.into_parts();
    let mut polled = std::pin::pin!(body.collect());
    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    let std::task::Poll::Ready(Ok(body)) = polled.as_mut().poll(&mut cx) else { panic!("a full body is ready") };
    Got { status: parts.status, headers: parts.headers, bytes: body.to_bytes().to_vec(), note }
}

fn grant_lease(keyring: &Keyring, id: &KeyId, clock: &Clock) {
    let entry = keyring.get(id).unwrap();
    if let Some(lease) = entry.meter().plan_lease(clock.now()) {
        entry.meter().grant(lease);
    }
}

fn key(number: u8, kind: KeyKind, groups: &[&str], limits: Limits) -> (KeyRecord, Secret) {
    let secret = Secret::generate(kind).unwrap();
    let record = KeyRecord {
        id: KeyId::new(&format!("key_00000000000{number}")).unwrap(),
        kind,
        name: "test".into(),
        groups: groups.iter().map(|group| (*group).into()).collect(),
        limits,
        created: at(0),
        expires: None,
        approved_by: (kind == KeyKind::Production).then(|| "ops".into()),
        revoked: None,
        hash: secret.hash(),
        last_four: secret.last_four().into(),
        retired: Box::default(),
        replaced_last_four: Box::default(),
        self_service: false,
        self_rotated: None,
        last_used: None,
    };
    (record, secret)
}
