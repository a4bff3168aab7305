//! Computing away from the threads that answer requests: what takes longer than a request may keep others waiting.
//!
//! An endpoint whose answer is not kept yet stops with [`Stop::NeedsWork`](super::history::Stop::NeedsWork). The caller of `handle`
//! has the body computed and handles the request again, which then finds it. Few bodies are computed at a time, and one for each
//! key, so that a key with many clients waits for itself; what others have computed meanwhile is found at once.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use foldhash::HashMap;
use tokio::sync::Semaphore;

use super::error::ApiError;
use crate::board::Body;
use crate::keys::KeyId;

/// Bodies computed at a time, over all keys.
const WORK_MAX: usize = 2;
/// How long a request waits for its turn.
const PATIENCE: Duration = Duration::from_secs(10);

/// Computes a body, or finds the one that another request had computed.
pub struct BodyJob(Box<dyn FnOnce() -> Arc<Body> + Send>);

impl BodyJob {
    pub(crate) fn new(job: impl FnOnce() -> Arc<Body> + Send + 'static) -> Self {
        BodyJob(Box::new(job))
    }

    /// Computes where it is called.
    pub(crate) fn run(self) -> Arc<Body> {
        (self.0)()
    }
}

impl fmt::Debug for BodyJob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BodyJob(…)")
    }
}

type KeyTurns = Arc<Mutex<HashMap<KeyId, Arc<Semaphore>>>>;

/// Who computes now, and who waits.
#[derive(Debug)]
pub(crate) struct Work {
    turns: Arc<Semaphore>,
    by_key: KeyTurns,
}

impl Default for Work {
    fn default() -> Self {
        Work { turns: Arc::new(Semaphore::new(WORK_MAX)), by_key: Arc::default() }
    }
}

impl Work {
    /// Computes on a thread of its own, once it is this request's turn. A client that leaves meanwhile still takes its turn
    /// until the body is computed.
    pub(crate) async fn run(&self, key: &KeyId, job: BodyJob) -> Result<Arc<Body>, ApiError> {
        let queue = KeyQueue::join(&self.by_key, key);
        let turns = async {
            let own = Arc::clone(&queue.turns).acquire_owned().await?;
            Ok::<_, tokio::sync::AcquireError>((own, Arc::clone(&self.turns).acquire_owned().await?))
        };
        let Ok(Ok(turns)) = tokio::time::timeout(PATIENCE, turns).await else { return Err(ApiError::overloaded()) };
        let computing = tokio::task::spawn_blocking(move || {
            let _held = (turns, queue);
            job.run()
        });
        computing.await.map_err(|_| ApiError::internal())
    }
}

/// A place in the queue of a key. The last one to leave removes the queue.
#[derive(Debug)]
struct KeyQueue {
    by_key: KeyTurns,
    key: KeyId,
    turns: Arc<Semaphore>,
}

impl KeyQueue {
    fn join(by_key: &KeyTurns, key: &KeyId) -> Self {
        let mut queues = by_key.lock().unwrap_or_else(PoisonError::into_inner);
        let turns = queues.entry(key.clone()).or_insert_with(|| Arc::new(Semaphore::new(1)));
        KeyQueue { by_key: Arc::clone(by_key), key: key.clone(), turns: Arc::clone(turns) }
    }
}

impl Drop for KeyQueue {
    fn drop(&mut self) {
        let mut queues = self.by_key.lock().unwrap_or_else(PoisonError::into_inner);
        // The map's own, this one, and that of a permit, which is dropped before this.
        if queues.get(&self.key).is_some_and(|turns| Arc::strong_count(turns) <= 2) {
            queues.remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[tokio::test]
    async fn one_body_of_a_key_is_computed_at_a_time() {
        let work = Work::default();
        let [one, other] = ["key_000000000001", "key_000000000002"].map(|id| KeyId::new(id).unwrap());
        let (end, ends) = mpsc::channel::<()>();
        let first = work.run(
            &one,
            BodyJob::new(move || {
                ends.recv().unwrap();
                Arc::new(Body::new("first", None))
            }),
        );
        let second = work.run(&one, BodyJob::new(|| Arc::new(Body::new("second", None))));
        let others = work.run(&other, BodyJob::new(|| Arc::new(Body::new("third", None))));
        let mut first = Box::pin(first);
        let mut second = Box::pin(second);
        tokio::select! {
            biased;
            _ = &mut first => panic!("it waits for the test"),
            _ = &mut second => panic!("it waits for the first"),
            body = others => assert_eq!(body.unwrap().len(), 5, "another key has its own turn"),
        }
        end.send(()).unwrap();
        assert_eq!(first.await.unwrap().len(), 5);
        assert_eq!(second.await.unwrap().len(), 6);
        assert!(work.by_key.lock().unwrap().is_empty(), "nothing is kept of a key that waits for nothing");
    }
}
