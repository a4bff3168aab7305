//! The integration tests: one binary, a module for each concern.
#![allow(unreachable_pub, reason = "a test binary has no public face")]
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test that cannot go on stops")]

/// Random batches of news against a plain model of what a board must answer.
mod model;

/// The service in the test's own process.
mod harness;

/// Feeds that are polled, from an upstream in the test's own process.
mod pull;

/// The public interface over a real socket, row by row.
mod api;

/// The binary itself, in processes of its own: keys, limits, crashes and the command line.
mod process;

/// Power losses, failing disks, rotten files, clocks that are set, crowds: what must hold all the same.
mod crash;

/// The doors that bytes of strangers come through: the fuzzer's corpus, replayed and changed at random.
mod fuzz;

/// Who may import whom.
mod house;
