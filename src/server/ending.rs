//! When a server ends, and who else is to end then: it was asked to, its writer has ended, it must be started again to go on, or one of
//! its tasks panicked.

use std::future::Future;

use tokio::sync::watch;
use tokio::task::JoinSet;

use super::ServeError;
use super::facts::Phase;
use super::notify;
use crate::http;
use crate::supervise::first_panic;
use crate::writer::WriterEnd;

/// Ends what would go on for ever, and tells everybody else to end.
pub(super) fn drain(service: &http::Service, phase: &watch::Sender<Phase>) {
    notify::stopping();
    service.stop_streams();
    let _ = phase.send(Phase::Draining);
}

/// Ready when `asked` is, or when the writer has ended: without it there is nothing to wait for.
pub(super) async fn or_ended(asked: impl Future<Output = ()>, end: WriterEnd) {
    tokio::select! {
        () = asked => {}
        () = end.reached() => {}
    }
}

/// Waits until the server is to end; returns why, if nobody asked for it. A server without one of its tasks would go on with
/// prices, keys or limits that are out of date.
pub(super) async fn ended(
    stop: impl Future<Output = Option<String>>,
    [tasks, leases]: [&mut JoinSet<()>; 2],
) -> Option<ServeError> {
    tokio::select! {
        behind = stop => behind.map(ServeError::Behind),
        () = first_panic(tasks) => Some(ServeError::Panicked),
        () = first_panic(leases) => Some(ServeError::Panicked),
    }
}

/// What comes of `work`; `None` if `stop` is ready before.
pub(super) async fn unless<T>(stop: impl Future<Output = ()>, work: impl Future<Output = T>) -> Option<T> {
    tokio::select! {
        done = work => Some(done),
        () = stop => None,
    }
}

/// Ready when the server closes its inner interfaces.
pub(super) async fn closed(mut phases: watch::Receiver<Phase>) {
    drop(phases.wait_for(|phase| *phase == Phase::Closed).await);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn server_ends_with_an_error_when_a_task_panics() {
        let panic = async || panic!("a fault in a task");
        for number in 0..2 {
            let mut sets = [JoinSet::new(), JoinSet::new()];
            sets[number].spawn(panic());
            let [tasks, leases] = &mut sets;
            let failure = ended(std::future::pending(), [tasks, leases]).await;
            assert!(matches!(failure, Some(ServeError::Panicked)), "{failure:?}");
        }
        let (mut tasks, mut leases) = (JoinSet::new(), JoinSet::new());
        tasks.spawn(async {});
        assert!(ended(async { None }, [&mut tasks, &mut leases]).await.is_none(), "nothing failed");
    }
}
