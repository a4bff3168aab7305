//! What clients can rely on: through `handle`, over sockets, and over streams in memory.

mod answers;
mod any_input;
mod caching;
mod deadlines;
mod errors;
mod limits;
mod repeated;
mod sockets;
mod streams;
mod tls;
