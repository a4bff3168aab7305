//! Time, passed in: everything that depends on the hour asks a [`Clock`], never the system.
//!
//! A moment has two readings. `unix_ms` is the wall clock, which an operator or NTP may set backwards; `mono_ms`
//! only ever grows. Windows that must not be refunded by a clock change use the second, dates use the first.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::model::Timestamp;

/// One reading of a clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    pub unix_ms: i64,
    pub mono_ms: u64,
}

impl Moment {
    pub fn timestamp(self) -> Timestamp {
        Timestamp::from_unix_ms(self.unix_ms)
    }
}

/// Where a component gets its time from; clones read the same clock.
#[derive(Clone, Debug)]
pub struct Clock(Source);

#[derive(Clone, Debug)]
enum Source {
    System { started: Instant },
    Manual(Arc<Hands>),
}

#[derive(Debug)]
struct Hands {
    unix_ms: AtomicI64,
    mono_ms: AtomicU64,
}

impl Clock {
    /// The machine's own clock.
    pub fn system() -> Self {
        Clock(Source::System { started: Instant::now() })
    }

    /// A clock that stands still until it is moved, for tests and simulations.
    pub fn manual(unix_ms: i64) -> Self {
        Clock(Source::Manual(Arc::new(Hands { unix_ms: AtomicI64::new(unix_ms), mono_ms: AtomicU64::new(0) })))
    }

    pub fn now(&self) -> Moment {
        self.now_at(Instant::now())
    }

    /// The same for who has just looked at the monotonic clock.
    pub fn now_at(&self, instant: Instant) -> Moment {
        match &self.0 {
            Source::System { started } => Moment {
                unix_ms: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, millis),
                mono_ms: millis(instant.saturating_duration_since(*started)).unsigned_abs(),
            },
            Source::Manual(hands) => {
                Moment { unix_ms: hands.unix_ms.load(Ordering::SeqCst), mono_ms: hands.mono_ms.load(Ordering::SeqCst) }
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
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}
