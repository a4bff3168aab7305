//! The integration tests: one binary, a module for each concern.

/// Random batches of news against a plain model of what a board must answer.
mod model;
