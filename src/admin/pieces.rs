//! A stream of feed lines in pieces of any size, between its producer and its consumer. The channel holds a few pieces, so
//! that a stream needs the same memory however long it is.

use std::io;
use std::pin::Pin;
use std::task::{Context as TaskContext, Poll};

use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Frame};
use tokio::sync::mpsc;

/// Pieces in the channel; more would only use memory.
const WAITING_MAX: usize = 4;

/// Pieces of a stream of feed lines, or the error that broke it off.
pub type Source = mpsc::Receiver<io::Result<Bytes>>;

/// A body that is either whole or comes in pieces.
pub(super) type PiecesBody = UnsyncBoxBody<Bytes, io::Error>;

pub(super) fn channel() -> (mpsc::Sender<io::Result<Bytes>>, Source) {
    mpsc::channel(WAITING_MAX)
}

pub(super) fn whole(bytes: Bytes) -> PiecesBody {
    Full::new(bytes).map_err(|never| match never {}).boxed_unsync()
}

pub(super) fn body(source: Source) -> PiecesBody {
    Pieces(source).boxed_unsync()
}

struct Pieces(Source);

impl Body for Pieces {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        task: &mut TaskContext<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        self.0.poll_recv(task).map(|piece| piece.map(|piece| piece.map(Frame::data)))
    }
}
