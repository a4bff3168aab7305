//! What every request to the public interface goes through, from its head to the bytes of its response.
//!
//! - `handle` is the pipeline, `post` its part for POST, `charged` what a request costs; `respond` runs it for a connection,
//!   waits for what `waits` lists, counts and logs
//! - `service` is what requests are answered from, and what an endpoint may read of it; `history` reads the log for it,
//!   `work` computes what takes long
//! - `request_headers`, `route`, `query`, `values`, `percent` read a request
//! - `reply`, `response_headers`, `usage`, `negotiate`, `request_id`, `error` write a response
//!
//! Endpoints use all of these but `handle`, `post` and `respond`, which use the endpoints.

mod charged;
pub(crate) mod error;
pub(crate) mod handle;
pub(crate) mod history;
pub(crate) mod negotiate;
pub(crate) mod percent;
pub(crate) mod post;
pub(crate) mod query;
pub(crate) mod reply;
pub(crate) mod request_headers;
mod request_id;
mod respond;
mod response_headers;
pub(crate) mod route;
pub(crate) mod service;
mod usage;
pub(crate) mod values;
pub(crate) mod waits;
pub(crate) mod work;

pub use request_id::RequestId;
