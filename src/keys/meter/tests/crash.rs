//! The failure that this prevents: after a crash or a clock change, a key gets its quota a second time, or loses more
//! than the unused part of one lease.

use std::collections::HashMap;
use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::clock::Clock;
use crate::keys::record::KeyRecord;

#[derive(Clone, Copy, Debug)]
enum MeterAction {
    Charge(u16),
    /// A request that is refunded if it passes.
    Refund,
    /// Plan and store a lease.
    Store,
    /// Grant the last stored lease.
    Grant,
    /// Lose all memory.
    Crash,
    /// Store the actual usage and restart the process.
    Restart,
    Wait(u32),
    /// Wait until the next midnight, or the first of the next month.
    ToMidnight,
    ToNextMonth,
    /// Set the clock back.
    SetBack(u32),
    /// Set the clock ahead by days or months.
    SetAhead(u32),
    /// Suspend the machine.
    Suspend(u32),
}

fn action() -> impl Strategy<Value = MeterAction> {
    prop_oneof![
        6 => (1_u16..400).prop_map(MeterAction::Charge),
        1 => Just(MeterAction::Refund),
        5 => Just(MeterAction::Store),
        5 => Just(MeterAction::Grant),
        1 => Just(MeterAction::Crash),
        1 => Just(MeterAction::Restart),
        2 => (1_u32..90_000).prop_map(MeterAction::Wait),
        1 => Just(MeterAction::ToMidnight),
        1 => Just(MeterAction::ToNextMonth),
        1 => (1_u32..9_000_000).prop_map(MeterAction::SetBack),
        1 => (1_u32..200_000).prop_map(MeterAction::SetBack),
        1 => (1_u32..9_000_000).prop_map(MeterAction::SetAhead),
        1 => (80_000_u32..200_000).prop_map(MeterAction::SetAhead),
        1 => (1_u32..90_000).prop_map(MeterAction::Suspend),
    ]
}

/// A key, its stored usage, and an independent count of the requests that passed.
struct MeterModel {
    key: KeyRecord,
    queue: LeaseQueue,
    meter: Meter,
    clock: Clock,
    stored: Usage,
    /// The day and the month that requests are counted in, computed independently: they never decrease.
    day: u64,
    month: u64,
    /// The clock's day and month when it was found to be far behind.
    behind: [Option<u64>; 2],
    /// The requests that passed since the process started, and the real seconds since then.
    passed_since_start: u64,
    uptime_s: u64,
    passed_by_day: HashMap<u64, u64>,
    passed_by_month: HashMap<u64, u64>,
    refunds: u64,
}

impl MeterModel {
    fn new(per_day: Option<u64>, per_month: Option<u64>) -> Self {
        let (queue, _) = LeaseQueue::open();
        let key = limited(BURST_MAX, per_day, per_month);
        let meter = Meter::new(&key, Usage::default(), &queue);
        let (passed_by_day, passed_by_month) = (HashMap::new(), HashMap::new());
        let (clock, stored) = (Clock::manual(wall(NOON).unix_ms), Usage::default());
        MeterModel {
            key,
            queue,
            meter,
            clock,
            stored,
            day: 0,
            month: 0,
            behind: [None; 2],
            passed_since_start: 0,
            uptime_s: 0,
            passed_by_day,
            passed_by_month,
            refunds: 0,
        }
    }

    fn apply(&mut self, action: MeterAction) {
        match action {
            MeterAction::Charge(times) => (0..times).for_each(|_| self.charge()),
            MeterAction::Refund => self.refund(),
            MeterAction::Store => self.store(),
            MeterAction::Grant => self.meter.grant(self.stored),
            MeterAction::Crash => self.crash(),
            MeterAction::Restart => {
                self.stored = self.meter.usage();
                self.start();
            }
            MeterAction::Wait(seconds) => self.wait(seconds),
            MeterAction::ToMidnight => self.wait(self.meter_dates().until_day_ends(self.meter_dates().day)),
            MeterAction::ToNextMonth => self.wait(self.meter_dates().until_month_ends(self.meter_dates().month)),
            MeterAction::SetBack(seconds) => self.set(-i64::from(seconds)),
            MeterAction::SetAhead(seconds) => self.set(i64::from(seconds)),
            MeterAction::Suspend(seconds) => {
                self.clock.suspend(Duration::from_secs(seconds.into()));
                self.uptime_s += u64::from(seconds);
            }
        }
    }

    fn meter_dates(&self) -> Dates {
        Dates::of(self.clock.now())
    }

    fn set(&self, by_s: i64) {
        self.clock.set_unix_ms(self.clock.now().unix_ms + by_s * 1000);
    }

    fn wait(&mut self, seconds: u32) {
        self.clock.advance(Duration::from_secs(seconds.into()));
        self.uptime_s += u64::from(seconds);
    }

    fn observe_date(&mut self) {
        let dates = Dates::of(self.clock.now());
        let (is_far_day, is_far_month) = (dates.is_far_day(self.day), dates.is_far_month(self.month));
        follow(&mut self.day, &mut self.behind[0], dates.day, is_far_day);
        follow(&mut self.month, &mut self.behind[1], dates.month, is_far_month);
    }

