//! The traffic of the public API over the last hour, in steps of a few seconds.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use super::histogram::FineSnapshot;

/// The traffic of one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HistoryStep {
    /// The end of the step, in seconds since 1970.
    pub ended_s: i64,
    pub requests: u64,
    /// Responses of 500 and above.
    pub errors: u64,
    /// Responses of 401, 403 and 429.
    pub refused: u64,
    /// `None` if there was no request.
    pub p50_us: Option<u64>,
    pub p99_us: Option<u64>,
}

/// The counters at the end of a step.
#[derive(Clone, Debug, Default)]
pub(super) struct CounterSnapshot {
    pub requests: u64,
    pub errors: u64,
    pub refused: u64,
    pub latency: FineSnapshot,
}

/// The steps of the last hour.
#[derive(Debug, Default)]
pub struct History(Mutex<HistoryState>);

#[derive(Debug, Default)]
struct HistoryState {
    steps: VecDeque<HistoryStep>,
    last: CounterSnapshot,
}

impl History {
    /// The length of a step.
    pub const STEP_S: u64 = 5;
    /// The number of steps kept: one hour.
    pub const STEPS_MAX: usize = 720;

    /// The steps of the last hour, oldest first; fewer if the server started later.
    pub fn steps(&self) -> Vec<HistoryStep> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).steps.iter().copied().collect()
    }

    /// Ends a step at the current counters.
    pub(super) fn end_step(&self, ended_s: i64, now: CounterSnapshot) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let latency = now.latency.since(&state.last.latency);
        let step = HistoryStep {
            ended_s,
            requests: now.requests.saturating_sub(state.last.requests),
            errors: now.errors.saturating_sub(state.last.errors),
            refused: now.refused.saturating_sub(state.last.refused),
            p50_us: latency.percentile_us(50),
            p99_us: latency.percentile_us(99),
        };
        state.last = now;
        if state.steps.len() == Self::STEPS_MAX {
            state.steps.pop_front();
        }
        state.steps.push_back(step);
    }
}
