//! An engine in this process, with a clock that is passed in and faults on demand.

mod limits;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use self::limits::Limits;
use super::{ClusterView, DutyHolder, Engine, EngineError, Heartbeat, LogEntry, LogIdentity, NewEntry, NodeView};
use crate::clock::Clock;
use crate::cluster::millis;
use crate::keys::{KeyId, KeyNeed, KeyShare, LimitSet, Recall, Unused};
use crate::model::EntryId;

/// See the module.
#[derive(Debug)]
pub struct MemoryEngine {
    clock: Clock,
    state: Mutex<State>,
    appended: Notify,
    recalled: Notify,
    is_unreachable: AtomicBool,
}

#[derive(Clone, Debug, Default)]
struct State {
    log: Option<LogIdentity>,
    last: EntryId,
    /// Before the first entry that is kept.
    trimmed: EntryId,
    entries: Vec<LogEntry>,
    settings: Box<str>,
    lease_ms: u64,
    nodes: BTreeMap<Box<str>, Node>,
    duty: Option<(DutyHolder, u64)>,
    fence: u64,
    /// When it was last restarted.
    since_ms: u64,
    is_lost: bool,
    saved: Option<Box<State>>,
    restated: BTreeMap<Box<str>, u64>,
    limits: Limits,
    streams: BTreeMap<(Box<str>, KeyId), u32>,
    recalls: Vec<Recall>,
    recalled: BTreeMap<Box<str>, EntryId>,
}

impl State {
    /// Whether no node has ever followed it.
    fn is_unused(&self) -> bool {
        self.nodes.is_empty() && self.last == self.trimmed
    }

    fn begin(&mut self, log: LogIdentity, now_ms: u64) -> EntryId {
        // A clock that was set back does not make the next log begin before the last one.
        let ms = now_ms.max(self.last.ms + u64::from(self.log.is_some()));
        let begin = EntryId { ms, number: 0 };
        *self = State { log: Some(log), last: begin, trimmed: begin, ..State::default() };
        begin
    }

    fn view(&self, now_ms: u64) -> ClusterView {
        let nodes = self.nodes.iter().map(|(name, node)| NodeView {
            node: name.clone(),
            applied: node.applied,
            behind_ms: node.behind_ms,
            details: node.details.clone(),
            lease_ms: node.until_ms.saturating_sub(now_ms),
            has_left: node.has_left,
        });
        let duty = self.duty.as_ref().filter(|(_, until_ms)| *until_ms > now_ms).map(|(holder, _)| holder.clone());
        ClusterView {
            now_ms,
            since_ms: self.since_ms,
            last: self.last,
            trimmed: self.trimmed,
            nodes: nodes.collect(),
            duty,
        }
    }

    /// Whether a node with a lease has not said again what it has, since the last restart.
    fn may_have_forgotten(&self, now_ms: u64) -> bool {
        let is_recent = self.since_ms > 0 && now_ms < self.since_ms + self.lease_ms;
        let mut live = self.nodes.iter().filter(|(_, node)| node.until_ms > now_ms);
        is_recent && live.any(|(name, _)| self.restated.get(name) != Some(&self.since_ms))
    }

    fn live(&self, now_ms: u64) -> u64 {
        self.nodes.values().filter(|node| node.until_ms > now_ms).count().max(1) as u64
    }
}

#[derive(Clone, Debug)]
struct Node {
    file: u64,
    applied: EntryId,
    behind_ms: u64,
    details: Box<str>,
    until_ms: u64,
    has_left: bool,
}

impl MemoryEngine {
    pub fn new(clock: Clock) -> Self {
        let (appended, recalled) = (Notify::new(), Notify::new());
        MemoryEngine { clock, state: Mutex::default(), appended, recalled, is_unreachable: AtomicBool::new(false) }
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
        state.since_ms = self.now_ms();
    }

    /// Keeps the state of this moment on its disk.
    pub fn save(&self) {
        let mut state = self.state();
        state.saved = None;
        let saved = state.clone();
        state.saved = Some(Box::new(saved));
    }

    /// Is restarted with what is on its disk.
    pub fn restart(&self) {
        let mut state = self.state();
        if let Some(saved) = state.saved.take() {
            *state = State { since_ms: self.now_ms(), ..*saved };
        }
    }

    /// Removes the entries up to one.
    pub fn trim_to(&self, to: EntryId) {
        let mut state = self.state();
        state.entries.retain(|entry| entry.id > to);
        state.trimmed = state.trimmed.max(to);
    }

