//! The clock. Code that depends on the time takes a [`Clock`] and never reads the system's.
//!
//! A moment has three readings. `unix_ms` is the wall clock, which an operator or NTP may set; dates use it. `mono_ms`
//! only increases; windows use it. `steady_ms` is the wall clock at the start plus the time elapsed since; quotas use
//! it, so that setting the clock refunds no quota.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::model::Timestamp;

/// The tolerated drift of a clock: `steady_ms` follows the wall clock by at most this fraction of the time since the
/// start. NTP slews by at most half of it.
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
    /// A moment of a clock that has not been set since the start.
    pub const fn unset(unix_ms: i64, mono_ms: u64) -> Self {
        Moment { unix_ms, mono_ms, steady_ms: unix_ms }
    }

    fn plus(self, (wall_ms, steady_ms): (i64, i64)) -> Self {
        let (unix_ms, steady_ms) = (self.unix_ms.saturating_add(wall_ms), self.steady_ms.saturating_add(steady_ms));
        Moment { unix_ms, steady_ms, ..self }
    }

    /// The current second of the wall clock.
    pub fn timestamp(self) -> Timestamp {
        Timestamp::from_unix_ms(self.unix_ms)
    }

    /// The current second of the steady clock.
    pub fn steady_timestamp(self) -> Timestamp {
        Timestamp::from_unix_ms(self.steady_ms)
    }

    /// The first whole second that is at least `seconds` ahead, so that a period of that length does not end early. For
    /// zero, the current second.
    pub fn in_seconds(self, seconds: u32) -> Timestamp {
        let has_fraction = self.timestamp().unix_ms() < self.unix_ms;
        let rounded_up = u32::from(seconds > 0 && has_fraction);
        self.timestamp().plus_seconds(seconds.saturating_add(rounded_up))
    }
}

/// A source of time. Clones read the same clock.
#[derive(Clone, Debug)]
pub struct Clock(ClockSource);

#[derive(Clone, Debug)]
enum ClockSource {
    System(Arc<SystemStart>),
    Manual(Arc<ManualClock>),
}

/// The readings of the system's clocks at the start.
#[derive(Debug)]
struct SystemStart {
    instant: Instant,
    unix_ms: i64,
    /// How long the machine had been suspended before the start.
    suspended_ms: i64,
    /// How long it has been suspended since, as last measured.
    slept_ms: AtomicI64,
    /// What is added to the wall clock: see [`Clock::align`].
    shift_ms: AtomicI64,
    /// The same for the steady clock, or [`NOT_ALIGNED`].
    steady_shift_ms: AtomicI64,
}

/// The clock of this machine is the only one.
const NOT_ALIGNED: i64 = i64::MIN;

impl SystemStart {
    fn shifts(&self) -> (i64, i64) {
        let steady_ms = self.steady_shift_ms.load(Ordering::Relaxed);
        (self.shift_ms.load(Ordering::Relaxed), if steady_ms == NOT_ALIGNED { 0 } else { steady_ms })
    }

    /// [`Moment::steady_ms`]. The time suspended is measured only if the wall clock is ahead, which saves the system
    /// calls for nearly every request.
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
struct ManualClock {
    started_unix_ms: i64,
    unix_ms: AtomicI64,
    mono_ms: AtomicU64,
    suspended_ms: AtomicI64,
}

impl Clock {
    /// The machine's own clock.
    pub fn system() -> Self {
        Clock(ClockSource::System(Arc::new(SystemStart {
            instant: Instant::now(),
            unix_ms: system_unix_ms(),
            suspended_ms: system_suspended_ms(),
            slept_ms: AtomicI64::new(0),
            shift_ms: AtomicI64::new(0),
            steady_shift_ms: AtomicI64::new(NOT_ALIGNED),
        })))
    }

    /// A clock that changes only when it is set, for tests and simulations.
    pub fn manual(unix_ms: i64) -> Self {
        let (mono_ms, suspended_ms) = (AtomicU64::new(0), AtomicI64::new(0));
        let manual = ManualClock { started_unix_ms: unix_ms, unix_ms: AtomicI64::new(unix_ms), mono_ms, suspended_ms };
        Clock(ClockSource::Manual(Arc::new(manual)))
    }

    pub fn now(&self) -> Moment {
        self.now_at(Instant::now())
    }

