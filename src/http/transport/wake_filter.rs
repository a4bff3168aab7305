//! A future beside a busier one, in the same task.
//!
//! Whoever waits for two things polls both whenever either stirs. A connection stirs with every request, while its
//! deadlines and the service's end come once in seconds, or once: asking them each time would cost more than they are
//! worth. So what stands aside is polled only when it has called, and not for what wakes the other.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

#[derive(Debug)]
pub(crate) struct WakeFilter<F> {
    inner: F,
    call: Arc<Call>,
    /// Whom the call wakes, as far as is known here.
    task: Option<Waker>,
}

#[derive(Debug)]
struct Call {
    is_heard: AtomicBool,
    task: Mutex<Option<Waker>>,
}

impl Wake for Call {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.is_heard.store(false, Ordering::Release);
        let task = self.task.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(task) = &*task {
            task.wake_by_ref();
        }
    }
}

impl<F: Future + Unpin> WakeFilter<F> {
    pub(crate) fn new(inner: F) -> Self {
        // The first poll is due without a call.
        WakeFilter {
            inner,
            call: Arc::new(Call { is_heard: AtomicBool::new(false), task: Mutex::default() }),
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
        // A call that comes from here on wakes the task, and is heard the next time.
        if self.call.is_heard.load(Ordering::Acquire) || self.call.is_heard.swap(true, Ordering::AcqRel) {
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
    async fn it_is_polled_only_when_it_calls_and_then_it_is() {
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
            // Held, so that only the end ends the loop below.
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

    #[tokio::test]
    async fn a_timer_beside_a_busy_loop_is_heard() {
        let timer = pin!(tokio::time::sleep(Duration::from_millis(20)));
        let mut timer = WakeFilter::new(timer);
        let busy = async {
            loop {
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            biased;
            () = busy => {}
            () = &mut timer => {}
        }
    }
}
