//! Get Changes: `/v1/changes`, the log by polling. Of every record, event and score that changed since a position, the last
//! state.

use std::sync::Arc;

use crate::board::{ChangeEntry, ChangeFilter, Limit, MergedChanges, WorldBoard};
use crate::http::exchange::error::ApiError;
use crate::http::exchange::history::{EntriesRead, HistoryFailure, Stop};
use crate::http::exchange::query::Params;
use crate::http::exchange::reply::Content;
use crate::http::exchange::service::Authorized;
use crate::http::exchange::values;
use crate::http::stream::{self, CHANGES_PARAMETERS};
use crate::model::Position;

/// The most entries that one answer goes through.
const ENTRIES_MAX: u64 = 2000;

pub(crate) fn get(authorized: &Authorized<'_>) -> Result<Content, Stop> {
    authorized.check_open()?;
    let params = Params::read(authorized.request.query, CHANGES_PARAMETERS)?;
    let (spec, _) = stream::read_filter(authorized, &params)?;
    let rows_max = values::limit_or(&params, Limit::LONGEST)?.get();
    let streams = &authorized.service.streams;
    let (filter, world) = (streams.filter(spec), authorized.grant.world());
    let feed = streams.boards.feed(world);
    feed.is_asked_for(authorized.now);
    let board = streams.boards.load_full(world);
    let end = board.position();
    let Some(since) = stream::since(&params)? else {
        return Ok(Content::once(MergedChanges::new(&filter, board.register()).json(end, false)));
    };
    if since.epoch != end.epoch || since.is_after(end) {
        return Err(stream::position_gone().into());
    }
    let in_memory = if since.sequence >= end.sequence { Some(Vec::new()) } else { feed.entries_from(since.sequence) };
    if let Some(entries) = in_memory {
        let mut answer = Answer::new(&filter, &board, since, rows_max);
        answer.add(&entries);
        return Ok(answer.content());
    }
    let oldest = streams.oldest(authorized.now);
    authorized.history_content(move |history| {
        let mut answer = Answer::new(&filter, &board, since, rows_max);
        while !answer.is_full && answer.position.sequence < end.sequence {
            let read =
                EntriesRead { world, epoch: end.epoch, from: answer.position.sequence, to: end.sequence, oldest };
            let entries = history.entries(read).map_err(|failure| match failure {
                HistoryFailure::Gone { .. } => stream::position_gone(),
                other => ApiError::from(other),
            })?;
            let before = answer.position;
            answer.add(&entries);
            if answer.position == before {
                return Err(ApiError::internal());
            }
        }
        Ok(answer.content())
    })
}

/// An answer that is being put together.
struct Answer<'a> {
    merged: MergedChanges<'a>,
    position: Position,
    first: u64,
    end: Position,
    rows_max: usize,
    is_full: bool,
}

impl<'a> Answer<'a> {
    fn new(filter: &'a ChangeFilter, board: &'a WorldBoard, since: Position, rows_max: usize) -> Self {
        let merged = MergedChanges::new(filter, board.register());
        Answer { merged, position: since, first: since.sequence, end: board.position(), rows_max, is_full: false }
    }

    /// Adds entries, of which the first is at or before the position, as far as there is room.
    fn add(&mut self, entries: &[Arc<ChangeEntry>]) {
        let first = self.position.sequence;
        for entry in entries.iter().skip_while(|entry| entry.sequence < first) {
            if self.is_full || entry.sequence >= self.end.sequence {
                return;
            }
            let stopped = self.merged.add(entry, self.position.offset, self.rows_max);
            self.position = match stopped {
                Some(offset) => Position { offset, ..self.position },
                None => Position::before(self.position.epoch, entry.sequence + 1),
            };
            self.is_full = stopped.is_some()
                || self.merged.rows() >= self.rows_max
                || self.position.sequence - self.first >= ENTRIES_MAX;
        }
    }

    fn content(self) -> Content {
        let has_more = self.position.sequence < self.end.sequence;
        let rows = self.merged.rows();
        Content { rows, ..Content::once(self.merged.json(self.position, has_more)) }
    }
}
