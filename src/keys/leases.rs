//! The lease queue between meters and the store.
//!
//! A meter that runs low enqueues its key's id, at most once until the request is resolved, so the queue is never
//! longer than the number of keys. [`serve`] drains the queue: plan, store, grant, in that order. Nothing here blocks
//! or knows where leases are stored: that is behind [`LeaseStore`].

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use tokio::sync::Notify;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::keyring::{KeyEntry, Keyring};
use super::record::{KeyId, Usage};
use super::streams::{OpenStreams, StreamCounter, StreamNotice};
use crate::clock::Clock;

/// The maximum number of leases stored in one batch.
const BATCH_MAX: usize = 1024;

/// Persists leases before they are granted.
pub trait LeaseStore {
    /// Stores all of `leases`; they are usable once this has returned `Ok`. After an error none of them is granted,
    /// whether it was stored or not.
    fn store_leases(&self, leases: Vec<(KeyId, Usage)>) -> impl Future<Output = Result<(), LeaseDeclined>> + Send;
}

/// The lease could not be stored. Not the client's fault: the request may be retried later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no lease could be stored for this key")]
pub struct LeaseDeclined;

/// The sending half of the queue, of which each meter has one.
#[derive(Clone, Debug)]
pub struct LeaseQueue {
    sender: UnboundedSender<KeyId>,
    /// In a cluster, where leases are shares of what all nodes may use, and streams are those of all nodes.
    streams: Option<UnboundedSender<StreamNotice>>,
}

/// The receiving half of the queue.
#[derive(Debug)]
pub struct LeaseRequests {
    receiver: UnboundedReceiver<KeyId>,
    streams: UnboundedReceiver<StreamNotice>,
}

/// What [`LeaseRequests::next_or_stream`] has received.
#[derive(Debug)]
pub(super) enum Request {
    /// Keys that need a lease; empty once every meter has been dropped.
    Leases(Vec<KeyId>),
    Stream(StreamNotice),
}

impl LeaseQueue {
    pub fn open() -> (LeaseQueue, LeaseRequests) {
        Self::open_with(false)
    }

    /// The queue of a node of a cluster: see [`super::shares`].
    pub fn open_shared() -> (LeaseQueue, LeaseRequests) {
        Self::open_with(true)
    }

    fn open_with(is_shared: bool) -> (LeaseQueue, LeaseRequests) {
        let (sender, receiver) = unbounded_channel();
        let (notices, streams) = unbounded_channel();
        (LeaseQueue { sender, streams: is_shared.then_some(notices) }, LeaseRequests { receiver, streams })
    }

    pub(super) fn is_shared(&self) -> bool {
        self.streams.is_some()
    }

    /// The streams of a key.
    pub(super) fn streams_of(&self, key: KeyId) -> OpenStreams {
        let counter = self.streams.clone().map(|notices| StreamCounter { key, notices });
        counter.map_or_else(OpenStreams::default, OpenStreams::counted_by)
    }

    pub(super) fn requester(&self, id: KeyId) -> LeaseRequester {
        let (is_pending, declined) = (AtomicBool::new(false), AtomicU32::new(0));
        LeaseRequester { id, queue: self.clone(), is_pending, declined, resolved: Notify::new() }
    }
}

impl LeaseRequests {
    /// Waits for at least one key that needs a lease; empty once every meter has been dropped.
    pub async fn next(&mut self) -> Vec<KeyId> {
        let mut keys = Vec::new();
        self.receiver.recv_many(&mut keys, BATCH_MAX).await;
        keys
    }

    /// The same, or a message about streams.
    pub(super) async fn next_or_stream(&mut self) -> Request {
        let mut keys = Vec::new();
        tokio::select! {
            _ = self.receiver.recv_many(&mut keys, BATCH_MAX) => Request::Leases(keys),
            Some(notice) = self.streams.recv() => Request::Stream(notice),
        }
    }

    /// Removes all pending requests and returns their number.
    #[cfg(test)]
    pub(super) fn drain(&mut self) -> usize {
        std::iter::from_fn(|| self.receiver.try_recv().ok()).count()
    }
}

/// Stores and grants leases until every meter has been dropped. Shutdown drops this future after the last request.
pub async fn serve(mut requests: LeaseRequests, keyring: &Keyring, clock: &Clock, store: &impl LeaseStore) {
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
        let stored = store.store_leases(leases).await;
        for (entry, lease) in planned {
            match stored {
                Ok(()) => entry.meter().grant(lease),
                Err(LeaseDeclined) => entry.meter().decline_lease(),
            }
        }
    }
}

