//! The writer's thread and the two queues in front of it.
//!
//! Commands on keys, tokens, counters and maintenance have their own lane, which is served before the next batch of news:
//! a revocation waits for the operation that is running, not for those in the queue. Both lanes are bounded and
//! first in, first out. After [`FAST_RUN_MAX`] fast operations in a row one of the other lane is served, so that a stream
//! of commands cannot stop the feeds.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tokio::sync::{mpsc, watch};

use super::operation::Meanwhile;
use super::{WriteError, Writer, WriterHandle};
use crate::board::Boards;

/// How many operations may wait. A feeder that is faster than the disk waits for room in the queue: its backpressure.
const QUEUE_MAX: usize = 64;
/// How many fast operations may wait.
const FAST_QUEUE_MAX: usize = 64;
/// Not below [`FAST_QUEUE_MAX`]: whatever is in the fast lane then waits for one other operation at most.
pub(super) const FAST_RUN_MAX: usize = FAST_QUEUE_MAX;

type Work = dyn FnOnce(&mut Writer, Meanwhile<'_>) + Send;

/// What waits for the writer. Nobody may wait for its answer any more: it is done nevertheless.
pub(super) struct Job(pub Box<Work>);

impl fmt::Debug for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Job(…)")
    }
}

/// The thread of the writer.
#[derive(Debug)]
pub struct Stopped {
    thread: JoinHandle<Result<(), WriteError>>,
    end: WriterEnd,
}

impl Stopped {
    /// Waits for the end of the writer, once every handle is dropped, and its last flush.
    pub fn join(self) -> Result<(), WriteError> {
        self.thread.join().unwrap_or(Err(WriteError::Died))
    }

    /// Resolves when the writer's thread has ended, for whatever reason.
    pub fn end(&self) -> WriterEnd {
        self.end.clone()
    }
}

/// Signals the end of the writer's thread. Keeps neither the writer nor the file open.
#[derive(Clone, Debug)]
pub struct WriterEnd(watch::Receiver<()>);

impl WriterEnd {
    /// Ready once the thread has ended: after the last handle is dropped, or by a panic.
    pub async fn reached(mut self) {
        while self.0.changed().await.is_ok() {}
    }

    pub fn is_reached(&self) -> bool {
        self.0.has_changed().is_err()
    }
}

/// Kept by the writer's thread until it ends. Once it is dropped, no key is accepted: none could be revoked any more.
struct RunningGuard {
    boards: Arc<Boards>,
    _ends: watch::Sender<()>,
}

impl Drop for RunningGuard {
    fn drop(&mut self) {
        self.boards.condition().set_writer_ended();
        // Streams end too, and look for a reason to only when they are woken.
        self.boards.wake_followers();
    }
}

/// The receiving ends of both lanes.
#[derive(Debug)]
pub(super) struct Lanes {
    fast: mpsc::Receiver<Job>,
    other: mpsc::Receiver<Job>,
    /// Fast operations since the last other one.
    fast_run: usize,
}

#[derive(Debug)]
pub(super) enum Next {
    Fast(Job),
    Other(Job),
}

impl Lanes {
    pub(super) fn open() -> (mpsc::Sender<Job>, mpsc::Sender<Job>, Lanes) {
        let (fast_sender, fast) = mpsc::channel(FAST_QUEUE_MAX);
        let (sender, other) = mpsc::channel(QUEUE_MAX);
        (fast_sender, sender, Lanes { fast, other, fast_run: 0 })
    }

    /// The next operation; `None` when every handle is gone and both lanes are empty.
    pub(super) async fn next(&mut self) -> Option<Next> {
        if self.fast_run >= FAST_RUN_MAX {
            self.fast_run = 0;
            if let Ok(operation) = self.other.try_recv() {
                return Some(Next::Other(operation));
            }
        }
        tokio::select! {
            biased;
            Some(operation) = self.fast.recv() => {
                self.fast_run += 1;
                Some(Next::Fast(operation))
            }
            Some(operation) = self.other.recv() => {
                self.fast_run = 0;
                Some(Next::Other(operation))
            }
            else => None,
        }
    }

    /// Runs the fast operations that wait, as many as may wait at most.
    fn run_fast(&mut self, writer: &mut Writer) {
        for _ in 0..FAST_QUEUE_MAX {
            let Ok(Job(run)) = self.fast.try_recv() else { break };
            run(writer, &mut |_| {});
        }
    }
}

/// Puts the writer on a thread of its own.
pub fn spawn(mut writer: Writer) -> io::Result<(WriterHandle, Stopped)> {
    writer.has_own_thread = true;
    let (fast_queue, queue, lanes) = Lanes::open();
    let handle = WriterHandle::new(queue, fast_queue, &writer);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    let (ends, end) = watch::channel(());
    let running = RunningGuard { boards: Arc::clone(&writer.boards), _ends: ends };
    let thread = thread::Builder::new()
        .name("writer".to_owned())
        .spawn(move || runtime.block_on(serve(writer, lanes, running)))?;
    let stopped = Stopped { thread, end: WriterEnd(end) };
    Ok((handle, stopped))
}

/// Runs the writer as a task, for tests whose time is simulated.
#[cfg(test)]
pub(crate) fn spawn_task(mut writer: Writer) -> (WriterHandle, tokio::task::JoinHandle<Result<(), WriteError>>) {
    writer.has_own_thread = false;
    let (fast_queue, queue, lanes) = Lanes::open();
    let handle = WriterHandle::new(queue, fast_queue, &writer);
    let running = RunningGuard { boards: Arc::clone(&writer.boards), _ends: watch::channel(()).0 };
    (handle, tokio::spawn(serve(writer, lanes, running)))
}

async fn serve(mut writer: Writer, mut lanes: Lanes, running: RunningGuard) -> Result<(), WriteError> {
    // Dropped before the queue, so that the condition is set when the queue is found closed.
    let _running = running;
    loop {
        match tokio::time::timeout(writer.idle_time(), lanes.next()).await {
            Ok(Some(Next::Fast(Job(run)))) => run(&mut writer, &mut |_| {}),
            Ok(Some(Next::Other(Job(run)))) => run(&mut writer, &mut |writer| lanes.run_fast(writer)),
            Ok(None) => return writer.flush(),
            Err(_elapsed) => {}
        }
        writer.tick();
    }
}

impl Writer {
    /// How long the writer may sleep if no operation comes.
    fn idle_time(&self) -> Duration {
        const LONGEST_MS: u64 = 1_000;
        let due_ms = u64::try_from(self.next_due_ms(self.local_clock.now().unix_ms)).unwrap_or(0);
        Duration::from_millis(due_ms.min(LONGEST_MS))
    }
}
