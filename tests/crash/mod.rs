//! Guarantees under power loss, disk failure, file corruption, clock changes and overload.
//!
//! Each test has a short form that always runs and a long one with `ODDSBOX_LONG_TESTS=1`; random choices come from a
//! seed that a failure prints and `ODDSBOX_SEED` repeats. None of them asserts on elapsed time.
#![allow(clippy::expect_used, reason = "a test that cannot go on stops")]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "what was measured, and what could not be tried")]

mod abuse;
mod ahead;
mod disk;
mod errors;
mod frames;
mod full;
mod kill;
mod lines;
mod log;
mod power;
mod rot;
mod security;
pub mod soak;
mod stop;
mod time;
mod writer;
mod writer_run;
