//! The same head again: how a client that polls is answered without being read anew.
//!
//! A client that polls sends the very same bytes each time. What they mean does not change either, so a connection
//! remembers the last few heads that came more than once, as the HTTP library read them. When the same bytes come
//! again, the request is answered from what is remembered, and the library sees neither it nor its answer: reading a
//! head and leading it through the library cost more than everything else about such a request.
//!
//! 1. Bytes that come while the library rests are compared with the heads that are remembered.
//! 2. If they are one of those, the service answers: key, quota, log and all. Only if it has to wait for something, the
//!    library gets the request after all.
//! 3. All else goes to the library. A head that comes a second time is remembered with what the library made of it.
//!
//! Nothing is read here, only compared, so there are no two opinions on what a request is. Whose turn it is stands in
//! `turn`: whenever it is not plain that the library holds nothing, as with requests that have bodies or that come
//! several at a time, the connection is the library's for the rest of its life.

mod head;
mod turn;

use std::cell::Cell;
use std::hash::BuildHasher;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use foldhash::fast::FixedState;
use http::Request;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

pub use head::Head;
pub(super) use turn::{Turn, has_body};

use super::client_address::Peer;
use super::deadline::Pulse;
use super::service::Respond;
use super::stream::PulsedStream;

/// How many heads a connection remembers, and of how many it knows that they came once.
const KNOWN_MAX: usize = 4;
const SEEN_MAX: usize = 8;

/// Heads beyond this are rare, and not worth the memory of each connection.
const HEAD_BYTES_MAX: usize = 2 << 10;

/// A body up to this size is copied behind its head: one piece costs less to send than two.
const COPIED_MAX: usize = 4 << 10;

/// The bytes of a connection in HTTP/1, less those that are answered here.
#[derive(Debug)]
pub(super) struct AgainStream<S, R> {
    inner: PulsedStream<S>,
    pulse: Arc<Pulse>,
    service: Arc<R>,
    peer: Peer,
    turn: Arc<Turn>,
    known: Vec<Known>,
    /// Which of the known is forgotten next.
    oldest: usize,
    /// Hashes of heads that came, the last ones.
    seen: [u64; SEEN_MAX],
    next_seen: usize,
    /// The head that the library has, if it came before.
    given: Vec<u8>,
    /// An answer that was given here and is on its way.
    unsent: Option<Unsent>,
}

/// A head, and what the library made of it.
#[derive(Debug)]
struct Known {
    head: Box<[u8]>,
    request: Box<Request<()>>,
}

/// An answer, and how much of its head and body together is sent.
#[derive(Debug)]
struct Unsent {
    head: Head,
    body: Bytes,
    sent: usize,
}

thread_local! {
    /// A head to write the next answer in: connections that rest hold none.
    static SPARE: Cell<Head> = Cell::default();
}

impl<S, R> AgainStream<S, R> {
    pub(super) fn new(inner: PulsedStream<S>, pulse: Arc<Pulse>, service: Arc<R>, peer: Peer, turn: Arc<Turn>) -> Self {
        AgainStream {
            inner,
            pulse,
            service,
            peer,
            turn,
            known: Vec::new(),
            oldest: 0,
            seen: [0; SEEN_MAX],
            next_seen: 0,
            given: Vec::new(),
            unsent: None,
        }
    }

    /// Hands bytes to the library, and notes whether they came before.
    fn give(&mut self, bytes: &[u8]) {
        if !turn::is_one_head(bytes) {
            self.give_up();
            return;
        }
        let hash = FixedState::with_seed(0).hash_one(bytes);
        let is_again = bytes.len() <= HEAD_BYTES_MAX && self.seen.contains(&hash);
        if is_again {
            self.given.extend_from_slice(bytes);
        } else {
            self.seen[self.next_seen] = hash;
            self.next_seen = (self.next_seen + 1) % SEEN_MAX;
        }
        self.turn.give(is_again);
    }

    /// Leaves the rest of the connection to the library.
    fn give_up(&mut self) {
        self.turn.end();
        self.known = Vec::new();
        self.given = Vec::new();
    }

    /// The library has sent an answer, and rests.
    fn rest(&mut self) {
        let request = self.turn.rest();
        let head = std::mem::take(&mut self.given).into_boxed_slice();
        let Some(request) = request else { return };
        // The library also gets a known head, where its answer had to wait for something.
        if self.known.iter().any(|known| known.head == head) {
            return;
        }
        let known = Known { head, request };
        if self.known.len() < KNOWN_MAX {
            self.known.push(known);
        } else {
            self.known[self.oldest] = known;
            self.oldest = (self.oldest + 1) % KNOWN_MAX;
        }
    }
}

impl<S, R: Respond> AgainStream<S, R> {
    /// Answers if these bytes are a head that is remembered; else they are the library's.
    fn answer(&mut self, bytes: &[u8]) -> bool {
        if !self.turn.is_resting() {
            // More comes while the library is at work: it may hold what is not known here.
            self.give_up();
            return false;
        }
        let Some(known) = self.known.iter().find(|known| *known.head == *bytes) else {
            self.give(bytes);
            return false;
        };
        let mut head = SPARE.take();
        let Some(mut body) = self.service.answer_again(&known.request, &self.peer, &mut head) else {
            SPARE.set(head);
            self.give(bytes);
            return false;
        };
        self.pulse.has_answered();
        if body.len() <= COPIED_MAX {
            head.push(&std::mem::take(&mut body));
        }
        self.unsent = Some(Unsent { head, body, sent: 0 });
        true
    }
}

impl<S: AsyncWrite + Unpin, R> AgainStream<S, R> {
    /// Sends what is left of an answer that was given here.
    fn poll_send(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Some(Unsent { head, body, sent }) = &mut self.unsent else { return Poll::Ready(Ok(())) };
        let head = head.bytes();
        while *sent < head.len() + body.len() {
            let inner = Pin::new(&mut self.inner);
            let written = match head.get(*sent..).filter(|rest| !rest.is_empty()) {
                Some(rest) if body.is_empty() => inner.poll_write(cx, rest),
                Some(rest) => inner.poll_write_vectored(cx, &[IoSlice::new(rest), IoSlice::new(body)]),
                None => inner.poll_write(cx, &body[*sent - head.len()..]),
            };
            match ready!(written)? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                count => *sent += count,
            }
        }
        ready!(Pin::new(&mut self.inner).poll_flush(cx))?;
        if let Some(sent) = self.unsent.take() {
            SPARE.set(sent.head);
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin, R: Respond> AsyncRead for AgainStream<S, R> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        loop {
            ready!(this.poll_send(cx))?;
            let before = buf.filled().len();
            ready!(Pin::new(&mut this.inner).poll_read(cx, buf))?;
            let bytes = &buf.filled()[before..];
            if bytes.is_empty() || this.turn.is_over() || !this.answer(bytes) {
                return Poll::Ready(Ok(()));
            }
            buf.set_filled(before);
        }
    }
}

impl<S: AsyncWrite + Unpin, R> AsyncWrite for AgainStream<S, R> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        ready!(self.poll_send(cx))?;
        Pin::new(&mut self.inner).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_send(cx))?;
        Pin::new(&mut self.inner).poll_write_vectored(cx, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_send(cx))?;
        ready!(Pin::new(&mut self.inner).poll_flush(cx))?;
        if self.turn.has_answered() {
            self.rest();
        }
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_send(cx))?;
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}
