//! The threads of a server.
//!
//! tokio panics if it cannot start a thread, and a runtime that was half begun may then never end. So whether threads can be
//! started is found out before.

use std::num::NonZero;
use std::sync::{Barrier, Mutex, PoisonError};
use std::thread;
use std::{env, io};

use anyhow::{Context, anyhow};

/// Those beside the workers: the writer, signals, and what blocks.
const OTHER_THREADS: usize = 4;
/// What threads have unless it is set.
const STACK_BYTES: usize = 2 << 20;
/// Far more than what a thread takes beside its stack to begin. One that does not get it ends the process.
const BEGIN_BYTES: usize = 256 << 10;
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

/// Starts so many threads that all run at once, and ends them.
fn start_threads(count: usize) -> io::Result<()> {
    let (gate, has_begun) = (Mutex::new(()), Barrier::new(2));
    thread::scope(|scope| {
        let closed = gate.lock().unwrap_or_else(PoisonError::into_inner);
        let wait = || {
            has_begun.wait();
            drop(gate.lock());
        };
        let started = (0..count).try_for_each(|_| {
            reserve(STACK_BYTES + BEGIN_BYTES)?;
            thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, wait)?;
            // The next one must not take the memory that this one begins with.
            has_begun.wait();
            Ok(())
        });
        drop(closed);
        started
    })
}

/// Takes memory and gives it back.
fn reserve(bytes: usize) -> io::Result<()> {
    let mut memory = Vec::<u8>::new();
    let reserved = memory.try_reserve_exact(bytes).map_err(|_| io::ErrorKind::OutOfMemory.into());
    // Or the compiler would leave it out.
    std::hint::black_box(&memory);
    reserved
}
