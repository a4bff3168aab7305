//! Upkeep of the log: keyframes and packs when they are due, and removal of what is past its retention, a small step at a time.

use std::thread::{self, JoinHandle};
use std::time::Instant;

use super::{WriteError, Writer};
use crate::model::{Timestamp, World};
use crate::store::{
    ForgetOutcome, ForgottenEvent, HistoryError, HistoryReader, LogHead, LogId, PreparedForget, PreparedLines,
    StoreError,
};

/// What is kept of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HistoryOptions {
    /// Of the live world; 0 keeps only what a stream needs to resume.
    pub keep_s: u32,
    pub keep_sandbox_s: u32,
    /// The most bytes of both worlds together: beyond it the oldest days go.
    pub bytes_max: u64,
    /// How far back a stream can resume.
    pub resume_s: u32,
}

impl Default for HistoryOptions {
    fn default() -> Self {
        HistoryOptions { keep_s: 400 * DAY_S, keep_sandbox_s: 7 * DAY_S, bytes_max: 10 << 30, resume_s: DAY_S }
    }
}

const DAY_S: u32 = 86_400;
/// Old entries are removed only up to a keyframe, of which there is one in six hours.
const TRIM_AFTER_S: u32 = 7 * 3600;
/// The log leaves this much of the disk free.
const DISK_FREE_MIN: u64 = 1 << 30;

/// From when on the log of a world is kept.
struct KeepFrom {
    time: Timestamp,
    /// Whether it is because there are too many bytes.
    is_too_much: bool,
}

impl Writer {
    /// Writes a keyframe or a piece of the lines, packs entries or removes a piece of what is too old or too much, if that is due.
    /// Returns whether there may be more to do.
    pub(super) fn keep_history(&mut self, now: Timestamp) -> Result<bool, WriteError> {
        let began = Instant::now();
        if self.store.write_due_keyframe(now)? {
            self.writing.keyframes.record(began.elapsed());
            self.read_log_heads()?;
            return Ok(true);
        }
        self.cap_history();
        // In turns: lines that fall behind, or cannot be written, must not keep the log from being trimmed. But what is prepared
        // of them would be void if it was trimmed meanwhile.
        let was_lines = std::mem::take(&mut self.upkeep.had_lines);
        if was_lines && self.line_job.is_none() && self.shorten_history(now, began)? {
            return Ok(true);
        }
        self.upkeep.had_lines = true;
        Ok(self.keep_lines(began)? || self.shorten_history(now, began)?)
    }

    /// Packs entries, or removes a piece of what is too old, too much or replaced.
    fn shorten_history(&mut self, now: Timestamp, began: Instant) -> Result<bool, WriteError> {
        for world in World::ALL {
            if self.store.pack_log(world)? {
                self.writing.packs.record(began.elapsed());
                self.read_log_heads()?;
                return Ok(true);
            }
            let Some(KeepFrom { time, is_too_much }) = self.keep_from(world, now)? else { continue };
            if self.store.trim_imports(world, time)? || self.store.trim_history(world, time)? {
                self.writing.trims.record(began.elapsed());
                self.read_log_heads()?;
                self.show_history_since(world);
                return Ok(true);
            }
            if is_too_much {
                self.emptied_to[world.index()] = time;
                if time < now {
                    return Ok(true);
                }
            }
        }
        Ok(self.store.delete_unlisted_history(&self.imports)?)
    }

    /// Writes a piece of the lines, if there is one to write. It is prepared on a thread of its own if the writer has one.
    fn keep_lines(&mut self, began: Instant) -> Result<bool, WriteError> {
        if self.line_job.is_none() {
            let Some(log) = self.store.log_without_lines()? else { return Ok(false) };
            self.line_job = Some(LineJob::start(self.store.history(), log, self.has_own_thread));
        }
        match self.line_job.take().map(LineJob::finish) {
            Some(Ok(prepared)) => {
                if let Some(prepared) = prepared? {
                    self.store.write_lines(&prepared)?;
                    self.writing.lines.record(began.elapsed());
                }
                self.read_log_heads()?;
            }
            running => self.line_job = running.and_then(Result::err),
        }
        Ok(true)
    }

    /// Deletes an event from a piece of the log.
    pub fn forget(&mut self, prepared: &PreparedForget) -> Result<ForgetOutcome, WriteError> {
        self.refuse_in_cluster()?;
        // One that is being prepared may have the event in it.
        self.line_job = None;
        let outcome = self.write_beside_changes(|store| store.forget(prepared))?;
        self.read_log_heads()?;
        // Its changes in memory are those of the log as it was.
        let world = prepared.world();
        self.boards.feed(world).clear();
        self.show(world);
        self.boards.feed(world).wake_all();
        Ok(outcome)
    }

    /// Deletes the lines of an event that the log no longer has.
    pub fn forget_lines(&mut self, event: &ForgottenEvent) -> Result<bool, WriteError> {
        self.refuse_in_cluster()?;
        self.line_job = None;
        let had_lines = self.write_beside_changes(|store| store.forget_lines(event))?;
        self.read_log_heads()?;
        Ok(had_lines)
    }

