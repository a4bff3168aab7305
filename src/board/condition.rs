//! The service's own condition, as readers need to know it: whether the operator has closed it for maintenance, and
//! whether changes can be written.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arc_swap::ArcSwapOption;

use crate::model::{Maintenance, Timestamp};

/// Read by every request, stored by the writer.
#[derive(Debug, Default)]
pub struct Condition {
    maintenance: ArcSwapOption<Maintenance>,
    unwritable: AtomicBool,
}

impl Condition {
    /// The maintenance in force at a time.
    pub fn maintenance(&self, now: Timestamp) -> Option<Maintenance> {
        let maintenance = **self.maintenance.load().as_ref()?;
        maintenance.until.is_none_or(|until| now < until).then_some(maintenance)
    }

    /// Whether a write was refused, and none as large has gone through since.
    pub fn is_unwritable(&self) -> bool {
        self.unwritable.load(Ordering::Relaxed)
    }

    pub(crate) fn set_maintenance(&self, maintenance: Option<Maintenance>) {
        self.maintenance.store(maintenance.map(Arc::new));
    }

    pub(crate) fn set_unwritable(&self, unwritable: bool) {
        self.unwritable.store(unwritable, Ordering::Relaxed);
    }
}
