//! The integration tests: one binary, one module per concern.
#![allow(unreachable_pub, reason = "a test binary has no public API")]
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test fails by panicking")]

/// Random batches of messages, checked against a simple model of the board.
mod model;

/// The service in the test's own process.
mod harness;

/// Polled feeds, with an upstream in the test's own process.
mod pull;

/// The public API over a real socket, endpoint by endpoint.
mod api;

/// The binary in a process of its own: keys, limits, crashes and the command line.
mod process;

/// Nodes of a cluster in processes of their own, on a real Redis server.
#[cfg(feature = "cluster")]
mod cluster;

/// Guarantees under power loss, failing disks, corrupt files, clock changes and overload.
mod crash;

/// Parsers of untrusted input: the fuzzer's corpus, replayed and mutated at random.
mod fuzz;

/// Module boundaries.
mod architecture;
