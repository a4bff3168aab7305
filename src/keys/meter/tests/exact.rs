//! The failure that this prevents: under concurrency a key gets one request more, or one fewer, than its quota.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::*;

const THREADS: usize = 8;
/// Far beyond what a lease takes, also on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Makes requests 0 to `requests` from eight threads concurrently, while a ninth grants leases.
fn storm(meter: &Meter, mut wanted: LeaseRequests, requests: u64, request: impl Fn(u64) + Sync) {
    let (next, over) = (AtomicU64::new(0), AtomicBool::new(false));
    let send = || {
        let numbers = std::iter::from_fn(|| Some(next.fetch_add(1, Ordering::Relaxed)));
        numbers.take_while(|number| *number < requests).for_each(&request);
    };
    thread::scope(|scope| {
        let senders: Vec<_> = (0..THREADS).map(|_| scope.spawn(send)).collect();
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                match wanted.drain() {
                    0 => thread::yield_now(),
                    _ => supply(meter, wall(NOON)),
                }
            }
        });
        let ends: Vec<_> = senders.into_iter().map(thread::ScopedJoinHandle::join).collect();
        over.store(true, Ordering::Relaxed);
        assert!(ends.iter().all(Result::is_ok));
    });
}

/// Charges one request in full, retrying until the lease is granted.
fn charge_waiting(meter: &Meter, now: Moment) -> Result<Charge<'_>, Refusal> {
    let began = Instant::now();
    while began.elapsed() < PATIENCE {
        match meter.charge(Cost::Full, now) {
            Err(Refusal::NeedsLease) => thread::yield_now(),
            result => return result,
        }
    }
    panic!("no lease was granted")
}

/// Limits of which one is `limit` and the others are too high to be reached.
fn tight(limit: u32) -> [(u32, Option<u64>, Option<u64>); 4] {
    let (quota, wide) = (Some(u64::from(limit)), Some(1_000_000));
    let twice = Some(u64::from(limit) * 2);
    [(limit, wide, wide), (BURST_MAX, quota, None), (BURST_MAX, None, quota), (BURST_MAX, twice, quota)]
}

#[test]
fn exactly_n_of_n_plus_k_concurrent_requests_pass() {
    for round in 0..25 {
        let limit = 50 + round * 37;
        for (burst, per_day, per_month) in tight(limit) {
            let (meter, wanted) = meter(burst, per_day, per_month);
            let passed = AtomicU64::new(0);
            storm(&meter, wanted, u64::from(limit) + 200, |_| {
                if charge_waiting(&meter, wall(NOON)).is_ok() {
                    passed.fetch_add(1, Ordering::Relaxed);
                }
            });
            let passed = passed.into_inner();
            assert_eq!(passed, u64::from(limit), "burst {burst}, day {per_day:?}, month {per_month:?}");
            assert_eq!(meter.usage().day_used, passed);
        }
    }
}

#[test]
fn refunded_requests_can_be_used_again_exactly_once() {
    for (burst, per_day, per_month) in tight(1000) {
        let (meter, wanted) = meter(burst, per_day, per_month);
        let kept = AtomicU64::new(0);
        storm(&meter, wanted, 5000, |number| match charge_waiting(&meter, wall(NOON)) {
            Ok(charge) if number % 3 == 0 => drop(charge.refund()),
            Ok(_) => drop(kept.fetch_add(1, Ordering::Relaxed)),
            Err(_) => {}
        });
        // The last refunds may come after every other request was refused: what they give back is still there.
        let mut kept = kept.into_inner();
        while let Ok(()) | Err(Refusal::NeedsLease) = meter.charge(Cost::Full, wall(NOON)).map(|_| kept += 1) {
            supply(&meter, wall(NOON));
        }
        assert_eq!(kept, 1000, "burst {burst}, day {per_day:?}, month {per_month:?}");
    }
}

#[test]
fn change_of_day_under_load_neither_loses_nor_adds_a_request() {
    for _ in 0..25 {
        let (meter, wanted) = meter(BURST_MAX, Some(300), None);
        let passed = [AtomicU64::new(0), AtomicU64::new(0)];
        storm(&meter, wanted, 800, |number| {
            let now = if number < 400 { wall(NOON) } else { wall(NOON + 86_400) };
            if let Ok(charge) = charge_waiting(&meter, now) {
                passed[usize::from(charge.paid.day.period() == 20_772)].fetch_add(1, Ordering::Relaxed);
            }
        });
        let [first, second] = passed.map(AtomicU64::into_inner);
        assert!(first <= 300 && second == 300, "{first} and {second} passed");
    }
}
