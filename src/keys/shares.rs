//! The other end of the lease queue in a cluster: meters get shares of what all nodes may use together.
//!
//! As long as something is left, a node gets a part of it, the smaller the less is left. When all is given out, the other nodes
//! are asked to give back what they have not used, before a request is refused. So exactly as many requests pass as the
//! limit allows, however they are spread over the nodes.
//!
//! One task does all of it, one step after the other: what a node gives back is all that it has, never what is on its way.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::keyring::{KeyEntry, Keyring};
use super::leases::{LeaseDeclined, LeaseRequests, Request};
use super::meter::{KeyNeed, KeyShare, LimitSet, Unused};
use super::record::KeyId;
use super::streams::StreamNotice;
use crate::clock::Clock;
use crate::model::EntryId;

/// How long to wait before a report that failed is repeated.
const RETRY: Duration = Duration::from_millis(100);

/// A recall: nodes give back what they have not used of limits of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recall {
    pub id: EntryId,
    pub key: KeyId,
    pub limits: LimitSet,
    /// Whether what was used of these counts anew.
    pub is_reset: bool,
}

/// What holds the limits of all nodes together.
pub trait ShareSource: Send + Sync + 'static {
    /// Gives shares of the limits of keys, in the order of `needs`. After an error it is not known what was given: it counts
    /// as used.
    fn share(&self, needs: &[(KeyId, KeyNeed)]) -> impl Future<Output = Result<Vec<KeyShare>, LeaseDeclined>> + Send;

    /// Waits until the shares that were given to this node may have been forgotten. Returns the number to restate them with.
    fn has_forgotten(&self) -> impl Future<Output = u64> + Send;

    /// Reports the shares that this node has. Until all nodes have done so, no shares are given.
    fn restate(
        &self,
        holdings: &[(KeyId, KeyNeed)],
        forgotten: u64,
    ) -> impl Future<Output = Result<(), LeaseDeclined>> + Send;

    /// Asks the other nodes to give back what they have not used of limits of a key; returns when they have, or do not answer.
    fn recall(&self, key: &KeyId, limits: LimitSet) -> impl Future<Output = Result<(), LeaseDeclined>> + Send;

    /// This node has so many streams of a key open. Returns whether all nodes together may have as many.
    fn put_streams(
        &self,
        key: &KeyId,
        open: u32,
        streams_max: u32,
    ) -> impl Future<Output = Result<bool, LeaseDeclined>> + Send;

    /// Takes back what this node has not used, as the answer to a recall or because it stops.
    fn give_back(&self, unused: &[(KeyId, Unused)], answered: Option<EntryId>) -> impl Future<Output = ()> + Send;
}

/// A key of which all is given out, after the other nodes were asked to give back what they have not used.
type Recalled = (Arc<KeyEntry>, KeyNeed, Result<(), LeaseDeclined>);

/// Gets and grants shares, and answers recalls, until no request can be charged any more; then gives everything back.
pub async fn serve(
    mut requests: LeaseRequests,
    mut recalls: mpsc::Receiver<Recall>,
    keyring: Arc<Keyring>,
    clock: Clock,
    source: Arc<impl ShareSource>,
    stop: impl Future<Output = ()>,
) {
    let mut stop = std::pin::pin!(stop);
    // Dropped with this future.
    let mut waiting: JoinSet<Recalled> = JoinSet::new();
    loop {
        tokio::select! {
            () = &mut stop => return give_all_back(&keyring, &clock, &*source).await,
            forgotten = source.has_forgotten() => restate(forgotten, &keyring, &clock, &*source).await,
            request = requests.next_or_stream() => match request {
                Request::Leases(keys) if keys.is_empty() => return,
                Request::Leases(keys) => {
                    for (entry, unmet) in share(&keys, &keyring, &clock, &*source).await {
                        let source = Arc::clone(&source);
                        waiting.spawn(async move {
                            let recalled = source.recall(entry.id(), unmet.limits()).await;
                            (entry, unmet, recalled)
                        });
                    }
                }
                Request::Stream(notice) => count_streams(notice, &keyring, &*source).await,
            },
            Some(recalled) = waiting.join_next() => {
                if let Ok(recalled) = recalled {
                    share_again(recalled, &clock, &*source).await;
                }
            }
            Some(recall) = recalls.recv() => {
                let unused = keyring.get(&recall.key).map(|entry| answer(&entry, &recall, &clock));
                source.give_back(unused.as_slice(), Some(recall.id)).await;
            }
        }
    }
}

