//! What clients can rely on, asked through `handle`.

mod answers;
mod caching;
mod errors;
mod limits;
