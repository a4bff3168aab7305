//! Effects of clock changes on a key: while the process runs, setting the clock refunds nothing; over a restart it
//! begins at most one period, and no key is locked out for longer than a day or month and the day of tolerance.

use super::*;
use crate::clock::Clock;

const DAY: u32 = 86_400;
const YEAR: u32 = 365 * DAY;

/// A meter of 2 a day and 1000 a month whose day is exhausted at `now`.
fn exhausted(now: u32) -> (Meter, LeaseRequests) {
    let (meter, requests) = meter(1_000, Some(2), Some(1_000));
    assert!((0..2).all(|_| refusal(&meter, wall(now)).is_none()));
    assert!(matches!(refusal(&meter, wall(now)), Some(Refusal::Day { .. })));
    (meter, requests)
}

/// The same key after a start of the process.
fn restarted(stored: Usage) -> (Meter, LeaseRequests) {
    let (queue, requests) = LeaseQueue::open();
    (Meter::new(&limited(1_000, Some(2), Some(1_000)), stored, &queue), requests)
}

/// The same key after an orderly stop and a start.
fn stopped(meter: &Meter, per_day: Option<u64>, per_month: Option<u64>) -> (Meter, LeaseRequests) {
    let (queue, requests) = LeaseQueue::open();
    let key = KeyRecord { last_used: meter.last_used(), ..limited(1_000, per_day, per_month) };
    (Meter::new(&key, meter.usage(), &queue), requests)
}

fn is_day(refusal: Option<Refusal>, seconds: u32) -> bool {
    refusal == Some(Refusal::Day { retry_after_s: seconds })
}

#[test]
fn day_ends_at_midnight_and_month_with_its_last_day() {
    let (last_second, _requests) = exhausted(MIDNIGHT - 1);
    assert!(is_day(refusal(&last_second, wall(MIDNIGHT - 1)), 1));
    assert_eq!(refusal(&last_second, wall(MIDNIGHT)), None);
    assert_eq!(last_second.usage().month_used, 3, "the month continues");

    let (month, _requests) = meter(1_000, None, Some(1));
    assert_eq!(refusal(&month, wall(DECEMBER - 1)), None);
    assert_eq!(refusal(&month, wall(DECEMBER - 1)), Some(Refusal::Month { retry_after_s: 1 }));
    assert_eq!(refusal(&month, wall(DECEMBER)), None);
    assert_eq!(refusal(&month, wall(DECEMBER)), Some(Refusal::Month { retry_after_s: 31 * DAY }));
}

#[test]
fn clock_set_back_a_second_over_midnight_refunds_nothing() {
    let (meter, _requests) = exhausted(MIDNIGHT);
    assert!(is_day(refusal(&meter, wall(MIDNIGHT - 1)), DAY + 1));
    assert!(is_day(refusal(&meter, wall(MIDNIGHT)), DAY));
    assert_eq!(refusal(&meter, wall(MIDNIGHT + DAY)), None);
}

#[test]
fn clock_set_back_a_day_or_a_year_refunds_nothing_and_locks_out_until_midnight() {
    let (day, _requests) = exhausted(MIDNIGHT + 60);
    assert!(is_day(refusal(&day, wall(MIDNIGHT + 60 - DAY)), 2 * DAY - 60), "one day is tolerated");

    let (year, _requests) = exhausted(NOON);
    let then = NOON - YEAR;
    assert!(is_day(refusal(&year, wall(then)), DAY / 2), "until that day's midnight, not for a year");
    assert_eq!(refusal(&year, wall(then + DAY / 2)), None, "a real day has ended");
    let (year, _requests) = exhausted(NOON);
    assert!(matches!(refusal(&year, wall(then)), Some(Refusal::Day { .. })));
    assert!(is_day(refusal(&year, wall(NOON)), DAY / 2), "corrected again, what was used stays used");
}

