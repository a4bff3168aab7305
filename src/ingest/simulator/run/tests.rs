//! The failure that this prevents: two sandboxes of one seed differ, because their worlds depend on when each was started.

use std::sync::Arc;

use http::{Method, Request};
use http_body_util::BodyExt;

use super::*;
use crate::clock::Clock;
use crate::config::catalogue;
use crate::http::{Peer, Service, ServiceSettings};
use crate::keys::issue::NewKey;
use crate::keys::{KeyKind, Limits, leases};
use crate::networks::Networks;
use crate::store::{Store, StoreOptions};
use crate::testing::short_or_long;
use crate::writer::{self, Writer, WriterOptions};

const SEED: u64 = 7;
/// 2026-01-11T17:55:00Z: a Sunday evening with games, matches and the end of a round of golf.
const EVENING: u32 = 1_768_154_100;
const HOUR: u32 = 3_600;

/// Every list of `/v1` in the sandbox at `EVENING + 120`, after a start at `start` and steps of the given seconds. A long
/// run is filled again half way, as after a restart.
async fn lists_after(start: u32, step_s: u32) -> Vec<(String, String)> {
    let dir = tempfile::tempdir().unwrap();
    let catalogue = Arc::new(catalogue::builtin());
    let clock = Clock::manual(i64::from(start) * 1000);
    let options = StoreOptions { cache_bytes: 1 << 20, wait_for_lock: Duration::ZERO, ..StoreOptions::default() };
    let store = Store::open(&dir.path().join("oddsbox.redb"), Arc::clone(&catalogue), options).unwrap();
    let opened = Writer::open(store, Arc::clone(&catalogue), clock.clone(), WriterOptions::default()).unwrap();
    let (keyring, boards) = (Arc::clone(opened.writer.keyring()), Arc::clone(opened.writer.boards()));
    let (feeders, requests) = (Arc::clone(opened.writer.feeders()), opened.lease_requests);
    let (writer, stopped) = writer::spawn(opened.writer).unwrap();
    let simulator = Simulator::new(SEED, &catalogue);
    let context = IngestContext {
        writer: writer.clone(),
        boards: Arc::clone(&boards),
        ledger: Arc::default(),
        feeders,
        clock: clock.clone(),
        data: dir.path().to_owned(),
    };
    let mut simulation = Simulation::new(World::Sandbox, simulator, context);
    simulation.fill().await.unwrap();
    let mut now = start;
    while now < EVENING + 120 {
        let step = step_s.min(EVENING + 120 - now);
        clock.advance(Duration::from_secs(step.into()));
        now += step;
        simulation.step(Timestamp::from_unix(now)).await.unwrap();
        if step_s > 1 && (now - step..now).contains(&(start + (EVENING + 120 - start) / 2)) {
            simulation.fill().await.unwrap();
        }
    }
    writer.publish_now(World::Sandbox).await.unwrap();
    let limits = Limits { burst_per_minute: 10_000, ..Limits::default_of(KeyKind::Sandbox) };
    let new = NewKey {
        kind: KeyKind::Sandbox,
        name: "test".into(),
        groups: Vec::new(),
        limits,
        expires: None,
        approved_by: None,
        self_service: false,
    };
    let key = writer.issue_key(new, "test").await.unwrap().secret.expose().to_owned();
    let service = Service::new(boards, Arc::clone(&keyring), clock.clone(), ServiceSettings::default());
    let serve_leases = leases::serve(requests, &keyring, &clock, &writer);
    let lists = tokio::select! {
        lists = lists(&service, &catalogue, &key) => lists,
        () = serve_leases => panic!("the lease queue closed"),
    };
    drop((service, simulation, writer));
    tokio::task::spawn_blocking(|| stopped.join()).await.unwrap().unwrap();
    lists
}

async fn lists(service: &Service, catalogue: &crate::model::Catalogue, key: &str) -> Vec<(String, String)> {
    let peer = Peer::new([127, 0, 0, 1].into(), &Networks::default());
    let mut all = Vec::new();
    let mut paths = vec!["/v1/sports".to_owned(), "/v1/books".to_owned(), "/v1/status".to_owned()];
    for (_, sport) in catalogue.sports() {
        let list = |list: &str| format!("/v1/sports/{}/{list}", sport.key);
        paths.extend([list("odds?regions=us,uk,eu,au&limit=500"), list("scores?limit=500"), list("events?limit=500")]);
    }
    while let Some(path) = paths.pop() {
        let mut request = Request::new(());
        *request.method_mut() = Method::GET;
        *request.uri_mut() = path.parse().unwrap();
        request.headers_mut().insert("host", "test".parse().unwrap());
        request.headers_mut().insert("x-api-key", key.parse().unwrap());
        let response = service.respond(&request, &peer).await;
        assert_eq!(response.status(), 200, "{path}");
        let next = response.headers().get("link").map(|link| link.to_str().unwrap().to_owned());
        paths.extend(next.map(|link| link[1..link.find('>').unwrap()].to_owned()));
        let body = response.into_body().collect().await.unwrap().to_bytes();
        let text = String::from_utf8(body.to_vec()).unwrap();
        // The status ends with the beginning of history, which is the start.
        let text = text.split(",\"history_since\"").next().unwrap_or_default().to_owned();
        all.push((path, text));
    }
    all
}

/// Compares object by object, so that a difference is shown and not two pages of text.
fn assert_same(one: &[(String, String)], other: &[(String, String)], what: &str) {
    assert_eq!(one.len(), other.len(), "{what}: pages");
    for ((path, one), (_, other)) in one.iter().zip(other) {
        let parts = |text: &str| text.split("},{").map(str::to_owned).collect::<Vec<_>>();
        let (one, other) = (parts(one), parts(other));
        let different = one.iter().zip(&other).filter(|(one, other)| one != other).count();
        let first = one.iter().zip(&other).find(|(one, other)| one != other);
        assert!(first.is_none() && one.len() == other.len(), "{what}: {path}: {different} of {}: {first:?}", one.len());
    }
}

#[tokio::test]
async fn lists_depend_on_the_seed_and_the_time_and_not_on_the_start() {
    let fresh = lists_after(EVENING + 120, 1).await;
    assert!(fresh.iter().any(|(path, body)| path.contains("after=") && body.len() > 10_000), "more than one page");
    let short = &[(10, 1), (50, 10), (3 * HOUR, 1_800), (30 * HOUR, 6 * HOUR)][..];
    let long = &[(40, 1), (80, 1), (50, 7), (3 * HOUR, 60), (30 * HOUR, 900), (100 * HOUR, 4 * HOUR)];
    for &(ago, step_s) in short_or_long(short, long) {
        let earlier = lists_after(EVENING + 120 - ago, step_s).await;
        assert_same(&fresh, &earlier, &format!("started {ago} s earlier, in steps of {step_s} s"));
    }
}
