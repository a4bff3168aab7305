//! Single-threaded tests: which requests pass, which are refused and until when, and refunds.
//!
//! `exact` adds threads, `crash` adds crashes and clock changes, `clock` covers the effects of clock changes.

mod clock;
mod crash;
mod exact;

use super::*;
use crate::keys::fixture::{NOON, limited, noon_and, wall};
use crate::keys::leases::LeaseRequests;

const MIDNIGHT: u32 = NOON + 43_200;
/// 2026-12-01T00:00:00Z.
const DECEMBER: u32 = MIDNIGHT + 16 * 86_400;

/// A fresh meter, and the receiving half of its lease queue.
fn meter(burst: u32, per_day: Option<u64>, per_month: Option<u64>) -> (Meter, LeaseRequests) {
    let (queue, requests) = LeaseQueue::open();
    (Meter::new(&limited(burst, per_day, per_month), Usage::default(), &queue), requests)
}

/// Grants what the meter requests without storing it.
fn supply(meter: &Meter, now: Moment) {
    if let Some(lease) = meter.plan_lease(now) {
        meter.grant(lease);
    }
}

/// Charges one request in full, granting a lease if one is needed.
fn charge(meter: &Meter, now: Moment) -> Result<Charge<'_>, Refusal> {
    match meter.charge(Cost::Full, now) {
        Err(Refusal::NeedsLease) => supply(meter, now),
        other => return other,
    }
    meter.charge(Cost::Full, now)
}

fn refusal(meter: &Meter, now: Moment) -> Option<Refusal> {
    charge(meter, now).err()
}

#[test]
fn exactly_the_burst_limit_passes_and_the_window_opens_with_the_first_request() {
    let (meter, _requests) = meter(3, Some(1000), None);
    let opened = Moment { mono_ms: 500, ..wall(NOON) };
    let later = |ms: u64| Moment { mono_ms: 500 + ms, ..opened };
    for ms in [0, 10, 59_000] {
        assert_eq!(refusal(&meter, later(ms)), None);
    }
    assert_eq!(refusal(&meter, later(59_000)), Some(Refusal::Burst { retry_after_s: 1 }));
    assert_eq!(refusal(&meter, later(58_999)), Some(Refusal::Burst { retry_after_s: 2 }), "rounded up");
    assert_eq!(refusal(&meter, later(59_999)), Some(Refusal::Burst { retry_after_s: 1 }));
    assert_eq!(refusal(&meter, later(60_000)), None);
    assert_eq!(meter.standing(later(60_000)).burst, BurstStanding { limit: 3, remaining: 2, reset_s: 60 });
    assert_eq!(meter.standing(later(120_000)).burst, BurstStanding { limit: 3, remaining: 3, reset_s: 0 });
    assert_eq!(meter.usage().day_used, 4, "refused requests are not charged");
}

#[test]
fn time_read_just_before_the_window_opened_counts_inside_it() {
    let (meter, _requests) = meter(1, Some(1000), None);
    assert_eq!(refusal(&meter, Moment { mono_ms: 10, ..wall(NOON) }), None);
    let earlier = Moment { mono_ms: 9, ..wall(NOON) };
    assert_eq!(refusal(&meter, earlier), Some(Refusal::Burst { retry_after_s: 60 }));
}

#[test]
fn exhausted_day_refuses_until_midnight_and_charges_no_burst() {
    let (meter, _requests) = meter(10, Some(2), None);
    assert!((0..2).all(|_| refusal(&meter, wall(NOON)).is_none()));
    for _ in 0..20 {
        assert_eq!(refusal(&meter, wall(NOON)), Some(Refusal::Day { retry_after_s: 43_200 }));
    }
    assert_eq!(meter.standing(wall(NOON)).burst.remaining, 8);
    assert_eq!(refusal(&meter, wall(MIDNIGHT - 1)), Some(Refusal::Day { retry_after_s: 1 }));
    assert_eq!(refusal(&meter, wall(MIDNIGHT)), None);
    assert_eq!(meter.usage(), Usage { day: 20_772, day_used: 1, month: 682, month_used: 3 });
}

#[test]
fn exhausted_month_refuses_until_the_next_one_and_charges_no_day() {
    let (meter, _requests) = meter(100, Some(50), Some(3));
    assert!((0..3).all(|_| refusal(&meter, wall(NOON)).is_none()));
    let retry_after_s = DECEMBER - NOON;
    assert_eq!(refusal(&meter, wall(NOON)), Some(Refusal::Month { retry_after_s }));
    assert_eq!(meter.standing(wall(NOON)).day.used, 3);
    assert_eq!(meter.standing(wall(NOON)).burst.remaining, 97);
    assert_eq!(refusal(&meter, wall(DECEMBER - 1)), Some(Refusal::Month { retry_after_s: 1 }));
    assert_eq!(refusal(&meter, wall(DECEMBER)), None);
}

