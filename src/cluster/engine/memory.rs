//! An engine in this process, with a clock that is passed in and faults on demand.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use super::{ClusterView, DutyHolder, Engine, EngineError, Heartbeat, LogEntry, LogIdentity, NewEntry, NodeView};
use crate::clock::Clock;
use crate::model::EntryId;

/// See the module.
#[derive(Debug)]
pub struct MemoryEngine {
    clock: Clock,
    state: Mutex<State>,
    appended: Notify,
    is_unreachable: AtomicBool,
}

#[derive(Clone, Debug, Default)]
struct State {
    log: Option<LogIdentity>,
    last: EntryId,
    /// Before the first entry that is kept.
    trimmed: EntryId,
    entries: Vec<LogEntry>,
    nodes: BTreeMap<Box<str>, Node>,
    duty: Option<(DutyHolder, u64)>,
    fence: u64,
}

#[derive(Clone, Debug)]
struct Node {
    applied: EntryId,
    details: Box<str>,
    until_ms: u64,
}

impl MemoryEngine {
    pub fn new(clock: Clock) -> Self {
        MemoryEngine { clock, state: Mutex::default(), appended: Notify::new(), is_unreachable: AtomicBool::new(false) }
    }

    /// Whether nodes get no answer.
    pub fn set_unreachable(&self, is_unreachable: bool) {
        self.is_unreachable.store(is_unreachable, Ordering::SeqCst);
    }

    /// Loses the last entries, as an engine does that was killed before they were on its disk.
    pub fn lose(&self, count: usize) {
        let mut state = self.state();
        let kept = state.entries.len().saturating_sub(count);
        state.entries.truncate(kept);
        state.last = state.entries.last().map_or(state.trimmed, |entry| entry.id);
    }

    /// Removes the entries up to one.
    pub fn trim(&self, to: EntryId) {
        let mut state = self.state();
        state.entries.retain(|entry| entry.id > to);
        state.trimmed = state.trimmed.max(to);
    }

    pub fn last(&self) -> EntryId {
        self.state().last
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.clock.now().unix_ms).unwrap_or_default()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn reach(&self) -> Result<MutexGuard<'_, State>, EngineError> {
        if self.is_unreachable.load(Ordering::SeqCst) {
            return Err(EngineError::Unreachable("no answer".into()));
        }
        Ok(self.state())
    }

    /// The state, if the engine has that log.
    fn state_of(&self, log: LogIdentity) -> Result<MutexGuard<'_, State>, EngineError> {
        let state = self.reach()?;
        if state.log == Some(log) { Ok(state) } else { Err(EngineError::Lost) }
    }
}

impl Engine for MemoryEngine {
    async fn create(&self, log: LogIdentity) -> Result<Option<EntryId>, EngineError> {
        let now_ms = self.now_ms();
        let mut state = self.reach()?;
        if state.log.is_some() {
            return Ok(None);
        }
        let begin = EntryId { ms: now_ms, number: 0 };
        *state = State { log: Some(log), last: begin, trimmed: begin, ..State::default() };
        Ok(Some(begin))
    }

    async fn identity(&self) -> Result<Option<LogIdentity>, EngineError> {
        Ok(self.reach()?.log)
    }

    async fn append(&self, log: LogIdentity, entry: NewEntry<'_>) -> Result<EntryId, EngineError> {
        let now_ms = self.now_ms();
        let mut state = self.state_of(log)?;
        if let Some(fence) = entry.fence {
            let is_held = |(holder, until_ms): &(DutyHolder, u64)| {
                *holder.node == *entry.node && holder.fence == fence && *until_ms > now_ms
            };
            if !state.duty.as_ref().is_some_and(is_held) {
                return Err(EngineError::Fenced);
            }
        }
        let previous = state.last;
        // A clock that goes back does not make the log do so.
        let id = if now_ms > previous.ms {
            EntryId { ms: now_ms, number: 0 }
        } else {
            EntryId { number: previous.number + 1, ..previous }
        };
        let NewEntry { node, number, fence, bytes } = entry;
        state.entries.push(LogEntry { id, previous, node: node.into(), number, fence, bytes: bytes.to_vec() });
        state.last = id;
        drop(state);
        self.appended.notify_waiters();
        Ok(id)
    }

    async fn read(&self, after: EntryId, count: usize, wait: Duration) -> Result<Vec<LogEntry>, EngineError> {
        let appended = self.appended.notified();
        tokio::pin!(appended);
        appended.as_mut().enable();
        let entries = || {
            let state = self.reach()?;
            if after < state.trimmed || after > state.last {
                return Err(EngineError::Lost);
            }
            let first = state.entries.partition_point(|entry| entry.id <= after);
            Ok(state.entries[first..].iter().take(count).cloned().collect::<Vec<_>>())
        };
        let found = entries()?;
        if !found.is_empty() || tokio::time::timeout(wait, appended).await.is_err() {
            return Ok(found);
        }
        entries()
    }

    async fn beat(&self, log: LogIdentity, beat: Heartbeat<'_>) -> Result<ClusterView, EngineError> {
        let now_ms = self.now_ms();
        let mut state = self.state_of(log)?;
        if beat.applied > state.last {
            return Err(EngineError::Lost);
        }
        let until_ms = now_ms + millis(beat.lease);
        state.nodes.insert(beat.node.into(), Node { applied: beat.applied, details: beat.details.into(), until_ms });
        state.nodes.retain(|_, node| node.until_ms > now_ms);
        let nodes = state.nodes.iter().map(|(name, node)| NodeView {
            node: name.clone(),
            applied: node.applied,
            details: node.details.clone(),
            lease_ms: node.until_ms - now_ms,
        });
        let duty = state.duty.as_ref().filter(|(_, until_ms)| *until_ms > now_ms).map(|(holder, _)| holder.clone());
        Ok(ClusterView { now_ms, last: state.last, nodes: nodes.collect(), duty })
    }

    async fn hold_duty(&self, log: LogIdentity, node: &str, lease: Duration) -> Result<Option<u64>, EngineError> {
        let now_ms = self.now_ms();
        let mut state = self.state_of(log)?;
        let until = now_ms + millis(lease);
        match &mut state.duty {
            Some((holder, until_ms)) if *until_ms > now_ms => {
                if *holder.node != *node {
                    return Ok(None);
                }
                *until_ms = until;
                Ok(Some(holder.fence))
            }
            _ => {
                state.fence += 1;
                let fence = state.fence;
                state.duty = Some((DutyHolder { node: node.into(), fence }, until));
                Ok(Some(fence))
            }
        }
    }

    async fn drop_duty(&self, log: LogIdentity, node: &str) -> Result<(), EngineError> {
        let mut state = self.state_of(log)?;
        if state.duty.as_ref().is_some_and(|(holder, _)| *holder.node == *node) {
            state.duty = None;
        }
        Ok(())
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
