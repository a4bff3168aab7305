//! Tells the page when something was published: a request that is answered once the position is another one.
//!
//! It looks at the position every so often instead of following the feed, which would have the writer keep every change in
//! memory for as long as a page is open.

use std::time::Duration;

use super::given::Given;
use crate::admin::{Context, Failure};
use crate::model::World;

const LOOK_EVERY: Duration = Duration::from_millis(150);
/// Shorter than what proxies and browsers wait for an answer.
const WAIT_MAX: Duration = Duration::from_secs(25);

/// The position of a world: at once if it is not the one that the page has seen, else with the next publication, or when the
/// page should ask again.
pub(super) async fn position(given: Given<'_>, context: &Context) -> Result<String, Failure> {
    let (world, seen) = (given.world()?, given.get("seen"));
    let deadline = tokio::time::Instant::now() + WAIT_MAX;
    let mut looks = tokio::time::interval(LOOK_EVERY);
    loop {
        looks.tick().await;
        let position = position_of(world, context);
        let is_stopping = context.server.as_ref().is_some_and(|server| !server.is_ready());
        if seen != Some(&*position) || is_stopping || tokio::time::Instant::now() >= deadline {
            return Ok(position);
        }
    }
}

fn position_of(world: World, context: &Context) -> String {
    context.boards.load(world).position().to_string()
}