#[test]
fn refusal_names_the_burst_first_then_the_quota_that_lasts_longer() {
    let (all, _requests) = meter(1, Some(1), Some(1));
    assert_eq!(refusal(&all, noon_and(0)), None);
    assert!(matches!(refusal(&all, noon_and(0)), Some(Refusal::Burst { .. })));
    assert!(matches!(refusal(&all, noon_and(60)), Some(Refusal::Month { .. })));

    let (day_first, _requests) = meter(1, Some(1), Some(2));
    assert_eq!(refusal(&day_first, noon_and(0)), None);
    assert!(matches!(refusal(&day_first, noon_and(60)), Some(Refusal::Day { .. })));
    assert_eq!(refusal(&day_first, noon_and(86_400)), None);
    assert!(matches!(refusal(&day_first, noon_and(86_460)), Some(Refusal::Month { .. })));
}

#[test]
fn status_requests_cost_only_burst_and_pass_when_the_day_is_exhausted() {
    let (meter, _requests) = meter(3, Some(1), None);
    assert_eq!(refusal(&meter, wall(NOON)), None);
    for _ in 0..2 {
        let charge = meter.charge(Cost::BurstOnly, wall(NOON)).unwrap();
        assert_eq!((charge.standing().day.used, charge.standing().day.remaining()), (1, Some(0)));
    }
    assert_eq!(meter.charge(Cost::BurstOnly, wall(NOON)).err(), Some(Refusal::Burst { retry_after_s: 60 }));
}

#[test]
fn a_clock_set_back_refunds_nothing() {
    let (meter, _requests) = meter(100, Some(2), Some(3));
    assert!((0..2).all(|_| refusal(&meter, wall(MIDNIGHT + 60)).is_none()));
    let retry_after_s = 86_400 + 60;
    assert_eq!(refusal(&meter, wall(MIDNIGHT - 60)), Some(Refusal::Day { retry_after_s }), "counted in the later day");
    assert_eq!(refusal(&meter, wall(DECEMBER)), None);
    assert_eq!(refusal(&meter, wall(DECEMBER - 86_400)), None, "the one left of the later day");
    assert!(matches!(refusal(&meter, wall(DECEMBER - 86_400)), Some(Refusal::Day { .. })));
    assert_eq!(meter.usage().month_used, 2);
}

#[test]
fn charge_reports_the_standing_after_its_request() {
    let (meter, _requests) = meter(60, Some(10_000), None);
    let first = *charge(&meter, noon_and(0)).unwrap().standing();
    let second = *charge(&meter, noon_and(5)).unwrap().standing();
    assert_eq!(first.burst, BurstStanding { limit: 60, remaining: 59, reset_s: 60 });
    assert_eq!(second.burst, BurstStanding { limit: 60, remaining: 58, reset_s: 55 });
    assert_eq!(second.day, QuotaStanding { limit: Some(10_000), used: 2, reset_s: 43_195 });
    assert_eq!(second.month, QuotaStanding { limit: None, used: 2, reset_s: DECEMBER - NOON - 5 });
    assert_eq!((second.day.remaining(), second.month.remaining()), (Some(9_998), None));
    assert_eq!(second, meter.standing(noon_and(5)));
    assert_eq!(second.quota(), second.day);
}

#[test]
fn key_with_only_a_monthly_quota_reports_the_month() {
    let (meter, _requests) = meter(60, None, Some(500));
    let standing = *charge(&meter, wall(NOON)).unwrap().standing();
    assert_eq!(standing.quota(), standing.month);
    assert_eq!((standing.day.used, standing.day.limit), (1, None), "the day is counted anyway");
}

#[test]
fn refund_restores_what_was_charged_and_nothing_of_a_later_period() {
    let (meter, _requests) = meter(10, Some(5), Some(5));
    let charged = charge(&meter, noon_and(0)).unwrap();
    let kept = charge(&meter, noon_and(0)).unwrap();
    assert_eq!(charged.refund().burst.remaining, 10, "the standing without the request");
    assert_eq!((meter.usage().day_used, meter.usage().month_used), (1, 1));
    assert_eq!(meter.standing(noon_and(0)).burst.remaining, 9);

    let tomorrow = noon_and(86_400);
    assert_eq!(refusal(&meter, tomorrow), None);
    kept.refund();
    assert_eq!(meter.usage().day_used, 1, "the request of tomorrow stays charged");
    assert_eq!(meter.usage().month_used, 1, "the month is the same, so it is refunded");
    assert_eq!(meter.standing(tomorrow).burst.remaining, 9);

    meter.charge(Cost::BurstOnly, tomorrow).unwrap().refund();
    assert_eq!((meter.usage().day_used, meter.standing(tomorrow).burst.remaining), (1, 9));
}

