//! Looking after a file: checks, copies, upgrades, and the removal of what is damaged or unused.

mod check;
mod copy;
mod drop_damaged;
mod probe;
mod row_names;
mod snapshot;
mod sweep;
mod unused_books;
pub(super) mod upgrade;

#[cfg(test)]
pub(super) use check::check_rows;
pub(super) use check::{CheckFindings, CheckedRows};
pub use check::{CheckReport, Integrity};
pub use copy::{CopyError, CopyReport, Existing};
pub(super) use row_names::RowNames;
pub use snapshot::{Progress, Snapshot};
pub(super) use unused_books::SpareNumbers;
