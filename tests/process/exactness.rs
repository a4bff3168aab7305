//! Exact limits: whatever the number of clients, exactly as many requests pass as the limit allows.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use oddsbox::admin::{Command, FieldSetting, IssueKey, KeyAnswer, SetKey};

use super::client::{Connection, get};
use super::command::{Directory, issue, sandbox, show};
use super::seed::{short_or_long, within_a_day};

const CLIENTS: usize = 64;

/// The number of responses by status.
type Statuses = BTreeMap<u16, u64>;

/// Sends `count` requests, shared by all clients.
async fn send(address: SocketAddr, secret: &str, path: &'static str, count: i64) -> Statuses {
    let left = Arc::new(AtomicI64::new(count));
    let client = |_| {
        let (left, secret) = (Arc::clone(&left), secret.to_owned());
        tokio::spawn(async move {
            let mut connection = Connection::open(address).await.expect("a connection");
            let mut statuses = Statuses::new();
            while left.fetch_sub(1, Ordering::Relaxed) > 0 {
                let answer = connection.get(path, &secret).await.expect("an answer");
                *statuses.entry(answer.status).or_default() += 1;
            }
            statuses
        })
    };
    let clients: Vec<_> = (0..CLIENTS).map(client).collect();
    let mut all = Statuses::new();
    for client in clients {
        for (status, count) in client.await.expect("a client") {
            *all.entry(status).or_default() += count;
        }
    }
    all
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn exactly_the_daily_quota_passes() {
    within_a_day(check_exactly_the_daily_quota_passes).await;
}

async fn check_exactly_the_daily_quota_passes() {
    let directory = Directory::new();
    let server = directory.serve_with(&[("ODDSBOX_LOG", "warn")]);
    let access = directory.access().await;
    let (rounds, quota) = short_or_long((1, 2_000), (20, 10_000));
    let began = Instant::now();
    for round in 0..rounds {
        let key = issue(&access, sandbox(quota)).await.expect("a key");
        let count = i64::try_from(quota).expect("a small number") + 2_000;
        let statuses = send(server.address(), &key.secret, "/v1/sports", count).await;
        assert_eq!(statuses, Statuses::from([(200, quota), (429, 2_000)]), "round {round}");
        let shown = show(&access, &key.id).await;
        assert_eq!((shown.used_today, shown.remaining_today), (quota, Some(0)), "round {round}");
        let refused = get(server.address(), "/v1/sports", &key.secret).await;
        assert_eq!((refused.code().as_str(), refused.header("x-requests-remaining")), ("quota_exceeded", Some("0")));
        // Health checks are free.
        assert_eq!(get(server.address(), "/v1/status", &key.secret).await.status, 200);
    }
    println!("{rounds} rounds of {quota} and 2000 more: {:?}", began.elapsed());
    server.stop();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn exactly_the_burst_limit_passes() {
    within_a_day(check_exactly_the_burst_limit_passes).await;
}

async fn check_exactly_the_burst_limit_passes() {
    let directory = Directory::new();
    let server = directory.serve_with(&[("ODDSBOX_LOG", "warn")]);
    let access = directory.access().await;
    for round in 0..short_or_long(3, 20) {
        let new = IssueKey { burst_per_minute: Some(500), ..sandbox(1_000_000) };
        let key = issue(&access, new).await.expect("a key");
        let began = Instant::now();
        let statuses = send(server.address(), &key.secret, "/v1/sports", 700).await;
        assert!(began.elapsed() < Duration::from_secs(60), "too slow for one window: {:?}", began.elapsed());
        assert_eq!(statuses, Statuses::from([(200, 500), (429, 200)]), "round {round}");
        assert_eq!(show(&access, &key.id).await.used_today, 500, "a refused request leaves nothing charged");
        let refused = get(server.address(), "/v1/status", &key.secret).await;
        assert_eq!(refused.code(), "rate_limited", "status counts for the burst");
        let retry: u64 = refused.header("retry-after").expect("a time").parse().expect("seconds");
        assert!((1..=60).contains(&retry), "{retry}");
    }
    server.stop();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn smaller_of_day_and_month_applies() {
    within_a_day(check_smaller_of_day_and_month_applies).await;
}

async fn check_smaller_of_day_and_month_applies() {
    let directory = Directory::new();
    let server = directory.serve_with(&[("ODDSBOX_LOG", "warn")]);
    let access = directory.access().await;
    let cases = [(FieldSetting::To(1_000), FieldSetting::To(350)), (FieldSetting::To(350), FieldSetting::To(1_000))];
    for (day, month) in cases.into_iter().chain([(FieldSetting::Remove, FieldSetting::To(350))]) {
        let new = IssueKey { requests_per_day: day, requests_per_month: month, ..sandbox(1) };
        let key = issue(&access, new).await.expect("a key");
        let statuses = send(server.address(), &key.secret, "/v1/sports", 450).await;
        assert_eq!(statuses, Statuses::from([(200, 350), (429, 100)]), "{day:?} {month:?}");
        let shown = show(&access, &key.id).await;
        assert_eq!((shown.used_today, shown.used_this_month), (350, 350), "{day:?} {month:?}");
    }
    server.stop();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn raised_quota_grants_exactly_the_difference() {
    within_a_day(check_raised_quota_grants_exactly_the_difference).await;
}

async fn check_raised_quota_grants_exactly_the_difference() {
    let directory = Directory::new();
    let server = directory.serve_with(&[("ODDSBOX_LOG", "warn")]);
    let access = directory.access().await;
    let key = issue(&access, sandbox(600)).await.expect("a key");
    let clients = send(server.address(), &key.secret, "/v1/sports", 1_500);
    let set = SetKey { id: key.id.clone(), requests_per_day: FieldSetting::To(900), ..SetKey::default() };
    let (first, set) = tokio::join!(clients, access.ask::<KeyAnswer>(Command::KeysSet(set)));
    assert_eq!(set.expect("a change").limits.requests_per_day, Some(900));
    let rest = send(server.address(), &key.secret, "/v1/sports", 1_000).await;
    let passed = |statuses: &Statuses| statuses.get(&200).copied().unwrap_or_default();
    assert_eq!(passed(&first) + passed(&rest), 900, "{first:?} {rest:?}");
    for statuses in [&first, &rest] {
        assert!(statuses.keys().all(|status| matches!(status, 200 | 429)), "{statuses:?}");
    }
    server.stop();
}
