//! The lease of a node: for how long it may serve without having heard of the others.
//!
//! A node reports itself to the engine every second, and sees what the others have applied. With each report it may serve for as
//! long as the lease, counted from when the report was sent, and a little less. So when the engine says that a lease
//! has ended, the node serves no more, also if it was cut off or stopped in the meantime.
//!
//! A node that is behind does not get its lease extended: its keys may be those of before a revocation. For the same reason a
//! node whose lease had ended, or which has just been started, serves nothing before it has applied all that was in
//! the log when its new lease began.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use super::engine::{ClusterView, Engine, EngineError, Heartbeat, NodeView};
use super::millis;
use super::node::{ClusterNode, Standing};
use crate::board::Boards;
use crate::clock::{Clock, Moment};
use crate::model::EntryId;

/// A node serves for so much less than its lease: clocks do not run equally fast.
const MARGIN: Duration = Duration::from_millis(500);
/// How often a node reports itself.
const BEAT_EVERY: Duration = Duration::from_secs(1);
/// The same while the engine does not answer.
const RETRY: Duration = Duration::from_millis(250);
/// How often it is checked whether other nodes have applied an entry.
const CONFIRM_CHECK: Duration = Duration::from_millis(10);
/// A clock that is less wrong than this is left alone.
const SKEW_MS: i64 = 20;

/// What a node does that the engine cannot be reached from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WhenCutOff {
    /// It answers 503 when its lease has ended.
    #[default]
    Refuse,
    /// It goes on with its last prices.
    Serve,
}

/// What a node tells of itself, beside its place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeDetails {
    pub version: String,
    /// The address of its public interface.
    pub address: Option<String>,
    pub when_cut_off: WhenCutOff,
    /// When it was started, in seconds.
    pub started: u32,
}

/// The cluster as a node last saw it.
#[derive(Clone, Debug)]
pub struct Contact {
    pub view: ClusterView,
    /// When the report was sent.
    pub sent: Moment,
}

#[derive(Debug, Default)]
struct State {
    /// The last entry of the log as of the last report; what was applied by the next one must be at least that.
    expected: Option<EntryId>,
    /// When the lease ends, on the monotonic clock.
    until_ms: u64,
    /// The last entry of the log when the lease began, if it has not been applied yet.
    missing: Option<EntryId>,
}

/// See the module.
#[derive(Debug)]
pub struct Lease<E> {
    node: Arc<ClusterNode<E>>,
    length: Duration,
    details: NodeDetails,
    clock: Clock,
    boards: Arc<Boards>,
    state: Mutex<State>,
    contact: watch::Sender<Option<Contact>>,
    /// Until when it may serve, on the monotonic clock.
    until_ms: watch::Sender<Option<u64>>,
}

impl<E: Engine> Lease<E> {
    /// The node serves nothing yet.
    pub fn new(
        node: Arc<ClusterNode<E>>,
        length: Duration,
        details: NodeDetails,
        (clock, boards): (Clock, Arc<Boards>),
    ) -> Self {
        boards.condition().serve_until(0);
        Lease {
            node,
            length,
            details,
            clock,
            boards,
            state: Mutex::default(),
            contact: watch::Sender::new(None),
            until_ms: watch::Sender::new(None),
        }
    }

    pub fn contact(&self) -> watch::Receiver<Option<Contact>> {
        self.contact.subscribe()
    }

    /// Ready once the node has had its first lease: it is up to date.
    pub async fn is_granted(&self) {
        // The sender is here, so it cannot end without.
        let _ = self.until_ms.subscribe().wait_for(Option::is_some).await;
    }

    /// Whether the node has a lease at a time.
    pub fn is_held(&self, now: Moment) -> bool {
        self.until_ms.borrow().is_some_and(|until_ms| now.mono_ms < until_ms)
    }

