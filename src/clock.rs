//! Time, passed in: everything that depends on the hour asks a [`Clock`], never the system.
//!
//! A moment has three readings. `unix_ms` is the wall clock, which an operator or NTP may set; dates use it. `mono_ms`
//! only ever grows; windows use it. `steady_ms` is the wall clock as it was at the start, advanced by the time that has
//! really passed since: quotas use it, so that no key gets one back because somebody set the clock.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::model::Timestamp;

/// By how much a clock may run fast or slow: `steady_ms` follows the wall clock by no more than this share of the time
/// since the start. NTP slews by half of it at most.
const DRIFT_ONE_IN: i64 = 1_000;
const DRIFT_MS_MAX: i64 = 3_600_000;

/// One reading of a clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    pub unix_ms: i64,
    pub mono_ms: u64,
    pub steady_ms: i64,
}

impl Moment {
    /// A moment of a clock that was never set.
    pub const fn unset(unix_ms: i64, mono_ms: u64) -> Self {
        Moment { unix_ms, mono_ms, steady_ms: unix_ms }
    }

    /// The second that has begun.
    pub fn timestamp(self) -> Timestamp {
        Timestamp::from_unix_ms(self.unix_ms)
    }

    /// The same on the clock that nobody can set.
    pub fn steady_timestamp(self) -> Timestamp {
        Timestamp::from_unix_ms(self.steady_ms)
    }

    /// The whole second that lies `seconds` ahead at least: what is to last so long must not end within the second that
    /// has begun. Zero seconds from now is the second that has begun.
    pub fn in_seconds(self, seconds: u32) -> Timestamp {
        let has_fraction = self.timestamp().unix_ms() < self.unix_ms;
        let rounded_up = u32::from(seconds > 0 && has_fraction);
        self.timestamp().plus_seconds(seconds.saturating_add(rounded_up))
    }
}

/// Where a component gets its time from; clones read the same clock.
#[derive(Clone, Debug)]
pub struct Clock(Source);

#[derive(Clone, Debug)]
enum Source {
    System(Arc<Start>),
    Manual(Arc<Hands>),
}

/// The readings of the system's clocks at the start.
#[derive(Debug)]
struct Start {
    instant: Instant,
    unix_ms: i64,
    /// How long the machine had been suspended by then.
    suspended_ms: i64,
    /// How long it has been suspended since, as far as is known.
    slept_ms: AtomicI64,
}

impl Start {
    /// [`Moment::steady_ms`]. How long the machine was suspended is asked only if the wall clock is ahead: nearly every
    /// request is spared that.
    fn steady_ms(&self, mono_ms: i64, unix_ms: i64) -> i64 {
        let steady = |slept_ms: i64| steady_ms(self.unix_ms, mono_ms.saturating_add(slept_ms), unix_ms);
        let known = steady(self.slept_ms.load(Ordering::Relaxed));
        if known >= unix_ms {
            return known;
        }
        let slept_ms = system_suspended_ms() - self.suspended_ms;
        steady(self.slept_ms.fetch_max(slept_ms, Ordering::Relaxed).max(slept_ms))
    }
}

#[derive(Debug)]
struct Hands {
    started_unix_ms: i64,
    unix_ms: AtomicI64,
    mono_ms: AtomicU64,
    suspended_ms: AtomicI64,
}

impl Clock {
    /// The machine's own clock.
    pub fn system() -> Self {
        Clock(Source::System(Arc::new(Start {
            instant: Instant::now(),
            unix_ms: system_unix_ms(),
            suspended_ms: system_suspended_ms(),
            slept_ms: AtomicI64::new(0),
        })))
    }

    /// A clock that stands still until it is moved, for tests and simulations.
    pub fn manual(unix_ms: i64) -> Self {
        let (mono_ms, suspended_ms) = (AtomicU64::new(0), AtomicI64::new(0));
        let hands = Hands { started_unix_ms: unix_ms, unix_ms: AtomicI64::new(unix_ms), mono_ms, suspended_ms };
        Clock(Source::Manual(Arc::new(hands)))
    }

    pub fn now(&self) -> Moment {
        self.now_at(Instant::now())
    }

