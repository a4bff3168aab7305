//! Compressed feed lines: gzip, undone piece by piece into a buffer of one size, however much a piece holds.

use flate2::{Decompress, FlushDecompress, Status};

use super::intake::Intake;
use super::protocol::Failure;

const BUFFER_BYTES: usize = 64 << 10;

/// A gzip stream on its way in, of one member or several.
#[derive(Debug)]
pub(super) struct Gunzip {
    member: Decompress,
    /// Whether the last member is complete.
    is_whole: bool,
    buffer: Box<[u8]>,
}

impl Gunzip {
    pub(super) fn new() -> Self {
        Gunzip { member: begin(), is_whole: false, buffer: vec![0; BUFFER_BYTES].into() }
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
            intake.push(self.buffer.get(..written).unwrap_or_default()).await?;
            self.is_whole = status == Status::StreamEnd;
            is_full = !self.is_whole && written == self.buffer.len();
            if !self.is_whole && !is_full && read == 0 && written == 0 {
                break;
            }
        }
        Ok(())
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
