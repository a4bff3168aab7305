//! The limits of keys, which all nodes use together: what the engine gives to this node, and takes back.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::mpsc;

use super::alone::AloneShares;
use super::engine::{Engine, EngineError, LogIdentity};
use super::lease::{Contact, Lease, WhenCutOff};
use crate::clock::Clock;
use crate::keys::{KeyId, KeyNeed, KeyShare, LeaseDeclined, LimitSet, Recall, ShareSource, Unused};
use crate::model::EntryId;

/// How long other nodes have to give back what they do not use. One that does not answer keeps what it has.
const RECALL_WAIT: Duration = Duration::from_millis(500);
/// How often it is checked whether they have.
const RECALL_CHECK: Duration = Duration::from_millis(5);
/// How long a reading of recalls waits for one.
const READ_WAIT: Duration = Duration::from_secs(1);
/// How long to wait before an engine that did not answer is asked again.
const RETRY: Duration = Duration::from_millis(200);

/// See the module.
#[derive(Debug)]
pub struct EngineShares<E> {
    engine: Arc<E>,
    log: LogIdentity,
    node: Box<str>,
    lease: Option<(Arc<Lease<E>>, Clock)>,
    /// Whether it counts alone when the lease has ended.
    goes_on: bool,
    alone: AloneShares,
    /// The last restart of the engine after which this node has reported its shares.
    restated_ms: AtomicU64,
}

impl<E: Engine> EngineShares<E> {
    pub fn new(engine: Arc<E>, log: LogIdentity, node: &str) -> Self {
        let (node, alone) = (node.into(), AloneShares::default());
        EngineShares { engine, log, node, lease: None, goes_on: false, alone, restated_ms: AtomicU64::new(0) }
    }

    /// The same with a lease, by which it knows when the engine was restarted, and when to count alone.
    #[must_use]
    pub fn with_lease(self, lease: Arc<Lease<E>>, clock: Clock, when_cut_off: WhenCutOff) -> Self {
        EngineShares { lease: Some((lease, clock)), goes_on: when_cut_off == WhenCutOff::Serve, ..self }
    }

    /// Of how many nodes this one is, if it is cut off and goes on, and the time.
    fn is_alone_of(&self) -> Option<(u64, u64)> {
        let (lease, clock) = self.lease.as_ref().filter(|_| self.goes_on)?;
        let now = clock.now();
        let nodes = if lease.is_held(now) { None } else { lease.nodes() };
        nodes.map(|nodes| (nodes, u64::try_from(now.unix_ms).unwrap_or_default()))
    }

    /// Waits until nodes have answered a recall, or do not. Returns whether all have.
    async fn answered(&self, but: Option<&str>, recall: EntryId) -> Result<bool, EngineError> {
        let answered = async {
            while !self.engine.is_recalled(but, recall).await? {
                tokio::time::sleep(RECALL_CHECK).await;
            }
            Ok(())
        };
        tokio::time::timeout(RECALL_WAIT, answered).await.map_or(Ok(false), |answered| answered.map(|()| true))
    }

    /// Counts the use of a key's day and month anew, on all nodes. Returns whether all of them know.
    pub async fn reset(&self, key: &KeyId) -> Result<bool, EngineError> {
        let recall = self.engine.recall(key, LimitSet::QUOTAS).await?;
        self.answered(None, recall).await?;
        let reset = self.engine.reset_usage(self.log, key).await?;
        self.answered(None, reset).await
    }

    /// The last recall, for a node that has nothing to give back: it has just been started. To be called before it takes a
    /// request.
    pub async fn begin(&self) -> Result<EntryId, EngineError> {
        self.engine.end_streams(&self.node).await?;
        let last = self.engine.last_recall().await?;
        self.engine.give_back(self.log, &self.node, &[], Some(last)).await?;
        Ok(last)
    }

    /// Passes on the recalls after one.
    pub async fn read_recalls(&self, mut after: EntryId, recalls: mpsc::Sender<Recall>) {
        while !recalls.is_closed() {
            match self.engine.recalls(after, READ_WAIT).await {
                Ok(read) => {
                    for recall in read {
                        after = recall.id;
                        // It fails if nothing is given back any more.
                        let _ = recalls.send(recall).await;
                    }
                }
                Err(error) => {
                    tracing::debug!(%error, "recalls could not be read");
                    tokio::time::sleep(RETRY).await;
                }
            }
        }
    }
}

impl<E: Engine> ShareSource for EngineShares<E> {
    async fn share(&self, needs: &[(KeyId, KeyNeed)]) -> Result<Vec<KeyShare>, LeaseDeclined> {
        if let Some((nodes, now_ms)) = self.is_alone_of() {
            return Ok(self.alone.share(needs, nodes, now_ms));
        }
        match self.engine.share(self.log, &self.node, needs).await {
            Ok(shares) => {
                if self.goes_on {
                    self.alone.note(needs, &shares);
                }
                Ok(shares)
            }
            Err(error) => Err(declined(error)),
        }
    }

    async fn has_forgotten(&self) -> u64 {
        let Some((lease, _)) = &self.lease else { return std::future::pending().await };
        let mut contact = lease.contact();
        let since = |contact: &Option<Contact>| contact.as_ref().map_or(0, |contact| contact.view.since_ms);
        let later = contact.wait_for(|contact| since(contact) > self.restated_ms.load(Ordering::Relaxed)).await;
        let since = later.ok().map(|contact| since(&contact));
        // Without it, the node has ended.
        match since {
            Some(since) => since,
            None => std::future::pending().await,
        }
    }

    async fn restate(&self, holdings: &[(KeyId, KeyNeed)], forgotten: u64) -> Result<(), LeaseDeclined> {
        self.engine.restate(self.log, &self.node, holdings, forgotten).await.map_err(declined)?;
        self.restated_ms.store(forgotten, Ordering::Relaxed);
        Ok(())
    }

    async fn recall(&self, key: &KeyId, limits: LimitSet) -> Result<(), LeaseDeclined> {
        if self.is_alone_of().is_some() {
            // There is nobody to give anything back.
            return Ok(());
        }
        let recall = self.engine.recall(key, limits).await.map_err(declined)?;
        self.answered(Some(&self.node), recall).await.map_err(declined)?;
        Ok(())
    }

    async fn put_streams(&self, key: &KeyId, open: u32, streams_max: u32) -> Result<bool, LeaseDeclined> {
        if let Some((nodes, _)) = self.is_alone_of() {
            return Ok(u64::from(open) <= (u64::from(streams_max) / nodes).max(1));
        }
        self.engine.put_streams(self.log, &self.node, key, open, streams_max).await.map_err(declined)
    }

    async fn give_back(&self, unused: &[(KeyId, Unused)], answered: Option<EntryId>) {
        if let Err(error) = self.engine.give_back(self.log, &self.node, unused, answered).await {
            tracing::warn!(%error, "what this node has not used of the limits of keys could not be given back: it counts as used");
        }
    }
}

fn declined(error: EngineError) -> LeaseDeclined {
    tracing::debug!(%error, "the engine gave no share of a key's limits");
    LeaseDeclined
}
