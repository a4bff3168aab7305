//! What is reported to the service manager, where one listens (`Type=notify` of systemd): when the server is ready, reloads
//! and stops, and, where a watchdog is set, that it still answers. Without one all of this does nothing.
//!
//! The watchdog is fed only while the service works: the accept loop of the public interface runs, and the writer
//! answers. A check of a large file keeps the writer busy for minutes, so it has a longer deadline than the listener.

use std::sync::Arc;
use std::time::Duration;

use sd_notify::NotifyState;
use tokio::time::{Instant, MissedTickBehavior};

use super::writer_watch::WriterWatch;
use crate::metrics::Traffic;

/// The accept loop reports once a second, or a little later when it cannot accept.
const DOOR_PATIENCE: Duration = Duration::from_secs(5);
const WRITER_PATIENCE: Duration = Duration::from_secs(300);

pub(super) fn ready(status: &str) {
    tell(&[NotifyState::Ready, NotifyState::Status(status)]);
}

/// The first time; returns the status.
pub(super) fn ready_on(base: &str) -> String {
    let status = format!("serving on {base}");
    ready(&status);
    status
}

/// A reload has begun; [`ready`] ends it.
pub(super) fn reloading() {
    // The time tells the manager's own signal from an older one.
    match NotifyState::monotonic_usec_now() {
        Ok(now) => tell(&[NotifyState::Reloading, now]),
        Err(error) => tracing::debug!(%error, "failed to notify the service manager"),
    }
}

pub(super) fn stopping() {
    tell(&[NotifyState::Stopping, NotifyState::Status("finishing requests in flight")]);
}

fn tell(state: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(state) {
        tracing::debug!(%error, "failed to notify the service manager");
    }
}

/// Feeds the watchdog while the service works; returns at once if there is none.
pub(super) async fn watchdog(traffic: Arc<Traffic>, writer: Arc<WriterWatch>) {
    let Some(within) = sd_notify::watchdog_enabled() else { return };
    let period = (within / 4).max(Duration::from_millis(1));
    let mut pings = tokio::time::interval(period);
    pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut listener = ListenerWatch::new(&traffic, Instant::now());
    loop {
        pings.tick().await;
        if listener.works(&traffic, Instant::now()) && writer.answers_within(WRITER_PATIENCE) {
            tell(&[NotifyState::Watchdog]);
        }
    }
}

/// Whether the accept loop of the public interface runs.
struct ListenerWatch {
    beats: u64,
    since: Instant,
}

impl ListenerWatch {
    fn new(traffic: &Traffic, now: Instant) -> Self {
        ListenerWatch { beats: traffic.beats(), since: now }
    }

    fn works(&mut self, traffic: &Traffic, now: Instant) -> bool {
        if traffic.beats() != self.beats {
            *self = ListenerWatch::new(traffic, now);
        }
        now - self.since < DOOR_PATIENCE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_door_that_stands_still_is_noticed() {
        let traffic = Traffic::new(&["unknown"], &[]);
        let mut now = Instant::now();
        let mut listener = ListenerWatch::new(&traffic, now);
        for _ in 0..10 {
            now += Duration::from_secs(2);
            traffic.beat();
            assert!(listener.works(&traffic, now));
        }
        assert!(listener.works(&traffic, now + Duration::from_secs(4)));
        assert!(!listener.works(&traffic, now + Duration::from_secs(6)));
        traffic.beat();
        assert!(listener.works(&traffic, now + Duration::from_secs(7)), "it runs again");
    }
}
