//! Several nodes that serve the same: each has its own file and boards, and all apply the operations of one shared log.
//!
//! - `entry`: an operation as it is in that log
//! - `engine`: what holds the log
//! - `connect`: the engine that a configuration names
//! - `node`: enters operations, and applies those of all nodes
//! - `lease`: for how long a node may serve without having heard of the others
//! - `duty`: one node at a time polls and publishes
//! - `copies`: of a file, for nodes that join
//! - `alone`: the limits of keys on a node that is cut off and goes on
//! - `shares`: the limits of keys, which all nodes use together
//! - `member`: all of that for a server

mod alone;
pub mod connect;
pub mod copies;
pub mod duty;
pub mod engine;
pub mod entry;
pub mod lease;
pub mod member;
pub mod node;
pub mod shares;

#[cfg(test)]
mod tests;

use std::time::Duration;

/// The whole milliseconds of a duration.
fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