    /// While the disk is nearly full, the log does not grow: what is added takes the room of the oldest. Trimming more would
    /// not help, as the file does not become smaller.
    fn cap_history(&mut self) {
        let is_short = self.store.disk_free().is_some_and(|free| free < DISK_FREE_MIN);
        let bytes = self.log_bytes();
        self.history_cap = is_short.then(|| self.history_cap.unwrap_or(bytes));
        if !self.is_too_large() {
            self.emptied_to = [Timestamp::default(); World::ALL.len()];
        }
    }

    fn is_too_large(&self) -> bool {
        let bytes_max = self.options.history.bytes_max;
        self.log_bytes() > self.history_cap.map_or(bytes_max, |cap| cap.min(bytes_max))
    }

    pub(super) fn log_bytes(&self) -> u64 {
        self.log_heads.iter().map(LogHead::bytes).chain(self.bytes_beside_log).sum()
    }

    /// From when on a world's log is kept, if it reaches back further than that.
    fn keep_from(&self, world: World, now: Timestamp) -> Result<Option<KeepFrom>, WriteError> {
        let Some(first) = self.first_logged(world)? else { return Ok(None) };
        let (oldest, by_age) = (self.oldest_left(world)?, self.kept_since(world, now));
        let is_too_much = self.is_too_large() && self.is_oldest(world, oldest)?;
        let by_bytes = oldest.filter(|_| is_too_much).map(|oldest| oldest.plus_seconds(DAY_S).min(now));
        let time = by_age.max(by_bytes.unwrap_or_default());
        Ok((time.seconds_since(first) >= TRIM_AFTER_S).then_some(KeepFrom { time, is_too_much }))
    }

    /// From when on the history of a world is kept, by its age.
    pub(super) fn kept_since(&self, world: World, now: Timestamp) -> Timestamp {
        let HistoryOptions { keep_s, keep_sandbox_s, resume_s, .. } = self.options.history;
        // Simulated prices are worth as little as those of the sandbox.
        let is_simulated = self.boards.condition().is_simulated(world);
        let keep_s = if is_simulated { keep_sandbox_s } else { keep_s };
        before(now, keep_s.max(resume_s))
    }

    /// The second of the first entry of a world, imported or not.
    fn first_logged(&self, world: World) -> Result<Option<Timestamp>, WriteError> {
        let first = [self.store.first_logged(world)?, self.store.first_imported(world)?];
        Ok(first.into_iter().flatten().min())
    }

    /// The oldest second of which a world may have something to remove: one piece may be of several days, and goes as a whole.
    fn oldest_left(&self, world: World) -> Result<Option<Timestamp>, WriteError> {
        Ok(self.first_logged(world)?.map(|first| first.max(self.emptied_to[world.index()])))
    }

    /// Whether no other world has anything older to remove.
    fn is_oldest(&self, world: World, oldest: Option<Timestamp>) -> Result<bool, WriteError> {
        for other in World::ALL.into_iter().filter(|other| *other != world) {
            if self.oldest_left(other)?.is_some_and(|other| Some(other) < oldest) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    pub(super) fn read_log_heads(&mut self) -> Result<(), WriteError> {
        for world in World::ALL {
            self.log_heads[world.index()] = self.store.log_head(world)?;
            self.bytes_beside_log[world.index()] = self.store.bytes_beside_log(world)?;
            self.show_log_size(world);
        }
        Ok(())
    }

    pub(super) fn show_log_size(&self, world: World) {
        let head = self.log_heads[world.index()];
        let bytes = head.bytes() + self.bytes_beside_log[world.index()];
        self.writing.logs[world.index()].set(head.next - 1, head.changes, bytes);
    }

    /// Shows readers since when the prices of a world are known.
    pub(super) fn show_history_since(&self, world: World) {
        match self.store.history().since(world) {
            Ok(since) => self.boards.condition().set_history_since(world, since),
            Err(error) => tracing::debug!(%error, "failed to read the beginning of the log"),
        }
    }
}

/// The preparation of a piece of the lines, which only reads.
#[derive(Debug)]
pub(super) enum LineJob {
    Done(Result<Option<PreparedLines>, StoreError>),
    Running(JoinHandle<Result<Option<PreparedLines>, StoreError>>),
}

impl LineJob {
    /// On a thread of its own if it should be; else at once.
    fn start(history: HistoryReader, log: LogId, on_own_thread: bool) -> Self {
        let prepare = move || history.prepare_lines(log).map_err(HistoryError::into_store);
        if !on_own_thread {
            return LineJob::Done(prepare());
        }
        match thread::Builder::new().name("lines".to_owned()).spawn(prepare) {
            Ok(thread) => LineJob::Running(thread),
            Err(error) => LineJob::Done(Err(StoreError::Io(error))),
        }
    }

    /// What was prepared, or the job itself if it is not done.
    fn finish(self) -> Result<Result<Option<PreparedLines>, StoreError>, Self> {
        match self {
            LineJob::Done(prepared) => Ok(prepared),
            LineJob::Running(thread) if thread.is_finished() => {
                let lost = || Err(StoreError::Refused("the thread that prepares lines has failed".to_owned()));
                Ok(thread.join().unwrap_or_else(|_| lost()))
            }
            running @ LineJob::Running(_) => Err(running),
        }
    }
}

fn before(now: Timestamp, seconds: u32) -> Timestamp {
    Timestamp::from_unix(now.unix().saturating_sub(seconds))
}
