//! What clients can rely on: asked through `handle`, and over sockets.

mod answers;
mod any_input;
mod caching;
mod errors;
mod limits;
mod repeated;
mod sockets;
mod tls;
