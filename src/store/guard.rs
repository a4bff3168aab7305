//! Panics of redb: it checks its own pages with assertions when it meets a ruined one.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::error::StoreError;

thread_local! {
    static IS_GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Whether a panic on this thread becomes an error: a panic hook then need not report it as a bug.
pub fn is_guarded() -> bool {
    IS_GUARDED.get()
}

/// Runs `work` and turns a panic into damage. Whatever `work` was changing must not be used after that.
pub(super) fn guarded<T, E: From<StoreError>>(work: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
    let was_guarded = IS_GUARDED.replace(true);
    let done = catch_unwind(AssertUnwindSafe(work));
    IS_GUARDED.set(was_guarded);
    done.unwrap_or_else(|panic| {
        let message = panic.downcast_ref::<String>().map(String::as_str);
        let message = message.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no reason given");
        Err(StoreError::Damaged(format!("reading it stopped at: {}", first_line(message))).into())
    })
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}
