//! Several nodes that serve the same: each has its own file and boards, and all apply the operations of one shared log.
//!
//! - `entry`: an operation as it is in that log

pub mod entry;

#[cfg(test)]
mod tests;
