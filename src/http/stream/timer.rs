//! The timer of a stream: a client that has heard nothing for a while gets a comment, and a key that expires ends its streams.
//!
//! It is set again only when it fires: most streams have an event before that, and setting a timer for each of those would cost
//! more than the event.

use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::task::coop;
use tokio::time::{Instant, Sleep};

/// The longest time without anything for a client.
const SILENCE_MAX: Duration = Duration::from_secs(15);

#[derive(Debug)]
pub(super) struct StreamTimer {
    sleep: Pin<Box<Sleep>>,
    due: Instant,
    /// What it was last polled with.
    task: Option<Waker>,
    /// When the client last got something.
    heard: Instant,
}

impl StreamTimer {
    pub(super) fn new() -> Self {
        let heard = Instant::now();
        let due = heard + SILENCE_MAX;
        StreamTimer { sleep: Box::pin(tokio::time::sleep_until(due)), due, task: None, heard }
    }

    /// The client gets something.
    pub(super) fn note_heard(&mut self) {
        self.heard = Instant::now();
    }

    /// Lets it fire when the client has heard nothing for as long as it may, or after so many seconds.
    pub(super) fn set(&mut self, seconds_left: Option<u32>) {
        let mut due = self.heard + SILENCE_MAX;
        if let Some(left) = seconds_left {
            due = due.min(Instant::now() + Duration::from_secs(u64::from(left.max(1))));
        }
        self.sleep.as_mut().reset(due);
        self.due = due;
        // It has to be polled once after it was set.
        self.task = None;
    }

    /// Whether the client has heard nothing for as long as it may, now that it has fired: there may have been something since it
    /// was set.
    pub(super) fn ends_silence(&mut self) -> bool {
        let now = Instant::now();
        let is_silent = now >= self.heard + SILENCE_MAX;
        if is_silent {
            self.heard = now;
        }
        is_silent
    }

    /// It has the task that it wakes: until it is due there is nothing to ask it.
    pub(super) fn poll(&mut self, task: &mut Context<'_>) -> Poll<()> {
        let is_set = self.task.as_ref().is_some_and(|set| set.will_wake(task.waker()));
        if is_set && Instant::now() < self.due {
            return Poll::Pending;
        }
        // Without any budget left it does not take the task, and has to be polled again.
        self.task = coop::has_budget_remaining().then(|| task.waker().clone());
        self.sleep.as_mut().poll(task)
    }
}
