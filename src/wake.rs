//! Waking many waiting tasks at once, from any thread.
//!
//! A task that waits has a [`WakeSlot`]. It takes what is pending, looks for work, and registers before it waits: a
//! notification in between is seen by the register call, so none is lost.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

/// What one task is woken through.
#[derive(Debug, Default)]
pub(crate) struct WakeSlot {
    is_pending: AtomicBool,
    /// How far its task has come, in numbers that only grow.
    progress: AtomicU64,
    waker: Mutex<Option<Waker>>,
}

impl WakeSlot {
    pub(crate) fn notify(&self) {
        self.is_pending.store(true, Ordering::Release);
        if let Some(waker) = lock(&self.waker).take() {
            waker.wake();
        }
    }

    pub(crate) fn set_progress(&self, progress: u64) {
        self.progress.store(progress, Ordering::Relaxed);
    }

    /// Whether a notification has come since [`WakeSlot::begin`].
    pub(crate) fn is_pending(&self) -> bool {
        self.is_pending.load(Ordering::Acquire)
    }

    /// Forgets notifications so far. What they are about must be looked at after this.
    pub(crate) fn begin(&self) {
        self.is_pending.store(false, Ordering::Relaxed);
        // What was written before a notification is seen after this.
        fence(Ordering::SeqCst);
    }

    /// Registers the task to be woken. False if a notification has come since [`WakeSlot::begin`]: then look again.
    #[must_use]
    pub(crate) fn wait(&self, waker: &Waker) -> bool {
        {
            let mut slot = lock(&self.waker);
            if slot.as_ref().is_none_or(|registered| !registered.will_wake(waker)) {
                *slot = Some(waker.clone());
            }
        }
        !self.is_pending()
    }
}

/// Tasks that are woken together.
#[derive(Debug, Default)]
pub(crate) struct WakeList(Mutex<Waiting>);

#[derive(Debug, Default)]
struct Waiting {
    /// By number, so in the order in which they came: what belongs to one lies in memory beside what belongs to the next, and
    /// is read in this order when all are woken.
    slots: BTreeMap<u64, Arc<WakeSlot>>,
    next: u64,
}

impl WakeList {
    /// Adds a task. The number is for [`WakeList::remove`].
    pub(crate) fn add(&self, slot: &Arc<WakeSlot>) -> u64 {
        let mut waiting = lock(&self.0);
        let number = waiting.next;
        waiting.next += 1;
        waiting.slots.insert(number, Arc::clone(slot));
        number
    }

    pub(crate) fn remove(&self, number: u64) {
        lock(&self.0).slots.remove(&number);
    }

    pub(crate) fn len(&self) -> usize {
        lock(&self.0).slots.len()
    }

    /// How far the task has come that is furthest behind.
    pub(crate) fn least_progress(&self) -> Option<u64> {
        lock(&self.0).slots.values().map(|slot| slot.progress.load(Ordering::Relaxed)).min()
    }

    pub(crate) fn notify_all(&self) {
        for slot in lock(&self.0).slots.values() {
            slot.notify();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;
    use std::task::Wake;

    use super::*;

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn no_notification_is_lost() {
        let count = Arc::new(Count::default());
        let waker = Waker::from(Arc::clone(&count));
        let (list, slot) = (WakeList::default(), Arc::new(WakeSlot::default()));
        let number = list.add(&slot);
        slot.begin();
        assert!(!slot.is_pending());
        list.notify_all();
        assert!(slot.is_pending() && !slot.wait(&waker), "it came between the look and the wait");
        slot.begin();
        assert!(slot.wait(&waker));
        list.notify_all();
        list.notify_all();
        assert!(count.0.load(Ordering::Relaxed) >= 1);
        list.remove(number);
        assert_eq!(list.len(), 0);
    }
}
