//! A stream of feed lines in pieces of any size, between its producer and its consumer. The channel holds a few pieces, so
//! that a stream needs the same memory however long it is.

use std::io;
use std::pin::Pin;
use std::task::{Context as TaskContext, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame};
use tokio::sync::mpsc;

use crate::http::ResponseBody;

/// Pieces in the channel; more would only use memory.
const WAITING_MAX: usize = 4;

/// Pieces of a stream of feed lines, or the error that broke it off.
pub type PieceSource = mpsc::Receiver<io::Result<Bytes>>;

/// A body that is either whole or comes in pieces.
pub(super) type PiecesBody = ResponseBody;

pub(super) fn channel() -> (mpsc::Sender<io::Result<Bytes>>, PieceSource) {
    mpsc::channel(WAITING_MAX)
}

pub(super) fn whole(bytes: Bytes) -> PiecesBody {
    bytes.into()
}

pub(super) fn body(source: PieceSource) -> PiecesBody {
    ResponseBody::stream(Pieces(source))
}

struct Pieces(PieceSource);

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
