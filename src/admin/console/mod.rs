//! The console: the operator's dashboard, as a page that this binary serves on an address of its own.
//!
//! - `sessions` hands out links that open once, and knows the sessions that they become; `session_file` stores these
//! - `listener` is its address, `guard` tells our own requests from others, `respond` has the routes
//! - `files` is the page itself, `views` what it reads: the same bytes that clients are sent; `given` has their parameters
//! - `derived` has best and fair prices and edges; `history` an event's prices over time; `past` a sport as it was
//! - `sparklines` and `strips` are what it shows of the last hour; `live` says when something was published
//!
//! Commands go through the admin protocol and nothing else: whatever the page can change, a command can. Nothing is
//! loaded from any other place, and no secret stays in an address.

mod backup;
mod derived;
mod files;
mod given;
mod guard;
mod history;
mod listener;
mod live;
mod past;
mod respond;
mod session_file;
mod sessions;
mod sparklines;
mod strips;
mod views;

pub use listener::{CONNECTIONS_MAX, ConsoleAddress, ConsoleError, ConsoleListener};
pub(super) use session_file::SessionFile;
pub use sessions::{ConsoleSessions, NewLink, NoRandom};
