//! Noticing that a task panicked. One that runs for as long as the server would be missing without a sign of it: a feed that
//! is not polled, or a node that applies nothing and keeps its lease. So whoever starts such tasks waits for a panic here,
//! and starts them again or ends the server.

use std::time::Duration;

use tokio::task::JoinSet;

/// How long what panicked waits before it is started again: whatever caused it may still be there.
pub(crate) const RESTART_AFTER: Duration = Duration::from_secs(60);

/// Ready when a task panics. Tasks that end in another way have done what they were for.
pub(crate) async fn first_panic(tasks: &mut JoinSet<()>) {
    loop {
        match tasks.join_next().await {
            Some(Err(error)) if error.is_panic() => return,
            Some(_) => {}
            None => std::future::pending().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn panic_is_noticed_and_other_ends_are_not() {
        let mut tasks = JoinSet::new();
        tasks.spawn(async {});
        tasks.spawn(std::future::pending()).abort();
        let quiet = tokio::time::timeout(RESTART_AFTER, first_panic(&mut tasks)).await;
        assert!(quiet.is_err(), "no task panicked");
        tasks.spawn(std::future::pending());
        tasks.spawn(async { panic!("a fault in a task") });
        tokio::time::timeout(RESTART_AFTER, first_panic(&mut tasks)).await.expect("a task panicked");
    }
}
