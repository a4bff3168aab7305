//! The public interface: HTTP over TCP, read-only but for one route, answered from memory.
//!
//! - `transport` accepts connections and speaks HTTP on them, for this interface and for others
//! - `exchange` is what every request goes through
//! - `v1` has the endpoints; `v4` has those in the shape of The Odds API, from the same boards
//! - `stream` hands out changes as they happen
//! - `account` is for the holder of a key: a page, and the rotation of the key
//! - `mcp` offers the same to assistants, as tools of the Model Context Protocol
//! - `docs` describes the interface, for programs and for people
//!
//! It reads boards and keys, charges meters, and changes nothing else: the rotation of a key goes to the writer.

mod account;
mod docs;
mod exchange;
mod mcp;
mod stream;
mod transport;
mod v1;
mod v4;

pub use account::{KeyRotations, OwnRotation, RotatedKey, RotationFailure, RotationFuture};
pub use docs::{DemoKeys, OPENAPI};
pub use exchange::RequestId;
pub use exchange::handle::{Handled, HandledRequest, Note, handle};
pub use exchange::history::{
    AsOfRead, ClosingOf, ClosingRead, EntriesRead, History, HistoryFailure, HourEntries, HourRead, HourRun, LinesRead,
    Shown,
};
pub(crate) use exchange::reply::etag_of;
pub use exchange::service::{Service, ServiceSettings};
pub(crate) use exchange::{negotiate, percent};
pub use transport::{
    Deadlines, Heads, HttpOptions, IncomingRequest, ListenSocket, ListenerSummary, Options, Peer, Respond,
    ResponseBody, ResponseFuture, listen, run,
};
pub(crate) use v1::{books, sports};

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
