//! Slots for connections: how many may be open at once, a number that may change while they are.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

#[derive(Debug)]
pub(crate) struct ConnectionSlots {
    free: Arc<Semaphore>,
    /// How many there are, taken ones included.
    count: u32,
    /// How many there should be. While there are more, slots that come back are removed.
    wanted: u32,
}

impl ConnectionSlots {
    pub(crate) fn new(count: u32) -> Self {
        ConnectionSlots { free: Arc::new(Semaphore::new(count as usize)), count, wanted: count }
    }

    /// Changes their number, at once where they are free and when they come back otherwise.
    pub(crate) fn fit(&mut self, wanted: u32) {
        self.wanted = wanted;
        if let Some(more) = wanted.checked_sub(self.count) {
            self.free.add_permits(more as usize);
            self.count = wanted;
        } else {
            let gone = self.free.forget_permits((self.count - wanted) as usize);
            self.count -= u32::try_from(gone).unwrap_or(0);
        }
    }

    /// A slot, once one is free; it comes back when the permit is dropped.
    pub(crate) async fn take(&mut self) -> OwnedSemaphorePermit {
        loop {
            match Arc::clone(&self.free).acquire_owned().await {
                Ok(slot) if self.count <= self.wanted => return slot,
                Ok(slot) => {
                    slot.forget();
                    self.count -= 1;
                }
                // The semaphore is never closed.
                Err(_) => std::future::pending().await,
            }
        }
    }

    /// Returns when every slot has come back.
    pub(crate) async fn all_back(&self) {
        drop(self.free.acquire_many(self.count).await);
    }

    pub(crate) fn taken(&self) -> u32 {
        self.count.saturating_sub(u32::try_from(self.free.available_permits()).unwrap_or(u32::MAX))
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    /// A slot if one is free now.
    fn try_take(slots: &mut ConnectionSlots) -> Option<OwnedSemaphorePermit> {
        match pin!(slots.take()).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(slot) => Some(slot),
            Poll::Pending => None,
        }
    }

    #[test]
    fn slots_grow_and_shrink_around_those_taken() {
        let mut slots = ConnectionSlots::new(2);
        let mut taken = vec![try_take(&mut slots).unwrap(), try_take(&mut slots).unwrap()];
        assert!(try_take(&mut slots).is_none());
        slots.fit(3);
        taken.push(try_take(&mut slots).unwrap());
        assert_eq!((try_take(&mut slots).is_none(), slots.taken()), (true, 3));
        // Down to one: nothing is closed, and the next two that end take their slots with them.
        slots.fit(1);
        for _ in 0..2 {
            taken.pop();
            assert!(try_take(&mut slots).is_none());
        }
        assert_eq!(slots.taken(), 1);
        taken.pop();
        let last = try_take(&mut slots);
        assert!(last.is_some() && try_take(&mut slots).is_none());
        slots.fit(4);
        assert_eq!((slots.count, slots.taken()), (4, 1));
    }
}
