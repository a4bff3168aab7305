//! The three phases of a listener's life, signalled to every connection: open, draining, closed.

use tokio::sync::watch;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum ListenerPhase {
    Open,
    /// What has begun is finished; nothing new begins.
    Draining,
    /// What is left is dropped.
    Closed,
}

/// The listener's side. Dropping it closes.
#[derive(Debug)]
pub(crate) struct Stop(watch::Sender<ListenerPhase>);

/// A connection's side.
#[derive(Clone, Debug)]
pub(crate) struct Phases(watch::Receiver<ListenerPhase>);

impl Stop {
    pub(crate) fn new() -> (Stop, Phases) {
        let (sender, receiver) = watch::channel(ListenerPhase::Open);
        (Stop(sender), Phases(receiver))
    }

    pub(crate) fn drain(&self) {
        self.0.send_replace(ListenerPhase::Draining);
    }

    pub(crate) fn close(self) {
        self.0.send_replace(ListenerPhase::Closed);
    }
}

impl Phases {
    /// Returns when the listener drains, or at once if it does.
    pub(crate) async fn draining(&mut self) {
        self.reach(ListenerPhase::Draining).await;
    }

    pub(crate) async fn closed(&mut self) {
        self.reach(ListenerPhase::Closed).await;
    }

    async fn reach(&mut self, phase: ListenerPhase) {
        // An error means that the listener is gone, which counts as closed.
        let _ = self.0.wait_for(|reached| *reached >= phase).await;
    }
}
