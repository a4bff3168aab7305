//! The lease desk: how a meter asks for more, and how those who wait for it are woken.
//!
//! Owns the way between meters and whoever stores what they hand out. A meter has a bell; ringing it puts the key's
//! id in the desk's queue once, until it is answered, so the queue is never longer than there are keys. [`serve`]
//! empties it: plan, store, grant, in that order. Nothing here blocks, and nothing here knows where leases are stored:
//! that is the one call of [`LeaseBook`], which another machine may answer one day.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use tokio::sync::Notify;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::record::{KeyId, Usage};
use super::ring::{KeyEntry, Keyring};
use crate::clock::Clock;

/// As many leases as are stored in one go.
const BATCH_MAX: usize = 1024;

/// Where leases are written down before they are handed out.
pub trait LeaseBook {
    /// Stores all of `leases`; they are usable once this has returned `Ok`. After an error none of them is handed
    /// out, whether it was stored or not.
    fn take(&self, leases: Vec<(KeyId, Usage)>) -> impl Future<Output = Result<(), LeaseDeclined>> + Send;
}

/// The lease could not be stored. Not the client's fault: the request may be tried again later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no lease could be stored for this key")]
pub struct LeaseDeclined;

/// The side of the meters.
#[derive(Clone, Debug)]
pub struct LeaseDesk {
    wanted: UnboundedSender<KeyId>,
}

/// The side of whoever stores the leases.
#[derive(Debug)]
pub struct LeaseRequests {
    wanted: UnboundedReceiver<KeyId>,
}

impl LeaseDesk {
    pub fn open() -> (LeaseDesk, LeaseRequests) {
        let (sender, receiver) = unbounded_channel();
        (LeaseDesk { wanted: sender }, LeaseRequests { wanted: receiver })
    }

    pub(super) fn bell(&self, id: KeyId) -> Bell {
        let (rung, declined) = (AtomicBool::new(false), AtomicU32::new(0));
        Bell { id, desk: self.clone(), rung, declined, answered: Notify::new() }
    }
}

impl LeaseRequests {
    /// The keys that want a lease, as soon as there is one; empty when every meter is gone.
    pub async fn next(&mut self) -> Vec<KeyId> {
        let mut keys = Vec::new();
        self.wanted.recv_many(&mut keys, BATCH_MAX).await;
        keys
    }

    /// Takes out all that is there and counts it.
    #[cfg(test)]
    pub(super) fn waiting(&mut self) -> usize {
        std::iter::from_fn(|| self.wanted.try_recv().ok()).count()
    }
}

/// Stores and grants leases until every meter is gone. At shutdown it is dropped, after the last request.
pub async fn serve(mut requests: LeaseRequests, keyring: &Keyring, clock: &Clock, book: &impl LeaseBook) {
    loop {
        let keys = requests.next().await;
        if keys.is_empty() {
            return;
        }
        let plan = |id| {
            let entry = keyring.get(id)?;
            let lease = entry.meter().plan_lease(clock.now())?;
            Some((entry, lease))
        };
        let planned: Vec<(Arc<KeyEntry>, Usage)> = keys.iter().filter_map(plan).collect();
        let leases: Vec<_> = planned.iter().map(|(entry, lease)| (entry.id().clone(), *lease)).collect();
        if leases.is_empty() {
            continue;
        }
        let stored = book.take(leases).await;
        for (entry, lease) in planned {
            match stored {
                Ok(()) => entry.meter().grant(lease),
                Err(LeaseDeclined) => entry.meter().decline_lease(),
            }
        }
    }
}

/// What a meter rings when it runs low.
#[derive(Debug)]
pub(super) struct Bell {
    id: KeyId,
    desk: LeaseDesk,
    /// Set while an answer is awaited.
    rung: AtomicBool,
    declined: AtomicU32,
    answered: Notify,
}

impl Bell {
    /// Asks for a lease, unless one has been asked for.
    pub(super) fn ring(&self) {
        let already = self.rung.load(Ordering::Acquire) || self.rung.swap(true, Ordering::AcqRel);
        if !already && self.desk.wanted.send(self.id.clone()).is_err() {
            self.decline();
        }
    }

