//! What follows from prices: margins, fair probabilities by several methods, consensus, expected value and arbitrage.
//!
//! Pure mathematics on one bet at a time. Prices come in as they are quoted, floats are used inside only, and results are
//! rounded once, when they become [`Millionths`] or a [`FairPrice`](super::FairPrice).
//!
//! - `book` all outcomes of a bet with their implied probabilities: its margin
//! - `method` takes the margin out; `consensus` joins the results of several bookmakers
//! - `edge` the expected value of a price, and the stakes of an arbitrage
//! - `millionths` how results are rounded

mod book;
mod consensus;
mod edge;
mod method;
mod millionths;

pub use book::{Margin, WholeBook};
pub use consensus::{CONSENSUS_MIN, Consensus};
pub use edge::{Arbitrage, expected_value};
pub use method::FairMethod;
pub use millionths::Millionths;

#[cfg(test)]
mod tests;
