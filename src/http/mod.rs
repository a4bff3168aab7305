//! The public interface: read-only HTTP over TCP, answered from memory.
//!
//! - `listener` accepts while there are `places`, `connection` speaks HTTP/1.1 or HTTP/2 under `deadline`s, `shutdown` ends it in order
//! - `heads` bounds what all connections hold of unfinished requests; `frames` finds those in HTTP/2
//! - `client_address` says whom a request comes from, behind trusted proxies as well
//! - `service` is what every request is answered from; `handle` is the way from a request to its answer
//! - `route`, `query`, `values`, `host` read what was asked; `reply`, `link`, `usage`, `error` write what is answered
//! - one file for each endpoint: `odds`, `scores`, `events`, `event`, `sports`, `books`, `status`
//! - `v4` has the endpoints in the shape of The Odds API, from the same boards
//! - `docs` is the description of all this, for programs and for people; `pages` is what is open to everyone
//!
//! It reads boards and keys, charges meters, and changes nothing else.

mod access;
mod aside;
mod asked;
pub(crate) mod books;
mod client_address;
mod connection;
mod deadline;
mod docs;
mod error;
mod event;
mod events;
mod exchange;
mod frames;
mod handle;
mod heads;
mod host;
mod link;
mod listener;
pub(crate) mod negotiate;
mod odds;
mod pages;
pub(crate) mod percent;
mod places;
mod query;
mod reply;
mod request_id;
mod response_headers;
mod route;
mod scores;
mod sent;
mod service;
mod shutdown;
pub(crate) mod sports;
mod status;
mod stream;
mod usage;
mod v4;
mod values;
mod view;

pub use client_address::Peer;
pub use deadline::Deadlines;
pub use docs::OPENAPI;
pub use handle::{Answer, Handled, Note, handle};
pub use heads::Heads;
pub use listener::{Options, Summary, listen, run};
pub use request_id::RequestId;
pub use service::{IncomingRequest, Respond, Service, Settings};

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
