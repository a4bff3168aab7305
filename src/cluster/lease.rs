//! The lease of a node: for how long it may serve without having heard of the others.
//!
//! A node reports itself to the engine every second, and sees what the others have applied. With each report it may serve for as
//! long as the lease, counted from when the report was sent, and a little less. So when the engine says that a lease
//! has ended, the node serves no more, also if it was cut off or stopped in the meantime.
//!
//! A node that is behind does not get its lease extended: its keys may be those of before a revocation. For the same reason a
//! node whose lease had ended, or which has just been started, serves nothing before it has applied all that was in
//! the log when its new lease began.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tokio::sync::watch;

use super::engine::{ClusterView, Engine, EngineError, Heartbeat, NodeView};
use super::millis;
use super::node::{ClusterNode, Standing};
use crate::board::Boards;
use crate::clock::{Clock, Moment};
use crate::keys::Keyring;
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
    /// What must be the same on all nodes: they apply the same entries, and must come to the same state.
    #[serde(default)]
    pub settings: SharedSettings,
}

/// Settings by their names.
pub type SharedSettings = BTreeMap<String, String>;

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
    /// Since when another node has its name, on the monotonic clock.
    taken_ms: Option<u64>,
}

/// What a node serves from.
#[derive(Clone, Debug)]
pub struct Serving {
    pub clock: Clock,
    pub boards: Arc<Boards>,
    pub keyring: Arc<Keyring>,
}

/// See the module.
#[derive(Debug)]
pub struct Lease<E> {
    node: Arc<ClusterNode<E>>,
    length: Duration,
    details: NodeDetails,
    /// The same as the engine gets it.
    details_text: watch::Sender<String>,
    settings_digest: String,
    clock: Clock,
    boards: Arc<Boards>,
    keyring: Arc<Keyring>,
    state: Mutex<State>,
    /// Held while streams end whose keys have changed.
    settling: tokio::sync::Mutex<()>,
    contact: watch::Sender<Option<Contact>>,
    /// Why the last report was not taken.
    failure: watch::Sender<Option<EngineError>>,
    /// Until when it may serve, on the monotonic clock.
    until_ms: watch::Sender<Option<u64>>,
}

impl<E: Engine> Lease<E> {
    /// The node serves nothing yet.
    pub fn new(
        node: Arc<ClusterNode<E>>,
        length: Duration,
        details: NodeDetails,
        Serving { clock, boards, keyring }: Serving,
    ) -> Self {
        let details_text = watch::Sender::new(as_text(&details));
        let settings_digest = digest(&details.settings);
        boards.condition().serve_until(0);
        Lease {
            node,
            length,
            details,
            details_text,
            settings_digest,
            clock,
            boards,
            keyring,
            state: Mutex::default(),
            settling: tokio::sync::Mutex::default(),
            contact: watch::Sender::new(None),
            failure: watch::Sender::new(None),
            until_ms: watch::Sender::new(None),
        }
    }

    /// Tells the others where this node listens, with its next report.
    pub fn set_address(&self, address: SocketAddr) {
        let details = NodeDetails { address: Some(address.to_string()), ..self.details.clone() };
        self.details_text.send_replace(as_text(&details));
    }

    pub fn contact(&self) -> watch::Receiver<Option<Contact>> {
        self.contact.subscribe()
    }

    /// Why the last report was not taken.
    pub fn failure(&self) -> Option<EngineError> {
        self.failure.borrow().clone()
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

    /// How many nodes there were when this one last heard of them.
    pub fn nodes(&self) -> Option<u64> {
        let contact = self.contact.borrow();
        let nodes = contact.as_ref()?.view.nodes.iter().filter(|node| !node.has_left).count();
        Some(u64::try_from(nodes).unwrap_or(u64::MAX).max(1))
    }

    /// Reports the node for as long as it runs, and wakes streams when its lease ends.
    pub async fn run(&self) {
        tokio::join!(self.report(), self.wake_at_end());
    }

    async fn report(&self) {
        loop {
            let error = self.beat().await.err();
            let wait = if error.is_some() { RETRY } else { BEAT_EVERY };
            if *self.failure.borrow() != error {
                if let Some(error) = &error {
                    tracing::warn!(%error, "the node cannot be reported; trying again");
                } else {
                    tracing::info!("the node is reported again");
                }
                self.failure.send_replace(error);
            }
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                () = self.node.awaited_is_applied() => {}
            }
        }
    }

