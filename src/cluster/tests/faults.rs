//! An engine as one node reaches it: slowly, or not at all, sometimes twice, and sometimes without learning what became of a
//! request.

use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::Random;
use crate::cluster::engine::{ClusterView, Engine, EngineError, Heartbeat, LogEntry, LogIdentity, NewEntry};
use crate::keys::{KeyId, KeyNeed, KeyShare, LimitSet, Recall, Unused};
use crate::model::EntryId;

/// How long a node waits for an answer that does not come.
const TIMEOUT: Duration = Duration::from_secs(2);

/// What happens between a node and the engine.
#[derive(Debug)]
pub(super) struct Faults {
    /// Nothing gets through.
    pub is_cut: AtomicBool,
    /// Of so many in a thousand requests, either the request or the answer is lost.
    pub lost_per_mille: AtomicU64,
    /// Of so many in a thousand requests, the engine gets two.
    pub doubled_per_mille: AtomicU64,
    /// Each way takes up to so long.
    pub delay_ms: AtomicU64,
    random: Mutex<Random>,
}

impl Faults {
    pub(super) fn new(seed: u64) -> Self {
        let random = Mutex::new(Random(seed));
        Faults {
            is_cut: false.into(),
            lost_per_mille: 0.into(),
            doubled_per_mille: 0.into(),
            delay_ms: 0.into(),
            random,
        }
    }

    fn below(&self, limit: u64) -> u64 {
        self.random.lock().unwrap().below(limit.max(1))
    }

    /// One way.
    async fn travel(&self) -> Result<(), EngineError> {
        let delay_ms = self.below(self.delay_ms.load(Ordering::SeqCst) + 1);
        tokio::time::sleep(Duration::from_millis(delay_ms)).await;
        let is_lost = self.below(2_000) < self.lost_per_mille.load(Ordering::SeqCst);
        if is_lost || self.is_cut.load(Ordering::SeqCst) {
            tokio::time::sleep(TIMEOUT).await;
            return Err(EngineError::Unreachable("no answer".into()));
        }
        Ok(())
    }

    async fn pass<T, F>(&self, call: impl Fn() -> F) -> Result<T, EngineError>
    where
        F: Future<Output = Result<T, EngineError>>,
    {
        self.travel().await?;
        let answer = call().await;
        if self.below(1_000) < self.doubled_per_mille.load(Ordering::SeqCst) {
            let _ = call().await;
        }
        self.travel().await?;
        answer
    }

    /// For what a node never asks for again when it got no answer, and for what waits.
    async fn pass_once<T>(&self, call: impl Future<Output = Result<T, EngineError>>) -> Result<T, EngineError> {
        self.travel().await?;
        let answer = call.await;
        self.travel().await?;
        answer
    }
}

/// See the module.
#[derive(Debug)]
pub(super) struct FaultyEngine<E> {
    pub inner: Arc<E>,
    pub faults: Arc<Faults>,
}

impl<E: Engine> Engine for FaultyEngine<E> {
    async fn create(&self, log: LogIdentity) -> Result<Option<EntryId>, EngineError> {
        self.faults.pass(|| self.inner.create(log)).await
    }

    async fn create_anew(&self, lost: LogIdentity, log: LogIdentity) -> Result<Option<EntryId>, EngineError> {
        self.faults.pass(|| self.inner.create_anew(lost, log)).await
    }

    async fn identity(&self) -> Result<Option<LogIdentity>, EngineError> {
        self.faults.pass(|| self.inner.identity()).await
    }

    async fn append(&self, log: LogIdentity, entry: NewEntry<'_>) -> Result<EntryId, EngineError> {
        self.faults.pass(|| self.inner.append(log, entry.clone())).await
    }

    async fn read(&self, after: EntryId, count: usize, wait: Duration) -> Result<Vec<LogEntry>, EngineError> {
        self.faults.pass_once(self.inner.read(after, count, wait)).await
    }

    async fn trim(&self, log: LogIdentity, keep: Duration, bytes_max: u64) -> Result<(), EngineError> {
        self.faults.pass(|| self.inner.trim(log, keep, bytes_max)).await
    }

    async fn beat(&self, log: LogIdentity, beat: Heartbeat<'_>) -> Result<ClusterView, EngineError> {
        self.faults.pass(|| self.inner.beat(log, beat.clone())).await
    }

    async fn look(&self, log: LogIdentity) -> Result<ClusterView, EngineError> {
        self.faults.pass(|| self.inner.look(log)).await
    }

    async fn hold_duty(&self, log: LogIdentity, node: &str, lease: Duration) -> Result<Option<u64>, EngineError> {
        self.faults.pass(|| self.inner.hold_duty(log, node, lease)).await
    }

    async fn drop_duty(&self, node: &str) -> Result<(), EngineError> {
        self.faults.pass(|| self.inner.drop_duty(node)).await
    }

    async fn end_lease(&self, node: &str, is_forgotten: bool) -> Result<bool, EngineError> {
        self.faults.pass(|| self.inner.end_lease(node, is_forgotten)).await
    }

    async fn share(
        &self,
        log: LogIdentity,
        node: &str,
        needs: &[(KeyId, KeyNeed)],
    ) -> Result<Vec<KeyShare>, EngineError> {
        self.faults.pass(|| self.inner.share(log, node, needs)).await
    }

    async fn restate(
        &self,
        log: LogIdentity,
        node: &str,
        holdings: &[(KeyId, KeyNeed)],
        since_ms: u64,
    ) -> Result<(), EngineError> {
        self.faults.pass(|| self.inner.restate(log, node, holdings, since_ms)).await
    }

    async fn give_back(
        &self,
        log: LogIdentity,
        node: &str,
        unused: &[(KeyId, Unused)],
        answered: Option<EntryId>,
    ) -> Result<(), EngineError> {
        self.faults.pass_once(self.inner.give_back(log, node, unused, answered)).await
    }

    async fn reset_usage(&self, log: LogIdentity, key: &KeyId) -> Result<EntryId, EngineError> {
        self.faults.pass(|| self.inner.reset_usage(log, key)).await
    }

    async fn put_streams(
        &self,
        log: LogIdentity,
        node: &str,
        key: &KeyId,
        open: u32,
        streams_max: u32,
    ) -> Result<bool, EngineError> {
        self.faults.pass(|| self.inner.put_streams(log, node, key, open, streams_max)).await
    }

    async fn end_streams(&self, node: &str) -> Result<(), EngineError> {
        self.faults.pass(|| self.inner.end_streams(node)).await
    }

    async fn recall(&self, key: &KeyId, limits: LimitSet) -> Result<EntryId, EngineError> {
        self.faults.pass(|| self.inner.recall(key, limits)).await
    }

    async fn is_recalled(&self, but: Option<&str>, recall: EntryId) -> Result<bool, EngineError> {
        self.faults.pass(|| self.inner.is_recalled(but, recall)).await
    }

    async fn last_recall(&self) -> Result<EntryId, EngineError> {
        self.faults.pass(|| self.inner.last_recall()).await
    }

    async fn recalls(&self, after: EntryId, wait: Duration) -> Result<Vec<Recall>, EngineError> {
        self.faults.pass_once(self.inner.recalls(after, wait)).await
    }
}
