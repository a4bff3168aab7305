//! oddsbox: a sports odds data service in one process.
#![forbid(unsafe_code)]

pub mod clock;
pub mod keys;
pub mod model;
pub mod store;