    /// The answer has come. The bell can be rung again before anyone is woken, so who then finds too little left can.
    pub(super) fn answer(&self) {
        self.rung.store(false, Ordering::Release);
        self.answered.notify_waiters();
    }

    pub(super) fn decline(&self) {
        self.declined.fetch_add(1, Ordering::Release);
        self.answer();
    }

    /// The next answer. It is heard from the moment of this call on, polled or not: make the future first, then look
    /// whether it is needed, and no answer can fall in between.
    pub(super) fn next_answer(&self) -> impl Future<Output = Result<(), LeaseDeclined>> + Send + '_ {
        let declined = self.declined.load(Ordering::Acquire);
        let answered = self.answered.notified();
        async move {
            answered.await;
            if self.declined.load(Ordering::Acquire) == declined { Ok(()) } else { Err(LeaseDeclined) }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::keys::fixture::{NOON, at, catalogue, limited};
    use crate::keys::meter::{Cost, Refusal};

    /// A book that fails its first so many leases.
    #[derive(Default)]
    struct Book {
        failures: AtomicU32,
        stored: Mutex<Vec<(KeyId, Usage)>>,
    }

    impl LeaseBook for Book {
        async fn take(&self, leases: Vec<(KeyId, Usage)>) -> Result<(), LeaseDeclined> {
            let fails = |left: u32| left.checked_sub(1);
            if self.failures.fetch_update(Ordering::SeqCst, Ordering::SeqCst, fails).is_ok() {
                return Err(LeaseDeclined);
            }
            self.stored.lock().unwrap().extend(leases);
            Ok(())
        }
    }

    /// Sends requests until the day is spent, waiting for leases; how many passed and how often none could be had.
    async fn spend(entry: &KeyEntry, clock: &Clock) -> (u64, u32) {
        let (mut passed, mut declined) = (0, 0);
        loop {
            match entry.meter().charge(Cost::Full, clock.now()) {
                Ok(_) => passed += 1,
                Err(Refusal::NeedsLease) => {
                    declined += u32::from(entry.meter().lease_arrives(clock.now()).await.is_err());
                }
                Err(_) => return (passed, declined),
            }
        }
    }

    #[tokio::test]
    async fn every_key_gets_its_quota_and_all_of_it_was_stored_first() {
        let keys = [120, 250, 1000].map(|day| (limited(1_000_000, Some(day), None), Usage::default()));
        let (desk, requests) = LeaseDesk::open();
        let keyring = Keyring::new(Arc::new(catalogue()), keys, desk);
        let (clock, book) = (Clock::manual(at(NOON).unix_ms()), Book::default());
        let entries = keyring.list();
        let clients = async {
            for entry in &entries {
                let (passed, _) = spend(entry, &clock).await;
                assert_eq!(Some(passed), entry.record().limits.per_day);
                let stored = book.stored.lock().unwrap();
                let highest = stored.iter().filter(|(id, _)| id == entry.id()).map(|(_, usage)| usage.day_used).max();
                assert_eq!(highest, Some(passed));
            }
        };
        tokio::select! {
            () = clients => {}
            () = serve(requests, &keyring, &clock, &book) => panic!("the meters are still there"),
        }
    }

    #[tokio::test]
    async fn a_book_that_fails_is_asked_again_and_nothing_unstored_is_handed_out() {
        let (desk, requests) = LeaseDesk::open();
        let keys = [(limited(1_000_000, Some(500), None), Usage::default())];
        let keyring = Keyring::new(Arc::new(catalogue()), keys, desk);
        let (clock, book) = (Clock::manual(at(NOON).unix_ms()), Book { failures: 3.into(), ..Book::default() });
        let entries = keyring.list();
        let (passed, declined) = tokio::select! {
            spent = spend(&entries[0], &clock) => spent,
            () = serve(requests, &keyring, &clock, &book) => panic!("the meters are still there"),
        };
        assert_eq!((passed, declined), (500, 3));
    }

    #[tokio::test]
    async fn the_desk_closes_with_its_last_meter() {
        let (desk, mut requests) = LeaseDesk::open();
        let bell = desk.bell(limited(1, Some(1), None).id);
        drop(desk);
        bell.ring();
        bell.ring();
        drop(bell);
        assert_eq!(requests.next().await.len(), 1);
        assert_eq!(requests.next().await.len(), 0);
    }
}
