//! The open streams of a key: how many there are, and that a change of the key reaches every one of them before it is
//! acknowledged.
//!
//! A stream has a [`StreamSeat`]. After a change of its key it checks whether it may go on, and says so; one that may not ends,
//! and its seat is free. [`OpenStreams::settled`] waits for both, and aborts the connections of streams that do neither,
//! because their clients do not read.
//!
//! In a cluster the limit holds for all nodes together: each stream that is opened or closed here is reported through the lease
//! queue to the task that counts with the engine.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::{Notify, oneshot};

use super::leases::LeaseDeclined;
use super::record::KeyId;
use crate::wake::WakeSlot;

/// How long a stream has to end by itself, and how long its connection has after that.
const PATIENCE: Duration = Duration::from_secs(1);

/// A question or a message to whoever counts the streams of all nodes.
#[derive(Debug)]
pub(super) struct StreamNotice {
    pub(super) key: KeyId,
    /// Whether this node may have the streams that it has now; nobody asks when one was closed.
    pub(super) reply: Option<oneshot::Sender<Result<bool, LeaseDeclined>>>,
}

/// The way to whoever counts the streams of all nodes.
#[derive(Clone, Debug)]
pub(super) struct StreamCounter {
    pub(super) key: KeyId,
    pub(super) notices: UnboundedSender<StreamNotice>,
}

/// The streams of one key.
#[derive(Debug, Default)]
pub struct OpenStreams {
    /// In the order in which they were opened.
    seats: Mutex<Vec<Arc<Seat>>>,
    /// Counts the changes of the key.
    changes: AtomicU64,
    progress: Notify,
    /// Present in a cluster.
    counter: Option<StreamCounter>,
}

#[derive(Debug)]
struct Seat {
    slot: Arc<WakeSlot>,
    /// Closes the connection of the stream.
    abort: Arc<Notify>,
    /// The last change of the key that the stream has checked.
    checked: AtomicU64,
}

impl OpenStreams {
    /// In a cluster.
    pub(super) fn counted_by(counter: StreamCounter) -> Self {
        OpenStreams { counter: Some(counter), ..OpenStreams::default() }
    }

    /// Whether all nodes together may have the streams that are open. To be asked for each that is opened.
    pub(crate) async fn are_allowed(&self) -> Result<bool, LeaseDeclined> {
        let Some(StreamCounter { key, notices }) = &self.counter else { return Ok(true) };
        let (reply, answer) = oneshot::channel();
        let notice = StreamNotice { key: key.clone(), reply: Some(reply) };
        notices.send(notice).map_err(|_| LeaseDeclined)?;
        answer.await.unwrap_or(Err(LeaseDeclined))
    }

    /// Opens a stream, unless there are as many as the key may have. `abort` closes its connection.
    pub(crate) fn open(
        self: &Arc<Self>,
        streams_max: u32,
        slot: &Arc<WakeSlot>,
        abort: Arc<Notify>,
    ) -> Option<StreamSeat> {
        let mut seats = self.seats();
        if seats.len() >= streams_max as usize {
            return None;
        }
        let checked = AtomicU64::new(self.changes.load(Ordering::Acquire));
        let seat = Arc::new(Seat { slot: Arc::clone(slot), abort, checked });
        seats.push(Arc::clone(&seat));
        Some(StreamSeat { streams: Arc::clone(self), seat })
    }

    pub fn count(&self) -> usize {
        self.seats().len()
    }

    /// The key has changed: every stream checks whether it may go on.
    pub fn recheck(&self) {
        self.changes.fetch_add(1, Ordering::AcqRel);
        for seat in self.seats().iter() {
            seat.slot.notify();
        }
    }

    /// Waits until every stream has checked the last change of the key, or has ended.
    pub async fn settled(&self) {
        let change = self.changes.load(Ordering::Acquire);
        if tokio::time::timeout(PATIENCE, self.all_checked(change)).await.is_ok() {
            return;
        }
        for seat in self.seats().iter().filter(|seat| seat.checked.load(Ordering::Acquire) < change) {
            seat.abort.notify_one();
        }
        // A connection that is closed drops its streams at once.
        if tokio::time::timeout(PATIENCE, self.all_checked(change)).await.is_err() {
            tracing::warn!("streams of a key that changed have not ended in time");
        }
    }

    async fn all_checked(&self, change: u64) {
        loop {
            let progress = self.progress.notified();
            if self.seats().iter().all(|seat| seat.checked.load(Ordering::Acquire) >= change) {
                return;
            }
            progress.await;
        }
    }

    fn seats(&self) -> MutexGuard<'_, Vec<Arc<Seat>>> {
        self.seats.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One open stream, until it is dropped.
#[derive(Debug)]
pub struct StreamSeat {
    streams: Arc<OpenStreams>,
    seat: Arc<Seat>,
}

impl StreamSeat {
    /// The changes of the key so far. To be read before the key is checked.
    pub(crate) fn changes(&self) -> u64 {
        self.streams.changes.load(Ordering::Acquire)
    }

    /// The stream goes on under the key as it was after so many changes.
    pub(crate) fn has_checked(&self, changes: u64) {
        if self.seat.checked.swap(changes, Ordering::AcqRel) != changes {
            self.streams.progress.notify_waiters();
        }
    }

    /// Whether it is among the first so many streams of the key. Without a change of the key it stays one of them: others only
    /// come after it.
    pub(crate) fn is_within(&self, streams_max: u32) -> bool {
        let seats = self.streams.seats();
        // A change lets every stream ask, and looking for itself takes each of them longer the more there are.
        seats.len() <= streams_max as usize
            || seats.iter().take(streams_max as usize).any(|seat| Arc::ptr_eq(seat, &self.seat))
    }
}

impl Drop for StreamSeat {
    fn drop(&mut self) {
        self.streams.seats().retain(|seat| !Arc::ptr_eq(seat, &self.seat));
        self.streams.progress.notify_waiters();
        if let Some(StreamCounter { key, notices }) = &self.streams.counter {
            // It fails if nobody counts any more.
            let _ = notices.send(StreamNotice { key: key.clone(), reply: None });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn change_is_settled_when_every_stream_has_checked_it_or_ended() {
        let streams = Arc::new(OpenStreams::default());
        let slot = Arc::new(WakeSlot::default());
        let open = || streams.open(2, &slot, Arc::default());
        let (first, second) = (open().unwrap(), open().unwrap());
        assert!(open().is_none(), "the key may have two");
        streams.recheck();
        let mut settled = Box::pin(streams.settled());
        assert!(tokio::time::timeout(Duration::from_millis(1), &mut settled).await.is_err());
        first.has_checked(first.changes());
        assert!(tokio::time::timeout(Duration::from_millis(1), &mut settled).await.is_err());
        drop(second);
        settled.await;
        assert_eq!(streams.count(), 1);
        assert!(first.is_within(1) && !first.is_within(0));
    }

    #[tokio::test(start_paused = true)]
    async fn stream_that_does_not_react_is_aborted() {
        let streams = Arc::new(OpenStreams::default());
        let abort = Arc::new(Notify::new());
        let seat = streams.open(1, &Arc::default(), Arc::clone(&abort)).unwrap();
        streams.recheck();
        let connection = async move {
            abort.notified().await;
            drop(seat);
        };
        tokio::join!(streams.settled(), connection);
        assert_eq!(streams.count(), 0);
    }
}