/// Tells how many streams of a key are open here, and answers whether that is allowed.
async fn count_streams(StreamNotice { key, reply }: StreamNotice, keyring: &Keyring, source: &impl ShareSource) {
    let Some(entry) = keyring.get(&key) else { return };
    let open = u32::try_from(entry.meter().streams().count()).unwrap_or(u32::MAX);
    let allowed = source.put_streams(&key, open, entry.record().limits.streams).await;
    if let Some(reply) = reply {
        // Whoever asked may be gone.
        let _ = reply.send(allowed);
    }
}

/// What a key has not used, which it then no longer has.
fn answer(entry: &KeyEntry, recall: &Recall, clock: &Clock) -> (KeyId, Unused) {
    if recall.is_reset {
        entry.meter().forget_exhaustion();
    }
    (entry.id().clone(), entry.meter().take_unused(recall.limits, clock.now()))
}

/// Gives back what is not used of any key.
async fn give_all_back(keyring: &Keyring, clock: &Clock, source: &impl ShareSource) {
    let take = |entry: Arc<KeyEntry>| (entry.id().clone(), entry.meter().take_unused(LimitSet::ALL, clock.now()));
    let unused = keyring.list().into_iter().map(take);
    let unused: Vec<_> = unused.filter(|(_, unused)| !unused.is_empty()).collect();
    source.give_back(&unused, None).await;
}

/// Reports this node's shares of all keys. After a failure `has_forgotten` is ready again, and the report is repeated.
async fn restate(forgotten: u64, keyring: &Keyring, clock: &Clock, source: &impl ShareSource) {
    let holdings = |entry: Arc<KeyEntry>| Some((entry.id().clone(), entry.meter().holdings(clock.now())?));
    let holdings: Vec<_> = keyring.list().into_iter().filter_map(holdings).collect();
    if source.restate(&holdings, forgotten).await.is_err() {
        tokio::time::sleep(RETRY).await;
    }
}

/// Gets shares for keys; returns those of which nodes have all.
async fn share(
    keys: &[KeyId],
    keyring: &Keyring,
    clock: &Clock,
    source: &impl ShareSource,
) -> Vec<(Arc<KeyEntry>, KeyNeed)> {
    let asked = clock.now();
    let plan = |id| {
        let entry = keyring.get(id)?;
        let need = entry.meter().plan_share(asked)?;
        Some((entry, need))
    };
    let planned: Vec<(Arc<KeyEntry>, KeyNeed)> = keys.iter().filter_map(plan).collect();
    let needs: Vec<_> = planned.iter().map(|(entry, need)| (entry.id().clone(), *need)).collect();
    if needs.is_empty() {
        return Vec::new();
    }
    let Ok(shares) = source.share(&needs).await else {
        for (entry, _) in planned {
            entry.meter().decline_lease();
        }
        return Vec::new();
    };
    let mut given_out = Vec::new();
    for ((entry, need), share) in planned.into_iter().zip(shares) {
        entry.meter().grant_share(need, share, asked);
        let unmet = need.unmet(&share);
        if unmet.is_empty() {
            entry.meter().resolve_lease();
        } else {
            given_out.push((entry, unmet));
        }
    }
    given_out
}

/// Asks again for what was not given, now that the other nodes have given back what they do not use.
async fn share_again((entry, unmet, recalled): Recalled, clock: &Clock, source: &impl ShareSource) {
    let (meter, asked) = (entry.meter(), clock.now());
    let shares = match recalled {
        Ok(()) => source.share(&[(entry.id().clone(), unmet)]).await,
        Err(LeaseDeclined) => Err(LeaseDeclined),
    };
    let Ok(shares) = shares else { return meter.decline_lease() };
    for share in shares {
        meter.grant_share(unmet, share, asked);
        meter.exhaust(unmet.unmet(&share));
    }
    meter.resolve_lease();
}
