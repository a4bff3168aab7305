//! The process's log: lines are written without waiting, and those that strangers or clients cause are limited by kind.
//!
//! - [`LogWriter`] takes lines into a bounded buffer that one thread writes to standard error. When standard error is
//!   blocked, full or closed, lines are dropped and counted; no caller ever waits, fails or panics.
//! - [`LineKind`] names each kind of line that somebody other than the operator can cause; at most
//!   [`LINES_PER_SECOND`] of a kind are logged, and the next line says how many were suppressed.
//!
//! Access lines of requests that were answered and charged are not limited by rate: they are the operator's record of
//! what each key asked for, and the key's own limits bound them. They pass through the same buffer as all lines, so at
//! worst they are dropped and counted.
//!
//! Both are process-wide, as the subscriber of `tracing` is.

mod limiter;
mod writer;

pub use limiter::{LINES_PER_SECOND, LineKind, admit, suppressed};
pub use writer::{Escaping, LogWriter, dropped, flush, install, print};

/// Logs an event of a [`LineKind`] unless too many of that kind came in this second.
macro_rules! limited {
    ($kind:expr, $level:expr, $($fields:tt)+) => {
        if tracing::enabled!($level) && let Some(suppressed) = $crate::log::admit($kind) {
            let suppressed = (suppressed > 0).then_some(suppressed);
            tracing::event!($level, suppressed, $($fields)+);
        }
    };
}
pub(crate) use limited;
