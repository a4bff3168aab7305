//! History on its way in: lines as an export has them, or responses of The Odds API's archive.
//!
//! What comes is validated here and handed to the writer's import, which shows it when the input has ended. Bookmakers,
//! competitions and markets become known as they come, like those of any other input.

mod intake;
mod responses;
mod stream;

pub use stream::HistoryStream;
