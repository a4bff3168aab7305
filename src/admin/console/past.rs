//! Sports as they were, the last few in memory: the page reads several views of the same moment.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use crate::admin::protocol::FailureCode;
use crate::admin::{Context, Failure};
use crate::board::AsOf;
use crate::model::{Permanence, SportId, Timestamp, World};
use crate::store::{Entries, EntryAt, HistoryError, LogId};
use crate::writer::logged_board;

/// As many as a page needs while its slider moves.
const BOARDS_MAX: usize = 4;

/// Its last part is how often the log had been rewritten: an event that was forgotten is not shown again.
type PastKey = (World, SportId, (LogId, u64), u64);

#[derive(Debug, Default)]
pub(super) struct PastBoards(Mutex<VecDeque<(PastKey, AsOf)>>);

impl PastBoards {
    /// A sport as of the last publication at or before a time. Reads the log.
    pub(super) fn get(
        &self,
        context: &Context,
        (world, sport): (World, SportId),
        time: Timestamp,
    ) -> Result<AsOf, Failure> {
        let rewrites = context.history.rewrites();
        let found = context.history.entry_at(world, sport, Entries::Ticks, time);
        let entry = found.map_err(|error| failure(&error))?;
        let key = (world, sport, (entry.log, entry.sequence), rewrites);
        let is_settled = entry.permanence > Permanence::Current;
        if is_settled && let Some(kept) = self.kept(key) {
            return Ok(kept);
        }
        let state = context.history.state_at(sport, entry).map_err(|error| failure(&error))?;
        let (board, register) = logged_board(&context.boards, world, sport, &state);
        let EntryAt { at, previous, next, permanence, .. } = entry;
        let past = AsOf { board, register, at, previous, next, permanence };
        // The last entry gets neighbours, and may be taken back.
        if is_settled {
            self.keep(key, past.clone());
        }
        Ok(past)
    }

    fn kept(&self, key: PastKey) -> Option<AsOf> {
        let boards = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        boards.iter().find(|(kept, _)| *kept == key).map(|(_, past)| past.clone())
    }

    fn keep(&self, key: PastKey, past: AsOf) {
        let mut boards = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        boards.truncate(BOARDS_MAX - 1);
        boards.push_front((key, past));
    }
}

pub(super) fn failure(error: &HistoryError) -> Failure {
    match error {
        HistoryError::Gone => {
            Failure::new(FailureCode::NotFound, "the history of this sport does not reach back to that")
        }
        HistoryError::Future => Failure::bad_request("that is in the future"),
        HistoryError::TooMuch => Failure::bad_request("this history is too much to be read at once"),
        HistoryError::Damaged(_) | HistoryError::Store(_) => {
            tracing::warn!(%error, "failed to read the log for the console");
            Failure::new(FailureCode::Unavailable, "the log could not be read: see the server's log")
        }
    }
}