    /// Whether it has lost what a node has applied, and knows.
    pub fn has_lost(&self) -> bool {
        self.state().is_lost
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

    /// Forgets what it has given of limits.
    pub fn lose_limits(&self) {
        self.state().limits.clear();
    }

    fn add_recall(&self, key: &KeyId, limits: LimitSet, is_reset: bool) -> Result<EntryId, EngineError> {
        let mut state = self.reach()?;
        let id = EntryId { ms: self.now_ms(), number: state.recalls.len() as u64 };
        state.recalls.push(Recall { id, key: key.clone(), limits, is_reset });
        drop(state);
        self.recalled.notify_waiters();
        Ok(id)
    }

    /// The state, if the engine has that log.
    fn state_of(&self, log: LogIdentity) -> Result<MutexGuard<'_, State>, EngineError> {
        let state = self.reach()?;
        if state.log == Some(log) && !state.is_lost { Ok(state) } else { Err(EngineError::Lost) }
    }
}

impl Engine for MemoryEngine {
    async fn create(&self, log: LogIdentity) -> Result<Option<EntryId>, EngineError> {
        let now_ms = self.now_ms();
        let mut state = self.reach()?;
        if state.log.is_some() && !state.is_unused() {
            return Ok(None);
        }
        Ok(Some(state.begin(log, now_ms)))
    }

