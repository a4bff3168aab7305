//! Tests that hurt: what is left after power is lost, a disk fails, a file rots, a clock is set, a crowd comes.
//!
//! Each has a short form that always runs and a long one by `ODDSBOX_LONG_TESTS=1`; what is random comes from a seed
//! that a failure prints and `ODDSBOX_SEED` repeats. None of them asserts on elapsed time.
#![allow(clippy::expect_used, reason = "a test that cannot go on stops")]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "what was measured, and what could not be tried")]

mod abuse;
mod ahead;
mod disk;
mod errors;
mod frames;
mod full;
mod kill;
mod life;
mod power;
mod rot;
mod security;
mod soak;
mod stop;
mod time;
mod writer;
