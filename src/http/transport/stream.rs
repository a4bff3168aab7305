//! The bytes of a connection: what was read ahead comes first, and all progress is reported to the connection's pulse.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::connection::Protocol;
use super::deadline::Pulse;
use super::frames::Frames;

/// The response to a head that is too long, where nothing else is in flight.
const TOO_LARGE: &[u8] =
    b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";

/// Both directions of a connection: TCP, a Unix socket, or TLS on either.
pub(crate) trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Duplex for S {}

pub(crate) type BoxedStream = Box<dyn Duplex>;

pub(crate) struct PulsedStream {
    inner: BoxedStream,
    /// Read while the protocol was being recognised, and not yet read again.
    ahead: Bytes,
    pulse: Arc<Pulse>,
    /// In HTTP/2, what comes in. In HTTP/1, bytes that come in while nothing is in flight are those of a head.
    frames: Option<Frames>,
}

impl PulsedStream {
    pub(crate) fn new(inner: BoxedStream, ahead: Bytes, pulse: Arc<Pulse>, protocol: Protocol) -> Self {
        let frames = (protocol == Protocol::Http2).then(Frames::new);
        PulsedStream { inner, ahead, pulse, frames }
    }

    /// False if these bytes exceed the bound on unfinished heads.
    fn has_read(&mut self, bytes: &[u8]) -> bool {
        match &mut self.frames {
            None => self.pulse.has_read(bytes.len()),
            Some(frames) => self.pulse.head.is_now(frames.read(bytes)),
        }
    }

    /// Reports the outcome of a write to the pulse.
    fn after_write(&self, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        match &written {
            Poll::Ready(Ok(count)) => self.pulse.has_written(*count),
            Poll::Ready(Err(_)) => {}
            Poll::Pending => self.pulse.cannot_write(),
        }
        written
    }

    /// Ends a connection that exceeds the bound on unfinished heads.
    fn refuse(&mut self, cx: &mut Context<'_>) -> io::Error {
        if self.frames.is_none() && !self.pulse.head.has_answered() {
            // Whether it can be sent at once or not, the connection is closed.
            let _ = Pin::new(&mut self.inner).poll_write(cx, TOO_LARGE).is_ready();
            let _ = Pin::new(&mut self.inner).poll_flush(cx).is_ready();
        }
        io::Error::new(io::ErrorKind::QuotaExceeded, "too many bytes of unfinished request heads")
    }
}

impl AsyncRead for PulsedStream {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        if self.ahead.is_empty() {
            ready!(Pin::new(&mut self.inner).poll_read(cx, buf))?;
        } else {
            let count = self.ahead.len().min(buf.remaining());
            buf.put_slice(&self.ahead[..count]);
            self.ahead.advance(count);
            if self.ahead.is_empty() {
                // Its memory is of no use any more, and the connection may last.
                self.ahead = Bytes::new();
            }
        }
        let bytes = &buf.filled()[before..];
        let fits = bytes.is_empty() || self.has_read(bytes);
        Poll::Ready(if fits { Ok(()) } else { Err(self.refuse(cx)) })
    }
}

impl AsyncWrite for PulsedStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write(cx, bytes);
        self.after_write(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write_vectored(cx, parts);
        self.after_write(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        // Under TLS a write is buffered before it is sent, so a client that reads nothing shows here.
        let flushed = Pin::new(&mut self.inner).poll_flush(cx);
        match &flushed {
            Poll::Ready(_) => self.pulse.has_written(0),
            Poll::Pending => self.pulse.cannot_write(),
        }
        flushed
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}