#[test]
fn clock_a_year_ahead_and_back_locks_no_key_out() {
    let (meter, _requests) = exhausted(NOON + YEAR);
    assert!(is_day(refusal(&meter, wall(NOON)), DAY / 2));
    assert_eq!(refusal(&meter, wall(MIDNIGHT)), None);
    assert_eq!(refusal(&meter, wall(MIDNIGHT)), None);
    assert!(is_day(refusal(&meter, wall(MIDNIGHT)), DAY));
    assert!(is_day(refusal(&meter, wall(MIDNIGHT - 1)), 1), "a clock that jitters around midnight");
    assert!(is_day(refusal(&meter, wall(MIDNIGHT)), DAY), "begins no further day");
    assert_eq!(meter.standing(wall(MIDNIGHT)).day.used, 2);
    let (after, _requests) = restarted(meter.usage());
    assert!(is_day(refusal(&after, wall(MIDNIGHT + 1)), DAY - 1), "nor does a restart");
    assert_eq!(refusal(&after, wall(MIDNIGHT + DAY)), None);
}

/// The failure that this prevents: a service that is restarted every midnight never sees a day end, and a key that was
/// exhausted while the clock was a year ahead is locked out for that year.
#[test]
fn day_also_ends_while_the_process_is_stopped() {
    let (meter, _requests) = exhausted(NOON + YEAR);
    assert!(is_day(refusal(&meter, wall(NOON)), DAY / 2));
    let (same_day, _requests) = stopped(&meter, Some(2), Some(1_000));
    assert!(is_day(refusal(&same_day, wall(MIDNIGHT - 1)), 1), "a restart refunds nothing");
    let mut current = stopped(&same_day, Some(2), Some(1_000));
    for midnight in [MIDNIGHT, MIDNIGHT + DAY, MIDNIGHT + 2 * DAY] {
        assert!((0..2).all(|_| refusal(&current.0, wall(midnight)).is_none()), "a day has ended meanwhile");
        current = stopped(&current.0, Some(2), Some(1_000));
        assert!(is_day(refusal(&current.0, wall(midnight)), DAY), "another restart begins no day");
        current = stopped(&current.0, Some(2), Some(1_000));
        assert!(is_day(refusal(&current.0, wall(midnight - 1)), 1), "nor does a clock that jitters");
        current = stopped(&current.0, Some(2), Some(1_000));
        assert!(is_day(refusal(&current.0, wall(midnight)), DAY));
        current = stopped(&current.0, Some(2), Some(1_000));
    }
}

/// The failure that this prevents: the clock is set a day ahead while the service runs, which begins no day, and after
/// the next restart that day counts as used.
#[test]
fn day_that_a_running_clock_was_set_to_is_available_after_a_restart() {
    let (ahead, _requests) = exhausted(NOON + YEAR);
    let (corrected, _requests) = stopped(&ahead, Some(2), Some(1_000));
    let clock = clock_at(NOON);
    assert_eq!(passed(&corrected, &clock), 0);
    set(&clock, NOON + DAY);
    assert_eq!(passed(&corrected, &clock), 0);
    let (after, _requests) = stopped(&corrected, Some(2), Some(1_000));
    assert_eq!(passed(&after, &clock_at(NOON + DAY)), 2);
}

#[test]
fn month_also_ends_while_the_process_is_stopped() {
    let (meter, _requests) = meter(1_000, None, Some(1));
    assert_eq!(refusal(&meter, wall(NOON + YEAR)), None);
    assert!(matches!(refusal(&meter, wall(NOON)), Some(Refusal::Month { .. })));
    let (after, _requests) = stopped(&meter, None, Some(1));
    assert_eq!(refusal(&after, wall(DECEMBER)), None, "a month has ended meanwhile");
    let (again, _requests) = stopped(&after, None, Some(1));
    assert_eq!(refusal(&again, wall(DECEMBER)), Some(Refusal::Month { retry_after_s: 31 * DAY }));
}

