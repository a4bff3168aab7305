//! The binary itself, each server and each command in its own process.
//!
//! Every test has its own directory and port. The short forms run everywhere; `ODDSBOX_LONG_TESTS=1` runs the long
//! ones. Random choices come from a seed that a failure prints and `ODDSBOX_SEED` repeats.
#![allow(clippy::expect_used, reason = "a test that cannot go on stops")]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "what was measured, and the seed of a failure")]

mod account;
mod backup;
mod catalogue;
mod cli;
pub mod client;
pub mod command;
mod commands;
mod console;
mod crash;
mod damaged;
mod demo;
pub mod deploy;
mod derived;
mod descriptors;
mod exactness;
mod feeding;
mod history;
mod ingest;
mod leak;
mod lifecycle;
mod log_lines;
mod markets;
mod memory;
mod operator;
mod polled;
mod ports;
mod revocation;
pub mod seed;
mod standard_error;
mod streams;
mod whole;
