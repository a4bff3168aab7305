//! oddsbox: a sports odds data service in one process.
//!
//! Feeds of prices come in, one redb file keeps everything, a read-only HTTP interface answers from memory. The house:
//!
//! - [`model`]: what the service is about; plain values with their invariants
//! - [`keys`]: API keys, their secrets, limits and meters
//! - [`store`]: the file, and the only place that knows redb
//! - [`board`]: immutable snapshots that every answer is read from
//! - [`ingest`]: every way in for data: feed lines, payloads, files, polls, the simulator
//! - [`writer`]: the one hand that changes anything: commit, publish, answer
//! - [`http`]: the public door, read-only
//! - [`admin`]: the admin door, a Unix socket, and the client of it
//! - [`config`], [`clock`]: what the operator set, and what time it is
//! - [`tls`]: certificates and handshakes, for whatever listens
//! - [`log`]: writing log lines without waiting, and limits on the kinds that strangers can cause
//! - [`networks`]: IP addresses and networks that the operator lists
//! - [`server`]: where all of it is put together
//! - [`cli`]: the command line
#![forbid(unsafe_code)]

pub mod admin;
pub mod board;
pub mod cli;
pub mod clock;
pub mod config;
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
pub mod tls;
pub mod writer;
