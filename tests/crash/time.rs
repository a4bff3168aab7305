//! The failure that this prevents: the clock is set, or a day ends under load, and keys get their quota twice or never
//! again, prices stop changing, or a silent source stays fresh.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use oddsbox::keys::{BURST_MAX, KeyKind};
use oddsbox::model::{Timestamp, World};
use tokio::task::JoinHandle;

use crate::api::fixture::{EVENING, event, moneyline_at};
use crate::harness::{START_MS, Service};
use crate::process::client::Connection;
use crate::process::command::until;

const SECOND_MS: i64 = 1_000;
const DAY_MS: i64 = 86_400_000;
const YEAR_MS: i64 = 365 * DAY_MS;

fn now(service: &Service) -> Timestamp {
    service.clock.now().timestamp()
}

/// Asserts that the sandbox is running: recent prices, none in the future, every sport active.
async fn goes_on(service: &Service) -> bool {
    service.advance(1).await;
    let key = service.issue(KeyKind::Sandbox, |_| {}).await;
    let odds = service.get_as(key.secret.expose(), "/v1/sports/tennis/odds?limit=500").await.json();
    let (latest, earliest) = (now(service), Timestamp::from_unix(now(service).unix() - 600));
    let updates: Vec<String> = odds
        .as_array()
        .expect("a list")
        .iter()
        .map(|record| record["last_update"].as_str().expect("a time").to_owned())
        .collect();
    let status = service.get_as(key.secret.expose(), "/v1/status").await.json();
    let is_fresh = updates.iter().any(|update| *update >= earliest.to_string());
    let is_future = updates.iter().any(|update| *update > latest.to_string());
    is_fresh && !is_future && status["sports_active"] == 9
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn simulated_world_continues_whatever_the_clock_is_set_to() {
    let service = Service::start_with_sandbox().await;
    for by_ms in [SECOND_MS, -SECOND_MS, DAY_MS, -DAY_MS, YEAR_MS, -YEAR_MS, -YEAR_MS] {
        service.clock.set_unix_ms(service.clock.now().unix_ms + by_ms);
        until(&format!("it continues after {by_ms} ms"), async || goes_on(&service).await).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn simulated_world_continues_after_a_restart_with_an_earlier_clock() {
    let mut service = Service::start_with_sandbox().await;
    service.clock.set_unix_ms(START_MS + YEAR_MS);
    until("it continues a year later", async || goes_on(&service).await).await;
    // The new clock starts a year earlier.
    service = service.restart().await;
    until("it continues a year earlier", async || goes_on(&service).await).await;
}

fn read_at(at: Timestamp) -> String {
    format!(r#"{{"type":"read","sport":"mma","bookmaker":"betmgm","at":"{at}","latency_ms":5}}"#) + "\n"
}

async fn status(service: &Service) -> String {
    service.get("/v1/status").await.json()["status"].as_str().expect("a status").to_owned()
}

#[tokio::test]
async fn source_freshness_recovers_after_a_wrong_clock() {
    for by_ms in [SECOND_MS, DAY_MS, YEAR_MS] {
        let mut service = Service::start().await;
        service
            .ingest(
                &(event("mma", "m1", EVENING)
                    + &moneyline_at("mma", "m1", "betmgm", &now(&service).to_string(), -110, -110)),
            )
            .await;
        assert_eq!(status(&service).await, "ok");
        // The clock is ahead, and the source is read in that time.
        service.clock.set_unix_ms(START_MS + by_ms);
        service.ingest(&read_at(now(&service))).await;
        assert_eq!(status(&service).await, "ok");
        for is_restarted in [false, true] {
            if is_restarted {
                service = service.restart().await;
            } else {
                service.clock.set_unix_ms(START_MS);
                service.advance(1).await;
            }
            assert_eq!(status(&service).await, "ok", "{by_ms} ms");
            // Without further reads it becomes stale in its time, not in a year.
            service.advance(125).await;
            assert_eq!(status(&service).await, "degraded", "{by_ms} ms, restarted: {is_restarted}");
            let report = service.ingest_report(World::Live, &read_at(now(&service))).await;
            assert_eq!(report.rejected(), 0, "{by_ms} ms: {report:?}");
            assert_eq!(status(&service).await, "ok", "{by_ms} ms, restarted: {is_restarted}");
        }
    }
}

/// Clients that use one key as fast as they can until they are stopped.
struct Crowd {
    passed: Arc<AtomicU64>,
    refused: Arc<AtomicU64>,
    is_over: Arc<AtomicBool>,
    clients: Vec<JoinHandle<()>>,
}

impl Crowd {
    fn come(service: &Service, secret: &str) -> Crowd {
        let (passed, refused, is_over) = (Arc::default(), Arc::default(), Arc::default());
        let mut crowd = Crowd { passed, refused, is_over, clients: Vec::new() };
        for _ in 0..4 {
            let (passed, refused) = (Arc::clone(&crowd.passed), Arc::clone(&crowd.refused));
            let (is_over, secret, address) = (Arc::clone(&crowd.is_over), secret.to_owned(), service.address);
            crowd.clients.push(tokio::spawn(async move {
                let mut connection = Connection::open(address).await.expect("a connection");
                while !is_over.load(Ordering::Relaxed) {
                    match connection.get("/v1/sports", &secret).await.expect("an answer").status {
                        200 => passed.fetch_add(1, Ordering::Relaxed),
                        429 => refused.fetch_add(1, Ordering::Relaxed),
                        status => panic!("{status}"),
                    };
                }
            }));
        }
        crowd
    }

    fn has_been_answered(&self) -> bool {
        self.passed.load(Ordering::Relaxed) + self.refused.load(Ordering::Relaxed) > 0
    }

    /// Waits until so many requests passed in all, and for many refusals after that.
    async fn settle_at(&self, passed: u64, what: &str) {
        until(what, async || self.passed.load(Ordering::Relaxed) >= passed).await;
        let enough = self.refused.load(Ordering::Relaxed) + 40;
        until("refusals", async || self.refused.load(Ordering::Relaxed) >= enough).await;
        assert_eq!(self.passed.load(Ordering::Relaxed), passed, "{what}");
    }

    /// How many requests passed.
    async fn go(self) -> u64 {
        self.is_over.store(true, Ordering::Relaxed);
        for client in self.clients {
            client.await.expect("a client");
        }
        self.passed.load(Ordering::Relaxed)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn midnight_under_load_grants_one_day_and_setting_the_clock_grants_nothing() {
    let service = Service::start().await;
    let key = service
        .issue(KeyKind::Production, |new| {
            (new.limits.burst_per_minute, new.limits.per_day) = (BURST_MAX, Some(250));
        })
        .await;
    let crowd = Crowd::come(&service, key.secret.expose());
    crowd.settle_at(250, "the first day").await;
    // Saturday ends 21 minutes after the start.
    service.pass(21 * 60 - 1);
    crowd.settle_at(250, "the last second").await;
    service.pass(1);
    crowd.settle_at(500, "the second day").await;
    for back_ms in [SECOND_MS, 60 * SECOND_MS, DAY_MS] {
        let before = service.clock.now().unix_ms;
        service.clock.set_unix_ms(before - back_ms);
        crowd.settle_at(500, "a clock that is set back").await;
        service.clock.set_unix_ms(before);
        crowd.settle_at(500, "a clock that is set right again").await;
    }
    service.clock.advance(Duration::from_millis(DAY_MS.unsigned_abs()));
    crowd.settle_at(750, "the third day").await;
    crowd.go().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn month_end_under_load_grants_one_month() {
    let service = Service::start().await;
    let key = service
        .issue(KeyKind::Production, |new| {
            (new.limits.burst_per_minute, new.limits.per_day, new.limits.per_month) = (BURST_MAX, None, Some(300));
        })
        .await;
    let crowd = Crowd::come(&service, key.secret.expose());
    crowd.settle_at(300, "November").await;
    // Fifteen more days of November, and the rest of the fourteenth.
    service.pass(21 * 60 + 15 * 86_400);
    service.pass(86_400 - 1);
    crowd.settle_at(300, "the last second of November").await;
    service.pass(1);
    crowd.settle_at(600, "December").await;
    service.clock.set_unix_ms(service.clock.now().unix_ms - 2 * SECOND_MS);
    crowd.settle_at(600, "back in November").await;
    crowd.go().await;
}

/// The failure that this prevents: the clock is set three days ahead, a day at a time, and every key has used the
/// quotas of three days within seconds.
#[tokio::test]
async fn clock_set_ahead_refunds_no_quota_until_a_restart() {
    let mut service = Service::start().await;
    let key = service.issue(KeyKind::Production, |new| new.limits.per_day = Some(2)).await;
    let secret = key.secret.expose();
    let passed = async |service: &Service| {
        let mut passed = 0;
        for _ in 0..4 {
            passed += u32::from(service.get_as(secret, "/v1/books").await.status == 200);
        }
        passed
    };
    assert_eq!(passed(&service).await, 2);
    for days in 1..=3 {
        service.clock.set_unix_ms(START_MS + days * DAY_MS);
        assert_eq!(passed(&service).await, 0, "{days} days ahead");
    }
    let retry_after = service.get_as(secret, "/v1/books").await.header("retry-after").map(str::to_owned);
    assert_eq!(retry_after.as_deref(), Some("1260"), "at the midnight that really comes next");
    service.pass(21 * 60);
    assert_eq!(passed(&service).await, 2, "a day has really ended");
    service = service.restart_now().await;
    assert_eq!(passed(&service).await, 2, "the clock of a start is believed");
}

/// A key with a daily and a monthly quota, used as fast as possible while the clock is set and the service restarted.
struct Watched {
    service: Service,
    secret: String,
    /// Requests that passed, over all restarts.
    passed: u64,
    /// The days and the months that the clock has shown.
    days: BTreeSet<i64>,
    months: BTreeSet<String>,
}

impl Watched {
    const PER_DAY: u64 = 60;
    const PER_MONTH: u64 = 200;

    async fn begin() -> Watched {
        let service = Service::start().await;
        let key = service
            .issue(KeyKind::Production, |new| {
                let limits = (BURST_MAX, Some(Watched::PER_DAY), Some(Watched::PER_MONTH));
                (new.limits.burst_per_minute, new.limits.per_day, new.limits.per_month) = limits;
            })
            .await;
        let secret = key.secret.expose().to_owned();
        Watched { service, secret, passed: 0, days: BTreeSet::new(), months: BTreeSet::new() }
    }

    /// Stops, and restarts at another time.
    async fn sleep_until(mut self, unix_ms: i64) -> Watched {
        self.service.stop().await;
        self.service.clock.set_unix_ms(unix_ms);
        self.service = self.service.restart_now().await;
        self
    }

    /// Uses the key from many clients until so many requests passed in all, then none after the next restart.
    async fn spend(mut self, what: &str, expected: u64) -> Watched {
        let crowd = Crowd::come(&self.service, &self.secret);
        crowd.settle_at(expected - self.passed, what).await;
        self.passed += crowd.go().await;
        self.days.insert(self.service.clock.now().unix_ms / DAY_MS);
        self.months.insert(now(&self.service).to_string()[..7].to_owned());
        let (days, months) = (self.days.len() as u64, self.months.len() as u64);
        assert!(self.passed <= days * Watched::PER_DAY && self.passed <= months * Watched::PER_MONTH, "{what}");

        self.service = self.service.restart_now().await;
        let crowd = Crowd::come(&self.service, &self.secret);
        crowd.settle_at(0, &format!("{what}, restarted")).await;
        crowd.go().await;
        self
    }

    /// Sets the clock while the exhausted key is in use, which lets no request pass, then restarts. Returns how many
    /// passed in all by then.
    async fn at(mut self, what: &str, unix_ms: i64, expected: u64) -> Watched {
        let crowd = Crowd::come(&self.service, &self.secret);
        until("the crowd is there", async || crowd.has_been_answered()).await;
        self.service.clock.set_unix_ms(unix_ms);
        crowd.settle_at(0, &format!("{what}, before a restart")).await;
        crowd.go().await;
        self.service = self.service.restart_now().await;
        self.spend(what, expected).await
    }
}

/// Setting the clock begins no period until a restart; then the day and the month that it shows begin, once. Correcting
/// it begins no period, and the next real day or month is available to every key.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clock_changes_under_load_grant_no_quota_twice_and_lock_no_key_out() {
    let midnight = START_MS + 21 * 60 * SECOND_MS;
    // The fifteenth is the first full day.
    let november = |day: i64| midnight + (day - 15) * DAY_MS + SECOND_MS;
    let december = |day: i64| november(30 + day);
    let watched = Watched::begin().await;
    let watched = watched.spend("the first day", 60).await;
    let watched = watched.at("a day ahead", START_MS + DAY_MS, 120).await;
    let watched = watched.at("and back", START_MS, 120).await;
    let watched = watched.at("the day that it was ahead by", november(15), 120).await;
    let watched = watched.at("the day after that", november(16), 180).await;
    let watched = watched.at("a year ahead", november(16) + YEAR_MS, 240).await;
    let watched = watched.at("and back again", november(16), 240).await;
    // From here on requests are counted in the month that the wrong clock entered, of which 60 are used.
    let watched = watched.at("the next true day", november(17), 300).await;
    let watched = watched.at("a day later", november(18), 360).await;
    let watched = watched.at("the month is exhausted", november(30), 380).await;
    let mut watched = watched.at("the next true month", december(1), 440).await;
    // A service that is restarted every midnight sees neither a day nor a month end.
    for (day, passed) in [(2, 500), (3, 560), (32, 620)] {
        watched = watched.sleep_until(december(day)).await.spend("a day that began while it was down", passed).await;
    }
}
