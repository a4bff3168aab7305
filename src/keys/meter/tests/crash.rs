//! The failure that this prevents: after a crash, or a change of the clock, a key gets its quota a second time; or it
//! loses more than the one lease that it had not used up.

use std::collections::HashMap;
use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::clock::Clock;
use crate::keys::record::KeyRecord;

#[derive(Clone, Copy, Debug)]
enum Step {
    Charge(u16),
    /// A request that passes and is given back, if one passes.
    Refund,
    /// The lease is planned and stored.
    Store,
    /// What was stored last is granted.
    Grant,
    /// All memory is lost.
    Crash,
    /// What is really used is stored, then the process starts anew.
    Restart,
    Wait(u32),
    /// To the next midnight, or the first of the next month.
    ToMidnight,
    ToNextMonth,
    /// Somebody sets the clock back.
    SetBack(u32),
    /// Somebody sets the clock ahead, by days or by months.
    SetAhead(u32),
    /// The machine sleeps.
    Suspend(u32),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (1_u16..400).prop_map(Step::Charge),
        1 => Just(Step::Refund),
        5 => Just(Step::Store),
        5 => Just(Step::Grant),
        1 => Just(Step::Crash),
        1 => Just(Step::Restart),
        2 => (1_u32..90_000).prop_map(Step::Wait),
        1 => Just(Step::ToMidnight),
        1 => Just(Step::ToNextMonth),
        1 => (1_u32..9_000_000).prop_map(Step::SetBack),
        1 => (1_u32..200_000).prop_map(Step::SetBack),
        1 => (1_u32..9_000_000).prop_map(Step::SetAhead),
        1 => (80_000_u32..200_000).prop_map(Step::SetAhead),
        1 => (1_u32..90_000).prop_map(Step::Suspend),
    ]
}

/// A key, the disk under it, and what an onlooker has seen pass.
struct World {
    key: KeyRecord,
    desk: LeaseDesk,
    meter: Meter,
    clock: Clock,
    stored: Usage,
    /// The day and the month that requests count in, as the onlooker reckons it: they never go back.
    day: u64,
    month: u64,
    /// The clock's day and month when it was found to be far behind those.
    behind: [Option<u64>; 2],
    /// How many passed since the process started, and how many seconds have really gone by since.
    passed_in_life: u64,
    life_s: u64,
    passed_by_day: HashMap<u64, u64>,
    passed_by_month: HashMap<u64, u64>,
    refunds: u64,
}

impl World {
    fn new(per_day: Option<u64>, per_month: Option<u64>) -> Self {
        let (desk, _) = LeaseDesk::open();
        let key = limited(BURST_MAX, per_day, per_month);
        let meter = Meter::new(&key, Usage::default(), &desk);
        let (passed_by_day, passed_by_month) = (HashMap::new(), HashMap::new());
        let (clock, stored) = (Clock::manual(wall(NOON).unix_ms), Usage::default());
        World {
            key,
            desk,
            meter,
            clock,
            stored,
            day: 0,
            month: 0,
            behind: [None; 2],
            passed_in_life: 0,
            life_s: 0,
            passed_by_day,
            passed_by_month,
            refunds: 0,
        }
    }

