//! Counters that every part may raise and anyone may read. A leaf: it knows nothing of what it counts.
//!
//! - [`Traffic`] what passes through the public door, and its [`History`] of the last hour
//! - [`Writing`] how long the writer takes
//! - [`Histogram`] how often something took how long
//! - [`Page`] writes all of it down for Prometheus; [`process`] reads what the system knows of this process
//!
//! Raising a counter is an addition to memory that hardly any other thread touches at the same time: no lock, no
//! allocation. Nothing here has a label that grows with the number of keys, addresses or requests.

mod histogram;
mod history;
mod page;
pub mod process;
mod traffic;
mod writing;

pub use histogram::{Histogram, Spread};
pub use history::{History, Step};
pub use page::{Kind, Page};
pub use traffic::{OpenConnection, Totals, Traffic};
pub use writing::Writing;
