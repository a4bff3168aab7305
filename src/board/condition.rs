//! The condition of the service as readers need to know it: whether it is in maintenance, whether writes succeed,
//! whether the writer is running, whether the live world is simulated, and since when prices are known.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use arc_swap::ArcSwapOption;

use crate::model::{Maintenance, Timestamp, World};

/// Read by every request, stored by the writer.
#[derive(Debug, Default)]
pub struct Condition {
    maintenance: ArcSwapOption<Maintenance>,
    unwritable: AtomicBool,
    writer_ended: AtomicBool,
    simulated_live: AtomicBool,
    /// By [`World::index`]: seconds, or 0 if nothing is logged.
    history_since: [AtomicU32; World::ALL.len()],
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

    /// Whether the writer thread has ended: keys can no longer be revoked, so none may be accepted.
    pub fn has_writer_ended(&self) -> bool {
        self.writer_ended.load(Ordering::Relaxed)
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

    pub(crate) fn set_writer_ended(&self) {
        self.writer_ended.store(true, Ordering::Relaxed);
    }
}