#[test]
fn limits_change_immediately_and_counters_stay() {
    let (meter, _requests) = meter(10, Some(1000), None);
    assert!((0..5).all(|_| refusal(&meter, wall(NOON)).is_none()));
    meter.set_limits(Limits { burst_per_minute: 5, per_day: Some(3), per_month: None, streams: 10 });
    assert_eq!(refusal(&meter, wall(NOON)), Some(Refusal::Burst { retry_after_s: 60 }));
    assert_eq!(refusal(&meter, noon_and(60)), Some(Refusal::Day { retry_after_s: 43_140 }));
    assert_eq!(meter.standing(noon_and(60)).day.remaining(), Some(0));
    meter.set_limits(Limits { burst_per_minute: 5, per_day: None, per_month: Some(6), streams: 10 });
    assert_eq!(refusal(&meter, noon_and(60)), None);
    assert!(
        matches!(refusal(&meter, noon_and(60)), Some(Refusal::Month { .. })),
        "the month was counted before it was limited"
    );
}

#[test]
fn last_used_is_the_last_passed_request() {
    let (meter, _requests) = meter(1, Some(10), None);
    assert_eq!(meter.last_used(), None);
    assert_eq!(refusal(&meter, noon_and(7)), None);
    assert!(refusal(&meter, noon_and(9)).is_some());
    assert_eq!(meter.last_used(), Some(Timestamp::from_unix(NOON + 7)));
}

#[test]
fn next_lease_is_requested_once_when_half_is_left() {
    let (meter, mut requests) = meter(10_000, Some(20_000), None);
    assert_eq!(meter.charge(Cost::Full, wall(NOON)).err(), Some(Refusal::NeedsLease));
    assert_eq!(meter.charge(Cost::Full, wall(NOON)).err(), Some(Refusal::NeedsLease));
    assert_eq!(requests.drain(), 1, "requested once");
    let lease = meter.plan_lease(wall(NOON)).unwrap();
    assert_eq!(lease, Usage { day: 20_771, day_used: 200, month: 682, month_used: 0 });
    assert_eq!(meter.charge(Cost::Full, wall(NOON)).err(), Some(Refusal::NeedsLease), "planned is not yet stored");
    meter.grant(lease);

    let pass = |times| assert!((0..times).all(|_| meter.charge(Cost::Full, wall(NOON)).is_ok()));
    pass(100);
    assert_eq!(requests.drain(), 0);
    pass(1);
    assert_eq!(requests.drain(), 1, "less than half of 200 is left");
    pass(99);
    assert_eq!(requests.drain(), 0, "requested once");
    assert_eq!(meter.plan_lease(wall(NOON)).unwrap().day_used, 400);
}

#[test]
fn nothing_is_leased_beyond_the_limit_or_without_one() {
    let (meter, mut requests) = meter(10_000, None, Some(130));
    supply(&meter, wall(NOON));
    for _ in 0..130 {
        assert_eq!(refusal(&meter, wall(NOON)), None);
        supply(&meter, wall(NOON));
    }
    requests.drain();
    assert_eq!(meter.plan_lease(wall(NOON)), None);
    assert!(matches!(refusal(&meter, wall(NOON)), Some(Refusal::Month { .. })));
    assert_eq!(requests.drain(), 0, "an exhausted month requests no lease");
}

#[test]
fn lease_is_a_hundredth_of_the_quota_within_bounds() {
    assert_eq!([1, 10_000, 50_000, 1_000_000, u64::MAX].map(lease_size), [100, 100, 500, 10_000, 10_000]);
}

#[tokio::test]
async fn waiter_is_woken_by_a_grant_and_by_a_declined_lease() {
    let (meter, mut requests) = meter(10, Some(10), None);
    let now = wall(NOON);
    let server = async {
        assert_eq!(requests.next().await.len(), 1);
        meter.decline_lease();
        assert_eq!(requests.next().await.len(), 1);
        meter.grant(meter.plan_lease(now).unwrap());
    };
    let client = async {
        assert_eq!(meter.lease_arrives(now).await, Err(LeaseDeclined));
        assert_eq!(meter.lease_arrives(now).await, Ok(()));
        assert!(meter.charge(Cost::Full, now).is_ok());
        assert_eq!(meter.lease_arrives(now).await, Ok(()), "nothing to wait for");
    };
    tokio::join!(client, server);
}

#[tokio::test]
async fn waiter_is_woken_when_no_lease_is_needed_any_more() {
    let (meter, mut requests) = meter(10, Some(10), None);
    let now = wall(NOON);
    let server = async {
        requests.next().await;
        meter.set_limits(Limits { burst_per_minute: 10, per_day: None, per_month: Some(10), streams: 10 });
        supply(&meter, now);
        meter.set_limits(Limits { burst_per_minute: 10, per_day: None, per_month: None, streams: 10 });
        assert_eq!(meter.plan_lease(now), None);
    };
    let (result, ()) = tokio::join!(meter.lease_arrives(now), server);
    assert_eq!(result, Ok(()));
}

#[tokio::test]
async fn closed_queue_declines_leases() {
    let (meter, requests) = meter(10, Some(10), None);
    drop(requests);
    assert_eq!(meter.lease_arrives(wall(NOON)).await, Err(LeaseDeclined));
}
