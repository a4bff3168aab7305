//! The condition of the service as readers need to know it: whether it is in maintenance, whether writes succeed,
//! whether the writer is running, whether the live world is simulated, and since when prices are known.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use arc_swap::ArcSwapOption;

use crate::model::{Maintenance, Timestamp, World};

/// Read by every request, stored by the writer.
#[derive(Debug)]
pub struct Condition {
    maintenance: ArcSwapOption<Maintenance>,
    unwritable: AtomicBool,
    /// See [`Condition::may_serve`].
    serve_until: AtomicU64,
    simulated_live: AtomicBool,
    /// By [`World::index`]: seconds, or 0 if nothing is logged.
    history_since: [AtomicU32; World::ALL.len()],
}

/// A process that is alone, or goes on when it is cut off.
const ALWAYS: u64 = u64::MAX;
/// The writer has ended.
const NEVER: u64 = 0;

impl Default for Condition {
    fn default() -> Self {
        Condition {
            maintenance: ArcSwapOption::default(),
            unwritable: AtomicBool::default(),
            serve_until: AtomicU64::new(ALWAYS),
            simulated_live: AtomicBool::default(),
            history_since: Default::default(),
        }
    }
}

impl Condition {
    /// The maintenance in force at a time.
    pub fn maintenance(&self, now: Timestamp) -> Option<Maintenance> {
        let maintenance = **self.maintenance.load().as_ref()?;
        maintenance.until.is_none_or(|until| now < until).then_some(maintenance)
    }

    /// Whether there may be one: without, nobody has to know the time.
    pub(crate) fn has_maintenance(&self) -> bool {
        self.maintenance.load().is_some()
    }

    /// Whether a write failed, and none as large has succeeded since.
    pub fn is_unwritable(&self) -> bool {
        self.unwritable.load(Ordering::Relaxed)
    }

    /// Whether keys may be accepted. Not if one could have been revoked without this process knowing: because its writer has
    /// ended, or because its lease in a cluster has.
    ///
    /// To be asked after a key was found, with the time of the monotonic clock from after that: whatever happens to the
    /// process in between, the key was in force then.
    pub fn may_serve(&self, mono_ms: impl FnOnce() -> u64) -> bool {
        match self.serve_until.load(Ordering::Relaxed) {
            ALWAYS => true,
            NEVER => false,
            // One more than the time: no time is 0.
            until => mono_ms() < until - 1,
        }
    }

    /// Whether the prices of a world are simulated. The sandbox's always are.
    pub fn is_simulated(&self, world: World) -> bool {
        world == World::Sandbox || self.simulated_live.load(Ordering::Relaxed)
    }

    /// Since when the prices of a world are known; `None` if none were published.
    pub fn history_since(&self, world: World) -> Option<Timestamp> {
        let second = self.history_since[world.index()].load(Ordering::Relaxed);
        (second > 0).then(|| Timestamp::from_unix(second))
    }

    pub(crate) fn set_history_since(&self, world: World, since: Option<Timestamp>) {
        self.history_since[world.index()].store(since.map_or(0, Timestamp::unix), Ordering::Relaxed);
    }

    pub(crate) fn set_simulated_live(&self, simulated: bool) {
        self.simulated_live.store(simulated, Ordering::Relaxed);
    }

    pub(crate) fn set_maintenance(&self, maintenance: Option<Maintenance>) {
        self.maintenance.store(maintenance.map(Arc::new));
    }

    pub(crate) fn set_unwritable(&self, unwritable: bool) {
        self.unwritable.store(unwritable, Ordering::Relaxed);
    }

    /// Keys may be accepted until then, on the monotonic clock, unless the writer has ended.
    pub fn serve_until(&self, mono_ms: u64) {
        let set = |until| (until != NEVER).then_some(mono_ms.saturating_add(1));
        // It fails if the writer has ended.
        let _ = self.serve_until.fetch_update(Ordering::Relaxed, Ordering::Relaxed, set);
    }

    pub(crate) fn set_writer_ended(&self) {
        self.serve_until.store(NEVER, Ordering::Relaxed);
    }
}
