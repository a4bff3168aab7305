//! Long readings of the whole file beside the writer: a copy, a check. The writer provides a snapshot and goes on; only one
//! such job runs at a time, so that what it costs the file is bounded.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::WriteError;
use crate::store::{Progress, Snapshot};

/// Why a job did not start.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotJobError {
    #[error("a {0} is running: try again when it has ended")]
    Busy(&'static str),
    #[error(transparent)]
    Write(#[from] WriteError),
}

/// The job that is running, if any.
#[derive(Clone, Debug, Default)]
pub(super) struct SnapshotJobs(Arc<Mutex<Option<RunningJob>>>);

#[derive(Clone, Debug)]
struct RunningJob {
    what: &'static str,
    progress: Arc<Progress>,
}

/// The permission to run one job. Dropping it cancels the job.
#[derive(Debug)]
pub(super) struct JobPermit {
    jobs: SnapshotJobs,
    pub(super) progress: Arc<Progress>,
}

/// A snapshot of the file, and the permission to read it.
#[derive(Debug)]
pub struct SnapshotJob {
    pub snapshot: Snapshot,
    /// To be held until the job is done: dropping it cancels the job.
    pub guard: SnapshotJobGuard,
}

#[derive(Debug)]
pub struct SnapshotJobGuard {
    _permit: JobPermit,
}

impl SnapshotJob {
    pub(super) fn new(snapshot: Snapshot, permit: JobPermit) -> Self {
        SnapshotJob { snapshot, guard: SnapshotJobGuard { _permit: permit } }
    }
}

/// The progress of the running job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SnapshotJobProgress {
    pub what: &'static str,
    pub rows_done: u64,
    pub rows_total: u64,
}

impl SnapshotJobs {
    pub(super) fn start(&self, what: &'static str) -> Result<JobPermit, SnapshotJobError> {
        let mut running = self.lock();
        if let Some(other) = &*running {
            return Err(SnapshotJobError::Busy(other.what));
        }
        let progress: Arc<Progress> = Arc::default();
        *running = Some(RunningJob { what, progress: Arc::clone(&progress) });
        Ok(JobPermit { jobs: self.clone(), progress })
    }

    pub(super) fn progress(&self) -> Option<SnapshotJobProgress> {
        self.lock().as_ref().map(|RunningJob { what, progress }| {
            let (rows_done, rows_total) = progress.rows();
            SnapshotJobProgress { what, rows_done, rows_total }
        })
    }

    fn lock(&self) -> MutexGuard<'_, Option<RunningJob>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for JobPermit {
    fn drop(&mut self) {
        self.progress.cancel();
        *self.jobs.lock() = None;
    }
}
