//! A node: enters what it is asked for in the shared log, and applies everything that is in there.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, watch};

use super::engine::{Engine, EngineError, LogEntry, LogIdentity, NewEntry};
use super::entry;
use crate::model::{Catalogue, EntryId, Membership};
use crate::writer::{SharedOperation, Waiting, WriteError, WriterHandle};

/// So many entries are read at a time.
const ENTRIES_READ: usize = 64;
/// How long a reading waits for an entry.
const READ_WAIT: Duration = Duration::from_secs(1);
/// How long to wait before an engine that did not answer is asked again, or an entry is applied again.
const RETRY: Duration = Duration::from_millis(200);

/// How long an operation waits for an engine that was restarted. No lease is longer.
const SETTLING_MAX: Duration = Duration::from_secs(65);

/// Where a node stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It applies the entries of the log.
    Following,
    /// The engine does not answer.
    CutOff,
    /// The file does not take an entry.
    Stalled(Box<str>),
    // In all that follow it goes no further.
    /// The engine has lost what this node has applied.
    Lost,
    /// The engine has removed what this node has not applied.
    Behind,
    /// An entry that this version cannot read.
    Unreadable(Box<str>),
    /// Other nodes have other settings.
    Disagrees(Box<str>),
    NameTaken,
}

impl Standing {
    /// The name of each of them.
    pub const NAMES: [&str; 8] =
        ["following", "cut off", "stalled", "lost", "behind", "unreadable", "disagrees", "name taken"];

    pub fn name(&self) -> &'static str {
        Self::NAMES[match self {
            Standing::Following => 0,
            Standing::CutOff => 1,
            Standing::Stalled(_) => 2,
            Standing::Lost => 3,
            Standing::Behind => 4,
            Standing::Unreadable(_) => 5,
            Standing::Disagrees(_) => 6,
            Standing::NameTaken => 7,
        }]
    }

    /// Why the node goes no further, and what to do.
    pub fn end(&self) -> Option<String> {
        Some(match self {
            Standing::Following | Standing::CutOff | Standing::Stalled(_) => return None,
            Standing::Lost => {
                "the engine has lost what this node has applied, or holds another cluster: stop all nodes, \
                               and run `oddsbox cluster reseed` on the one with the highest position"
                    .to_owned()
            }
            Standing::Behind => {
                "the log of the cluster no longer reaches back to where this node was: start it again, and \
                                 it takes a copy from another node"
                    .to_owned()
            }
            Standing::Unreadable(reason) => {
                format!("this node cannot follow the others ({reason}): run the same version on all of them")
            }
            Standing::Disagrees(setting) => {
                format!("{setting}: set it to the same on all nodes, and stop all of them to change it")
            }
            Standing::NameTaken => {
                "another node has the name of this one: give each its own with cluster.node".to_owned()
            }
        })
    }
}

/// See the module.
pub struct ClusterNode<E> {
    engine: Arc<E>,
    name: Box<str>,
    log: LogIdentity,
    file: u64,
    catalogue: Arc<Catalogue>,
    writer: WriterHandle,
    /// Who waits for entries of this node, by their numbers.
    waiting: Mutex<HashMap<u64, Waiting>>,
    next_number: AtomicU64,
    /// The last entry of this node that somebody waits for until other nodes have applied it.
    entered_awaited: Mutex<Option<EntryId>>,
    applied: watch::Sender<EntryId>,
    standing: watch::Sender<Standing>,
    /// An entry was applied that somebody waits for on another node.
    applied_awaited: Notify,
    /// An entry has ended access, and the streams have not been checked since.
    has_ended_access: AtomicBool,
}

impl<E> fmt::Debug for ClusterNode<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClusterNode").field("name", &self.name).field("log", &self.log).finish_non_exhaustive()
    }
}

impl<E: Engine> ClusterNode<E> {
    /// A node whose file is at `membership`. `first_number` is random: entries that it entered before it was started last are
    /// not taken for later ones.
    pub fn new(
        engine: Arc<E>,
        name: &str,
        membership: Membership,
        (catalogue, writer): (Arc<Catalogue>, WriterHandle),
        first_number: u64,
    ) -> Self {
        ClusterNode {
            engine,
            name: name.into(),
            log: LogIdentity { cluster: membership.cluster, epoch: membership.epoch },
            file: membership.file,
            catalogue,
            writer,
            waiting: Mutex::default(),
            next_number: AtomicU64::new(first_number),
            entered_awaited: Mutex::default(),
            applied: watch::Sender::new(membership.applied),
            standing: watch::Sender::new(Standing::Following),
            applied_awaited: Notify::new(),
            has_ended_access: AtomicBool::new(false),
        }
    }

