//! The last hour of the public door, in steps: for whoever looks at it later than it happened.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use super::histogram::FineSpread;

/// What happened in one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// When the step ended, in seconds since 1970.
    pub ended_s: i64,
    pub requests: u64,
    /// Answers of 500 and above.
    pub errors: u64,
    /// Answers of 401, 403 and 429.
    pub refused: u64,
    /// `None` where there was no request.
    pub p50_us: Option<u64>,
    pub p99_us: Option<u64>,
}

/// What had been counted at the end of a step.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    pub requests: u64,
    pub errors: u64,
    pub refused: u64,
    pub latency: FineSpread,
}

/// A ring of the steps of the last hour.
#[derive(Debug, Default)]
pub struct History(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    steps: VecDeque<Step>,
    seen: Seen,
}

impl History {
    /// How long a step is.
    pub const STEP_S: u64 = 5;
    /// How many are kept: an hour of them.
    pub const STEPS_MAX: usize = 720;

    /// The steps of the last hour that the server has seen, oldest first.
    pub fn steps(&self) -> Vec<Step> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).steps.iter().copied().collect()
    }

    /// Ends a step with what has been counted until now.
    pub(super) fn end_step(&self, ended_s: i64, now: Seen) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let latency = now.latency.since(&kept.seen.latency);
        let step = Step {
            ended_s,
            requests: now.requests.saturating_sub(kept.seen.requests),
            errors: now.errors.saturating_sub(kept.seen.errors),
            refused: now.refused.saturating_sub(kept.seen.refused),
            p50_us: latency.percentile_us(50),
            p99_us: latency.percentile_us(99),
        };
        kept.seen = now;
        if kept.steps.len() == Self::STEPS_MAX {
            kept.steps.pop_front();
        }
        kept.steps.push_back(step);
    }
}