    fn charge(&mut self) {
        self.observe_date();
        if self.meter.charge(Cost::Full, self.clock.now()).is_ok() {
            self.passed_since_start += 1;
            *self.passed_by_day.entry(self.day).or_default() += 1;
            *self.passed_by_month.entry(self.month).or_default() += 1;
        }
    }

    fn refund(&mut self) {
        self.observe_date();
        if let Ok(charge) = self.meter.charge(Cost::Full, self.clock.now()) {
            charge.refund();
            self.refunds += 1;
        }
    }

    fn store(&mut self) {
        self.observe_date();
        if let Some(lease) = self.meter.plan_lease(self.clock.now()) {
            self.stored = lease;
        }
    }

    fn crash(&mut self) {
        let used = self.meter.usage();
        self.start();
        let after = self.meter.usage();
        let limits = self.key.limits;
        let lost = |limit: Option<u64>, same, before, after: u64| {
            limit.filter(|_| same).map(|limit| (after.checked_sub(before), lease_size(limit) + self.refunds))
        };
        let day = lost(limits.per_day, after.day == used.day, used.day_used, after.day_used);
        let month = lost(limits.per_month, after.month == used.month, used.month_used, after.month_used);
        for (lost, lease) in [day, month].into_iter().flatten() {
            assert!(lost.is_some_and(|lost| lost <= lease), "{lost:?} were lost, a lease is {lease}");
        }
    }

    fn start(&mut self) {
        self.meter = Meter::new(&self.key, self.stored, &self.queue);
        // A date in which no request passed is lost with the memory; one in which a request passed is stored.
        (self.day, self.month) = (self.stored.day.into(), self.stored.month.into());
        self.behind = [None; 2];
        // A restart trusts the wall clock.
        self.clock = Clock::manual(self.clock.now().unix_ms);
        (self.passed_since_start, self.uptime_s) = (0, 0);
    }

    fn check(&self) {
        for (limit, passed) in
            [(self.key.limits.per_day, &self.passed_by_day), (self.key.limits.per_month, &self.passed_by_month)]
        {
            let most = passed.values().max().copied().unwrap_or(0);
            assert!(limit.is_none_or(|limit| most <= limit), "{most} of {limit:?} passed");
        }
        // Whatever the clock was set to, requests pass in no more periods than have really elapsed, plus the first and
        // the last. Clocks may run fast by a thousandth.
        let real_s = self.uptime_s + self.uptime_s / 1_000;
        let limits = self.key.limits;
        for (limit, shortest_s) in [(limits.per_day, 86_400), (limits.per_month, 28 * 86_400)] {
            let most = limit.map(|limit| limit * (real_s / shortest_s + 2));
            assert!(
                most.is_none_or(|most| self.passed_since_start <= most),
                "{} in {} s",
                self.passed_since_start,
                self.uptime_s
            );
        }
    }
}

/// A period never decreases. While it is far ahead of the clock's period, it advances whenever that does.
fn follow(current: &mut u64, behind: &mut Option<u64>, clock: u64, is_far: bool) {
    if clock >= *current || !is_far {
        *behind = None;
        *current = clock.max(*current);
        return;
    }
    match *behind {
        Some(since) if clock > since => (*current, *behind) = (*current + 1, Some(clock)),
        Some(since) if clock + 1 >= since => {}
        _ => *behind = Some(clock),
    }
}

fn quota() -> impl Strategy<Value = u64> {
    prop_oneof![1_u64..300, 1_u64..3000, Just(25_000_u64)]
}

fn quotas() -> impl Strategy<Value = (Option<u64>, Option<u64>)> {
    prop_oneof![
        quota().prop_map(|day| (Some(day), None)),
        quota().prop_map(|month| (None, Some(month))),
        (quota(), quota()).prop_map(|(day, month)| (Some(day), Some(month))),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_crash_or_clock_change_exceeds_the_quota(
        (per_day, per_month) in quotas(),
        actions in prop::collection::vec(action(), 1..120),
    ) {
        let mut model = MeterModel::new(per_day, per_month);
        for action in actions {
            model.apply(action);
            model.check();
        }
    }
}

#[test]
fn clean_restart_loses_nothing() {
    let (before, _requests) = meter(100, Some(10_000), Some(20_000));
    assert!((0..30).all(|_| refusal(&before, wall(NOON)).is_none()));
    let (queue, _requests) = LeaseQueue::open();
    let after = Meter::new(&limited(100, Some(10_000), Some(20_000)), before.usage(), &queue);
    assert_eq!(refusal(&after, wall(NOON)), None);
    assert_eq!(after.usage(), Usage { day: 20_771, day_used: 31, month: 682, month_used: 31 });
}

#[test]
fn crash_costs_the_unused_part_of_the_lease() {
    let (before, _requests) = meter(1000, Some(10_000), None);
    let stored = before.plan_lease(wall(NOON)).unwrap();
    before.grant(stored);
    assert!((0..30).all(|_| before.charge(Cost::Full, wall(NOON)).is_ok()));
    let (queue, _requests) = LeaseQueue::open();
    let after = Meter::new(&limited(1000, Some(10_000), None), stored, &queue);
    assert_eq!(after.usage().day_used, 100);
    assert_eq!(
        after.charge(Cost::Full, wall(NOON)).err(),
        Some(Refusal::NeedsLease),
        "no part of the lease is used twice"
    );
}
