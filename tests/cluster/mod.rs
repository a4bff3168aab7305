//! Nodes of a cluster, each in its own process, on a real Redis server.
//!
//! Without `redis-server` on the machine every test here is left out and says so; with `ODDSBOX_REQUIRE_REDIS` it fails instead.

mod duty;
mod engine;
mod engine_faults;
mod joining;
mod limits;
mod load;
mod network;
mod nodes;
mod revocation;
mod settings;
mod soak;
mod transport;
