//! Everything that makes a server a node of a cluster.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::duty::Duty;
use super::engine::{Engine, EngineError, LogIdentity};
use super::lease::{Lease, NodeDetails};
use super::node::ClusterNode;
use super::shares::EngineShares;
use crate::board::Boards;
use crate::clock::Clock;
use crate::keys::{KeyId, Keyring, LeaseRequests, shares};
use crate::model::{Catalogue, Membership};
use crate::writer::{LogFuture, SharedLog, SharedOperation, Waiting, WriteError, WriterHandle};

/// What keys have used on a node is entered in the log about this often.
const RECORD_USE_EVERY: Duration = Duration::from_secs(10);
/// How long to wait before an engine that did not answer is asked again.
const RETRY: Duration = Duration::from_millis(200);
/// So many recalls may wait.
const RECALLS_MAX: usize = 64;

/// How a node is known, and how it behaves.
#[derive(Clone, Debug)]
pub struct MemberOptions {
    /// The node's name.
    pub name: Box<str>,
    pub lease: Duration,
    pub details: NodeDetails,
}

/// What a node is made of.
#[derive(Clone, Debug)]
pub struct MemberParts {
    pub catalogue: Arc<Catalogue>,
    pub writer: WriterHandle,
    pub boards: Arc<Boards>,
    pub keyring: Arc<Keyring>,
    pub clock: Clock,
}

/// See the module.
pub struct Member<E> {
    node: Arc<ClusterNode<E>>,
    lease: Arc<Lease<E>>,
    duty: Arc<Duty<E>>,
    shares: Arc<EngineShares<E>>,
    keyring: Arc<Keyring>,
    clock: Clock,
}

impl<E> fmt::Debug for Member<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Member").field("node", &self.node).finish_non_exhaustive()
    }
}

impl<E: Engine> Member<E> {
    /// A node whose file is at `membership`. `first_number` is random: see [`ClusterNode::new`].
    pub fn new(
        engine: Arc<E>,
        options: MemberOptions,
        membership: Membership,
        parts: MemberParts,
        first_number: u64,
    ) -> Arc<Self> {
        let MemberOptions { name, lease, details } = options;
        let MemberParts { catalogue, writer, boards, keyring, clock } = parts;
        let log = LogIdentity { cluster: membership.cluster, epoch: membership.epoch };
        let shares = Arc::new(EngineShares::new(Arc::clone(&engine), log, &name));
        let node = Arc::new(ClusterNode::new(engine, &name, membership, (catalogue, writer), first_number));
        let lease = Arc::new(Lease::new(Arc::clone(&node), lease, details, (clock.clone(), boards)));
        let duty = Arc::new(Duty::new(Arc::clone(&node), Arc::clone(&lease), clock.clone()));
        Arc::new(Member { node, lease, duty, shares, keyring, clock })
    }

    pub fn node(&self) -> &ClusterNode<E> {
        &self.node
    }

    pub fn lease(&self) -> &Lease<E> {
        &self.lease
    }

    pub fn duty(&self) -> &Arc<Duty<E>> {
        &self.duty
    }

    /// Begins to follow the others. Returns when the node is up to date and may serve; its tasks go on until they are dropped.
    pub async fn start(self: &Arc<Self>, tasks: &mut JoinSet<()>) -> Result<(), WriteError> {
        let (node, lease) = (Arc::clone(&self.node), Arc::clone(&self.lease));
        tasks.spawn(async move { node.follow().await });
        tasks.spawn(async move { lease.run().await });
        self.lease.is_granted().await;
        // Whoever reads from this node gets what is published everywhere.
        let publication = self.node.writer().plan_full_publication().await?;
        self.writer().publish(publication).await?;
        let (holding, publishing) = (Arc::clone(&self.duty), Arc::clone(&self.duty));
        tasks.spawn(async move { holding.hold().await });
        tasks.spawn(async move { publishing.publish().await });
        let recording = Arc::clone(self);
        tasks.spawn(async move { recording.record_use().await });
        Ok(())
    }

