//! Connections: accepting them within bounds, speaking HTTP on them under deadlines, ending them in order.
//!
//! - `listener` accepts while there are `connection_slots`; `shutdown` ends it in order
//! - `connection` speaks HTTP/1.1 or HTTP/2 on a `stream` that reports progress to `deadline`
//! - `heads` bounds what all connections buffer of unfinished requests; `frames` finds those in HTTP/2
//! - `wake_filter` keeps deadlines from being polled with every request
//! - `client_address` determines whom a request comes from, behind trusted proxies as well
//!
//! What a request means is up to whatever implements [`Respond`].

mod client_address;
pub(crate) mod connection;
mod connection_slots;
mod deadline;
mod frames;
mod heads;
mod listener;
mod respond;
pub(crate) mod shutdown;
mod stream;
mod wake_filter;

pub use client_address::Peer;
pub use connection::HttpOptions;
pub(crate) use connection_slots::{AddressCount, Addresses};
pub use deadline::Deadlines;
pub use heads::Heads;
pub use listener::{ListenSocket, ListenerSummary, Options, listen, run};
pub(crate) use respond::AbortConnection;
pub use respond::{IncomingRequest, Respond, ResponseBody, ResponseFuture};
