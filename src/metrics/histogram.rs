//! Histograms of durations.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Upper bounds of the exported buckets, from far below the usual duration of a request to far above.
pub(super) const BOUNDS_US: [u64; 16] = [
    50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000, 2_500_000,
    5_000_000,
];
const BUCKETS: usize = BOUNDS_US.len() + 1;

/// Durations counted by bucket.
#[derive(Debug, Default)]
pub struct Histogram {
    buckets: [AtomicU64; BUCKETS],
    sum_ns: AtomicU64,
}

/// The counts of a histogram at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HistogramSnapshot {
    /// The last bucket is above every bound.
    pub(super) buckets: [u64; BUCKETS],
    pub(super) sum_ns: u64,
}

impl Histogram {
    pub fn record(&self, took: Duration) {
        let us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        // Bounds are inclusive. Fractions of a microsecond above a bound are ignored.
        let bucket = BOUNDS_US.partition_point(|bound| *bound < us);
        self.buckets[bucket].fetch_add(1, Ordering::Relaxed);
        self.sum_ns.fetch_add(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    pub fn snapshot(&self) -> HistogramSnapshot {
        let buckets = std::array::from_fn(|at| self.buckets[at].load(Ordering::Relaxed));
        HistogramSnapshot { buckets, sum_ns: self.sum_ns.load(Ordering::Relaxed) }
    }
}

impl HistogramSnapshot {
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    pub(super) fn add(&mut self, other: &HistogramSnapshot) {
        for (own, other) in self.buckets.iter_mut().zip(other.buckets) {
            *own += other;
        }
        self.sum_ns += other.sum_ns;
    }
}

/// The base-2 logarithm of the number of buckets per doubling of a duration.
const STEPS_LOG2: u32 = 2;
const STEPS: usize = 1 << STEPS_LOG2;
/// Up to 16 s, from 1 µs.
const DOUBLINGS: usize = 22;
pub(super) const FINE_BUCKETS: usize = STEPS + DOUBLINGS * STEPS;

/// Durations counted with an error of at most a quarter, for percentiles.
#[derive(Debug)]
pub(super) struct FineHistogram([AtomicU64; FINE_BUCKETS]);

/// The counts of a [`FineHistogram`] at one moment, or between two.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FineSnapshot(pub(super) [u64; FINE_BUCKETS]);

impl Default for FineHistogram {
    fn default() -> Self {
        FineHistogram(std::array::from_fn(|_| AtomicU64::new(0)))
    }
}

impl Default for FineSnapshot {
    fn default() -> Self {
        FineSnapshot([0; FINE_BUCKETS])
    }
}

impl FineHistogram {
    pub(super) fn record(&self, took: Duration) {
        self.0[fine_bucket(u64::try_from(took.as_micros()).unwrap_or(u64::MAX))].fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn add_to(&self, spread: &mut FineSnapshot) {
        for (sum, bucket) in spread.0.iter_mut().zip(&self.0) {
            *sum += bucket.load(Ordering::Relaxed);
        }
    }
}

impl FineSnapshot {
    /// The counts since an earlier snapshot.
    pub(super) fn since(&self, earlier: &FineSnapshot) -> FineSnapshot {
        FineSnapshot(std::array::from_fn(|at| self.0[at].saturating_sub(earlier.0[at])))
    }

    /// The given percentile with an error of at most a quarter; `None` if nothing was counted.
    pub(super) fn percentile_us(&self, percent: u64) -> Option<u64> {
        let count: u64 = self.0.iter().sum();
        let wanted = (count * percent).div_ceil(100).max(1);
        let mut seen = 0;
        let at = self.0.iter().position(|bucket| {
            seen += bucket;
            seen >= wanted
        })?;
        Some(fine_bound_us(at))
    }
}

fn fine_bucket(us: u64) -> usize {
    let Some(doubling) = us.checked_ilog2().and_then(|log| log.checked_sub(STEPS_LOG2)) else {
        return usize::try_from(us).unwrap_or(0);
    };
    let step = usize::try_from(us >> doubling).unwrap_or(0) - STEPS;
    (STEPS + doubling as usize * STEPS + step).min(FINE_BUCKETS - 1)
}

/// The largest whole number of microseconds in a bucket.
fn fine_bound_us(bucket: usize) -> u64 {
    let Some(above) = bucket.checked_sub(STEPS) else { return bucket as u64 };
    let (doubling, step) = (above / STEPS, above % STEPS);
    (((STEPS + step + 1) as u64) << doubling) - 1
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn bounds_are_inclusive() {
        let histogram = Histogram::default();
        for (us, at) in [(0, 0), (50, 0), (51, 1), (100, 1), (5_000_000, 15), (5_000_001, 16), (u64::MAX / 1000, 16)] {
            let before = histogram.snapshot();
            histogram.record(Duration::from_micros(us));
            assert_eq!(histogram.snapshot().buckets[at], before.buckets[at] + 1, "{us}");
        }
        assert_eq!(histogram.snapshot().count(), 7);
    }

    #[test]
    fn percentile_is_the_bound_of_its_bucket() {
        let fine = FineHistogram::default();
        let mut spread = FineSnapshot::default();
        assert_eq!(spread.percentile_us(99), None);
        for _ in 0..98 {
            fine.record(Duration::from_micros(3));
        }
        fine.record(Duration::from_micros(900));
        fine.record(Duration::from_secs(3600));
        fine.add_to(&mut spread);
        assert_eq!((spread.percentile_us(50), spread.percentile_us(98)), (Some(3), Some(3)));
        assert_eq!(spread.percentile_us(99), Some(1023));
        assert_eq!(spread.percentile_us(100), Some((1 << 24) - 1));
    }

    proptest! {
        #[test]
        fn fine_bucket_is_within_a_quarter_of_the_duration(us in 0_u64..1 << 24) {
            let bound = fine_bound_us(fine_bucket(us));
            prop_assert!(bound >= us && bound - us <= us / 4, "{us} is reported as {bound}");
            prop_assert_eq!(fine_bucket(bound), fine_bucket(us));
        }
    }
}