    /// The same for who has just looked at the monotonic clock.
    pub fn now_at(&self, instant: Instant) -> Moment {
        match &self.0 {
            Source::System(start) => {
                let (unix_ms, mono_ms) = (system_unix_ms(), millis(instant.saturating_duration_since(start.instant)));
                Moment { unix_ms, mono_ms: mono_ms.unsigned_abs(), steady_ms: start.steady_ms(mono_ms, unix_ms) }
            }
            Source::Manual(hands) => {
                let (unix_ms, mono_ms) = (hands.unix_ms.load(Ordering::SeqCst), hands.mono_ms.load(Ordering::SeqCst));
                let awake_ms = i64::try_from(mono_ms).unwrap_or(i64::MAX);
                let elapsed_ms = awake_ms.saturating_add(hands.suspended_ms.load(Ordering::SeqCst));
                Moment { unix_ms, mono_ms, steady_ms: steady_ms(hands.started_unix_ms, elapsed_ms, unix_ms) }
            }
        }
    }

    /// Lets time pass on a manual clock: both readings move on. The system's clock is left alone.
    pub fn advance(&self, by: Duration) {
        if let Source::Manual(hands) = &self.0 {
            hands.unix_ms.fetch_add(millis(by), Ordering::SeqCst);
            hands.mono_ms.fetch_add(millis(by).unsigned_abs(), Ordering::SeqCst);
        }
    }

    /// Sets a manual clock's wall time, as an operator would: the monotonic reading does not move.
    pub fn set_unix_ms(&self, unix_ms: i64) {
        if let Source::Manual(hands) = &self.0 {
            hands.unix_ms.store(unix_ms, Ordering::SeqCst);
        }
    }

    /// Lets time pass on a manual clock as it does while a machine is suspended: the monotonic reading does not move.
    pub fn suspend(&self, by: Duration) {
        if let Source::Manual(hands) = &self.0 {
            hands.unix_ms.fetch_add(millis(by), Ordering::SeqCst);
            hands.suspended_ms.fetch_add(millis(by), Ordering::SeqCst);
        }
    }
}

/// The wall clock, as far as the time that has passed since the start bears it out.
fn steady_ms(started_unix_ms: i64, elapsed_ms: i64, unix_ms: i64) -> i64 {
    let expected = started_unix_ms.saturating_add(elapsed_ms);
    let drift = (elapsed_ms / DRIFT_ONE_IN).clamp(0, DRIFT_MS_MAX);
    unix_ms.clamp(expected.saturating_sub(drift), expected.saturating_add(drift))
}

fn system_unix_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, millis)
}

/// How long the machine has been suspended since it was booted. [`Instant`] does not count that time.
#[cfg(target_os = "linux")]
fn system_suspended_ms() -> i64 {
    use rustix::time::{ClockId, clock_gettime};
    let ms = |id: ClockId| {
        let time = clock_gettime(id);
        time.tv_sec.saturating_mul(1_000).saturating_add(time.tv_nsec / 1_000_000)
    };
    let awake = ms(ClockId::Monotonic);
    ms(ClockId::Boottime) - awake
}