    /// Streams look for a reason to end only when they are woken. Not a part of reporting, which may wait for the engine at
    /// that time.
    async fn wake_at_end(&self) {
        let mut lease = self.until_ms.subscribe();
        loop {
            let until_ms = *lease.borrow_and_update();
            let ends = async {
                match until_ms.map(|until_ms| until_ms.saturating_sub(self.clock.mono_ms())) {
                    Some(left_ms) => tokio::time::sleep(Duration::from_millis(left_ms)).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                _ = lease.changed() => continue,
                () = ends => self.boards.wake_followers(),
            }
            // Each lease ends once. The sender is here, so it cannot end without another one.
            let _ = lease.changed().await;
        }
    }

    /// Reports the node once.
    async fn beat(&self) -> Result<ClusterView, EngineError> {
        let sent = self.clock.now();
        let applied = *self.node.applied().borrow();
        let is_current = self.state().expected.is_some_and(|expected| applied >= expected);
        let lease = if is_current { self.length } else { Duration::ZERO };
        self.settle_streams().await;
        let details = self.details_text.borrow().clone();
        let beat = Heartbeat {
            node: self.node.name(),
            file: self.node.file(),
            applied,
            details: &details,
            settings: &self.settings_digest,
            lease,
        };
        let view = match self.node.engine().beat(self.node.log(), beat).await {
            Ok(view) => view,
            Err(error) => {
                self.note_refusal(&error, sent).await;
                return Err(error);
            }
        };
        if applied < view.trimmed {
            self.node.stand(Standing::Behind);
            return Err(EngineError::Behind);
        }
        {
            let mut state = self.state();
            state.expected = Some(view.last);
            state.taken_ms = None;
        }
        self.align(sent, &view);
        if is_current {
            self.extend(sent, &view);
        }
        self.contact.send_replace(Some(Contact { view: view.clone(), sent }));
        Ok(view)
    }

    /// Waits until no stream goes on by what was before a change of its key: a report says that it does not.
    async fn settle_streams(&self) {
        let _settling = self.settling.lock().await;
        if self.node.take_ended_access() {
            self.keyring.streams_settled().await;
        }
    }

    /// What an engine that refuses a report says of the node.
    async fn note_refusal(&self, error: &EngineError, sent: Moment) {
        match error {
            EngineError::Lost => self.node.stand(Standing::Lost),
            EngineError::Disagrees => {
                let view = self.node.engine().look(self.node.log()).await.unwrap_or_default();
                self.node.stand(Standing::Disagrees(difference(&self.details.settings, self.node.name(), &view)));
            }
            EngineError::NameTaken => {
                // A node that was killed, and is back with another file, has its name for as long as its lease.
                let since_ms = *self.state().taken_ms.get_or_insert(sent.mono_ms);
                if sent.mono_ms.saturating_sub(since_ms) > millis(self.length * 2) {
                    self.node.stand(Standing::NameTaken);
                }
            }
            _ => {}
        }
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
        if state.until_ms <= self.clock.mono_ms() {
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
        let took_ms = i64::try_from(self.clock.mono_ms().saturating_sub(sent.mono_ms)).unwrap_or(i64::MAX);
        let engine_ms = i64::try_from(view.now_ms).unwrap_or(i64::MAX);
        let ahead_ms = engine_ms - sent.unix_ms.saturating_add(took_ms / 2);
        if ahead_ms.abs() > SKEW_MS.max(took_ms) {
            tracing::info!(ahead_ms, "the clock of this node was set by the engine's");
            self.clock.align(ahead_ms);
        }
    }

    /// Waits until no node serves by what was before the operations that this node has entered by now; returns the names of
    /// those that may nevertheless.
    pub async fn settled(&self) -> Result<Vec<Box<str>>, EngineError> {
        // Leases that were granted before end within one length. Twice that is for an engine that was away meanwhile.
        let patience = self.length * 2 + BEAT_EVERY;
        let begun = self.clock.mono_ms();
        // Not the last of the log: other nodes report a publication that came after it only with their next beat.
        let mut entered = *self.node.entered_awaited();
        loop {
            match self.beat().await {
                Ok(view) => {
                    let entry = *entered.get_or_insert(view.last);
                    let has_entry = |node: &NodeView| node.applied >= entry;
                    let is_waiting = view.nodes.iter().any(|node| !has_entry(node) && node.lease_ms > 0);
                    if !is_waiting && self.has_settled(&view) {
                        let serves = |node: &&NodeView| !has_entry(node) && goes_on(node);
                        return Ok(view.nodes.iter().filter(serves).map(|node| node.node.clone()).collect());
                    }
                }
                Err(error) if self.clock.mono_ms().saturating_sub(begun) > millis(patience) => return Err(error),
                Err(_) => {}
            }
            tokio::time::sleep(CONFIRM_CHECK).await;
        }
    }
}

/// Details as they are reported.
fn as_text(details: &NodeDetails) -> String {
    serde_json::to_string(details).unwrap_or_default()
}

/// Short, and different for different settings.
fn digest(settings: &SharedSettings) -> String {
    let text = serde_json::to_string(settings).unwrap_or_default();
    hex_digest(text.as_bytes())
}

/// The first half of a SHA-256 digest.
pub fn hex_digest(bytes: &[u8]) -> String {
    let digest: [u8; 32] = Sha256::digest(bytes).into();
    let mut half = [0; 16];
    half.copy_from_slice(&digest[..16]);
    format!("{:032x}", u128::from_be_bytes(half))
}

/// The first setting in which other nodes differ from this one.
fn difference(own: &SharedSettings, name: &str, view: &ClusterView) -> Box<str> {
    let others = view.nodes.iter().filter(|node| *node.node != *name && node.lease_ms > 0);
    for other in others {
        let Ok(details) = serde_json::from_str::<NodeDetails>(&other.details) else { continue };
        let names = own.keys().chain(details.settings.keys());
        let differs = |name: &&String| own.get(*name) != details.settings.get(*name);
        if let Some(setting) = names.into_iter().find(differs) {
            let value =
                |settings: &SharedSettings| settings.get(setting).cloned().unwrap_or_else(|| "not known".to_owned());
            let (here, there) = (value(own), value(&details.settings));
            return format!("{setting} is {here} here and {there} on node {}", other.node).into();
        }
    }
    "another node has other settings".into()
}

/// Whether a node goes on when it is cut off. One of which that cannot be read may.
fn goes_on(node: &NodeView) -> bool {
    if node.has_left {
        return false;
    }
    let details = serde_json::from_str::<NodeDetails>(&node.details);
    details.map_or(true, |details| details.when_cut_off == WhenCutOff::Serve)
}