#[test]
fn month_entered_too_early_ends_with_the_real_one() {
    let (meter, _requests) = meter(1_000, None, Some(2));
    assert!((0..2).all(|_| refusal(&meter, wall(DECEMBER + 40 * DAY)).is_none()));
    let retry_after_s = DECEMBER - NOON;
    assert_eq!(refusal(&meter, wall(NOON)), Some(Refusal::Month { retry_after_s }));
    assert_eq!(meter.standing(wall(NOON)).month.reset_s, retry_after_s);
    assert_eq!(refusal(&meter, wall(DECEMBER)), None, "a real month has ended");
    assert_eq!(refusal(&meter, wall(DECEMBER)), None);
    assert_eq!(refusal(&meter, wall(DECEMBER)), Some(Refusal::Month { retry_after_s: 31 * DAY }));
}

#[test]
fn usage_of_the_next_month_by_a_clock_ahead_stays_used() {
    let (meter, _requests) = meter(1_000, None, Some(2));
    assert!((0..2).all(|_| refusal(&meter, wall(DECEMBER + 20 * DAY)).is_none()));
    assert_eq!(refusal(&meter, wall(NOON)), Some(Refusal::Month { retry_after_s: DECEMBER - NOON }));
    assert_eq!(refusal(&meter, wall(DECEMBER)), Some(Refusal::Month { retry_after_s: 31 * DAY }));
}

#[test]
fn flapping_between_two_years_grants_no_more_than_a_day_for_each() {
    let (meter, _requests) = exhausted(NOON);
    assert!((0..2).all(|_| refusal(&meter, wall(NOON + YEAR)).is_none()), "ahead, a new day begins");
    for _ in 0..50 {
        assert!(matches!(refusal(&meter, wall(NOON)), Some(Refusal::Day { .. })));
        assert!(matches!(refusal(&meter, wall(NOON + YEAR)), Some(Refusal::Day { .. })));
    }
}

/// How many of three requests pass.
fn passed(meter: &Meter, clock: &Clock) -> usize {
    (0..3).filter(|_| refusal(meter, clock.now()).is_none()).count()
}

fn clock_at(unix: u32) -> Clock {
    Clock::manual(Timestamp::from_unix(unix).unix_ms())
}

fn set(clock: &Clock, unix: u32) {
    clock.set_unix_ms(Timestamp::from_unix(unix).unix_ms());
}

fn pass_time(clock: &Clock, seconds: u32) {
    clock.advance(std::time::Duration::from_secs(seconds.into()));
}

/// The failure that this prevents: the clock is set ahead day by day, and in ten seconds a key has used three days.
#[test]
fn clock_set_ahead_begins_no_day_until_a_restart() {
    let (meter, _requests) = meter(1_000, Some(2), Some(1_000));
    let clock = clock_at(NOON);
    assert_eq!(passed(&meter, &clock), 2);
    for days in [1, 2, 3, 40, 400] {
        set(&clock, NOON + days * DAY);
        assert_eq!(passed(&meter, &clock), 0, "{days} days ahead");
        assert!(is_day(refusal(&meter, clock.now()), DAY / 2), "until the real midnight");
        assert_eq!(meter.standing(clock.now()).day.reset_s, DAY / 2);
    }
    pass_time(&clock, DAY / 2);
    assert_eq!(passed(&meter, &clock), 2, "the real midnight");
    let (after, _requests) = stopped(&meter, Some(2), Some(1_000));
    assert_eq!(passed(&after, &clock_at(NOON + 400 * DAY)), 2, "a restart trusts the clock");
}

#[test]
fn clock_set_ahead_by_months_begins_no_month() {
    let (meter, _requests) = meter(1_000, None, Some(2));
    let clock = clock_at(NOON);
    assert_eq!(passed(&meter, &clock), 2);
    set(&clock, DECEMBER + 40 * DAY);
    assert_eq!(passed(&meter, &clock), 0);
    pass_time(&clock, DECEMBER - NOON - 2_000);
    assert_eq!(passed(&meter, &clock), 0, "not before the real end of November, within clock drift");
    pass_time(&clock, 2_000);
    assert_eq!(passed(&meter, &clock), 2);
}