/// Unknown here: after a suspension, quotas come back late until a restart.
#[cfg(not(target_os = "linux"))]
fn system_suspended_ms() -> i64 {
    0
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

/// Notices steps of the wall clock, each once however often it is asked.
#[derive(Clone, Copy, Debug, Default)]
pub struct StepWatch {
    /// By how much the wall clock was ahead when it was last looked at.
    ahead_ms: i64,
    /// When a step was last reported.
    reported_at_ms: Option<u64>,
}

impl StepWatch {
    /// Steps shorter than this are not worth a line: `steady_ms` absorbs them soon.
    const STEP_MS_MIN: i64 = 1_000;
    const REPORT_EVERY_MS: u64 = 60_000;

    /// By how many milliseconds the wall clock is ahead of the time that has really passed (behind if negative), if it
    /// was set since the last look. At most one report a minute, whatever the clock does.
    pub fn look(&mut self, now: Moment) -> Option<i64> {
        let ahead_ms = now.unix_ms.saturating_sub(now.steady_ms);
        if ahead_ms.abs_diff(self.ahead_ms) < Self::STEP_MS_MIN.unsigned_abs() {
            self.ahead_ms = ahead_ms;
            return None;
        }
        if self.reported_at_ms.is_some_and(|at| now.mono_ms.saturating_sub(at) < Self::REPORT_EVERY_MS) {
            return None;
        }
        (self.ahead_ms, self.reported_at_ms) = (ahead_ms, Some(now.mono_ms));
        Some(ahead_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOON_MS: i64 = 1_794_657_600_000;
    const DAY: Duration = Duration::from_secs(86_400);
    const DAY_MS: i64 = 86_400_000;

    #[test]
    fn a_step_moves_the_wall_clock_and_not_the_steady_one() {
        let clock = Clock::manual(NOON_MS);
        for by_ms in [DAY_MS, -DAY_MS, 1, -1] {
            clock.set_unix_ms(NOON_MS + by_ms);
            assert_eq!(clock.now(), Moment { unix_ms: NOON_MS + by_ms, mono_ms: 0, steady_ms: NOON_MS });
        }
        clock.set_unix_ms(NOON_MS + DAY_MS);
        clock.advance(DAY);
        let drift_ms = DAY_MS / 1_000;
        assert_eq!(clock.now().steady_ms, NOON_MS + DAY_MS + drift_ms, "it follows as far as a clock may drift");
        clock.set_unix_ms(NOON_MS);
        assert_eq!(clock.now().steady_ms, NOON_MS + DAY_MS - drift_ms);
        clock.advance(10_000 * DAY);
        clock.set_unix_ms(NOON_MS);
        assert_eq!(clock.now().steady_ms, NOON_MS + 10_001 * DAY_MS - DRIFT_MS_MAX, "and no further than an hour");
    }

    #[test]
    fn a_clock_that_drifts_or_is_corrected_by_little_is_followed() {
        let clock = Clock::manual(NOON_MS);
        for day in 1..=40 {
            clock.advance(DAY);
            // Nine seconds a day: a hundred parts in a million, as cheap quartz has it.
            clock.set_unix_ms(clock.now().unix_ms + 9_000);
            assert_eq!(clock.now().steady_ms, clock.now().unix_ms, "day {day}");
        }
    }

    #[test]
    fn time_spent_suspended_has_really_passed() {
        let clock = Clock::manual(NOON_MS);
        clock.suspend(3 * DAY);
        assert_eq!(clock.now(), Moment { unix_ms: NOON_MS + 3 * DAY_MS, mono_ms: 0, steady_ms: NOON_MS + 3 * DAY_MS });
        clock.set_unix_ms(NOON_MS + 9 * DAY_MS);
        assert_eq!(clock.now().steady_ms, NOON_MS + 3 * DAY_MS + 3 * DAY_MS / 1_000, "a step on top of it has not");
    }

    #[test]
    fn the_systems_clock_is_steady() {
        let clock = Clock::system();
        let now = clock.now();
        assert!((now.unix_ms - now.steady_ms).abs() < 60_000, "{now:?}");
        assert!(system_suspended_ms() >= -1);
    }

    #[test]
    fn each_step_is_reported_once_and_steps_without_end_once_a_minute() {
        let (clock, mut watch) = (Clock::manual(NOON_MS), StepWatch::default());
        assert_eq!(watch.look(clock.now()), None);
        clock.set_unix_ms(NOON_MS + DAY_MS);
        assert_eq!(watch.look(clock.now()), Some(DAY_MS));
        for _ in 0..1_000 {
            clock.advance(Duration::from_secs(1));
            assert_eq!(watch.look(clock.now()), None);
        }
        let mut reports = 0;
        for second in 0..600 {
            clock.advance(Duration::from_secs(1));
            let by_ms = if second % 2 == 0 { -DAY_MS } else { DAY_MS };
            clock.set_unix_ms(clock.now().unix_ms + by_ms);
            reports += u32::from(watch.look(clock.now()).is_some());
        }
        assert!((9..=11).contains(&reports), "{reports}");
    }

    #[test]
    fn what_is_to_last_ends_with_a_whole_second_and_not_before_its_time() {
        let at = |unix_ms: i64, seconds: u32| Moment::unset(unix_ms, 0).in_seconds(seconds).unix_ms() - NOON_MS;
        assert_eq!([at(NOON_MS, 3), at(NOON_MS + 1, 3), at(NOON_MS + 999, 3)], [3_000, 4_000, 4_000]);
        assert_eq!(at(NOON_MS + 999, 0), 0, "nothing is nothing");
        assert_eq!(Moment::unset(NOON_MS + 1, 0).in_seconds(u32::MAX), Timestamp::MAX);
    }
}
