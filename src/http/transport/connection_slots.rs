//! The places for connections: how many may be open at once, a number that may change while they are.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

#[derive(Debug)]
pub(crate) struct ConnectionSlots {
    free: Arc<Semaphore>,
    /// How many there are, taken ones included.
    count: u32,
    /// How many there should be. While there are more, places that come back are taken away.
    wanted: u32,
}

impl ConnectionSlots {
    pub(crate) fn new(count: u32) -> Self {
        ConnectionSlots { free: Arc::new(Semaphore::new(count as usize)), count, wanted: count }
    }

    /// Makes them as many as wanted, at once where they are free and when they come back otherwise.
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

    /// A place, once there is one; it comes back when what is returned is dropped.
    pub(crate) async fn take(&mut self) -> OwnedSemaphorePermit {
        loop {
            match Arc::clone(&self.free).acquire_owned().await {
                Ok(place) if self.count <= self.wanted => return place,
                Ok(place) => {
                    place.forget();
                    self.count -= 1;
                }
                // The semaphore is never closed.
                Err(_) => std::future::pending().await,
            }
        }
    }

    /// Returns when every place has come back.
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

    /// A place if one is free now.
    fn try_take(places: &mut ConnectionSlots) -> Option<OwnedSemaphorePermit> {
        match pin!(places.take()).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(place) => Some(place),
            Poll::Pending => None,
        }
    }

    #[test]
    fn places_grow_and_shrink_around_those_taken() {
        let mut places = ConnectionSlots::new(2);
        let mut taken = vec![try_take(&mut places).unwrap(), try_take(&mut places).unwrap()];
        assert!(try_take(&mut places).is_none());
        places.fit(3);
        taken.push(try_take(&mut places).unwrap());
        assert_eq!((try_take(&mut places).is_none(), places.taken()), (true, 3));
        // Down to one: nobody is put out, and the next two that leave take their places with them.
        places.fit(1);
        for _ in 0..2 {
            taken.pop();
            assert!(try_take(&mut places).is_none());
        }
        assert_eq!(places.taken(), 1);
        taken.pop();
        let last = try_take(&mut places);
        assert!(last.is_some() && try_take(&mut places).is_none());
        places.fit(4);
        assert_eq!((places.count, places.taken()), (4, 1));
    }
}
