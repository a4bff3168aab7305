//! What a stream hands out next, in turns: after enough bytes for one client others have theirs, however fast it reads.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll};

use bytes::Bytes;

const TURN_BYTES: usize = 256 << 10;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    queue: VecDeque<Bytes>,
    /// How many bytes were taken in this turn.
    turn_bytes: usize,
}

impl Outbox {
    pub(super) fn push(&mut self, bytes: Bytes) {
        self.queue.push_back(bytes);
    }

    pub(super) fn take_next(&mut self) -> Option<Bytes> {
        let bytes = self.queue.pop_front()?;
        Some(self.take(bytes))
    }

    /// As much of these bytes as a turn has room for; the rest is next.
    pub(super) fn take(&mut self, mut bytes: Bytes) -> Bytes {
        if bytes.len() > TURN_BYTES {
            self.queue.push_front(bytes.split_off(TURN_BYTES));
        }
        self.turn_bytes += bytes.len();
        bytes
    }

    pub(super) fn has_had_its_turn(&self) -> bool {
        self.turn_bytes >= TURN_BYTES
    }

    pub(super) fn end_turn(&mut self) {
        self.turn_bytes = 0;
    }

    /// Goes on when others have had their turn, also those whose request has yet to be read from its socket: a task that wakes
    /// itself goes before them.
    pub(super) fn yield_turn<T>(&mut self, task: &mut Context<'_>) -> Poll<T> {
        self.end_turn();
        if pin!(tokio::task::yield_now()).poll(task).is_ready() {
            task.waker().wake_by_ref();
        }
        Poll::Pending
    }
}
