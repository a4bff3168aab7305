//! The process's log: lines are written without blocking, and those that clients can cause are rate-limited by kind.
//!
//! - [`LogWriter`] appends lines to a bounded buffer that one thread writes to standard error. When standard error is
//!   blocked, full or closed, lines are dropped and counted; no caller ever blocks, fails or panics.
//! - [`LineKind`] lists the kinds of lines that others than the operator can cause; at most [`LINES_PER_SECOND`] of a
//!   kind are logged, and the next line reports how many were suppressed.
//!
//! Access lines of requests that were answered and charged are not rate-limited: they are the operator's record of each
//! key's requests, and the key's own limits bound them. They go through the same buffer, so at worst they are dropped
//! and counted.
//!
//! Both are process-wide, like the `tracing` subscriber.

mod limiter;
mod writer;

pub use limiter::{LINES_PER_SECOND, LineKind, admit, suppressed};
pub use writer::{Escaping, LogWriter, dropped, escaped, flush, install, print};

/// Logs an event of a [`LineKind`], unless its limit for this second is reached.
macro_rules! limited {
    ($kind:expr, $level:expr, $($fields:tt)+) => {
        if tracing::enabled!($level) && let Some(suppressed) = $crate::log::admit($kind) {
            let suppressed = (suppressed > 0).then_some(suppressed);
            tracing::event!($level, suppressed, $($fields)+);
        }
    };
}
pub(crate) use limited;