/// One key's access to the queue: requests leases and wakes the tasks that wait for them.
#[derive(Debug)]
pub(super) struct LeaseRequester {
    id: KeyId,
    queue: LeaseQueue,
    /// Set from a request until it is resolved.
    is_pending: AtomicBool,
    declined: AtomicU32,
    resolved: Notify,
}

impl LeaseRequester {
    /// Requests a lease, unless a request is pending.
    pub(super) fn request(&self) {
        let is_pending = self.is_pending.load(Ordering::Acquire) || self.is_pending.swap(true, Ordering::AcqRel);
        if !is_pending && self.queue.sender.send(self.id.clone()).is_err() {
            self.decline();
        }
    }

    /// Resolves the pending request. The flag is cleared before waiters wake, so that a waiter for which the lease was
    /// too small can request another.
    pub(super) fn resolve(&self) {
        self.is_pending.store(false, Ordering::Release);
        self.resolved.notify_waiters();
    }

    pub(super) fn decline(&self) {
        self.declined.fetch_add(1, Ordering::Release);
        self.resolve();
    }

    /// Waits for the next resolution. The future is registered when it is created, not when it is first polled: create
    /// it before checking whether a lease is needed, so that no resolution is missed in between.
    pub(super) fn next_resolution(&self) -> impl Future<Output = Result<(), LeaseDeclined>> + Send + '_ {
        let declined = self.declined.load(Ordering::Acquire);
        let resolved = self.resolved.notified();
        async move {
            resolved.await;
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

    /// A store that fails the first `failures` batches.
    #[derive(Default)]
    struct FailingStore {
        failures: AtomicU32,
        stored: Mutex<Vec<(KeyId, Usage)>>,
    }

    impl LeaseStore for FailingStore {
        async fn store_leases(&self, leases: Vec<(KeyId, Usage)>) -> Result<(), LeaseDeclined> {
            let fails = |left: u32| left.checked_sub(1);
            if self.failures.fetch_update(Ordering::SeqCst, Ordering::SeqCst, fails).is_ok() {
                return Err(LeaseDeclined);
            }
            self.stored.lock().unwrap().extend(leases);
            Ok(())
        }
    }

    /// Sends requests until the quota is exhausted, waiting for leases. Returns the passed requests and the declined
    /// leases.
    async fn exhaust(entry: &KeyEntry, clock: &Clock) -> (u64, u32) {
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
    async fn every_key_gets_its_quota_and_all_of_it_is_stored_first() {
        let keys = [120, 250, 1000].map(|day| (limited(1_000_000, Some(day), None), Usage::default()));
        let (queue, requests) = LeaseQueue::open();
        let keyring = Keyring::new(Arc::new(catalogue()), keys, queue);
        let (clock, store) = (Clock::manual(at(NOON).unix_ms()), FailingStore::default());
        let entries = keyring.list();
        let clients = async {
            for entry in &entries {
                let (passed, _) = exhaust(entry, &clock).await;
                assert_eq!(Some(passed), entry.record().limits.per_day);
                let stored = store.stored.lock().unwrap();
                let highest = stored.iter().filter(|(id, _)| id == entry.id()).map(|(_, usage)| usage.day_used).max();
                assert_eq!(highest, Some(passed));
            }
        };
        tokio::select! {
            () = clients => {}
            () = serve(requests, &keyring, &clock, &store) => panic!("the meters are still there"),
        }
    }

    #[tokio::test]
    async fn failed_store_is_retried_and_grants_nothing() {
        let (queue, requests) = LeaseQueue::open();
        let keys = [(limited(1_000_000, Some(500), None), Usage::default())];
        let keyring = Keyring::new(Arc::new(catalogue()), keys, queue);
        let clock = Clock::manual(at(NOON).unix_ms());
        let store = FailingStore { failures: 3.into(), ..FailingStore::default() };
        let entries = keyring.list();
        let (passed, declined) = tokio::select! {
            counts = exhaust(&entries[0], &clock) => counts,
            () = serve(requests, &keyring, &clock, &store) => panic!("the meters are still there"),
        };
        assert_eq!((passed, declined), (500, 3));
    }

    #[tokio::test]
    async fn queue_closes_with_its_last_meter() {
        let (queue, mut requests) = LeaseQueue::open();
        let requester = queue.requester(limited(1, Some(1), None).id);
        drop(queue);
        requester.request();
        requester.request();
        drop(requester);
        assert_eq!(requests.next().await.len(), 1);
        assert_eq!(requests.next().await.len(), 0);
    }
}
