//! What follows from the prices of one publication: the best of each outcome, fair prices, and edges.
//!
//! Only prices of the same event, market, point and description are compared, and only of bookmakers whose source was not stale
//! when they were published. Lay markets, and markets whose shape the catalogue does not know, take no part. A bet of which a
//! bookmaker prices some outcomes only says nothing of its margin: nothing is filled in.
//!
//! - `query` what can be asked
//! - `pairing` sorts the records of an event into bets; `bet` is one of them, with every bookmaker's prices
//! - `best`, `fair`, `edges` compute a row of a bet
//! - `position` the order of rows, and the cursor between two pages
//! - `page` finds the rows of an answer; `ranked` the lists that are ordered by a result, kept with the publication

mod best;
mod bet;
mod edges;
mod fair;
mod page;
mod pairing;
mod position;
mod query;
mod ranked;

pub use query::{BestOrder, Derived, DerivedFilter, DerivedQuery, EdgeKind, FairFrom, FairQuery};

pub(crate) use best::{BestOutcome, BestRow};
pub(crate) use bet::Bet;
pub(crate) use edges::{EdgeRow, Leg};
pub(crate) use fair::{FairRow, RecordFair, record_fair};
pub(crate) use page::{DerivedRow, rows};
pub(crate) use ranked::{RankedQuery, RankedRows};

#[cfg(test)]
mod tests;
