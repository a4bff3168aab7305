//! A writer that follows a log which it shares with others: every change comes from an entry of that log.
//!
//! Each entry is applied at its own time, in the order of the log, and committed together with its place. So after a crash
//! the next start goes on with the entry after the last one whose changes are in the file, and none is applied twice. What
//! an entry does depends on nothing but the entry and the entries before it: every node comes to the same state.
//!
//! An operation makes one commit at most. One that is refused, or changes nothing, commits its place alone.

use super::{WriteError, Writer};
use crate::clock::Clock;
use crate::model::{EntryId, Membership};
use crate::store::Change;

/// An entry while it is applied.
#[derive(Debug)]
pub(super) struct Applying {
    /// The membership once it is applied.
    next: Membership,
    commit: CommitState,
}

#[derive(Debug)]
enum CommitState {
    None,
    Done,
    Failed(WriteError),
}

impl Applying {
    pub(super) const fn change(&self) -> Change {
        Change::SetMembership(Some(self.next))
    }
}

/// What became of an entry.
#[derive(Debug, PartialEq, Eq)]
pub enum Applied<T> {
    Done(T),
    /// It is in the file already.
    Before,
    /// Whoever wrote it had been replaced.
    Fenced,
}

/// A clock that stands at the last entry.
pub(super) fn clock_of(membership: Membership) -> Clock {
    Clock::manual(unix_ms(membership.applied))
}

fn unix_ms(id: EntryId) -> i64 {
    i64::try_from(id.ms).unwrap_or(i64::MAX)
}

impl Writer {
    pub fn is_member(&self) -> bool {
        self.membership.is_some()
    }

    pub fn membership(&self) -> Option<Membership> {
        self.membership
    }

    /// Imports and deletions of history are not in the log that nodes share.
    pub(super) fn refuse_in_cluster(&self) -> Result<(), WriteError> {
        if self.is_member() { Err(WriteError::OneNode) } else { Ok(()) }
    }

    /// Makes the file one of a cluster, or of a single node again.
    pub fn set_membership(&mut self, membership: Option<Membership>) -> Result<(), WriteError> {
        // What was committed and not published would not be in the log of changes.
        self.catch_up()?;
        self.commit(&[Change::SetMembership(membership)])?;
        self.membership = membership;
        self.clock = membership.map_or_else(|| self.local_clock.clone(), clock_of);
        Ok(())
    }

    /// Applies an entry, which `run` carries out. After an error the state is what it was before: the entry must be applied
    /// again before any other.
    pub fn apply<T>(
        &mut self,
        id: EntryId,
        fence: Option<u64>,
        run: impl FnOnce(&mut Writer) -> T,
    ) -> Result<Applied<T>, WriteError> {
        let membership = self.membership.ok_or(WriteError::Member)?;
        if id <= membership.applied {
            return Ok(Applied::Before);
        }
        let next = Membership { applied: id, fence: membership.fence.max(fence.unwrap_or_default()), ..membership };
        self.clock = Clock::manual(unix_ms(id));
        self.applying = Some(Applying { next, commit: CommitState::None });
        let is_fenced = fence.is_some_and(|fence| fence < membership.fence);
        let done = if is_fenced { Applied::Fenced } else { Applied::Done(run(self)) };
        let result = match self.applying.take().map(|applying| applying.commit) {
            Some(CommitState::Done) => Ok(()),
            Some(CommitState::Failed(error)) => Err(error),
            Some(CommitState::None) | None => self.commit(&[Change::SetMembership(Some(next))]),
        };
        result?;
        self.membership = Some(next);
        Ok(done)
    }

    /// Notes the outcome of the commit that an entry makes.
    pub(super) fn note_commit(&mut self, error: Option<&WriteError>) {
        let Some(applying) = &mut self.applying else { return };
        debug_assert!(!matches!(applying.commit, CommitState::Done), "an operation makes one commit");
        applying.commit = match error {
            None => CommitState::Done,
            Some(error) => CommitState::Failed(error.clone()),
        };
    }
}