    /// The last entry that is in the file.
    pub fn applied(&self) -> watch::Receiver<EntryId> {
        self.applied.subscribe()
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn log(&self) -> LogIdentity {
        self.log
    }

    /// See [`Membership::file`].
    pub fn file(&self) -> u64 {
        self.file
    }

    pub fn engine(&self) -> &Arc<E> {
        &self.engine
    }

    pub fn writer(&self) -> &WriterHandle {
        &self.writer
    }

    /// The last entry that was entered here, and that somebody waits for until other nodes have applied it.
    pub(super) fn entered_awaited(&self) -> MutexGuard<'_, Option<EntryId>> {
        self.entered_awaited.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ready when an entry was applied that somebody waits for on another node.
    pub async fn awaited_is_applied(&self) {
        self.applied_awaited.notified().await;
    }

    /// Whether an entry has ended access since this was last asked.
    pub(super) fn take_ended_access(&self) -> bool {
        self.has_ended_access.swap(false, Ordering::AcqRel)
    }

    pub fn standing(&self) -> watch::Receiver<Standing> {
        self.standing.subscribe()
    }

    fn waiting(&self) -> MutexGuard<'_, HashMap<u64, Waiting>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Enters an operation, with the fence of the duty if it is one of those that only its holder may enter.
    pub async fn enter_with(
        &self,
        operation: SharedOperation,
        fence: Option<u64>,
        waiting: Option<Waiting>,
    ) -> Result<EntryId, WriteError> {
        if let Some(reason) = self.standing.borrow().end() {
            return Err(WriteError::not_entered(reason));
        }
        let is_awaited = operation.is_awaited();
        let bytes = entry::encode(operation, &self.catalogue).map_err(WriteError::not_entered)?;
        let number = self.next_number.fetch_add(1, Ordering::Relaxed);
        // Before it is entered: it may be applied before the engine's answer is here.
        if let Some(waiting) = waiting {
            self.waiting().insert(number, waiting);
        }
        let entry = NewEntry { node: &self.name, number, fence, bytes: &bytes };
        let entered = self.append(entry).await.map_err(|error| {
            self.waiting().remove(&number);
            match error {
                EngineError::Unreachable(reason) => WriteError::Unconfirmed(reason),
                error => WriteError::not_entered(error),
            }
        })?;
        if is_awaited {
            let mut last = self.entered_awaited();
            *last = (*last).max(Some(entered));
        }
        Ok(entered)
    }

    /// Waits for an engine that was restarted.
    async fn append(&self, entry: NewEntry<'_>) -> Result<EntryId, EngineError> {
        let settled = async {
            loop {
                match self.engine.append(self.log, entry.clone()).await {
                    Err(EngineError::Settling) => tokio::time::sleep(RETRY).await,
                    answer => return answer,
                }
            }
        };
        tokio::time::timeout(SETTLING_MAX, settled).await.unwrap_or(Err(EngineError::Settling))
    }

    /// Applies the entries of the log, until the node can go no further.
    pub async fn follow(&self) {
        self.follow_on().await;
        // Their entries will not be applied here.
        self.waiting().clear();
    }

    async fn follow_on(&self) {
        loop {
            let after = *self.applied.borrow();
            match self.engine.read(after, ENTRIES_READ, READ_WAIT).await {
                Ok(entries) => {
                    self.stand(Standing::Following);
                    for entry in entries {
                        if !self.take(entry).await {
                            return;
                        }
                    }
                }
                Err(EngineError::Lost) => return self.stand(Standing::Lost),
                Err(EngineError::Behind) => return self.stand(Standing::Behind),
                Err(error) => {
                    tracing::debug!(%error, "the log of the cluster could not be read");
                    self.stand(Standing::CutOff);
                    tokio::time::sleep(RETRY).await;
                }
            }
        }
    }

    /// Applies an entry, as often as it takes. Returns whether the node goes on.
    async fn take(&self, entry: LogEntry) -> bool {
        let applied = *self.applied.borrow();
        if entry.previous != applied {
            self.stand(if entry.previous > applied { Standing::Behind } else { Standing::Lost });
            return false;
        }
        let is_own = *entry.node == *self.name;
        let mut waiting = is_own.then(|| self.waiting().remove(&entry.number)).flatten();
        let (mut is_awaited, mut ends_access) = (false, false);
        loop {
            let operation = match entry::decode(&entry.bytes, &self.catalogue) {
                Ok(operation) => operation,
                Err(error) => {
                    self.stand(Standing::Unreadable(error.to_string().into()));
                    return false;
                }
            };
            is_awaited |= operation.is_awaited();
            ends_access |= operation.ends_access();
            match self.writer.apply(entry.id, entry.fence, operation, waiting).await {
                Ok(()) => break,
                Err((WriteError::Stopped | WriteError::Died, _)) => return false,
                Err((error, again)) => {
                    tracing::warn!(%error, entry = %entry.id, "failed to apply an entry of the cluster's log; trying again");
                    self.stand(Standing::Stalled(error.to_string().into()));
                    waiting = again;
                    tokio::time::sleep(RETRY).await;
                }
            }
        }
        self.has_ended_access.fetch_or(ends_access, Ordering::AcqRel);
        self.applied.send_replace(entry.id);
        if is_awaited {
            self.applied_awaited.notify_one();
        }
        true
    }

    /// Ready when the node goes no further.
    pub async fn ended(&self) -> Standing {
        let mut standing = self.standing();
        // The sender is here, so it cannot end without.
        let ended = standing.wait_for(|standing| standing.end().is_some()).await;
        ended.map_or(Standing::Lost, |ended| ended.clone())
    }

    /// One that goes no further stays so.
    pub(super) fn stand(&self, standing: Standing) {
        self.standing.send_if_modified(|now| {
            let is_other = *now != standing && now.end().is_none();
            if !is_other {
                return false;
            }
            if let Some(reason) = standing.end() {
                tracing::error!("{reason}");
            }
            *now = standing;
            true
        });
    }
}