    /// The monotonic reading alone, which takes less than all three.
    pub fn mono_ms(&self) -> u64 {
        match &self.0 {
            ClockSource::System(start) => millis(start.instant.elapsed()).unsigned_abs(),
            ClockSource::Manual(manual) => manual.mono_ms.load(Ordering::SeqCst),
        }
    }

    /// Like [`Clock::now`], for callers that have just read the monotonic clock.
    pub fn now_at(&self, instant: Instant) -> Moment {
        match &self.0 {
            ClockSource::System(start) => {
                let (unix_ms, mono_ms) = (system_unix_ms(), millis(instant.saturating_duration_since(start.instant)));
                let steady_ms = start.steady_ms(mono_ms, unix_ms);
                Moment { unix_ms, mono_ms: mono_ms.unsigned_abs(), steady_ms }.plus(start.shifts())
            }
            ClockSource::Manual(manual) => {
                let (unix_ms, mono_ms) = (manual.unix_ms.load(Ordering::SeqCst), manual.mono_ms.load(Ordering::SeqCst));
                let awake_ms = i64::try_from(mono_ms).unwrap_or(i64::MAX);
                let elapsed_ms = awake_ms.saturating_add(manual.suspended_ms.load(Ordering::SeqCst));
                Moment { unix_ms, mono_ms, steady_ms: steady_ms(manual.started_unix_ms, elapsed_ms, unix_ms) }
            }
        }
    }

    /// Moves the wall time of the system's clock for this process, so that the nodes of a cluster agree. The steady reading moves
    /// the first time only: whoever sets the other clock later refunds no quota either. No effect on a manual clock.
    pub fn align(&self, by_ms: i64) {
        if let ClockSource::System(start) = &self.0 {
            let shift_ms = start.shift_ms.fetch_add(by_ms, Ordering::Relaxed).saturating_add(by_ms);
            let steady_ms = &start.steady_shift_ms;
            // It fails if this is not the first time.
            let _ = steady_ms.compare_exchange(NOT_ALIGNED, shift_ms, Ordering::Relaxed, Ordering::Relaxed);
        }
    }

    /// Advances a manual clock, wall time and monotonic. No effect on the system's clock.
    pub fn advance(&self, by: Duration) {
        if let ClockSource::Manual(manual) = &self.0 {
            manual.unix_ms.fetch_add(millis(by), Ordering::SeqCst);
            manual.mono_ms.fetch_add(millis(by).unsigned_abs(), Ordering::SeqCst);
        }
    }

    /// Sets the wall time of a manual clock, as an operator would. The monotonic reading does not change.
    pub fn set_unix_ms(&self, unix_ms: i64) {
        if let ClockSource::Manual(manual) = &self.0 {
            manual.unix_ms.store(unix_ms, Ordering::SeqCst);
        }
    }

    /// Advances a manual clock as suspending the machine does: the monotonic reading does not change.
    pub fn suspend(&self, by: Duration) {
        if let ClockSource::Manual(manual) = &self.0 {
            manual.unix_ms.fetch_add(millis(by), Ordering::SeqCst);
            manual.suspended_ms.fetch_add(millis(by), Ordering::SeqCst);
        }
    }
}

/// The wall clock, limited to the time elapsed since the start and the tolerated drift.
fn steady_ms(started_unix_ms: i64, elapsed_ms: i64, unix_ms: i64) -> i64 {
    let expected = started_unix_ms.saturating_add(elapsed_ms);
    let drift = (elapsed_ms / DRIFT_ONE_IN).clamp(0, DRIFT_MS_MAX);
    unix_ms.clamp(expected.saturating_sub(drift), expected.saturating_add(drift))
}

fn system_unix_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, millis)
}

/// How long the machine has been suspended since boot. [`Instant`] does not include that time.
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

