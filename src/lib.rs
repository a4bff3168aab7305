//! oddsbox: a sports odds data service in one process.
//!
//! Feeds deliver prices, one redb file stores all data, and a read-only HTTP API serves it from memory. The modules:
//!
//! - [`model`]: domain types and their invariants
//! - [`keys`]: API keys: secrets, authentication, limits and meters
//! - [`store`]: the database file; the only module that uses redb
//! - [`board`]: immutable snapshots from which responses are rendered
//! - [`ingest`]: every way in: feed lines, payloads of The Odds API, push, files, polls, the simulator
//! - [`writer`]: the single writer: applies every change, commits it, publishes new boards
//! - [`http`]: the public API, read-only
//! - [`cluster`]: several nodes that serve the same
//! - [`admin`]: the admin API on a Unix socket, and its client
//! - [`config`]: the operator's settings
//! - [`clock`]: the time, passed in so that tests control it
//! - [`tls`]: certificates and handshakes
//! - [`log`]: non-blocking log output and rate limits on log lines
//! - [`metrics`]: counters and histograms
//! - [`networks`]: lists of IP addresses and networks
//! - [`server`]: starts, connects and stops all parts
//! - [`cli`]: the command line
#![forbid(unsafe_code)]

pub mod admin;
mod attachment;
pub mod board;
pub mod cli;
pub mod clock;
pub mod cluster;
pub mod config;
mod durable;
pub mod http;
pub mod ingest;
pub mod keys;
pub mod log;
pub mod metrics;
pub mod model;
mod nearest;
pub mod networks;
pub mod server;
pub mod store;
mod supervise;
#[cfg(test)]
mod testing;
pub mod tls;
mod wake;
pub mod writer;