    async fn create_anew(&self, lost: LogIdentity, log: LogIdentity) -> Result<Option<EntryId>, EngineError> {
        let now_ms = self.now_ms();
        let mut state = self.reach()?;
        if state.log.is_some_and(|held| held != lost) {
            return Ok(None);
        }
        Ok(Some(state.begin(log, now_ms)))
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
        if state.since_ms > 0 && now_ms < state.since_ms + state.lease_ms {
            return Err(EngineError::Settling);
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
            if after > state.last {
                return Err(EngineError::Lost);
            }
            if after < state.trimmed {
                return Err(EngineError::Behind);
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
        let is_known = state.entries.binary_search_by_key(&beat.applied, |entry| entry.id).is_ok();
        if beat.applied > state.trimmed && !is_known {
            state.is_lost = true;
            return Err(EngineError::Lost);
        }
        let known = state.nodes.get(beat.node);
        if known.is_some_and(|node| node.file != beat.file && node.until_ms > now_ms) {
            return Err(EngineError::NameTaken);
        }
        if !beat.lease.is_zero() && *state.settings != *beat.settings {
            if state.nodes.iter().any(|(name, node)| **name != *beat.node && node.until_ms > now_ms) {
                return Err(EngineError::Disagrees);
            }
            state.settings = beat.settings.into();
        }
        if !beat.lease.is_zero() {
            state.lease_ms = millis(beat.lease);
        }
        let known = state.nodes.get(beat.node);
        let granted_ms = known.map_or(0, |node| node.until_ms);
        let until_ms = granted_ms.max(if beat.lease.is_zero() { 0 } else { now_ms + millis(beat.lease) });
        let Heartbeat { file, applied, details, .. } = beat;
        let behind_ms = state.last.ms.saturating_sub(applied.ms);
        state.nodes.insert(
            beat.node.into(),
            Node { file, applied, behind_ms, details: details.into(), until_ms, has_left: false },
        );
        Ok(state.view(now_ms))
    }

    async fn trim(&self, log: LogIdentity, keep: Duration, _: u64) -> Result<(), EngineError> {
        let now_ms = self.now_ms();
        let state = self.state_of(log)?;
        let live = state.nodes.values().filter(|node| node.until_ms > now_ms);
        let before_ms = live.map(|node| node.applied.ms).fold(now_ms.saturating_sub(millis(keep)), u64::min);
        let removed = state.entries.iter().take_while(|entry| entry.id.ms < before_ms).last().map(|entry| entry.id);
        drop(state);
        if let Some(last) = removed {
            self.trim_to(last);
        }
        Ok(())
    }

    async fn look(&self, log: LogIdentity) -> Result<ClusterView, EngineError> {
        let now_ms = self.now_ms();
        Ok(self.state_of(log)?.view(now_ms))
    }

    async fn hold_duty(&self, log: LogIdentity, node: &str, lease: Duration) -> Result<Option<u64>, EngineError> {
        let now_ms = self.now_ms();
        let mut state = self.state_of(log)?;
        let until = now_ms + millis(lease);
        if state.since_ms > 0 && now_ms < state.since_ms + millis(lease) {
            return Ok(None);
        }
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

    async fn drop_duty(&self, node: &str) -> Result<(), EngineError> {
        let mut state = self.reach()?;
        if state.duty.as_ref().is_some_and(|(holder, _)| *holder.node == *node) {
            state.duty = None;
        }
        Ok(())
    }

    async fn end_lease(&self, node: &str, is_forgotten: bool) -> Result<bool, EngineError> {
        self.drop_duty(node).await?;
        let mut state = self.reach()?;
        if is_forgotten {
            return Ok(state.nodes.remove(node).is_some());
        }
        let known = state.nodes.get_mut(node);
        Ok(known.map(|known| (known.until_ms, known.has_left) = (0, true)).is_some())
    }

    async fn share(
        &self,
        log: LogIdentity,
        node: &str,
        needs: &[(KeyId, KeyNeed)],
    ) -> Result<Vec<KeyShare>, EngineError> {
        let now_ms = self.now_ms();
        let mut state = self.state_of(log)?;
        if state.may_have_forgotten(now_ms) {
            return Err(EngineError::Settling);
        }
        let live = state.live(now_ms);
        Ok(needs.iter().map(|(key, need)| state.limits.share(node, (key, need), live, now_ms)).collect())
    }

    async fn restate(
        &self,
        log: LogIdentity,
        node: &str,
        holdings: &[(KeyId, KeyNeed)],
        since_ms: u64,
    ) -> Result<(), EngineError> {
        let now_ms = self.now_ms();
        let mut state = self.state_of(log)?;
        let live = state.live(now_ms);
        for (key, need) in holdings {
            state.limits.share(node, (key, need), live, now_ms);
        }
        state.restated.insert(node.into(), since_ms);
        Ok(())
    }

    async fn give_back(
        &self,
        log: LogIdentity,
        node: &str,
        unused: &[(KeyId, Unused)],
        answered: Option<EntryId>,
    ) -> Result<(), EngineError> {
        let mut state = self.state_of(log)?;
        for (key, unused) in unused {
            state.limits.give_back(key, unused);
        }
        if let Some(recall) = answered {
            state.recalled.insert(node.into(), recall);
        }
        Ok(())
    }

    async fn reset_usage(&self, log: LogIdentity, key: &KeyId) -> Result<EntryId, EngineError> {
        self.state_of(log)?.limits.reset(key);
        self.add_recall(key, LimitSet::QUOTAS, true)
    }

    async fn put_streams(
        &self,
        log: LogIdentity,
        node: &str,
        key: &KeyId,
        open: u32,
        streams_max: u32,
    ) -> Result<bool, EngineError> {
        let now_ms = self.now_ms();
        let mut state = self.state_of(log)?;
        let of = |name: &str| state.streams.get(&(Box::from(name), key.clone())).copied().unwrap_or_default();
        let others = state.nodes.iter().filter(|(name, other)| ***name != *node && other.until_ms > now_ms);
        let elsewhere: u32 = others.map(|(name, _)| of(name)).sum();
        if open > of(node) && open.saturating_add(elsewhere) > streams_max {
            return Ok(false);
        }
        state.streams.insert((node.into(), key.clone()), open);
        Ok(true)
    }

    async fn end_streams(&self, node: &str) -> Result<(), EngineError> {
        self.reach()?.streams.retain(|(name, _), _| **name != *node);
        Ok(())
    }

    async fn recall(&self, key: &KeyId, limits: LimitSet) -> Result<EntryId, EngineError> {
        self.add_recall(key, limits, false)
    }

    async fn is_recalled(&self, but: Option<&str>, recall: EntryId) -> Result<bool, EngineError> {
        let now_ms = self.now_ms();
        let state = self.reach()?;
        let mut asked = state.nodes.iter().filter(|(name, node)| but != Some(&***name) && node.until_ms > now_ms);
        Ok(asked.all(|(name, _)| state.recalled.get(name).is_some_and(|answered| *answered >= recall)))
    }

    async fn last_recall(&self) -> Result<EntryId, EngineError> {
        Ok(self.reach()?.recalls.last().map(|recall| recall.id).unwrap_or_default())
    }

    async fn recalls(&self, after: EntryId, wait: Duration) -> Result<Vec<Recall>, EngineError> {
        let recalled = self.recalled.notified();
        tokio::pin!(recalled);
        recalled.as_mut().enable();
        let recalls = || {
            let state = self.reach()?;
            Ok::<_, EngineError>(state.recalls.iter().filter(|recall| recall.id > after).cloned().collect::<Vec<_>>())
        };
        let found = recalls()?;
        if !found.is_empty() || tokio::time::timeout(wait, recalled).await.is_err() {
            return Ok(found);
        }
        recalls()
    }
}
