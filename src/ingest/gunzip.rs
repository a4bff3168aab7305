//! Inflates gzip-compressed feed lines chunk by chunk into a buffer of fixed size.
//!
//! A small body can inflate to a thousand times its size. So the inflated bytes of a stream and their ratio to the bytes
//! sent are bounded, and every full buffer lets other tasks run. async-compression does not tell how much input it has
//! consumed, which the ratio needs, so this drives flate2 itself.

use flate2::{Decompress, FlushDecompress, Status};

use super::error::IngestError;
use super::stream::LineStream;

const BUFFER_BYTES: usize = 64 << 10;
/// Feed lines compress by a factor of 10 to 50; what compresses much better is no feed.
pub(super) const RATIO_MAX: u64 = 250;
/// The ratio is checked above this: a short body may be as repetitive as it likes.
const RATIO_FREE_BYTES: u64 = 16 << 20;

/// A gzip stream of one or more members.
#[derive(Debug)]
pub(super) struct Gunzip {
    member: Decompress,
    /// Whether the last member is complete.
    is_whole: bool,
    buffer: Box<[u8]>,
    /// Bytes of all members so far, as sent and as inflated.
    sent: u64,
    inflated: u64,
    inflated_max: u64,
}

impl Gunzip {
    /// A stream that may inflate to at most this many bytes.
    pub(super) fn new(inflated_max: u64) -> Self {
        let buffer = vec![0; BUFFER_BYTES].into();
        Gunzip { member: begin(), is_whole: false, buffer, sent: 0, inflated: 0, inflated_max }
    }

    /// Inflates a chunk into the stream of lines, and waits for the writer as it goes.
    pub(super) async fn push(&mut self, mut bytes: &[u8], lines: &mut LineStream) -> Result<(), IngestError> {
        // A full buffer may leave output behind although every input byte was consumed.
        let mut is_full = false;
        while !bytes.is_empty() || is_full {
            if self.is_whole {
                (self.member, self.is_whole) = (begin(), false);
            }
            let (read_before, written_before) = (self.member.total_in(), self.member.total_out());
            let status = self.member.decompress(bytes, &mut self.buffer, FlushDecompress::None);
            let status = status.map_err(|_| IngestError::NotGzip)?;
            let read = moved(read_before, self.member.total_in());
            let written = moved(written_before, self.member.total_out());
            bytes = bytes.get(read..).unwrap_or_default();
            self.check_bounds(read, written)?;
            lines.push(self.buffer.get(..written).unwrap_or_default()).await?;
            tokio::task::yield_now().await;
            self.is_whole = status == Status::StreamEnd;
            is_full = !self.is_whole && written == self.buffer.len();
            if !self.is_whole && !is_full && read == 0 && written == 0 {
                break;
            }
        }
        Ok(())
    }

    fn check_bounds(&mut self, read: usize, written: usize) -> Result<(), IngestError> {
        self.sent += read as u64;
        self.inflated += written as u64;
        if self.inflated > self.inflated_max {
            return Err(IngestError::InflatesTooFar(self.inflated_max));
        }
        if self.inflated > RATIO_FREE_BYTES && self.inflated / RATIO_MAX > self.sent {
            return Err(IngestError::InflatesTooMuch);
        }
        Ok(())
    }

    /// The end of the stream, which must be the end of a member.
    pub(super) fn finish(&self) -> Result<(), IngestError> {
        if self.is_whole { Ok(()) } else { Err(IngestError::GzipBrokenOff) }
    }
}

fn begin() -> Decompress {
    Decompress::new_gzip(15)
}

fn moved(before: u64, after: u64) -> usize {
    usize::try_from(after - before).unwrap_or(usize::MAX)
}
