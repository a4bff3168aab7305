//! The duty: one node at a time polls the feeds, simulates and publishes.
//!
//! It is a lease of two seconds, which its holder renews and regards as over a little earlier than the engine does. Every
//! entry of the holder has the number of its turn, and all nodes ignore entries of earlier turns.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use super::engine::Engine;
use super::lease::Lease;
use super::millis;
use super::node::ClusterNode;
use crate::clock::{Clock, Moment};
use crate::writer::{SharedOperation, WriteError};

const LENGTH: Duration = Duration::from_secs(2);
const MARGIN: Duration = Duration::from_millis(300);
const RENEW_EVERY: Duration = Duration::from_millis(500);
/// How often it is checked whether something is due.
const TICK_EVERY: Duration = Duration::from_millis(25);
/// Old entries are removed this often.
const TRIM_EVERY: Duration = Duration::from_secs(30);
/// A node that was away for less catches up from the log; after more it takes a copy from another node.
const LOG_KEPT: Duration = Duration::from_secs(3600);
/// The log takes at most about so much of the engine's memory.
const LOG_BYTES_MAX: u64 = 256 << 20;
/// How long an entry of this node takes at most until it is applied here, unless something is wrong.
const APPLY_WAIT: Duration = Duration::from_secs(2);

/// A turn of the duty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// Its number, which entries have.
    pub fence: u64,
    /// When it ends, on the monotonic clock.
    until_ms: u64,
}

/// See the module.
#[derive(Debug)]
pub struct Duty<E> {
    node: Arc<ClusterNode<E>>,
    lease: Arc<Lease<E>>,
    clock: Clock,
    turn: watch::Sender<Option<Turn>>,
}

impl<E: Engine> Duty<E> {
    pub fn new(node: Arc<ClusterNode<E>>, lease: Arc<Lease<E>>, clock: Clock) -> Self {
        Duty { node, lease, clock, turn: watch::Sender::new(None) }
    }

    /// The number of this node's turn, if it has the duty now.
    pub fn fence(&self) -> Option<u64> {
        self.fence_at(self.clock.now())
    }

    fn fence_at(&self, now: Moment) -> Option<u64> {
        (*self.turn.borrow()).filter(|turn| now.mono_ms < turn.until_ms).map(|turn| turn.fence)
    }

    /// Tells when the turn changes.
    pub fn turns(&self) -> watch::Receiver<Option<Turn>> {
        self.turn.subscribe()
    }

    /// Takes the duty when no other node has it, and keeps it, for as long as the node is up to date.
    pub async fn hold(&self) {
        loop {
            if self.lease.is_held(self.clock.now()) {
                self.renew().await;
            }
            if self.fence().is_none() {
                self.set_turn(None);
            }
            tokio::time::sleep(RENEW_EVERY).await;
        }
    }

    async fn renew(&self) {
        let sent = self.clock.now();
        match self.node.engine().hold_duty(self.node.log(), self.node.name(), LENGTH).await {
            Ok(Some(fence)) => {
                let until_ms = sent.mono_ms.saturating_add(millis(LENGTH.saturating_sub(MARGIN)));
                self.set_turn(Some(Turn { fence, until_ms }));
            }
            Ok(None) => self.set_turn(None),
            Err(error) => tracing::debug!(%error, "the duty could not be renewed"),
        }
    }

    fn set_turn(&self, turn: Option<Turn>) {
        let before = self.turn.send_replace(turn);
        match (before, turn) {
            (None, Some(turn)) => tracing::info!(turn = turn.fence, "this node polls and publishes"),
            (Some(_), None) => tracing::info!("this node no longer polls and publishes"),
            _ => {}
        }
    }

    /// Gives the duty up, so that another node has it at once.
    pub async fn end(&self) {
        self.set_turn(None);
        if let Err(error) = self.node.engine().drop_duty(self.node.name()).await {
            tracing::debug!(%error, "the duty could not be given up");
        }
    }

    /// Removes old entries of the log, for as long as the node has the duty.
    pub async fn trim(&self) {
        loop {
            tokio::time::sleep(TRIM_EVERY).await;
            if self.fence().is_some()
                && let Err(error) = self.node.engine().trim(self.node.log(), LOG_KEPT, LOG_BYTES_MAX).await
            {
                tracing::warn!(%error, "failed to remove old entries of the cluster's log; trying again");
            }
        }
    }

    /// Enters what is due, for as long as the node has the duty.
    pub async fn publish(&self) {
        loop {
            tokio::time::sleep(TICK_EVERY).await;
            if self.fence().is_none() {
                continue;
            }
            let due = match self.node.writer().plan_due(self.clock.now()).await {
                Ok(due) => due,
                Err(_stopped) => return,
            };
            for operation in due {
                if let Err(error) = self.enter(operation).await {
                    tracing::debug!(%error, "what is due could not be entered; trying again");
                    break;
                }
            }
        }
    }

    /// Enters an operation and waits until it is applied here: what is due next depends on it.
    async fn enter(&self, operation: SharedOperation) -> Result<(), WriteError> {
        let fence = self.fence().ok_or_else(|| WriteError::not_entered("another node publishes by now"))?;
        let id = self.node.enter_with(operation, Some(fence), None).await?;
        let mut applied = self.node.applied();
        let is_applied = applied.wait_for(|applied| *applied >= id);
        let _ = tokio::time::timeout(APPLY_WAIT, is_applied).await;
        Ok(())
    }
}
