//! Several nodes that serve the same: each has its own file and boards, and all apply the operations of one shared log.
//!
//! - `entry`: an operation as it is in that log
//! - `engine`: what holds the log
//! - `node`: enters operations, and applies those of all nodes
//! - `shares`: the limits of keys, which all nodes use together

pub mod engine;
pub mod entry;
pub mod node;
pub mod shares;

#[cfg(test)]
mod tests;
