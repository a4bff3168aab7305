//! oddsbox: a sports odds data service in one process.
#![forbid(unsafe_code)]

pub mod board;
pub mod clock;
pub mod config;
pub mod feeds;
pub mod http;
pub mod keys;
pub mod model;
pub mod store;
