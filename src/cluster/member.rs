//! Everything that makes a server a node of a cluster.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::duty::Duty;
use super::engine::{Engine, EngineError};
use super::lease::{Contact, Lease, NodeDetails, Serving};
use super::node::{ClusterNode, Standing};
use super::shares::EngineShares;
use crate::board::Boards;
use crate::clock::{Clock, Moment};
use crate::keys::{KeyId, Keyring, LeaseRequests, shares};
use crate::model::{Catalogue, EntryId, Membership};
use crate::writer::{LogFuture, NodesFuture, SharedLog, SharedOperation, Waiting, WriteError, WriterHandle};

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

/// Where a node stands.
#[derive(Clone, Debug)]
pub struct ClusterStanding {
    pub node: Box<str>,
    pub standing: Standing,
    /// The last entry that is in its file.
    pub applied: EntryId,
    /// Whether its lease holds.
    pub has_lease: bool,
    /// Whether it polls and publishes.
    pub has_duty: bool,
    /// The cluster as it last saw it.
    pub contact: Option<Contact>,
    /// Why the engine took no report of it.
    pub failure: Option<EngineError>,
    pub now: Moment,
}

impl ClusterStanding {
    /// Where it stands, in a word or two: one of [`Standing::NAMES`].
    pub fn name(&self) -> &'static str {
        match &self.standing {
            Standing::Following if self.failure.is_some() => Standing::CutOff.name(),
            standing => standing.name(),
        }
    }

    /// How long ago the node sent the last report that the engine answered; `None` if never.
    pub fn contact_ms(&self) -> Option<u64> {
        self.contact.as_ref().map(|contact| self.now.mono_ms.saturating_sub(contact.sent.mono_ms))
    }

    /// How much older the last entry in its file is than the last of the log, as of the last contact.
    pub fn behind_ms(&self) -> Option<u64> {
        self.contact.as_ref().map(|contact| contact.view.last.ms.saturating_sub(self.applied.ms))
    }

    /// The nodes that have a lease, as of the last contact.
    pub fn leased_nodes(&self) -> usize {
        let nodes = self.contact.iter().flat_map(|contact| &contact.view.nodes);
        nodes.filter(|node| node.lease_ms > 0).count()
    }
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

/// Why a node did not begin.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(transparent)]
    Write(#[from] WriteError),
    #[error(transparent)]
    Engine(EngineError),
    #[error("{0}")]
    Ended(String),
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
        let when_cut_off = details.when_cut_off;
        let MemberParts { catalogue, writer, boards, keyring, clock } = parts;
        let node = Arc::new(ClusterNode::new(engine, &name, membership, (catalogue, writer), first_number));
        let serving = Serving { clock: clock.clone(), boards, keyring: Arc::clone(&keyring) };
        let lease = Arc::new(Lease::new(Arc::clone(&node), lease, details, serving));
        let shares = EngineShares::new(Arc::clone(node.engine()), node.log(), node.name());
        let shares = Arc::new(shares.with_lease(Arc::clone(&lease), clock.clone(), when_cut_off));
        let duty = Arc::new(Duty::new(Arc::clone(&node), Arc::clone(&lease), clock.clone()));
        Arc::new(Member { node, lease, duty, shares, keyring, clock })
    }

    pub fn node(&self) -> &ClusterNode<E> {
        &self.node
    }

    pub fn lease(&self) -> &Lease<E> {
        &self.lease
    }

    pub fn standing(&self) -> ClusterStanding {
        let now = self.clock.now();
        ClusterStanding {
            node: self.node.name().into(),
            standing: self.node.standing().borrow().clone(),
            applied: *self.node.applied().borrow(),
            has_lease: self.lease.is_held(now),
            has_duty: self.duty.fence().is_some(),
            contact: self.lease.contact().borrow().clone(),
            failure: self.lease.failure(),
            now,
        }
    }

    pub fn duty(&self) -> &Arc<Duty<E>> {
        &self.duty
    }

    /// Begins to follow the others. Returns when the node is up to date and may serve; its tasks go on until they are dropped.
    pub async fn start(self: &Arc<Self>, tasks: &mut JoinSet<()>) -> Result<(), StartError> {
        self.meet().await?;
        let (node, lease) = (Arc::clone(&self.node), Arc::clone(&self.lease));
        tasks.spawn(async move { node.follow().await });
        tasks.spawn(async move { lease.run().await });
        tokio::select! {
            () = self.lease.is_granted() => {}
            standing = self.node.ended() => return Err(StartError::Ended(standing.end().unwrap_or_default())),
        }
        // Whoever reads from this node gets what is published everywhere.
        let publication = self.node.writer().plan_full_publication(self.clock.now()).await?;
        self.writer().publish(publication).await?;
        let (holding, publishing) = (Arc::clone(&self.duty), Arc::clone(&self.duty));
        tasks.spawn(async move { holding.hold().await });
        tasks.spawn(async move { publishing.publish().await });
        let trimming = Arc::clone(&self.duty);
        tasks.spawn(async move { trimming.trim().await });
        let recording = Arc::clone(self);
        tasks.spawn(async move { recording.record_use().await });
        Ok(())
    }

    /// Waits for the first answer of the engine. One that refuses a node does so later on, too.
    async fn meet(&self) -> Result<(), StartError> {
        let mut has_warned = false;
        loop {
            match self.node.engine().look(self.node.log()).await {
                Ok(view) => {
                    let behind_ms = view.last.ms.saturating_sub(self.node.applied().borrow().ms);
                    tracing::info!(node = self.node.name(), behind_ms, "catching up with the cluster");
                    return Ok(());
                }
                Err(EngineError::Unreachable(reason)) => {
                    if !has_warned {
                        tracing::warn!(%reason, "the engine of the cluster does not answer; waiting for it");
                        has_warned = true;
                    }
                    tokio::time::sleep(RETRY).await;
                }
                Err(EngineError::Lost) => return Err(StartError::Ended(Standing::Lost.end().unwrap_or_default())),
                Err(error) => return Err(StartError::Engine(error)),
            }
        }
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

    /// Every other node, as far as is known. Never none: there may be some that have joined since.
    fn others(&self) -> Vec<Box<str>> {
        let contact = self.lease.contact().borrow().clone();
        let nodes = contact.into_iter().flat_map(|contact| contact.view.nodes);
        let others: Vec<_> = nodes.map(|node| node.node).filter(|name| **name != *self.node.name()).collect();
        if others.is_empty() { vec!["nodes that this one has not heard of".into()] } else { others }
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

    fn settled(&self) -> NodesFuture<'_> {
        Box::pin(async move { self.lease.settled().await.unwrap_or_else(|_| self.others()) })
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

    fn settled(&self) -> NodesFuture<'_> {
        self.member.settled()
    }

    fn is_in_turn(&self) -> bool {
        self.member.duty.fence() == Some(self.fence)
    }

    fn reset_usage<'a>(&'a self, key: &'a KeyId) -> LogFuture<'a, ()> {
        self.member.reset_usage(key)
    }
}
