//! Long readings of the whole file beside the writer: a copy, a check. The writer hands out the moment to be read and
//! goes on; there is one such reading at a time, so that what it costs the file is bounded.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::WriteError;
use crate::store::{Progress, Snapshot};

/// Why a reading does not begin.
#[derive(Debug, thiserror::Error)]
pub enum ReadingError {
    #[error("a {0} is under way: wait for its end and try again")]
    Busy(&'static str),
    #[error(transparent)]
    Write(#[from] WriteError),
}

/// Where the reading that is under way stands.
#[derive(Clone, Debug, Default)]
pub(super) struct Desk(Arc<Mutex<Option<UnderWay>>>);

#[derive(Clone, Debug)]
struct UnderWay {
    what: &'static str,
    progress: Arc<Progress>,
}

/// The place of one reading. Letting it go breaks the reading off.
#[derive(Debug)]
pub(super) struct Place {
    desk: Desk,
    pub(super) progress: Arc<Progress>,
}

/// The file at one moment, and the place of whoever reads it.
#[derive(Debug)]
pub struct Reading {
    pub snapshot: Snapshot,
    /// To be held until the reading is done: letting it go breaks it off.
    pub hold: ReadingHold,
}

#[derive(Debug)]
pub struct ReadingHold {
    _place: Place,
}

impl Reading {
    pub(super) fn new(snapshot: Snapshot, place: Place) -> Self {
        Reading { snapshot, hold: ReadingHold { _place: place } }
    }
}

/// How far the reading that is under way is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadingProgress {
    pub what: &'static str,
    pub rows_done: u64,
    pub rows_total: u64,
}

impl Desk {
    pub(super) fn take(&self, what: &'static str) -> Result<Place, ReadingError> {
        let mut under_way = self.lock();
        if let Some(other) = &*under_way {
            return Err(ReadingError::Busy(other.what));
        }
        let progress: Arc<Progress> = Arc::default();
        *under_way = Some(UnderWay { what, progress: Arc::clone(&progress) });
        Ok(Place { desk: self.clone(), progress })
    }

    pub(super) fn progress(&self) -> Option<ReadingProgress> {
        self.lock().as_ref().map(|UnderWay { what, progress }| {
            let (rows_done, rows_total) = progress.rows();
            ReadingProgress { what, rows_done, rows_total }
        })
    }

    fn lock(&self) -> MutexGuard<'_, Option<UnderWay>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.progress.cancel();
        *self.desk.lock() = None;
    }
}