/// The failure that this prevents: two time sources that differ by days set the clock in turn, and each change gives
/// every key a new day.
#[test]
fn clock_set_back_and_forth_begins_only_the_days_that_really_elapse() {
    for (one, other) in [(0, 2 * DAY), (0, 400 * DAY), (2 * YEAR, 0)] {
        let (meter, _requests) = meter(1_000, Some(2), Some(1_000));
        let clock = clock_at(NOON);
        let mut total = passed(&meter, &clock);
        for minute in 0..10 * DAY / 60 {
            pass_time(&clock, 60);
            set(&clock, NOON - YEAR + if minute % 2 == 0 { one } else { other } + minute);
            total += passed(&meter, &clock);
        }
        assert_eq!(total, 2 * 11, "ten midnights and the first day");
    }
}

#[test]
fn day_begins_while_the_machine_is_suspended() {
    let (meter, _requests) = meter(1_000, Some(2), Some(1_000));
    let clock = clock_at(NOON);
    assert_eq!(passed(&meter, &clock), 2);
    clock.suspend(std::time::Duration::from_secs(u64::from(DAY)));
    assert_eq!(passed(&meter, &clock), 2);
}

#[test]
fn corrected_clock_begins_each_day_at_its_midnight() {
    let (meter, _requests) = exhausted(NOON + YEAR);
    assert!(is_day(refusal(&meter, wall(NOON)), DAY / 2));
    for day in 0..40 {
        let midnight = DAY / 2 + day * DAY;
        // One clock runs a little faster than the other.
        let drift = day / 4;
        let at =
            |seconds: u32, drift: u32| Moment { mono_ms: u64::from(seconds - drift) * 1000, ..wall(NOON + seconds) };
        assert!(matches!(refusal(&meter, at(midnight - 1, 0)), Some(Refusal::Day { .. })));
        assert!((0..2).all(|_| refusal(&meter, at(midnight, drift)).is_none()), "day {day}");
        assert!(is_day(refusal(&meter, at(midnight, drift)), DAY));
    }
}

#[test]
fn restart_resets_day_and_month_and_voids_the_pending_lease() {
    let (meter, _requests) = meter(1_000, Some(1_000), Some(5_000));
    assert!((0..50).all(|_| refusal(&meter, wall(NOON + YEAR)).is_none()));
    let stale = meter.plan_lease(wall(NOON + YEAR)).or_else(|| Some(meter.usage())).unwrap();
    let now = wall(NOON);
    meter.restart(Usage::fresh(now), now);
    assert!(meter.has_void_lease(), "it must not be stored");
    meter.grant(stale);
    assert_eq!(meter.usage(), Usage { day: 20_771, day_used: 0, month: 682, month_used: 0 });
    assert_eq!(meter.last_used(), Some(Timestamp::from_unix(NOON)));
    assert_eq!(meter.charge(Cost::Full, now).err(), Some(Refusal::NeedsLease), "only stored leases are granted");
    assert_eq!(refusal(&meter, now), None);
    assert!(!meter.has_void_lease());
    assert_eq!(meter.usage(), Usage { day: 20_771, day_used: 1, month: 682, month_used: 1 });
}

#[test]
fn lost_counters_count_as_exhausted_until_their_period_ends() {
    let key = limited(1_000, Some(2), None);
    let (lost, _requests) = restarted(Usage::exhausted(key.limits, wall(NOON)));
    assert!(is_day(refusal(&lost, wall(NOON)), DAY / 2));
    assert_eq!(refusal(&lost, wall(MIDNIGHT)), None);
}

#[test]
fn joined_usage_is_never_less_than_either() {
    let one = Usage { day: 10, day_used: 5, month: 3, month_used: 50 };
    let later_day = Usage { day: 11, day_used: 1, month: 3, month_used: 40 };
    let expected = Usage { day: 11, day_used: 1, month: 3, month_used: 50 };
    assert_eq!((one.joined(later_day), later_day.joined(one)), (expected, expected));
}
