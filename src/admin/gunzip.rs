//! Compressed feed lines: gzip, inflated piece by piece into a buffer of one size, however much a piece holds.
//!
//! A small body can inflate to a thousand times its size. So a stream has a bound on its inflated bytes and on their
//! ratio to the bytes that were sent, and every full buffer lets other tasks run.

use flate2::{Decompress, FlushDecompress, Status};

use super::intake::Intake;
use super::protocol::{Failure, FailureCode};

const BUFFER_BYTES: usize = 64 << 10;
/// Feed lines shrink to a tenth or a fiftieth; what shrinks much further is no feed.
const RATIO_MAX: u64 = 250;
/// The ratio counts from here on: a short body may be as repetitive as it likes.
const RATIO_FREE_BYTES: u64 = 16 << 20;

/// A gzip stream on its way in, of one member or several.
#[derive(Debug)]
pub(super) struct Gunzip {
    member: Decompress,
    /// Whether the last member is complete.
    is_whole: bool,
    buffer: Box<[u8]>,
    /// Bytes of all members so far, as sent and inflated.
    sent: u64,
    inflated: u64,
    inflated_max: u64,
}

impl Gunzip {
    /// A stream that may inflate to so many bytes.
    pub(super) fn new(inflated_max: u64) -> Self {
        let buffer = vec![0; BUFFER_BYTES].into();
        Gunzip { member: begin(), is_whole: false, buffer, sent: 0, inflated: 0, inflated_max }
    }

    /// Takes in what a piece says, and waits for the writer as it goes.
    pub(super) async fn push(&mut self, mut bytes: &[u8], intake: &mut Intake) -> Result<(), Failure> {
        // A full buffer may leave more behind although every byte has been read.
        let mut is_full = false;
        while !bytes.is_empty() || is_full {
            if self.is_whole {
                (self.member, self.is_whole) = (begin(), false);
            }
            let (read_before, written_before) = (self.member.total_in(), self.member.total_out());
            let status = self.member.decompress(bytes, &mut self.buffer, FlushDecompress::None);
            let status =
                status.map_err(|_| Failure::bad_request("the body is no gzip, as its content-encoding says"))?;
            let read = moved(read_before, self.member.total_in());
            let written = moved(written_before, self.member.total_out());
            bytes = bytes.get(read..).unwrap_or_default();
            self.bound(read, written)?;
            intake.push(self.buffer.get(..written).unwrap_or_default()).await?;
            tokio::task::yield_now().await;
            self.is_whole = status == Status::StreamEnd;
            is_full = !self.is_whole && written == self.buffer.len();
            if !self.is_whole && !is_full && read == 0 && written == 0 {
                break;
            }
        }
        Ok(())
    }

    fn bound(&mut self, read: usize, written: usize) -> Result<(), Failure> {
        self.sent += read as u64;
        self.inflated += written as u64;
        let why = if self.inflated > self.inflated_max {
            format!("the body inflates to more than {} bytes, which is ingest.inflated_max", self.inflated_max)
        } else if self.inflated > RATIO_FREE_BYTES && self.inflated / RATIO_MAX > self.sent {
            format!("the body inflates to more than {RATIO_MAX} times its size")
        } else {
            return Ok(());
        };
        Err(Failure::new(FailureCode::TooLarge, format!("{why}: send the rest in another request, or uncompressed")))
    }

    /// The end of the stream, which must be the end of a member.
    pub(super) fn finish(&self) -> Result<(), Failure> {
        if self.is_whole { Ok(()) } else { Err(Failure::bad_request("the gzip body broke off")) }
    }
}

fn begin() -> Decompress {
    Decompress::new_gzip(15)
}

fn moved(before: u64, after: u64) -> usize {
    usize::try_from(after - before).unwrap_or(usize::MAX)
}
