//! A future that is polled only when its own waker was called, beside a busier one in the same task.
//!
//! `select!` polls all of its futures whenever the task wakes. A connection wakes with every request, while its deadlines
//! and the shutdown fire once in seconds, or once: polling them each time would cost more than they are worth.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

#[derive(Debug)]
pub(crate) struct WakeFilter<F> {
    inner: F,
    call: Arc<WakeFlag>,
    /// The waker that was last registered with `call`.
    task: Option<Waker>,
}

#[derive(Debug)]
struct WakeFlag {
    is_handled: AtomicBool,
    task: Mutex<Option<Waker>>,
}

impl Wake for WakeFlag {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.is_handled.store(false, Ordering::Release);
        let task = self.task.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(task) = &*task {
            task.wake_by_ref();
        }
    }
}

impl<F: Future + Unpin> WakeFilter<F> {
    pub(crate) fn new(inner: F) -> Self {
        // The first poll needs no wake-up.
        WakeFilter {
            inner,
            call: Arc::new(WakeFlag { is_handled: AtomicBool::new(false), task: Mutex::default() }),
            task: None,
        }
    }
}

impl<F: Future + Unpin> Future for WakeFilter<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let is_known = self.task.as_ref().is_some_and(|task| task.will_wake(context.waker()));
        if !is_known {
            self.task = Some(context.waker().clone());
            *self.call.task.lock().unwrap_or_else(PoisonError::into_inner) = Some(context.waker().clone());
        }
        // A wake-up from here on wakes the task, and leads to the next poll.
        if self.call.is_handled.load(Ordering::Acquire) || self.call.is_handled.swap(true, Ordering::AcqRel) {
            return Poll::Pending;
        }
        let waker = Waker::from(Arc::clone(&self.call));
        Pin::new(&mut self.inner).poll(&mut Context::from_waker(&waker))
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::pin::pin;
    use std::time::Duration;

    use tokio::sync::{mpsc, oneshot};

    use super::*;

    #[tokio::test]
    async fn future_is_polled_only_when_its_own_waker_was_called() {
        let (end, mut ended) = oneshot::channel::<()>();
        let mut polls = 0;
        let aside = poll_fn(|context| {
            polls += 1;
            Pin::new(&mut ended).poll(context)
        });
        let mut aside = WakeFilter::new(aside);
        let (steps, mut stepped) = mpsc::channel(1);
        let busy = tokio::spawn(async move {
            for step in 0..100 {
                steps.send(step).await.unwrap();
            }
            end.send(()).unwrap();
            // Kept alive: dropping it would end the loop below too early.
            std::future::pending::<()>().await;
            drop(steps);
        });
        let mut seen = 0;
        loop {
            tokio::select! {
                biased;
                Some(_) = stepped.recv() => seen += 1,
                _ = &mut aside => break,
            }
        }
        busy.abort();
        assert_eq!(seen, 100);
        drop(aside);
        assert!(polls <= 3, "{polls}");
    }

    #[tokio::test(start_paused = true)]
    async fn timer_beside_a_busy_future_fires() {
        let timer = pin!(tokio::time::sleep(Duration::from_secs(2)));
        let mut timer = WakeFilter::new(timer);
        let busy = async {
            for _ in 0..1000 {
                tokio::task::yield_now().await;
                tokio::time::sleep(Duration::from_millis(3)).await;
            }
        };
        tokio::select! {
            biased;
            () = busy => panic!("the timer did not fire"),
            () = &mut timer => {}
        }
    }
}
