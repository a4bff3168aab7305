//! Whether the writer answers: a ping goes through its fast lane every second, and readiness and the watchdog read how
//! long the last one has been waiting. So a request to `/readyz` never waits for the writer and adds nothing to its queue.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::writer::WriterHandle;

const ASK_EVERY: Duration = Duration::from_secs(1);

/// What is known of the writer. While one exists, the writer goes on.
#[derive(Debug)]
pub(super) struct WriterWatch {
    writer: WriterHandle,
    state: Mutex<PingState>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PingState {
    Answered,
    /// Asked at this time, and not answered yet.
    Asked(Instant),
    /// The thread has ended.
    Gone,
}

impl WriterWatch {
    pub(super) fn new(writer: WriterHandle) -> Self {
        WriterWatch { writer, state: Mutex::new(PingState::Answered) }
    }

    /// Asks the writer every second until it is gone.
    pub(super) async fn run(&self) {
        loop {
            *self.lock() = PingState::Asked(Instant::now());
            let answered = self.writer.ping().await;
            *self.lock() = if answered.is_ok() { PingState::Answered } else { PingState::Gone };
            if answered.is_err() {
                return;
            }
            tokio::time::sleep(ASK_EVERY).await;
        }
    }

    /// Whether the writer has answered within `patience`.
    pub(super) fn answers_within(&self, patience: Duration) -> bool {
        let state = *self.lock();
        state.is_within(patience, Instant::now())
    }

    /// The same, but without counting a check of the file, which keeps the writer busy for a time that grows with the file.
    pub(super) fn answers_or_checks(&self, patience: Duration) -> bool {
        let state = *self.lock();
        state.is_within(patience, Instant::now())
            || (state != PingState::Gone && self.writer.snapshot_job_progress().is_some())
    }

    fn lock(&self) -> MutexGuard<'_, PingState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PingState {
    fn is_within(self, patience: Duration, now: Instant) -> bool {
        match self {
            PingState::Answered => true,
            PingState::Asked(since) => now - since < patience,
            PingState::Gone => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writer_is_late_once_a_question_waits_beyond_the_patience() {
        let (now, patience) = (Instant::now(), Duration::from_secs(5));
        assert!(PingState::Answered.is_within(patience, now));
        assert!(PingState::Asked(now).is_within(patience, now + Duration::from_secs(4)));
        assert!(!PingState::Asked(now).is_within(patience, now + Duration::from_secs(5)));
        assert!(!PingState::Gone.is_within(patience, now));
    }
}
