//! Deadlines of a connection: for the head of a request, for silence between requests, and for a write that does not
//! move.
//!
//! The HTTP library has no write deadline, and its one for heads also runs while a connection rests. So a connection
//! carries a [`Pulse`]: whoever makes progress beats it, which costs a store, and a watch looks at it now and then. A
//! connection is closed when its pulse has stood still for longer than what it is doing may take, give or take a look.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use tracing::Level;

use super::heads::{Heads, UnfinishedHead};
use crate::log::{LineKind, limited};

/// Below any head of an answer, above any ping.
const STEP_BYTES_MIN: usize = 64;

/// How long a connection may stand still.
#[derive(Clone, Copy, Debug)]
pub struct Deadlines {
    /// From the first byte of a request's head, or from the connection's start, to the end of that head.
    pub head: Duration,
    /// Without any request.
    pub idle: Duration,
    /// With bytes to write, none of which the client takes.
    pub write: Duration,
}

impl Default for Deadlines {
    fn default() -> Self {
        Deadlines { head: Duration::from_secs(10), idle: Duration::from_secs(75), write: Duration::from_secs(30) }
    }
}

impl Deadlines {
    /// Often enough that no deadline is overrun by more than a quarter of the shortest.
    fn look_every(&self) -> Duration {
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
    pub(crate) head: UnfinishedHead,
}

/// What a connection is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Doing {
    Resting,
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
            head: UnfinishedHead::new(heads),
        }
    }

    /// Two beats at once may count as one: that the number changes is all that is looked at.
    fn beat(&self) {
        self.beats.store(self.beats.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    }

    /// Bytes came in. Only the first of a head is a step forward: a head that trickles in is not. False if they are more
    /// of an unfinished head than may be held.
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

    /// Bytes went out. A few at a time are a keep-alive ping, or a client that takes them one by one to hold on to its
    /// place: no step forward.
    pub(crate) fn has_written(&self, count: usize) {
        self.is_write_blocked.store(false, Ordering::Relaxed);
        if count >= STEP_BYTES_MIN {
            self.beat();
        }
    }

    pub(crate) fn cannot_write(&self) {
        self.is_write_blocked.store(true, Ordering::Relaxed);
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

    fn doing(&self) -> Doing {
        if self.is_write_blocked.load(Ordering::Relaxed) {
            Doing::WriteBlocked
        } else if self.in_flight.load(Ordering::Relaxed) > 0 {
            Doing::Answering
        } else if self.in_head.load(Ordering::Relaxed) {
            Doing::SendingHead
        } else {
            Doing::Resting
        }
    }
}

#[derive(Debug)]
pub(crate) struct InFlight<'p>(&'p Pulse);

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::Relaxed);
        self.0.beat();
    }
}

/// Returns when the pulse has stood still for too long.
pub(crate) async fn watch(pulse: &Pulse, deadlines: &Deadlines, peer: IpAddr) {
    let look_every = deadlines.look_every();
    let mut last = (pulse.doing(), pulse.beats.load(Ordering::Relaxed));
    let mut still_since = tokio::time::Instant::now();
    loop {
        tokio::time::sleep(look_every).await;
        let seen = (pulse.doing(), pulse.beats.load(Ordering::Relaxed));
        if seen != last {
            (last, still_since) = (seen, tokio::time::Instant::now());
            continue;
        }
        let allowed = match seen.0 {
            // Handling a request bounds itself.
            Doing::Answering => continue,
            Doing::WriteBlocked => deadlines.write,
            Doing::SendingHead => deadlines.head,
            Doing::Resting => deadlines.idle,
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

    const DEADLINES: Deadlines = Deadlines {
        head: Duration::from_millis(40),
        idle: Duration::from_millis(400),
        write: Duration::from_millis(40),
    };

    const PEER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    async fn ends_within(pulse: &Pulse, within: Duration) -> bool {
        tokio::time::timeout(within, watch(pulse, &DEADLINES, PEER)).await.is_ok()
    }

    #[tokio::test]
    async fn a_head_that_trickles_is_cut_off_and_rest_is_not() {
        let pulse = Pulse::default();
        assert!(!ends_within(&pulse, Duration::from_millis(150)).await, "resting is allowed for longer");
        pulse.has_read(1);
        let trickle = async {
            loop {
                tokio::time::sleep(Duration::from_millis(5)).await;
                pulse.has_read(1);
            }
        };
        tokio::select! {
            () = trickle => {}
            () = watch(&pulse, &DEADLINES, PEER) => {}
        }
    }

    #[tokio::test]
    async fn an_answer_may_take_its_time_and_a_blocked_write_may_not() {
        let pulse = Pulse::default();
        let request = pulse.request();
        assert!(!ends_within(&pulse, Duration::from_millis(600)).await);
        drop(request);
        pulse.cannot_write();
        assert!(ends_within(&pulse, Duration::from_secs(20)).await);
    }
}
