//! The threads of a server.
//!
//! tokio panics if it cannot start a thread, and a runtime that was half begun may then never end. So whether threads can be
//! started is found out before.

use std::num::NonZero;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::{env, io};

use anyhow::{Context, anyhow};

/// Those beside the workers: the writer, signals, and what blocks.
const OTHER_THREADS: usize = 4;
/// tokio's own variable for the number of workers.
const WORKERS_VARIABLE: &str = "TOKIO_WORKER_THREADS";

/// A runtime on all cores.
pub(super) fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    let workers = workers()?;
    let count = workers + OTHER_THREADS;
    start_threads(count).map_err(|error| {
        anyhow!("{count} threads cannot be started ({error}): raise the limit of threads (ulimit -u, TasksMax of systemd) or of memory")
    })?;
    Ok(tokio::runtime::Builder::new_multi_thread().worker_threads(workers).enable_all().build()?)
}

fn workers() -> anyhow::Result<usize> {
    let Some(value) = env::var_os(WORKERS_VARIABLE) else {
        return Ok(thread::available_parallelism().map_or(1, NonZero::get));
    };
    let count = value.to_str().and_then(|text| text.parse::<NonZero<usize>>().ok());
    Ok(count.with_context(|| format!("{WORKERS_VARIABLE} must be a number of threads, at least 1"))?.get())
}

/// Starts so many threads at once, and ends them.
fn start_threads(count: usize) -> io::Result<()> {
    let gate = Mutex::new(());
    thread::scope(|scope| {
        let closed = gate.lock().unwrap_or_else(PoisonError::into_inner);
        let start = || thread::Builder::new().spawn_scoped(scope, || drop(gate.lock()));
        let started = (0..count).try_for_each(|_| start().map(drop));
        drop(closed);
        started
    })
}