    /// Hands out this node's shares of the limits of keys until `stop` is ready, and gives back what is left of them.
    pub async fn hand_out_shares(self: Arc<Self>, requests: LeaseRequests, stop: impl Future<Output = ()>) {
        let after = loop {
            match self.shares.begin().await {
                Ok(after) => break after,
                Err(error) => {
                    tracing::debug!(%error, "the engine gives no shares of the limits of keys");
                    tokio::time::sleep(RETRY).await;
                }
            }
        };
        let (sender, recalls) = mpsc::channel(RECALLS_MAX);
        let serving = shares::serve(
            requests,
            recalls,
            Arc::clone(&self.keyring),
            self.clock.clone(),
            Arc::clone(&self.shares),
            stop,
        );
        tokio::select! {
            () = serving => {}
            () = self.shares.read_recalls(after, sender) => {}
        }
    }

    /// For whoever asks for operations.
    pub fn writer(self: &Arc<Self>) -> WriterHandle {
        self.node.writer().clone().sharing(Arc::clone(self) as Arc<dyn SharedLog>)
    }

    /// For what only the holder of the duty does: nothing is done once its turn has ended.
    pub fn writer_of_turn(self: &Arc<Self>, fence: u64) -> WriterHandle {
        self.node.writer().clone().sharing(Arc::new(TurnLog { member: Arc::clone(self), fence }))
    }

    async fn record_use(self: &Arc<Self>) {
        loop {
            tokio::time::sleep(RECORD_USE_EVERY).await;
            if let Err(error) = self.writer().record_use().await {
                tracing::debug!(%error, "what keys have used could not be recorded; trying again");
            }
        }
    }

    /// The last words of a node that stops in good order: others need not wait for its leases.
    pub async fn leave(self: &Arc<Self>) {
        self.duty.end().await;
        if let Err(error) = self.writer().record_use().await {
            tracing::warn!(%error, "what keys have used on this node lately is not recorded");
        }
        if let Err(error) = self.node.engine().end_lease(self.node.name(), false).await {
            tracing::warn!(%error, "the lease of this node could not be ended: commands of other nodes wait for it");
        }
    }
}

impl<E: Engine> SharedLog for Member<E> {
    fn enter(&self, operation: SharedOperation, waiting: Waiting) -> LogFuture<'_, ()> {
        Box::pin(async move { self.node.enter_with(operation, None, Some(waiting)).await.map(|_| ()) })
    }

    fn settled(&self) -> LogFuture<'_, Vec<Box<str>>> {
        Box::pin(async move { self.lease.settled().await.map_err(unconfirmed) })
    }

    fn reset_usage<'a>(&'a self, key: &'a KeyId) -> LogFuture<'a, ()> {
        Box::pin(async move { self.shares.reset(key).await.map(|_| ()).map_err(unconfirmed) })
    }
}

fn unconfirmed(error: EngineError) -> WriteError {
    WriteError::Unconfirmed(error.to_string().into())
}

/// The log for the holder of the duty.
struct TurnLog<E> {
    member: Arc<Member<E>>,
    fence: u64,
}

impl<E> fmt::Debug for TurnLog<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TurnLog").field("fence", &self.fence).finish_non_exhaustive()
    }
}

impl<E: Engine> SharedLog for TurnLog<E> {
    fn enter(&self, operation: SharedOperation, waiting: Waiting) -> LogFuture<'_, ()> {
        let entered = self.member.node.enter_with(operation, Some(self.fence), Some(waiting));
        Box::pin(async move { entered.await.map(|_| ()) })
    }

    fn settled(&self) -> LogFuture<'_, Vec<Box<str>>> {
        self.member.settled()
    }

    fn reset_usage<'a>(&'a self, key: &'a KeyId) -> LogFuture<'a, ()> {
        self.member.reset_usage(key)
    }
}
