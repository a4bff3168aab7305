//! A node: enters what it is asked for in the shared log, and applies everything that is in there.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
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

/// Where a node stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It applies the entries of the log.
    Following,
    /// The engine does not answer.
    CutOff,
    /// The file does not take an entry.
    Stalled(Box<str>),
    /// The engine has lost what this node has applied: it goes no further.
    Lost,
    /// An entry that this version cannot read: it goes no further.
    Unreadable(Box<str>),
}

impl Standing {
    /// Why the node goes no further.
    pub fn end(&self) -> Option<String> {
        match self {
            Standing::Following | Standing::CutOff | Standing::Stalled(_) => None,
            Standing::Lost => Some("the engine has lost what this node has applied".to_owned()),
            Standing::Unreadable(reason) => Some(format!("this node cannot follow the others ({reason})")),
        }
    }
}

/// See the module.
pub struct ClusterNode<E> {
    engine: Arc<E>,
    name: Box<str>,
    log: LogIdentity,
    catalogue: Arc<Catalogue>,
    writer: WriterHandle,
    /// Who waits for entries of this node, by their numbers.
    waiting: Mutex<HashMap<u64, Waiting>>,
    next_number: AtomicU64,
    applied: watch::Sender<EntryId>,
    standing: watch::Sender<Standing>,
    /// An entry was applied that somebody waits for on another node.
    applied_awaited: Notify,
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
            catalogue,
            writer,
            waiting: Mutex::default(),
            next_number: AtomicU64::new(first_number),
            applied: watch::Sender::new(membership.applied),
            standing: watch::Sender::new(Standing::Following),
            applied_awaited: Notify::new(),
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

    pub fn engine(&self) -> &Arc<E> {
        &self.engine
    }

    pub fn writer(&self) -> &WriterHandle {
        &self.writer
    }

    /// Ready when an entry was applied that somebody waits for on another node.
    pub async fn awaited_is_applied(&self) {
        self.applied_awaited.notified().await;
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
        let bytes = entry::encode(operation, &self.catalogue).map_err(WriteError::not_entered)?;
        let number = self.next_number.fetch_add(1, Ordering::Relaxed);
        // Before it is entered: it may be applied before the engine's answer is here.
        if let Some(waiting) = waiting {
            self.waiting().insert(number, waiting);
        }
        let entry = NewEntry { node: &self.name, number, fence, bytes: &bytes };
        match self.engine.append(self.log, entry).await {
            Ok(id) => Ok(id),
            Err(error) => {
                self.waiting().remove(&number);
                Err(match error {
                    EngineError::Unreachable(reason) => WriteError::Unconfirmed(reason),
                    error => WriteError::not_entered(error),
                })
            }
        }
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
        if entry.previous != *self.applied.borrow() {
            self.stand(Standing::Lost);
            return false;
        }
        let is_own = *entry.node == *self.name;
        let mut waiting = is_own.then(|| self.waiting().remove(&entry.number)).flatten();
        let mut is_awaited = false;
        loop {
            let operation = match entry::decode(&entry.bytes, &self.catalogue) {
                Ok(operation) => operation,
                Err(error) => {
                    self.stand(Standing::Unreadable(error.to_string().into()));
                    return false;
                }
            };
            is_awaited |= operation.ends_access();
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
        self.applied.send_replace(entry.id);
        if is_awaited {
            self.applied_awaited.notify_one();
        }
        true
    }

    pub(super) fn stand(&self, standing: Standing) {
        self.standing.send_if_modified(|now| {
            let is_other = *now != standing;
            *now = standing;
            is_other
        });
    }
}