    fn apply(&mut self, step: Step) {
        match step {
            Step::Charge(times) => (0..times).for_each(|_| self.charge()),
            Step::Refund => self.refund(),
            Step::Store => self.store(),
            Step::Grant => self.meter.grant(self.stored),
            Step::Crash => self.crash(),
            Step::Restart => {
                self.stored = self.meter.usage();
                self.start();
            }
            Step::Wait(seconds) => self.wait(seconds),
            Step::ToMidnight => self.wait(self.meter_dates().until_day_ends(self.meter_dates().day)),
            Step::ToNextMonth => self.wait(self.meter_dates().until_month_ends(self.meter_dates().month)),
            Step::SetBack(seconds) => self.set(-i64::from(seconds)),
            Step::SetAhead(seconds) => self.set(i64::from(seconds)),
            Step::Suspend(seconds) => {
                self.clock.suspend(Duration::from_secs(seconds.into()));
                self.life_s += u64::from(seconds);
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
        self.life_s += u64::from(seconds);
    }

    fn look_at_the_calendar(&mut self) {
        let dates = Dates::of(self.clock.now());
        let (is_far_day, is_far_month) = (dates.is_far_day(self.day), dates.is_far_month(self.month));
        follow(&mut self.day, &mut self.behind[0], dates.day, is_far_day);
        follow(&mut self.month, &mut self.behind[1], dates.month, is_far_month);
    }

    fn charge(&mut self) {
        self.look_at_the_calendar();
        if self.meter.charge(Cost::Full, self.clock.now()).is_ok() {
            self.passed_in_life += 1;
            *self.passed_by_day.entry(self.day).or_default() += 1;
            *self.passed_by_month.entry(self.month).or_default() += 1;
        }
    }

    fn refund(&mut self) {
        self.look_at_the_calendar();
        if let Ok(charge) = self.meter.charge(Cost::Full, self.clock.now()) {
            charge.refund();
            self.refunds += 1;
        }
    }

    fn store(&mut self) {
        self.look_at_the_calendar();
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
        self.meter = Meter::new(&self.key, self.stored, &self.desk);
        // A date that was only looked at is forgotten with the memory; one in which a request passed is on the disk.
        (self.day, self.month) = (self.stored.day.into(), self.stored.month.into());
        self.behind = [None; 2];
        // A start believes the wall clock, whatever it says.
        self.clock = Clock::manual(self.clock.now().unix_ms);
        (self.passed_in_life, self.life_s) = (0, 0);
    }

    fn check(&self) {
        for (limit, passed) in
            [(self.key.limits.per_day, &self.passed_by_day), (self.key.limits.per_month, &self.passed_by_month)]
        {
            let most = passed.values().max().copied().unwrap_or(0);
            assert!(limit.is_none_or(|limit| most <= limit), "{most} of {limit:?} passed");
        }
        // Whatever the clock was set to, no more periods than have really gone by, the one that the process began in and
        // the one that it ended in. Clocks may run fast by a thousandth.
        let real_s = self.life_s + self.life_s / 1_000;
        let limits = self.key.limits;
        for (limit, shortest_s) in [(limits.per_day, 86_400), (limits.per_month, 28 * 86_400)] {
            let most = limit.map(|limit| limit * (real_s / shortest_s + 2));
            assert!(
                most.is_none_or(|most| self.passed_in_life <= most),
                "{} in {} s",
                self.passed_in_life,
                self.life_s
            );
        }
    }
}

/// A period never goes back. Behind one that the clock will not reach for long, it goes on with the clock's own.
fn follow(held: &mut u64, behind: &mut Option<u64>, clock: u64, is_far: bool) {
    if clock >= *held || !is_far {
        *behind = None;
        *held = clock.max(*held);
        return;
    }
    match *behind {
        Some(since) if clock > since => (*held, *behind) = (*held + 1, Some(clock)),
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
    fn no_crash_and_no_clock_hands_out_more_than_the_quota(
        (per_day, per_month) in quotas(),
        steps in prop::collection::vec(step(), 1..120),
    ) {
        let mut world = World::new(per_day, per_month);
        for step in steps {
            world.apply(step);
            world.check();
        }
    }
}

#[test]
fn a_clean_restart_loses_nothing() {
    let (before, _requests) = meter(100, Some(10_000), Some(20_000));
    assert!((0..30).all(|_| refusal(&before, wall(NOON)).is_none()));
    let (desk, _requests) = LeaseDesk::open();
    let after = Meter::new(&limited(100, Some(10_000), Some(20_000)), before.usage(), &desk);
    assert_eq!(refusal(&after, wall(NOON)), None);
    assert_eq!(after.usage(), Usage { day: 20_771, day_used: 31, month: 682, month_used: 31 });
}

#[test]
fn a_crash_costs_what_was_leased_and_not_used() {
    let (before, _requests) = meter(1000, Some(10_000), None);
    let stored = before.plan_lease(wall(NOON)).unwrap();
    before.grant(stored);
    assert!((0..30).all(|_| before.charge(Cost::Full, wall(NOON)).is_ok()));
    let (desk, _requests) = LeaseDesk::open();
    let after = Meter::new(&limited(1000, Some(10_000), None), stored, &desk);
    assert_eq!(after.usage().day_used, 100);
    assert_eq!(after.charge(Cost::Full, wall(NOON)).err(), Some(Refusal::NeedsLease), "nothing of it is used twice");
}
