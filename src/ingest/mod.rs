//! Feeds: where prices, events and scores come from. Each kind of feed turns what it reads into
//! [`News`](crate::model::News), already validated; none of them knows who takes the news or where it is kept.

pub mod ledger;
pub mod simulator;
pub mod the_odds_api;
pub mod wire;

pub use ledger::{Account, FeedKind, Ledger, Upstream};
pub use simulator::Simulator;
