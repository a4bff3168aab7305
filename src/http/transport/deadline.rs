//! Deadlines of a connection: for the head of a request, for idleness between requests, and for a blocked write.
//!
//! The HTTP library has no write deadline, and its one for heads also runs while a connection is idle. So a connection has a
//! [`Pulse`]: progress beats it, which costs a store, and a watch samples it. A connection is closed when its pulse has not
//! changed for longer than its current activity may take, to the precision of a sample. While a request is answered no
//! deadline runs, and nothing is sampled: a stream costs nothing while it is idle.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering, fence};
use std::time::Duration;

use tokio::sync::Notify;
use tracing::Level;

use super::heads::{Heads, UnfinishedHead};
use crate::log::{LineKind, limited};

/// Below any head of an answer, above any ping.
const STEP_BYTES_MIN: usize = 64;

/// How long a connection may make no progress.
#[derive(Clone, Copy, Debug)]
pub struct Deadlines {
    /// From the first byte of a request's head, or from the connection's start, to the end of that head.
    pub head: Duration,
    /// Without any request.
    pub idle: Duration,
    /// With bytes to write, none of which the client reads.
    pub write: Duration,
}

impl Default for Deadlines {
    fn default() -> Self {
        Deadlines { head: Duration::from_secs(10), idle: Duration::from_secs(75), write: Duration::from_secs(30) }
    }
}

impl Deadlines {
    /// Often enough that no deadline is overrun by more than a quarter of the shortest.
    fn sample_every(&self) -> Duration {
        (self.head.min(self.idle).min(self.write) / 4).max(Duration::from_millis(5))
    }
}

/// The signs of life of one connection.
#[derive(Debug, Default)]
pub(crate) struct Pulse {
    /// Grows with each step forward: a head begun, a request begun or ended, bytes written.
    beats: AtomicU32,
    in_flight: AtomicU32,
    in_head: AtomicBool,
    is_write_blocked: AtomicBool,
    /// Whether the watch waits until a deadline runs again.
    is_unwatched: AtomicBool,
    runs_again: Notify,
    pub(crate) head: UnfinishedHead,
    /// Closes the connection.
    pub(crate) abort: Arc<Notify>,
}

/// What a connection is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Doing {
    Idle,
    SendingHead,
    Answering,
    WriteBlocked,
}

impl Pulse {
    pub(crate) fn new(heads: Arc<Heads>) -> Self {
        Pulse {
            beats: AtomicU32::new(0),
            in_flight: AtomicU32::new(0),
            in_head: AtomicBool::new(false),
            is_write_blocked: AtomicBool::new(false),
            is_unwatched: AtomicBool::new(false),
            runs_again: Notify::new(),
            head: UnfinishedHead::new(heads),
            abort: Arc::default(),
        }
    }

    /// Two beats at once may count as one: that the number changes is all that is looked at.
    fn beat(&self) {
        self.beats.store(self.beats.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    }

    /// Bytes were read. Only the first of a head is progress: a head that trickles in is not. False if they exceed the bound
    /// on unfinished heads.
    pub(crate) fn has_read(&self, count: usize) -> bool {
        if self.in_flight.load(Ordering::Relaxed) > 0 {
            self.head.reads_body();
            return true;
        }
        if !self.in_head.load(Ordering::Relaxed) {
            self.in_head.store(true, Ordering::Relaxed);
            self.beat();
        }
        self.head.grows_by(count)
    }

    /// Bytes were written. A few at a time are a keep-alive ping, or a client that reads one by one to keep its slot: no
    /// progress.
    pub(crate) fn has_written(&self, count: usize) {
        self.is_write_blocked.store(false, Ordering::Relaxed);
        if count >= STEP_BYTES_MIN {
            self.beat();
        }
    }

    pub(crate) fn cannot_write(&self) {
        self.is_write_blocked.store(true, Ordering::Relaxed);
        self.resume_watch();
    }

    /// A head is complete, and its request was answered at once.
    pub(crate) fn has_answered(&self) {
        self.head.is_complete();
        self.in_head.store(false, Ordering::Relaxed);
        self.beat();
    }

    /// A head is complete. The request is in flight until the guard is dropped.
    pub(crate) fn request(&self) -> InFlight<'_> {
        self.in_flight.fetch_add(1, Ordering::Relaxed);
        self.head.is_complete();
        self.in_head.store(false, Ordering::Relaxed);
        self.beat();
        InFlight(self)
    }

    /// To be called when the connection begins to do something that has a deadline.
    fn resume_watch(&self) {
        // Either this is seen here, or what was stored before is seen there.
        fence(Ordering::SeqCst);
        if self.is_unwatched.load(Ordering::Relaxed) {
            self.runs_again.notify_one();
        }
    }

    /// Waits until something has a deadline.
    async fn while_answering(&self) {
        self.is_unwatched.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        while self.doing() == Doing::Answering {
            self.runs_again.notified().await;
        }
        self.is_unwatched.store(false, Ordering::Relaxed);
    }

    fn doing(&self) -> Doing {
        if self.is_write_blocked.load(Ordering::Relaxed) {
            Doing::WriteBlocked
        } else if self.in_flight.load(Ordering::Relaxed) > 0 {
            Doing::Answering
        } else if self.in_head.load(Ordering::Relaxed) {
            Doing::SendingHead
        } else {
            Doing::Idle
        }
    }
}