    /// Reports the node for as long as it runs.
    pub async fn run(&self) {
        loop {
            let wait = match self.beat().await {
                Ok(_) => BEAT_EVERY,
                Err(error) => {
                    tracing::debug!(%error, "the node could not be reported");
                    RETRY
                }
            };
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                () = self.node.awaited_is_applied() => {}
                () = self.ends() => self.boards.wake_followers(),
            }
        }
    }

    /// Ready when the lease ends, unless it ended before.
    async fn ends(&self) {
        let until_ms = *self.until_ms.borrow();
        match until_ms.and_then(|until_ms| until_ms.checked_sub(self.clock.now().mono_ms)) {
            Some(left_ms) => tokio::time::sleep(Duration::from_millis(left_ms)).await,
            None => std::future::pending().await,
        }
    }

    /// Reports the node once.
    async fn beat(&self) -> Result<ClusterView, EngineError> {
        let sent = self.clock.now();
        let applied = *self.node.applied().borrow();
        let is_current = self.state().expected.is_some_and(|expected| applied >= expected);
        let lease = if is_current { self.length } else { Duration::ZERO };
        let details = serde_json::to_string(&self.details).unwrap_or_default();
        let beat = Heartbeat { node: self.node.name(), applied, details: &details, lease };
        let view = match self.node.engine().beat(self.node.log(), beat).await {
            Ok(view) => view,
            Err(EngineError::Lost) => {
                self.node.stand(Standing::Lost);
                return Err(EngineError::Lost);
            }
            Err(error) => return Err(error),
        };
        self.state().expected = Some(view.last);
        self.align(sent, &view);
        if is_current {
            self.extend(sent, &view);
        }
        self.contact.send_replace(Some(Contact { view: view.clone(), sent }));
        Ok(view)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The node may serve for another while.
    fn extend(&self, sent: Moment, view: &ClusterView) {
        // A server that has just taken over may not know what others have applied. They say so within their leases.
        let is_first = self.until_ms.borrow().is_none();
        if is_first && !self.has_settled(view) {
            return;
        }
        let until_ms = sent.mono_ms.saturating_add(millis(self.length.saturating_sub(MARGIN)));
        let mut state = self.state();
        if state.until_ms <= self.clock.now().mono_ms {
            // Between two leases nobody has waited for this node.
            state.missing = Some(view.last);
        }
        state.until_ms = until_ms;
        let applied = *self.node.applied().borrow();
        state.missing = state.missing.filter(|missing| applied < *missing);
        if state.missing.is_some() {
            return;
        }
        drop(state);
        self.boards.condition().serve_until(match self.details.when_cut_off {
            WhenCutOff::Refuse => until_ms,
            WhenCutOff::Serve => u64::MAX,
        });
        self.until_ms.send_replace(Some(until_ms));
    }

    /// Whether the engine's server has had the log for long enough that every node that serves has reported to it.
    fn has_settled(&self, view: &ClusterView) -> bool {
        view.now_ms >= view.since_ms.saturating_add(millis(self.length))
    }

    /// Sets the clock by the engine's: all nodes have the same time.
    fn align(&self, sent: Moment, view: &ClusterView) {
        let took_ms = i64::try_from(self.clock.now().mono_ms.saturating_sub(sent.mono_ms)).unwrap_or(i64::MAX);
        let engine_ms = i64::try_from(view.now_ms).unwrap_or(i64::MAX);
        let ahead_ms = engine_ms - sent.unix_ms.saturating_add(took_ms / 2);
        if ahead_ms.abs() > SKEW_MS.max(took_ms) {
            tracing::info!(ahead_ms, "the clock of this node was set by the engine's");
            self.clock.align(ahead_ms);
        }
    }

    /// Waits until no node serves by what was before the entries that are in the log by now; returns the names of those that
    /// may nevertheless.
    pub async fn settled(&self) -> Result<Vec<Box<str>>, EngineError> {
        // Leases that were granted before end within one length. Twice that is for an engine that was away meanwhile.
        let patience = self.length * 2 + BEAT_EVERY;
        let begun = self.clock.now().mono_ms;
        let mut last = None;
        loop {
            match self.beat().await {
                Ok(view) => {
                    let entry = *last.get_or_insert(view.last);
                    let has_entry = |node: &NodeView| node.applied >= entry;
                    let is_waiting = view.nodes.iter().any(|node| !has_entry(node) && node.lease_ms > 0);
                    if !is_waiting && self.has_settled(&view) {
                        let serves = |node: &&NodeView| !has_entry(node) && goes_on(node);
                        return Ok(view.nodes.iter().filter(serves).map(|node| node.node.clone()).collect());
                    }
                }
                Err(error) if self.clock.now().mono_ms.saturating_sub(begun) > millis(patience) => return Err(error),
                Err(_) => {}
            }
            tokio::time::sleep(CONFIRM_CHECK).await;
        }
    }
}

/// Whether a node goes on when it is cut off. One of which that cannot be read may.
fn goes_on(node: &NodeView) -> bool {
    let details = serde_json::from_str::<NodeDetails>(&node.details);
    details.map_or(true, |details| details.when_cut_off == WhenCutOff::Serve)
}
