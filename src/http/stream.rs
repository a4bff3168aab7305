//! The bytes of a connection: what was read ahead comes first, and every step is felt in the connection's pulse.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::deadline::Pulse;

#[derive(Debug)]
pub(super) struct PulsedStream<S> {
    inner: S,
    /// Read while the protocol was being recognised, and not yet read again.
    ahead: Bytes,
    pulse: Arc<Pulse>,
    /// Whether bytes that come in while nothing is in flight begin a request. In HTTP/2 they may be anything.
    reads_heads: bool,
}

impl<S> PulsedStream<S> {
    pub(super) fn new(inner: S, ahead: Bytes, pulse: Arc<Pulse>, reads_heads: bool) -> Self {
        PulsedStream { inner, ahead, pulse, reads_heads }
    }

    fn has_read(&self) {
        if self.reads_heads {
            self.pulse.has_read();
        }
    }

    /// Tells the pulse what became of a write.
    fn after_write(&self, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        match &written {
            Poll::Ready(Ok(count)) => self.pulse.has_written(*count),
            Poll::Ready(Err(_)) => {}
            Poll::Pending => self.pulse.cannot_write(),
        }
        written
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for PulsedStream<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if !self.ahead.is_empty() {
            let count = self.ahead.len().min(buf.remaining());
            buf.put_slice(&self.ahead[..count]);
            self.ahead.advance(count);
            self.has_read();
            return Poll::Ready(Ok(()));
        }
        let before = buf.filled().len();
        let result = ready!(Pin::new(&mut self.inner).poll_read(cx, buf));
        if buf.filled().len() > before {
            self.has_read();
        }
        Poll::Ready(result)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for PulsedStream<S> {
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
        // Under TLS a write is taken before it is sent, so a client that takes nothing is felt here.
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