/// Unknown on this system: after a suspension, quotas reset late until a restart.
#[cfg(not(target_os = "linux"))]
fn system_suspended_ms() -> i64 {
    0
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

/// Detects steps of the wall clock and reports each once.
#[derive(Clone, Copy, Debug, Default)]
pub struct StepWatch {
    /// How far the wall clock was ahead at the last check.
    ahead_ms: i64,
    /// When a step was last reported.
    reported_at_ms: Option<u64>,
}

impl StepWatch {
    /// Shorter steps are not reported: `steady_ms` soon absorbs them.
    const STEP_MS_MIN: i64 = 1_000;
    const REPORT_EVERY_MS: u64 = 60_000;

    /// If the wall clock was set since the last check, how many milliseconds it is ahead of the steady clock (negative
    /// if behind). At most one report a minute.
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
    fn setting_the_clock_does_not_move_the_steady_clock() {
        let clock = Clock::manual(NOON_MS);
        for by_ms in [DAY_MS, -DAY_MS, 1, -1] {
            clock.set_unix_ms(NOON_MS + by_ms);
            assert_eq!(clock.now(), Moment { unix_ms: NOON_MS + by_ms, mono_ms: 0, steady_ms: NOON_MS });
        }
        clock.set_unix_ms(NOON_MS + DAY_MS);
        clock.advance(DAY);
        let drift_ms = DAY_MS / 1_000;
        assert_eq!(clock.now().steady_ms, NOON_MS + DAY_MS + drift_ms, "it follows within the tolerated drift");
        clock.set_unix_ms(NOON_MS);
        assert_eq!(clock.now().steady_ms, NOON_MS + DAY_MS - drift_ms);
        clock.advance(10_000 * DAY);
        clock.set_unix_ms(NOON_MS);
        assert_eq!(clock.now().steady_ms, NOON_MS + 10_001 * DAY_MS - DRIFT_MS_MAX, "and by at most an hour");
    }

    #[test]
    fn steady_clock_follows_drift_and_small_corrections() {
        let clock = Clock::manual(NOON_MS);
        for day in 1..=40 {
            clock.advance(DAY);
            // Nine seconds a day, 100 ppm, is typical of cheap quartz.
            clock.set_unix_ms(clock.now().unix_ms + 9_000);
            assert_eq!(clock.now().steady_ms, clock.now().unix_ms, "day {day}");
        }
    }

    #[test]
    fn steady_clock_includes_time_suspended() {
        let clock = Clock::manual(NOON_MS);
        clock.suspend(3 * DAY);
        assert_eq!(clock.now(), Moment { unix_ms: NOON_MS + 3 * DAY_MS, mono_ms: 0, steady_ms: NOON_MS + 3 * DAY_MS });
        clock.set_unix_ms(NOON_MS + 9 * DAY_MS);
        assert_eq!(clock.now().steady_ms, NOON_MS + 3 * DAY_MS + 3 * DAY_MS / 1_000, "but not a step on top of it");
    }

    #[test]
    fn system_clock_agrees_with_its_steady_reading() {
        let clock = Clock::system();
        let now = clock.now();
        assert!((now.unix_ms - now.steady_ms).abs() < 60_000, "{now:?}");
        assert!((now.mono_ms..now.mono_ms + 60_000).contains(&clock.mono_ms()), "{now:?}");
        assert!(system_suspended_ms() >= -1);
    }

    #[test]
    fn clock_is_aligned_and_its_steady_reading_once() {
        let clock = Clock::system();
        clock.align(DAY_MS);
        let now = clock.now();
        assert!((now.unix_ms - system_unix_ms() - DAY_MS).abs() < 60_000);
        assert!((now.steady_ms - now.unix_ms).abs() < 60_000, "{now:?}");
        clock.align(-DAY_MS);
        let later = clock.now();
        assert!((later.unix_ms - system_unix_ms()).abs() < 60_000);
        assert!(later.steady_ms >= now.steady_ms, "{now:?}, {later:?}");
    }

    #[test]
    fn each_step_is_reported_once_and_repeated_steps_once_a_minute() {
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
    fn in_seconds_rounds_up_to_a_whole_second() {
        let at = |unix_ms: i64, seconds: u32| Moment::unset(unix_ms, 0).in_seconds(seconds).unix_ms() - NOON_MS;
        assert_eq!([at(NOON_MS, 3), at(NOON_MS + 1, 3), at(NOON_MS + 999, 3)], [3_000, 4_000, 4_000]);
        assert_eq!(at(NOON_MS + 999, 0), 0, "zero is not rounded up");
        assert_eq!(Moment::unset(NOON_MS + 1, 0).in_seconds(u32::MAX), Timestamp::MAX);
    }
}
