//! Slots for connections: how many may be open at once, a number that may change while they are; and how many of them one
//! address has.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, PoisonError};

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

/// How many connections, or streams, each address has open, counted only where there is a bound. An IPv6 address counts as its /64
/// network: a host usually has all the addresses of one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Addresses(Arc<Mutex<HashMap<IpAddr, u32>>>);

/// What a connection from an address is counted under.
fn counted_as(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & (u128::MAX << 64)).into(),
    }
}

/// One connection or stream of an address, until it is dropped.
#[derive(Debug, Default)]
pub(crate) struct AddressCount(Option<(Addresses, IpAddr)>);

impl Addresses {
    /// `None` if the address has its full number.
    pub(crate) fn enter(&self, address: IpAddr, max: Option<u32>) -> Option<AddressCount> {
        let Some(max) = max else { return Some(AddressCount(None)) };
        let address = counted_as(address);
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(address).or_default();
        if *count >= max {
            return None;
        }
        *count += 1;
        Some(AddressCount(Some((self.clone(), address))))
    }
}

impl Drop for AddressCount {
    fn drop(&mut self) {
        let Some((addresses, address)) = self.0.take() else { return };
        let mut counts = addresses.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = counts.get_mut(&address) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&address);
            }
        }
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

    #[test]
    fn an_address_holds_no_more_than_its_number() {
        let addresses = Addresses::default();
        let address = IpAddr::from([127, 0, 0, 1]);
        let entered = addresses.enter(address, Some(1));
        assert!(entered.is_some());
        assert!(addresses.enter(address, Some(1)).is_none());
        assert!(addresses.enter([127, 0, 0, 2].into(), Some(1)).is_some());
        drop(entered);
        assert!(addresses.enter(address, Some(1)).is_some());
        assert!(addresses.0.lock().unwrap().len() <= 1);
    }

    #[test]
    fn addresses_of_one_ipv6_network_count_as_one() {
        let addresses = Addresses::default();
        let enter = |address: &str| addresses.enter(address.parse().unwrap(), Some(1));
        let _held = (enter("2001:db8:0:1::1"), enter("192.0.2.1"));
        for (address, has_room) in [
            ("2001:db8:0:1:ffff::2", false),
            ("2001:db8:0:2::1", true),
            ("::ffff:192.0.2.1", false),
            ("192.0.2.2", true),
        ] {
            assert_eq!(enter(address).is_some(), has_room, "{address}");
        }
    }
}