/// A response that goes on: the connection is in use until this is dropped.
#[derive(Debug)]
pub(crate) struct Ongoing(Arc<Pulse>);

impl Ongoing {
    pub(crate) fn new(pulse: &Arc<Pulse>) -> Self {
        pulse.in_flight.fetch_add(1, Ordering::Relaxed);
        Ongoing(Arc::clone(pulse))
    }
}

impl Drop for Ongoing {
    fn drop(&mut self) {
        drop(InFlight(&self.0));
    }
}

#[derive(Debug)]
pub(crate) struct InFlight<'p>(&'p Pulse);

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::Relaxed);
        self.0.beat();
        self.0.resume_watch();
    }
}

/// Returns when there was no progress for too long.
pub(crate) async fn watch(pulse: &Pulse, deadlines: &Deadlines, peer: IpAddr) {
    let sample_every = deadlines.sample_every();
    let mut last = (pulse.doing(), pulse.beats.load(Ordering::Relaxed));
    let mut still_since = tokio::time::Instant::now();
    loop {
        tokio::time::sleep(sample_every).await;
        // Handling a request bounds itself.
        let was_answering = pulse.doing() == Doing::Answering;
        if was_answering {
            pulse.while_answering().await;
        }
        let seen = (pulse.doing(), pulse.beats.load(Ordering::Relaxed));
        if was_answering || seen != last {
            (last, still_since) = (seen, tokio::time::Instant::now());
            continue;
        }
        let allowed = match seen.0 {
            Doing::Answering => continue,
            Doing::WriteBlocked => deadlines.write,
            Doing::SendingHead => deadlines.head,
            Doing::Idle => deadlines.idle,
        };
        if still_since.elapsed() >= allowed {
            limited!(LineKind::Connection, Level::DEBUG, %peer, doing = ?seen.0, "connection closed: no progress in time");
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEADLINES: Deadlines =
        Deadlines { head: Duration::from_secs(10), idle: Duration::from_secs(100), write: Duration::from_secs(10) };

    const PEER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    async fn ends_within(pulse: &Pulse, within: Duration) -> bool {
        tokio::time::timeout(within, watch(pulse, &DEADLINES, PEER)).await.is_ok()
    }

    #[tokio::test(start_paused = true)]
    async fn head_that_trickles_is_cut_off_and_an_idle_connection_is_not() {
        let pulse = Pulse::default();
        assert!(!ends_within(&pulse, Duration::from_secs(40)).await, "idle connections have longer");
        pulse.has_read(1);
        let trickle = async {
            // Up to a quarter of the deadline may pass before it is noticed.
            for _ in 0..15 {
                tokio::time::sleep(Duration::from_secs(1)).await;
                pulse.has_read(1);
            }
        };
        tokio::select! {
            biased;
            () = watch(&pulse, &DEADLINES, PEER) => {}
            () = trickle => panic!("a head that trickles in was waited for"),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn handling_has_no_deadline_and_a_blocked_write_has() {
        let pulse = Pulse::default();
        let request = pulse.request();
        assert!(!ends_within(&pulse, Duration::from_secs(600)).await);
        drop(request);
        pulse.cannot_write();
        assert!(ends_within(&pulse, Duration::from_secs(15)).await);
    }

    #[tokio::test(start_paused = true)]
    async fn blocked_write_of_a_response_that_goes_on_has_its_deadline() {
        let pulse = Arc::new(Pulse::default());
        let _stream = Ongoing::new(&pulse);
        let began = tokio::time::Instant::now();
        let client = async {
            for _ in 0..100 {
                tokio::time::sleep(Duration::from_secs(60)).await;
                pulse.has_written(1000);
            }
            // It reads on, in time.
            pulse.cannot_write();
            tokio::time::sleep(Duration::from_secs(9)).await;
            pulse.has_written(1000);
            tokio::time::sleep(Duration::from_secs(591)).await;
            pulse.cannot_write();
        };
        tokio::join!(watch(&pulse, &DEADLINES, PEER), client);
        let took = began.elapsed().as_secs();
        assert!((6610..=6615).contains(&took), "{took}");
    }

    #[tokio::test(start_paused = true)]
    async fn deadlines_run_again_after_a_response_that_went_on() {
        let pulse = Arc::new(Pulse::default());
        let stream = Ongoing::new(&pulse);
        assert!(!ends_within(&pulse, Duration::from_secs(600)).await);
        let began = tokio::time::Instant::now();
        let client = async {
            tokio::time::sleep(Duration::from_secs(600)).await;
            drop(stream);
            pulse.has_read(1);
        };
        tokio::join!(watch(&pulse, &DEADLINES, PEER), client);
        let took = began.elapsed().as_secs();
        assert!((610..=615).contains(&took), "{took}");
    }

    #[tokio::test(start_paused = true)]
    async fn write_without_a_deadline_is_never_cut_off() {
        let pulse = Pulse::default();
        pulse.cannot_write();
        let deadlines = Deadlines { write: Duration::MAX, ..DEADLINES };
        let watched = tokio::time::timeout(Duration::from_secs(100_000), watch(&pulse, &deadlines, PEER)).await;
        assert!(watched.is_err());
    }
}
